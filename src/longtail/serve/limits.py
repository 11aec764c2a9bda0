"""`Limits`: how much the service takes on, in one place; everything beyond is refused with a status that says so."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from longtail.errors import InvalidInput


@dataclass(frozen=True)
class Limits:
    """What a request may ask for and what the service holds at once.

    Parameters
    ----------
    body_bytes : int
        Of a request's body, counted while it arrives.
    body_seconds : float
        Until the whole body must have arrived, and how long a client may read nothing of its answer.
    texts : int
        In one request.
    characters : int
        Of one text, in code points.
    k : int
        Labels for each text.
    filter_labels : int
        Names in ``allow`` and in ``deny``, each.
    explained_labels : int
        In one request for explanations.
    words : int
        Named in one explanation; the segments of the text show all of them.
    found_labels : int
        In one answer of the label search.
    queued_texts : int
        Texts that wait to be scored; more are refused.
    batch_texts : int
        Texts scored together.
    requests : int
        In progress at once, counted from their body's arrival; more are refused. About what is answered in a quarter
        of a second: those that wait longer are better told to come back.
    held_bytes : int
        Bodies of all requests in progress together.
    seconds : float
        From the body's arrival to the answer.
    header_bytes : int
        Of a request's line and headers.
    header_seconds : float
        Until they must have arrived, and how long an idle connection is kept.
    connections : int
        Open at once; the longest idle one makes room for another. `run` takes fewer where the process may not open as
        many files.

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
                kind = "a whole number of at least 1" if whole else "a number of seconds above 0"
                raise InvalidInput(f"the limit {field.name} is {value!r}; expected {kind}")
