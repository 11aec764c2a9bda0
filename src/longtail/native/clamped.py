"""Rows of a CSR matrix that may be mapped from a file that was not verified."""

from __future__ import annotations

from longtail.arrays import Array


def bounds(starts: Array, row: int, n_entries: int) -> tuple[int, int]:
    """Where the entries of a row begin and end, within the arrays; nothing for a row that does not exist."""
    if not 0 <= row < len(starts) - 1:
        return 0, 0
    first, last = (min(max(int(starts[i]), 0), n_entries) for i in (row, row + 1))
    return first, max(first, last)
