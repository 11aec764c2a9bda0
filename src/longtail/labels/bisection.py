"""Balanced 2-means, from the top of a tree down, as tasks.

The upper bisections run step by step, one task per node. As soon as a node is small, one task does all bisections below
it. A node that is too large for one task is divided by a direction that is learned from a sample of its labels.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from longtail.arrays import Array
from longtail.labels.assembly import ranges
from longtail.labels.shape import balanced_shape
from longtail.native import kernels, largest
from longtail.work import Piece, Results, Stacked, Work, even_ranges

_ROUNDS = 20
_TOLERANCE = 1e-4
# Numbers of entries of the vectors of a node. They must not depend on the number of workers, since another division of
# the work could give another tree.
_SMALL = 2**19  # one task does all bisections below
_LARGE = 2**23  # a sample decides
_MANY = 16  # from so many nodes in a step on, every node that is not large is small enough
_SAMPLE = 2**16  # labels
_PROJECTED = 2**18  # labels of a task that projects


class Problem(NamedTuple):
    """What a task must know of the tree besides the vectors: small, because it is sent with every task."""

    n_labels: int
    leaf_size: int
    branching: int
    n_features: int
    seed: tuple[int, ...]

    def steps(self) -> list[Array]:
        return balanced_shape(self.n_labels, self.leaf_size, self.branching).steps

    def centres(self, step: int) -> Array:
        return _centres(self, step)


@lru_cache(maxsize=64)
def _centres(problem: Problem, step: int) -> Array:
    """The places within each node of two initial centres: one random stream per step, one row per node."""
    bounds = problem.steps()[step]
    sizes = bounds[:, 2] - bounds[:, 0]
    chance = np.random.default_rng([*problem.seed, step]).random((len(bounds), 2))
    one = (chance[:, 0] * sizes).astype(np.int64)
    other = (chance[:, 1] * (sizes - 1)).astype(np.int64)
    return np.stack([one, other + (other >= one)], axis=1)


@lru_cache(maxsize=64)
def _by_start(problem: Problem, step: int) -> tuple[Array, Array]:
    """The nodes of a step in the order of their places, and where they start."""
    starts = problem.steps()[step][:, 0]
    order = np.argsort(starts)
    return order, starts[order]


def bisected(work: Work, name: str, vectors: Results, lengths: Array, labels: Array, problem: Problem) -> Array:
    """An order of `labels` in which the parts of every node follow each other.

    Parameters
    ----------
    work : Work
    name : str
        Prefix of the stages.
    vectors : Results
        Rows of label vectors; `labels` are their numbers.
    lengths : int64 array
        The number of entries of each vector.
    labels : int64 array
    problem : Problem
    """
    order = labels.copy()
    open_places = np.ones(len(labels), dtype=bool)  # not in a subtree that one task does
    subtrees: list[tuple[int, int, int]] = []
    for step, bounds in enumerate(problem.steps()):
        nodes = np.flatnonzero(open_places[bounds[:, 0]])
        if not len(nodes):
            continue
        entries = np.concatenate([[0], np.cumsum(lengths[order])])
        sizes = entries[bounds[nodes, 2]] - entries[bounds[nodes, 0]]
        is_small = (sizes <= _SMALL) | ((sizes <= _LARGE) & (len(nodes) >= _MANY))
        for node in nodes[is_small].tolist():
            start, _, stop = bounds[node].tolist()
            subtrees.append((start, stop, step))
            open_places[start:stop] = False
        is_large = sizes > _LARGE
        for kind, chosen in (("large", nodes[is_large]), ("node", nodes[~is_small & ~is_large])):
            if len(chosen):
                _run_step(work, f"{name}{kind}{step}", vectors, order, problem, step, chosen)
    if subtrees:
        found = np.array(sorted(subtrees), dtype=np.int64)
        entries = np.concatenate([[0], np.cumsum(lengths[order])])
        sizes = entries[found[:, 1]] - entries[found[:, 0]] + 1
        costs = sizes * np.log2(2 + found[:, 1] - found[:, 0])
        kept = work.keep(f"{name}subtrees", {"order": order, "subtrees": found})
        ranges_of_subtrees = work.divide(costs, 2 * _LARGE)
        stage, memory = f"{name}clustering-labels", 32 * (sizes + problem.n_features)
        done = work.run(stage, _finish, ranges_of_subtrees, vectors, kept, problem, costs=costs, memory=memory)
        order = order.copy()
        order[ranges(found[:, 0], found[:, 1])] = np.concatenate([piece["order"] for piece in done])
    return order


def _run_step(work: Work, name: str, vectors: Results, order: Array, problem: Problem, step: int, nodes: Array) -> None:
    """Bisect some nodes of a step; changes `order`."""
    bounds = problem.steps()[step][nodes]
    kept = work.keep(f"{name}-order", {"order": order, "nodes": nodes})
    each = even_ranges(np.ones(len(nodes)), 1)
    if "node" in name:
        done = work.run(f"{name}_bisecting-labels", _bisect, each, vectors, kept, problem, step)
        for (start, _, stop), piece in zip(bounds.tolist(), done, strict=True):
            order[start:stop] = piece["order"]
        return
    directions = work.run(f"{name}_sampling-labels", _direction, each, vectors, kept, problem, step)
    places = ranges(bounds[:, 0], bounds[:, 2])
    owners = np.repeat(np.arange(len(nodes)), bounds[:, 2] - bounds[:, 0])
    kept = work.keep(f"{name}-places", {"labels": order[places], "owners": owners})
    blocks = even_ranges(np.ones(len(places)), _PROJECTED)
    parts = work.run(f"{name}_dividing-labels", _project, blocks, vectors, kept, directions)
    scores = np.concatenate([piece["scores"] for piece in parts])
    for start, middle, stop in bounds.tolist():
        own, scores = scores[: stop - start], scores[stop - start :]
        in_first = largest(own, middle - start)
        members = order[start:stop].copy()
        order[start:middle], order[middle:stop] = members[in_first], members[~in_first]


def _bisect(vectors: Results, kept: Piece, problem: Problem, step: int, start: int, stop: int) -> Piece:
    """The new order of the labels of some nodes."""
    parts = []
    for node in kept["nodes"][start:stop].tolist():
        first, middle, last = problem.steps()[step][node].tolist()
        labels = np.asarray(kept["order"][first:last])
        local = np.arange(len(labels))
        bounds = np.array([[0, middle - first, last - first]])
        _bisect_nodes(Stacked(vectors).take(labels), problem, local, bounds, problem.centres(step)[[node]])
        parts.append(labels[local])
    return {"order": np.concatenate(parts)}


def _bisect_nodes(
    rows: tuple[Array, Array, Array | None], problem: Problem, order: Array, bounds: Array, centres: Array
) -> None:
    similarities = np.empty(len(bounds))
    kernels.bisect_nodes(*rows, problem.n_features, order, bounds, centres, _ROUNDS, _TOLERANCE, similarities)


def _finish(vectors: Results, kept: Piece, problem: Problem, start: int, stop: int) -> Piece:
    """The final order of the labels of some subtrees."""
    stacked, parts = Stacked(vectors), []
    for first, last, step in kept["subtrees"][start:stop].tolist():
        labels = np.asarray(kept["order"][first:last])
        rows, local = stacked.take(labels), np.arange(len(labels))
        for number, bounds in enumerate(problem.steps()[step:], start=step):
            by_start, starts = _by_start(problem, number)
            own = by_start[np.searchsorted(starts, first) : np.searchsorted(starts, last)]
            if len(own):
                _bisect_nodes(rows, problem, local, bounds[own] - first, problem.centres(number)[own])
        parts.append(labels[local])
    return {"order": np.concatenate(parts)}


def _direction(vectors: Results, kept: Piece, problem: Problem, step: int, start: int, stop: int) -> Piece:
    """The difference of the two centres of a sample, for each of some nodes."""
    found = []
    for node in kept["nodes"][start:stop].tolist():
        first, middle, last = problem.steps()[step][node].tolist()
        rng = np.random.default_rng([*problem.seed, step, node])
        size = min(_SAMPLE, last - first)
        chosen = np.sort(rng.choice(last - first, size, replace=False))
        rows = Stacked(vectors).take(np.asarray(kept["order"][first:last])[chosen])
        local, n_first = np.arange(size), max(1, size * (middle - first) // (last - first))
        one = int(rng.integers(size))
        other = int(rng.integers(size - 1))
        pair = np.array([[one, other + (other >= one)]])
        _bisect_nodes(rows, problem, local, np.array([[0, n_first, size]]), pair)
        centres = np.zeros((2, problem.n_features))
        for centre, part in zip(centres, (local[:n_first], local[n_first:]), strict=True):
            kernels.add_rows(*rows, part, np.ones(len(part), np.float32), centre)
            centre /= np.linalg.norm(centre) or 1
        found.append(centres[0] - centres[1])
    return {"directions": np.array(found, dtype=np.float32)}


def _project(vectors: Results, kept: Piece, directions: Results, start: int, stop: int) -> Piece:
    """The products of label vectors with the direction of their node."""
    labels, owners = np.asarray(kept["labels"][start:stop]), np.asarray(kept["owners"][start:stop])
    scores = np.empty(stop - start, dtype=np.float32)
    stacked = Stacked(vectors)
    for owner in np.unique(owners).tolist():
        places = np.flatnonzero(owners == owner)
        piece, place = directions.find(owner)
        own = np.empty(len(places), dtype=np.float32)
        rows = stacked.take(labels[places])
        kernels.project_rows(*rows, np.arange(len(places)), np.ascontiguousarray(piece["directions"][place]), own)
        scores[places] = own
    return {"scores": scores}
