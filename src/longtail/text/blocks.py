"""Blocks of texts for the kernels and their threads, and one matrix from the rows of all blocks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import copy
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import sparse

from longtail.arrays import Array
from longtail.native import Text

RowArrays = tuple[Array, Array, Array]

# A few milliseconds of work, and small enough to keep several in memory.
_BLOCK_BYTES = 1 << 19
_BYTES_OF_A_ROW = 64


def blocks_of(texts: Iterable[str]) -> Iterator[list[Text]]:
    """Consecutive texts in blocks of about half a megabyte; texts that are not ASCII are encoded as UTF-8.

    ASCII strings already contain their UTF-8. For other strings the interpreter would keep the UTF-8 as long as the
    string lives; here it lives only as long as the block.

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


def stack_rows(parts: list[RowArrays], n_columns: int) -> sparse.csr_array[Any]:
    """Stack blocks of rows, each given as row ends (with a leading 0), ascending columns and values.

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
    """A row to copy, since SciPy takes longer to check a new matrix than the kernels take for a short text."""
    row: Any = sparse.csr_array((1, n_columns), dtype=np.float32)
    row.has_canonical_format = True
    return row
