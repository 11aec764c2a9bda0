"""Label vectors: for each label, the sum of the feature vectors of its rows, scaled to norm 1.

Labels with similar vectors belong together in a tree.
"""

from __future__ import annotations

import threading
from collections import deque
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from longtail import progress
from longtail.arrays import Array
from longtail.errors import InvalidInput
from longtail.memory import MemoryPlan, available_memory
from longtail.native import kernels
from longtail.parallel import check_stop, map_blocks
from longtail.validation import as_features, as_labels, check_whole
from longtail.work import Piece, Results, Rows, Stacked, Work, even_ranges

_ENTRY_BYTES = 8  # a weight and its feature
_BLOCK_ENTRIES = 2**21
_FEATURE_LIMIT = 2**31
_COST_OF_A_LABEL = 16  # in rows
_BETWEEN_MARKS = 2**12  # sorted pairs: a search reads the marks and the pairs between two of them


def label_vectors(X: Any, Y: Any, top: int | None = None, n_jobs: int | None = None) -> Any:
    """The normalised sum of the rows of each label.

    Parameters
    ----------
    X : sparse matrix or array-like of shape (n_rows, n_features)
        Usually with rows of norm 1, so that all rows of a label count equally.
    Y : sparse or dense 0/1 matrix of shape (n_rows, n_labels)
    top : int or None
        Number of entries to keep per label, the largest by magnitude, ties to the lowest feature. None keeps all or,
        if they might take more than half of the available memory, the largest power of two that fits.
    n_jobs : int or None
        Threads; None uses every core.

    Returns
    -------
    csr_array of shape (n_labels, n_features), float32
        The vector of a label without rows, or with only empty rows, is empty.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[3, 0, 0], [0, 4, 0], [0, 0, 5]], dtype=np.float32)
    >>> Y = np.array([[1, 0], [1, 0], [0, 0]])
    >>> label_vectors(X, Y).toarray().round(1).tolist()
    [[0.6..., 0.8..., 0.0], [0.0, 0.0, 0.0]]
    """
    X = as_features(X)
    Y = as_labels(Y, n_rows=X.shape[0])
    return sum_of_rows(X, sparse.csr_array(Y.T), top, n_jobs, weighted=False)


def sum_of_rows(
    X: Any, members: Any, top: int | None = None, n_jobs: int | None = None, *, weighted: bool = True
) -> Any:
    """Label vectors from weighted rows.

    Parameters
    ----------
    X : csr_array of shape (n_rows, n_features), float32
    members : csr_array of shape (n_labels, n_rows)
        The weight of each row for a label; a row may occur more than once.
    top, n_jobs
        As in `label_vectors`; the result has the same form.
    weighted : bool
        False if all values stored in `members` are 1.
    """
    n_features, n_labels = X.shape[1], members.shape[0]
    if n_features >= _FEATURE_LIMIT:
        raise InvalidInput(f"X has {n_features} features; label vectors need fewer than 2^31")
    if top is not None:
        check_whole("top", top)
    label_indptr, label_rows = members.indptr.astype(np.int64), members.indices.astype(np.int64)
    factors = members.data.astype(np.float32, copy=False) if weighted else None
    check_sums(X, np.diff(label_indptr))
    row_ends = np.concatenate([[0], np.cumsum(np.diff(X.indptr).astype(np.int64)[label_rows])])
    most = np.minimum(np.diff(row_ends[label_indptr]), n_features)
    limit = _fitting_top(most) if top is None else int(top)
    most = np.minimum(most, limit)

    blocks = even_blocks(most + 1, _BLOCK_ENTRIES)
    capacity = max((int(most[block].sum()) for block in blocks), default=0)
    scratch = threading.local()  # allocating memory for every block would cost more than the sums

    def sum_block(block: slice) -> tuple[Array, Array, Array]:
        if not hasattr(scratch, "indices"):
            scratch.indices, scratch.data = np.empty(capacity, dtype=np.int32), np.empty(capacity, dtype=np.float32)
        counts = np.empty(block.stop - block.start, dtype=np.int64)
        starts = label_indptr[block.start : block.stop + 1]
        written = kernels.sum_label_rows(
            *(starts, label_rows, factors, X.indptr, X.indices, X.data, n_features, limit),
            *(counts, scratch.indices, scratch.data),
        )
        return counts, scratch.indices[:written].copy(), scratch.data[:written].copy()

    parts: deque[tuple[Array, Array, Array]] = deque()
    with progress.task("label vectors", total=n_labels) as advance:
        for part in map_blocks(sum_block, blocks, n_jobs):
            parts.append(part)
            advance(len(part[0]))
    return _join(parts, (n_labels, n_features))


def members_by_label(work: Work, counts: Array) -> Results:
    """The rows of each label, from the matrix "labels" of a training; `counts` are the numbers of rows.

    Blocks of rows are sorted by label first; then each range of labels takes its part of every block.
    """
    ends = work.opened("labels").indptr
    # Few blocks, because every range of labels opens all of them.
    edges = np.searchsorted(ends, np.arange(0, ends[-1], 2 * _BLOCK_ENTRIES))
    blocks = list(pairwise(np.unique([0, *edges, len(ends) - 1]).tolist()))
    pairs = work.run("labels-of-rows", _sorted_pairs, blocks, work.matrix("labels"))
    costs = counts + _COST_OF_A_LABEL
    return work.run("rows-of-labels", _members, even_ranges(costs, _BLOCK_ENTRIES), pairs, costs=costs)


