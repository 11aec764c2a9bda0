"""`Occupancy`: how many requests are in progress, for the guard that counts them and the connections below it."""

from __future__ import annotations

from longtail.serve.refusal import Refusal


class Occupancy:
    """Counts requests against the most that are taken.

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
        """Whether one more would be too many, with so many others on their way."""
        return self.in_progress + arriving >= self.most

    def enter(self) -> None:
        """Count a request, or raise the refusal of one too many."""
        if self.full(arriving=0):
            raise self.refusal()
        self.in_progress += 1

    def leave(self) -> None:
        """Forget a request that had entered."""
        self.in_progress -= 1

    def refusal(self) -> Refusal:
        """What one too many is told."""
        message = f"{self.most} requests are in progress, which is all that are taken; try again"
        return Refusal(429, "too_many_requests", message, {"retry-after": "1"})
