"""`Limits`: how much the service accepts, in one place. `Occupancy` counts the requests in progress against them."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from longtail.errors import InvalidInput
from longtail.serve.refusal import Refusal


@dataclass(frozen=True)
class Limits:
    """The limits of a service. A request beyond one of them is refused.

    Parameters
    ----------
    body_bytes : int
        Size of a body, counted while it arrives.
    body_seconds : float
        Time for a body to arrive, and time that a client may read nothing of its answer.
    texts : int
        Texts in a request.
    characters : int
        Length of a text, in code points.
    k : int
        Labels for each text.
    filter_labels : int
        Labels in ``allow``, and in ``deny``.
    explained_labels : int
        Labels in a request for explanations.
    words : int
        Reasons in each list of an explanation. Its segments show all of them.
    found_labels : int
        Labels in an answer of the label search.
    queued_texts : int
        Texts waiting to be scored.
    batch_texts : int
        Texts scored together.
    requests : int
        Requests in progress whose body has arrived. About as many as are answered in a quarter of a second: clients
        that would wait longer should rather come back.
    held_bytes : int
        Size of the bodies of all requests in progress together.
    seconds : float
        Time from the arrival of the body to the answer.
    header_bytes : int
        Size of the request line and headers.
    header_seconds : float
        Time for the headers to arrive, and time that an idle connection stays open.
    connections : int
        Open connections; the longest idle one is closed for a new one. `run` allows fewer where the process may not
        open as many files.

    Examples
    --------
    >>> Limits(texts=10).texts
    10
    """

    body_bytes: int = 1 << 20
    body_seconds: float = 10.0
    texts: int = 100
    characters: int = 100_000
    k: int = 100
    filter_labels: int = 10_000
    explained_labels: int = 5
    words: int = 100
    found_labels: int = 1_000
    queued_texts: int = 1_000
    batch_texts: int = 256
    requests: int = 256
    held_bytes: int = 1 << 26
    seconds: float = 10.0
    header_bytes: int = 1 << 14
    header_seconds: float = 10.0
    connections: int = 800

    def __post_init__(self) -> None:
        for field in fields(self):
            value, whole = getattr(self, field.name), field.type == "int"
            fits = isinstance(value, int) if whole else isinstance(value, int | float) and math.isfinite(value)
            if isinstance(value, bool) or not fits or value <= 0:
                kind = "a whole number of at least 1" if whole else "a number of seconds greater than 0"
                raise InvalidInput(f"the limit {field.name} is {value!r}; expected {kind}")


class Occupancy:
    """Counts the requests in progress against a maximum; shared by the guard and the connections.

    Parameters
    ----------
    most : int

    Examples
    --------
    >>> occupancy = Occupancy(1)
    >>> occupancy.enter()
    >>> occupancy.full(arriving=0)
    True
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.in_progress = 0

    def full(self, arriving: int) -> bool:
        """Whether there is no place for one more request besides `arriving` ones that are not counted yet."""
        return self.in_progress + arriving >= self.most

    def enter(self) -> None:
        """Count a request, or raise a `Refusal`."""
        if self.full(arriving=0):
            raise self.refusal()
        self.in_progress += 1

    def leave(self) -> None:
        """Stop counting a request that has entered."""
        self.in_progress -= 1

    def refusal(self) -> Refusal:
        """The answer to a request that has no place."""
        message = f"{self.most} requests are in progress, which is the maximum; try again"
        return Refusal("too_many_requests", message, {"retry-after": "1"})
