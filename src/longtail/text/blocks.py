"""Texts on their way through the kernels: in blocks for threads, and the rows of all blocks as one matrix."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import copy
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import sparse

from longtail.arrays import Array
from longtail.native import Text

Rows = tuple[Array, Array, Array]

# A few milliseconds of work, and little enough that several of them wait in memory unnoticed.
_BLOCK_BYTES = 1 << 19
_BYTES_OF_A_ROW = 64


def blocks_of(texts: Iterable[str]) -> Iterator[list[Text]]:
    """Neighbouring texts together, about half a megabyte at a time; those that are not ASCII are encoded.

    ASCII strings hold their UTF-8 already. The interpreter would keep the UTF-8 of any other beside it for as long as
    the string lives, so those are encoded here, for as long as the block lives.

    >>> list(blocks_of(["red", "größe"]))
    [['red', b'gr\\xc3\\xb6\\xc3\\x9fe']]
    """
    block: list[Text] = []
    size = 0
    for text in texts:
        block.append(text if text.isascii() else text.encode("utf-8", "surrogatepass"))
        size += len(text) + _BYTES_OF_A_ROW
        if size >= _BLOCK_BYTES:
            yield block
            block, size = [], 0
    if block:
        yield block


def stack_rows(parts: list[Rows], n_columns: int) -> sparse.csr_array[Any]:
    """Blocks of rows one below the other, each given as row ends (with a leading 0), ascending columns and values.

    >>> one = np.array([0, 1]), np.array([2], dtype=np.int32), np.array([0.5], dtype=np.float32)
    >>> stack_rows([one, one], n_columns=3).toarray().tolist()
    [[0.0, 0.0, 0.5], [0.0, 0.0, 0.5]]
    """
    if len(parts) == 1:
        [(ends, columns, values)] = parts
    else:
        before = np.cumsum([0, *(len(columns) for _, columns, _ in parts)])
        shifted = (ends[1:] + start for (ends, _, _), start in zip(parts, before, strict=False))
        ends = np.concatenate([np.zeros(1, dtype=np.int64), *shifted])
        columns = np.concatenate([np.zeros(0, dtype=np.int32), *(columns for _, columns, _ in parts)])
        values = np.concatenate([np.zeros(0, dtype=np.float32), *(values for _, _, values in parts)])
    index = np.int32 if ends[-1] <= np.iinfo(np.int32).max else np.int64
    columns, ends = columns.astype(index, copy=False), ends.astype(index)
    if len(ends) == 2:
        matrix = copy(_empty_row(n_columns))
        matrix.data, matrix.indices, matrix.indptr = values, columns, ends
        return matrix
    matrix = sparse.csr_array((values, columns, ends), shape=(len(ends) - 1, n_columns))
    matrix.has_canonical_format = True
    return matrix


@lru_cache(maxsize=16)
def _empty_row(n_columns: int) -> Any:
    """A row to copy: SciPy takes longer to check a new matrix than the kernels to make a row of a short text."""
    row: Any = sparse.csr_array((1, n_columns), dtype=np.float32)
    row.has_canonical_format = True
    return row
