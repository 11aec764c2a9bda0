"""The invariants of sparse matrices and string tables, checked in blocks so that mapped arrays stay on disk."""

from __future__ import annotations

import numpy as np

from longtail.arrays import Array

_BLOCK = 1 << 18


def rises(values: Array) -> bool:
    """Whether each number is larger than the one before; no differences, because those of hostile numbers can overflow.

    Examples
    --------
    >>> rises(np.array([0, 2**63 - 1, -(2**63), 5])), rises(np.array([0, 3, 5]))
    (False, True)
    """
    return bool((values[1:] > values[:-1]).all())


def check_monotone(offsets: Array, end: int, name: str) -> None:
    """Raise `ValueError` unless `offsets` runs from 0 to `end` and never falls."""
    if not len(offsets) or offsets[0] != 0 or offsets[-1] != end:
        raise ValueError(f"{name} does not run from 0 to {end}")
    for start in range(0, len(offsets) - 1, _BLOCK):
        block = offsets[start : start + _BLOCK + 1]
        if (block[1:] < block[:-1]).any():
            raise ValueError(f"{name} falls after position {start}")


def check_csr(indices: Array, indptr: Array, columns: int) -> None:
    """Raise `ValueError` unless the rows are in bounds, sorted and without duplicates.

    Dtypes and lengths of the arrays must have been checked.

    Examples
    --------
    >>> import numpy as np
    >>> check_csr(np.array([0, 2, 1]), np.array([0, 2, 3]), columns=3)
    >>> check_csr(np.array([2, 0, 1]), np.array([0, 2, 3]), columns=3)
    Traceback (most recent call last):
    ...
    ValueError: indices are not sorted or repeat within a row
    """
    check_monotone(indptr, len(indices), "indptr")
    for start in range(0, len(indices), _BLOCK):
        stop = min(start + _BLOCK, len(indices))
        block = indices[start:stop]
        if block.min() < 0 or block.max() >= columns:
            raise ValueError(f"indices hold a column outside 0..{columns - 1}")
        # One index of overlap, to compare the pair across two blocks too.
        before = max(start - 1, 0)
        falls = indices[before + 1 : stop] <= indices[before : stop - 1]
        if falls.any() and not _only_at_row_starts(falls, before + 1, indptr):
            raise ValueError("indices are not sorted or repeat within a row")


def _only_at_row_starts(falls: Array, first: int, indptr: Array) -> bool:
    # Scalars of the array's own dtype; with any other, searchsorted would convert the whole array.
    exact = indptr.dtype.type
    begin = int(np.searchsorted(indptr, exact(first), side="left"))
    end = int(np.searchsorted(indptr, exact(first + len(falls)), side="left"))
    for start in range(begin, end, _BLOCK):
        falls[indptr[start : min(start + _BLOCK, end)] - first] = False
    return not falls.any()
