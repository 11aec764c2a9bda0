"""`Limits`: how much the service accepts, in one place. `Occupancy` counts the requests in progress against them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import Any

from longtail.errors import InvalidInput
from longtail.serve.refusal import Refusal


def _limit(default: float, about: str) -> Any:
    return field(default=default, metadata={"about": about})


@dataclass(frozen=True)
class Limits:
    """The limits of a service. The metadata of each field says what it limits, for the help of the command line.

    Examples
    --------
    >>> Limits(texts=10).texts
    10
    """

    body_bytes: int = _limit(1 << 20, "Bytes in a body.")
    # Also how long a client may read nothing of its answer.
    body_seconds: float = _limit(10.0, "Seconds for a body to arrive.")
    texts: int = _limit(100, "Texts in a request.")
    characters: int = _limit(100_000, "Characters (code points) in a text.")
    k: int = _limit(100, "Labels for a text.")
    filter_labels: int = _limit(10_000, "Labels in allow, and labels in deny.")
    explained_labels: int = _limit(5, "Labels in a request for explanations.")
    words: int = _limit(100, "Words in each list of an explanation.")
    found_labels: int = _limit(1_000, "Labels in an answer of the label search.")
    corrected_labels: int = _limit(100, "Labels in each list of a correction.")
    label_characters: int = _limit(1_000, "Characters in a label of a correction.")
    feedback_bytes: int = _limit(1 << 28, "Bytes in the file of corrections.")
    queued_texts: int = _limit(1_000, "Texts waiting to be scored.")
    batch_texts: int = _limit(256, "Texts scored together.")
    # As many as are answered in about a quarter of a second: clients that would wait longer should rather come back.
    requests: int = _limit(256, "Requests in progress.")
    held_bytes: int = _limit(1 << 26, "Bytes in the bodies of all requests in progress.")
    seconds: float = _limit(10.0, "Seconds from the arrival of the body to the answer.")
    reload_seconds: float = _limit(600.0, "Seconds that a request waits for new versions of models.")
    header_bytes: int = _limit(1 << 14, "Bytes in the request line and headers.")
    # Also how long an idle connection stays open.
    header_seconds: float = _limit(10.0, "Seconds for the headers to arrive.")
    # The longest idle one is closed for a new one; `run` allows fewer if the process may not open as many files.
    connections: int = _limit(800, "Open connections.")

    def __post_init__(self) -> None:
        for each in fields(self):
            value, whole = getattr(self, each.name), each.type == "int"
            fits = isinstance(value, int) if whole else isinstance(value, int | float) and math.isfinite(value)
            if isinstance(value, bool) or not fits or value <= 0:
                kind = "a whole number of at least 1" if whole else "a number of seconds greater than 0"
                raise InvalidInput(f"the limit {each.name} is {value!r}; expected {kind}")


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
