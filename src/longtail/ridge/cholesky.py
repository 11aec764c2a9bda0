"""Cholesky factors by tiles of a fixed size, so that they have the same bits for any number of threads.

LAPACK's own factor depends on how many threads BLAS has. Here every product of tiles runs in one BLAS thread, and our
threads share the tiles of a row.
"""

from __future__ import annotations

from typing import Any

from scipy import linalg

from longtail.arrays import Array
from longtail.parallel import blas_threads, check_stop, map_blocks, split

_TILE = 512


def factor_in_place(matrix: Array, n_jobs: int | None) -> bool:
    """Replace the upper triangle of a symmetric matrix by U with U'U = matrix; False if it is not positive definite.

    What is below the diagonal is not used, and undefined afterwards.
    """
    [potrf], [trsm] = linalg.get_lapack_funcs(("potrf",), (matrix,)), linalg.get_blas_funcs(("trsm",), (matrix,))
    tiles = split(len(matrix), _TILE)

    def subtract(rows: slice, columns: slice) -> None:
        check_stop()
        above = matrix[: rows.start]
        matrix[rows, columns] -= above[:, rows].T @ above[:, columns]

    def divide(corner: Array, rows: slice, columns: slice) -> None:
        matrix[rows, columns] = trsm(1.0, corner, matrix[rows, columns].T, side=1, lower=True, trans_a=1).T

    with blas_threads(1):
        for number, rows in enumerate(tiles):
            if number:
                _do(lambda columns, rows=rows: subtract(rows, columns), tiles[number:], n_jobs)
            # A C-ordered upper triangle is the lower triangle of its transpose, which is what LAPACK takes.
            corner, failed = potrf(matrix[rows, rows].T, lower=True, clean=False)
            if failed:
                return False
            matrix[rows, rows] = corner.T
            _do(lambda columns, rows=rows, corner=corner: divide(corner, rows, columns), tiles[number + 1 :], n_jobs)
    return True


def _do(function: Any, tiles: list[slice], n_jobs: int | None) -> None:
    for _ in map_blocks(function, tiles, n_jobs):
        pass
