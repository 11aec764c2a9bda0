"""Balanced 2-means on every core: small nodes in parallel, a large node in parallel blocks."""

from __future__ import annotations

from typing import Any

import numpy as np

from longtail.arrays import Array
from longtail.native import divide, kernels
from longtail.parallel import map_blocks, resolve_jobs, split

_ROUNDS = 20
_TOLERANCE = 1e-4
# All threads bisect a node with more entries than this together. This must not depend on the number of threads, since
# another order of summation could give another tree.
_LARGE = 2**23
_BLOCKS_OF_LARGE = 32


class Bisection:
    """An order of rows in which the parts of a node follow each other, refined by repeated bisection."""

    def __init__(self, matrix: Any, rows: Array, seed: list[int], n_jobs: int | None) -> None:
        self._csr = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32, copy=False), matrix.data
        self._n_features = matrix.shape[1]
        self._seed = seed
        self._step = 0
        self._jobs = resolve_jobs(n_jobs)
        self.order = rows.astype(np.int64)

    def divide(self, begins: Array, ends: Array, parts: Array) -> None:
        """Divide each node into `parts` parts; `begins` and `ends` give the place of each part in the order."""
        last = np.cumsum(parts)
        first = last - parts
        while len(first):
            middle = (first + last + 1) // 2
            self._bisect(np.stack([begins[first], begins[middle], ends[last - 1]], axis=1))
            first, last = np.concatenate([first, middle]), np.concatenate([middle, last])
            first, last = first[last - first > 1], last[last - first > 1]

    def _bisect(self, bounds: Array) -> None:
        sizes = bounds[:, 2] - bounds[:, 0]
        # One random stream per step and one row per node, so that results do not depend on the threads.
        chance = np.random.default_rng([*self._seed, self._step]).random((len(bounds), 2))
        self._step += 1
        one = (chance[:, 0] * sizes).astype(np.int64)
        other = (chance[:, 1] * (sizes - 1)).astype(np.int64)
        centres = np.stack([one, other + (other >= one)], axis=1)
        entries = np.concatenate([[0], np.cumsum(np.diff(self._csr[0])[self.order])])
        work = entries[bounds[:, 2]] - entries[bounds[:, 0]]
        for node in np.flatnonzero(work > _LARGE):
            self._bisect_large(bounds[node], centres[node])
        small = np.flatnonzero(work <= _LARGE)
        shares = np.searchsorted(np.cumsum(work[small]), np.linspace(0, work[small].sum(), 8 * self._jobs + 1)[1:-1])
        batches = [batch for batch in np.split(small, shares) if len(batch)]

        def bisect(batch: Array) -> None:
            similarities = np.empty(len(batch))
            kernels.bisect_nodes(
                *self._csr,
                self._n_features,
                self.order,
                bounds[batch],
                centres[batch],
                _ROUNDS,
                _TOLERANCE,
                similarities,
            )

        for _ in map_blocks(bisect, batches, self._jobs):
            pass

    def _bisect_large(self, bounds: Array, centres: Array) -> None:
        start, middle, stop = bounds.tolist()
        own = self.order[start:stop].copy()
        lengths = np.diff(self._csr[0])[own]

        def project(direction: Array) -> Array:
            out = np.empty(len(own), dtype=np.float32)

            def project_block(block: slice) -> None:
                kernels.project_rows(*self._csr, own[block], direction, out[block])

            for _ in map_blocks(project_block, _even_blocks(len(own), _BLOCKS_OF_LARGE), self._jobs):
                pass
            return out

        def add(places: Array, weights: Array) -> Array:
            def add_block(block: slice) -> Array:
                out = np.zeros(self._n_features)
                kernels.add_rows(*self._csr, own[places[block]], weights[block], out)
                return out

            # Each block has its own sums over all features, so small blocks do not pay.
            pieces = int(lengths[places].sum()) // (4 * self._n_features)
            total = np.zeros(self._n_features)
            for part in map_blocks(add_block, _even_blocks(len(places), min(pieces, _BLOCKS_OF_LARGE)), self._jobs):
                total += part
            return total

        in_first, _ = divide(len(own), middle - start, centres, project, add, _ROUNDS, _TOLERANCE)
        self.order[start:middle] = own[in_first]
        self.order[middle:stop] = own[~in_first]


def _even_blocks(count: int, pieces: int) -> list[slice]:
    return split(count, max(1, -(-count // max(1, pieces))))