def _sorted_pairs(Y: Rows, start: int, stop: int) -> Piece:
    """The labels of some rows as sorted numbers: the label in the upper 32 bits, the row in the lower ones."""
    bounds = Y.indptr[start : stop + 1]
    pairs = Y.indices[bounds[0] : bounds[-1]].astype(np.int64)
    pairs <<= 32
    pairs |= np.repeat(np.arange(start, stop), np.diff(bounds))
    pairs.sort()
    return {"pairs": pairs, "marks": pairs[::_BETWEEN_MARKS]}


def _members(blocks: Results, start: int, stop: int) -> Piece:
    """The rows of some labels, from the sorted pairs of all blocks."""
    edges = np.array([start, stop]) << 32
    parts = [np.zeros(0, np.int64)]
    for block in blocks:
        check_stop()
        first, last = np.searchsorted(block["marks"], edges)
        near = block["pairs"][max(0, first - 1) * _BETWEEN_MARKS : last * _BETWEEN_MARKS]
        parts.append(near[slice(*np.searchsorted(near, edges))])
    pairs = np.concatenate(parts)
    pairs.sort()
    rows = (pairs & (2**32 - 1)).astype(np.int32)
    pairs >>= 32
    lengths = np.bincount(pairs - start, minlength=stop - start)
    return {"indptr": np.concatenate([[0], np.cumsum(lengths)]), "indices": rows}


def vectors_by_label(work: Work, members: Results, counts: Array, top: int, factors: Results | None = None) -> Results:
    """Label vectors of a training on the matrix "features", as `label_vectors` gives them.

    `factors` are weights of the rows of each label, in the order of `members`.
    """
    costs = counts + _COST_OF_A_LABEL
    ranges = work.divide(costs, _BLOCK_ENTRIES)
    return work.run("label-vectors", _vectors, ranges, work.matrix("features"), members, factors, top, costs=costs)


def _vectors(X: Rows, members: Results, factors: Results | None, top: int, start: int, stop: int) -> Piece:
    starts, rows, _ = Stacked(members).take(np.arange(start, stop))
    weights = None if factors is None else Stacked(factors).take(np.arange(start, stop))[1]
    rows = rows.astype(np.int64)
    lengths = np.concatenate([[0], np.cumsum(X.indptr[rows + 1] - X.indptr[rows])])
    most = np.minimum(np.diff(lengths[starts]), top)
    counts = np.zeros(stop - start, dtype=np.int64)
    indices, data = [np.zeros(0, np.int32)], [np.zeros(0, np.float32)]
    for block in even_blocks(most + 1, _BLOCK_ENTRIES):
        capacity = int(most[block].sum())
        found = np.empty(capacity, dtype=np.int32), np.empty(capacity, dtype=np.float32)
        written = kernels.sum_label_rows(
            *(starts[block.start : block.stop + 1], rows, weights, X.indptr, X.indices, X.data, X.n_columns, top),
            *(counts[block], *found),
        )
        indices.append(found[0][:written].copy())
        data.append(found[1][:written].copy())
    return {
        "indptr": np.concatenate([[0], np.cumsum(counts)]),
        "indices": np.concatenate(indices),
        "data": np.concatenate(data),
    }


def check_sums(X: Any, counts: Array) -> None:
    """Refuse values whose sums overflow 32-bit floats, since kernels compare sums and NaN has no order."""
    largest = max(float(X.data.max(initial=0)), -float(X.data.min(initial=0)))
    most_rows = int(counts.max(initial=0))
    if largest * most_rows > float(np.finfo(np.float32).max):
        raise InvalidInput(
            f"X has values up to {largest:.3g}, and a label has {most_rows} rows: their sum overflows 32-bit floats; "
            f"scale the features, for example rows to norm 1"
        )


def _fitting_top(most: Array) -> int:
    """The number of entries per label for which all vectors fit into half of the available memory."""
    budget = available_memory() // 2 // _ENTRY_BYTES
    # Powers of two, so that small changes of the free memory rarely change the vectors.
    top = 1 << max(0, int(most.max(initial=1)).bit_length())
    while top > 1 and int(np.minimum(most, top).sum()) > budget:
        top //= 2
    MemoryPlan(
        "label vectors",
        {"weights and features": _ENTRY_BYTES * int(np.minimum(most, top).sum())},
        "Free memory, or train on fewer labels.",
    ).check()
    return top


def even_blocks(costs: Array, size: int) -> list[slice]:
    """Slices of items whose costs add up to about `size`."""
    ends = np.cumsum(costs)
    edges = np.searchsorted(ends, np.arange(size, ends[-1] if len(ends) else 0, size))
    bounds = np.unique(np.concatenate([[0], edges, [len(costs)]])).tolist()
    return [slice(start, stop) for start, stop in pairwise(bounds)]


def _join(parts: deque[tuple[Array, Array, Array]], shape: tuple[int, int]) -> Any:
    """One matrix from the blocks, each freed as soon as it is copied."""
    indptr = np.zeros(shape[0] + 1, dtype=np.int64)
    np.cumsum(np.concatenate([np.zeros(0, np.int64), *(counts for counts, _, _ in parts)]), out=indptr[1:])
    indices, data = np.empty(indptr[-1], dtype=np.int32), np.empty(indptr[-1], dtype=np.float32)
    place = 0
    while parts:
        _, part_indices, part_data = parts.popleft()
        indices[place : place + len(part_data)] = part_indices
        data[place : place + len(part_data)] = part_data
        place += len(part_data)
    # SciPy converts both index arrays to the wider of their types.
    return sparse.csr_array((data, indices, indptr.astype(np.int32) if place < 2**31 else indptr), shape=shape)
