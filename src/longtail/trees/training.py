"""Training of a label tree: which rows each node learns from, and its classifiers, trained in lockstep."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from longtail import progress
from longtail.arrays import Array
from longtail.errors import InvalidInput
from longtail.labels import LabelHierarchy
from longtail.native import block_widths, kernels
from longtail.parallel import map_blocks, split
from longtail.trees.weights import BLOCK_CHILDREN, NO_BLOCK, TrainedBlock, TreeWeights

_ROWS_SEARCHED = 1024


class Rows(NamedTuple):
    """Features in the form that the kernels take."""

    indptr: Array
    indices: Array
    data: Array
    n_features: int

    @classmethod
    def of(cls, X: Any) -> Rows:
        """The arrays of a checked matrix."""
        if X.shape[1] >= 2**31:
            raise InvalidInput(f"X has {X.shape[1]} features; expected fewer than 2^31")
        return cls(X.indptr.astype(np.int64, copy=False), X.indices.astype(np.int32, copy=False), X.data, X.shape[1])


@dataclass(frozen=True)
class Examples:
    """The rows that have a label below each edge of a hierarchy.

    Parameters
    ----------
    pointers : int64 array of n_nodes + 1
        Node i owns the entries ``pointers[i]:pointers[i + 1]``.
    rows : int64 array
        Ascending within a node; a row has one entry for each child of the node that it belongs to.
    slots : int32 array
        The child of the node.
    costs : float32 array
        The cost of missing that child.
    """

    pointers: Array
    rows: Array
    slots: Array
    costs: Array

    @classmethod
    def of(cls, hierarchy: LabelHierarchy, Y: Any, label_costs: Array) -> Examples:
        """Follow every label of every row up to the root.

        If a row has several labels below a child, missing the child costs as much as the most expensive of them.
        """
        n_rows = Y.shape[0]
        node_edges, label_edges, owners = _edges(hierarchy)
        edges = label_edges[Y.indices]
        present = edges >= 0
        edges = edges[present]
        rows = np.repeat(np.arange(n_rows, dtype=np.int64), np.diff(Y.indptr))[present]
        costs = label_costs[Y.indices][present]
        levels = []
        while len(edges):
            levels.append((edges, rows, costs))
            nodes = owners[edges]
            inner = nodes > 0
            keys = node_edges[nodes[inner]] * n_rows + rows[inner]
            order = np.lexsort((-costs[inner], keys))
            keys = keys[order]
            first = np.ones(len(keys), dtype=bool)
            first[1:] = keys[1:] != keys[:-1]
            edges, rows = np.divmod(keys[first], n_rows)
            costs = costs[inner][order][first]
        if not levels:
            nothing = np.zeros(0, np.int64)
            return cls(
                np.zeros(hierarchy.n_nodes + 1, np.int64), nothing, nothing.astype(np.int32), nothing.astype(np.float32)
            )
        edges, rows, costs = (np.concatenate([level[i] for level in levels]) for i in range(3))
        order = np.lexsort((-costs, edges, rows, owners[edges]))
        edges, rows, costs = edges[order], rows[order], costs[order]
        # Labels at different depths below a child arrive one after another: the most expensive counts.
        first = np.ones(len(edges), dtype=bool)
        first[1:] = (edges[1:] != edges[:-1]) | (rows[1:] != rows[:-1])
        edges, rows, costs = edges[first], rows[first], costs[first]
        nodes = owners[edges]
        pointers = np.searchsorted(nodes, np.arange(hierarchy.n_nodes + 1))
        slots = (edges - hierarchy.pointers[nodes]).astype(np.int32)
        return cls(pointers.astype(np.int64), rows, slots, costs.astype(np.float32))

    def of_node(self, node: int) -> tuple[Array, Array, Array, Array]:
        """The distinct rows of a node and, by pointers, the children and costs of each."""
        part = slice(self.pointers[node], self.pointers[node + 1])
        rows = self.rows[part]
        starts = np.flatnonzero(np.concatenate([[True], rows[1:] != rows[:-1]])) if len(rows) else np.zeros(0, np.int64)
        pointers = np.append(starts, len(rows)).astype(np.int64)
        return rows[starts], pointers, self.slots[part], self.costs[part]


def _edges(hierarchy: LabelHierarchy) -> tuple[Array, Array, Array]:
    """The edge to each node and to each label (-1 if there is none), and the node above each edge."""
    owners = np.repeat(np.arange(hierarchy.n_nodes), np.diff(hierarchy.pointers))
    inner = hierarchy.children >= 0
    node_edges = np.full(hierarchy.n_nodes, -1, dtype=np.int64)
    label_edges = np.full(hierarchy.n_labels, -1, dtype=np.int64)
    node_edges[hierarchy.children[inner]] = np.flatnonzero(inner)
    label_edges[~hierarchy.children[~inner]] = np.flatnonzero(~inner)
    return node_edges, label_edges, owners


@dataclass(frozen=True)
class Objective:
    """What the classifiers minimise, and when training stops.

    Parameters
    ----------
    loss : {"squared_hinge", "logistic"}
    cost : float
        C: the cost of accepting a negative row.
    tolerance : float
        Gap between primal and dual value of a node's classifiers, relative to the primal, at which training stops.
    max_sweeps : int
    smallest : float
        Weights up to this magnitude are dropped.
    top : int
        Number of weights to keep of each classifier; 0 keeps all.
    seed : int
    """

    loss: str
    cost: float
    tolerance: float
    max_sweeps: int
    smallest: float
    top: int
    seed: int


class Task(NamedTuple):
    """A block of up to 256 siblings: `n_children` children of `node`, starting with `first`."""

    node: int
    first: int
    n_children: int


class Trained(NamedTuple):
    """A trained block, its final gap and number of sweeps and, if requested, its dual variables and their rows."""

    block: TrainedBlock
    gap: float
    sweeps: int
    rows: Array | None
    duals: Array | None


def tasks_of(hierarchy: LabelHierarchy) -> list[Task]:
    """The blocks of all nodes in storage order."""
    return [
        Task(node, first, min(BLOCK_CHILDREN, count - first))
        for node, count in enumerate(np.diff(hierarchy.pointers).tolist())
        for first in range(0, count, BLOCK_CHILDREN)
    ]


def train(
    rows: Rows,
    examples: Examples,
    tasks: list[Task],
    objective: Objective,
    n_jobs: int | None,
    *,
    keep_duals: bool = False,
    negatives: Negatives | None = None,
    before: list[Trained] | None = None,
) -> list[Trained]:
    """Train every block; the same seed gives the same weights for any number of threads.

    `keep_duals` returns the dual variables, from which a later training of the same tasks continues if it gets the
    result as `before`. `negatives` are additional rows to learn from.
    """
    work = [_work(rows, examples, task, negatives) for task in tasks]
    # The largest first, so that no thread is left with a large one at the end.
    order = sorted(range(len(tasks)), key=lambda i: (-work[i], i))
    done: list[Trained | None] = [None] * len(tasks)

    def one(i: int) -> Trained:
        return _train_block(rows, examples, tasks[i], objective, keep_duals, negatives, before[i] if before else None)

    with progress.task("training classifiers", total=sum(work)) as advance:
        for i, trained in zip(order, map_blocks(one, order, n_jobs), strict=True):
            done[i] = trained
            advance(work[i])
    return [trained for trained in done if trained is not None]


def _work(rows: Rows, examples: Examples, task: Task, negatives: Negatives | None) -> int:
    """The approximate cost of a block: its rows times its siblings."""
    part = examples.pointers[task.node + 1] - examples.pointers[task.node]
    return int(1 + part + (negatives.count(task.node) if negatives else 0)) * sum(block_widths(task.n_children))


def _train_block(
    rows: Rows,
    examples: Examples,
    task: Task,
    objective: Objective,
    keep_duals: bool,
    negatives: Negatives | None,
    before: Trained | None,
) -> Trained:
    own, pointers, slots, costs = examples.of_node(task.node)
    if task.first:
        slots = slots - np.int32(task.first)  # slots of other blocks are out of range and skipped
    if negatives is not None:
        own, pointers = negatives.appended(task.node, own, pointers)
    duals = None
    if keep_duals or before is not None:
        duals = _continued(before, len(own), task.n_children)
    features, feature_pointers, siblings, weights, intercepts, gap, sweeps = kernels.train_siblings(
        rows.indptr,
        rows.indices,
        rows.data,
        rows.n_features,
        own,
        pointers,
        slots,
        costs,
        objective.cost,
        task.n_children,
        1.0,
        objective.loss == "logistic",
        objective.tolerance,
        objective.max_sweeps,
        # The seed of a block depends on its position, not on when it is trained.
        ((objective.seed * 1_000_003 + task.node) * 65_537 + task.first) % 2**64,
        objective.smallest,
        objective.top,
        duals,
    )
    block = TrainedBlock(features, feature_pointers, siblings, weights, intercepts)
    return Trained(block, gap, sweeps, own if keep_duals else None, duals if keep_duals else None)


def _continued(before: Trained | None, n_rows: int, n_siblings: int) -> Array:
    """The dual variables of an earlier training, and zeros for the rows added since."""
    widths = block_widths(n_siblings)
    duals = np.zeros(n_rows * sum(widths), dtype=np.float32)
    if before is not None and before.duals is not None and before.rows is not None:
        old, new = 0, 0
        for width in widths:
            duals[new : new + len(before.rows) * width] = before.duals[old : old + len(before.rows) * width]
            old += len(before.rows) * width
            new += n_rows * width
    return duals


@dataclass(frozen=True)
class Negatives:
    """Rows that a node learns from in addition to those with a label below it.

    Parameters
    ----------
    pointers : int64 array of n_nodes + 1
    rows : int64 array
    """

    pointers: Array
    rows: Array

    @classmethod
    def of(cls, visits: Iterable[tuple[Array, Array]], examples: Examples) -> Negatives:
        """From `visits`, pairs of arrays of rows and nodes; those among the examples are left out."""
        n_nodes = len(examples.pointers) - 1
        found = list(visits)
        rows = np.concatenate([np.zeros(0, np.int64), *(pair[0] for pair in found)])
        nodes = np.concatenate([np.zeros(0, np.int64), *(pair[1] for pair in found)])
        n_rows = 1 + max(rows.max(initial=0), examples.rows.max(initial=0))
        owned = np.repeat(np.arange(n_nodes), np.diff(examples.pointers)) * n_rows + examples.rows
        keys = np.setdiff1d(nodes * n_rows + rows, owned)
        nodes, rows = np.divmod(keys, n_rows)
        return cls(np.searchsorted(nodes, np.arange(n_nodes + 1)).astype(np.int64), rows)

    def count(self, node: int) -> int:
        return int(self.pointers[node + 1] - self.pointers[node])

    def appended(self, node: int, rows: Array, pointers: Array) -> tuple[Array, Array]:
        """The rows of a node, followed by its negatives."""
        extra = self.rows[self.pointers[node] : self.pointers[node + 1]]
        return np.concatenate([rows, extra]), np.append(pointers, np.full(len(extra), pointers[-1]))


class Grown(NamedTuple):
    """A trained tree, the largest gap of a block at the end of training, and the largest number of sweeps."""

    weights: TreeWeights
    gap: float
    sweeps: int


def grow(
    rows: Rows,
    Y: Any,
    hierarchy: LabelHierarchy,
    label_costs: Array,
    objective: Objective,
    n_jobs: int | None,
    *,
    beam: int,
    precision: int,
) -> Grown:
    """Train the classifiers of one tree.

    A `beam` above 0 trains a second time, with the rows that the beam sends to a node by mistake as negatives. Rows
    without labels are negatives of the root.
    """
    examples = Examples.of(hierarchy, Y, label_costs)
    tasks = tasks_of(hierarchy)
    unlabelled = np.flatnonzero(np.diff(Y.indptr) == 0)
    at_root = (unlabelled, np.zeros(len(unlabelled), dtype=np.int64))
    negatives = Negatives.of([at_root], examples)
    trained = train(rows, examples, tasks, objective, n_jobs, keep_duals=beam > 0, negatives=negatives)
    weights = _packed(hierarchy, rows.n_features, trained, precision)
    if beam > 0 and hierarchy.n_nodes > 1:
        mistaken = _mistaken(rows, weights, objective.loss == "logistic", beam, n_jobs)
        negatives = Negatives.of(chain([at_root], mistaken), examples)
        trained = train(rows, examples, tasks, objective, n_jobs, negatives=negatives, before=trained)
        weights = _packed(hierarchy, rows.n_features, trained, precision)
    gap = max((each.gap for each in trained), default=0.0)
    return Grown(weights, gap, max((each.sweeps for each in trained), default=0))


def _packed(hierarchy: LabelHierarchy, n_features: int, trained: list[Trained], precision: int) -> TreeWeights:
    """Store the weights of trained blocks and release them one by one; the rest of `trained` stays."""

    def blocks() -> Iterator[TrainedBlock]:
        for i, each in enumerate(trained):
            trained[i] = each._replace(block=NO_BLOCK)
            yield each.block

    return TreeWeights.pack(hierarchy, n_features, blocks(), precision)


def _mistaken(
    rows: Rows, weights: TreeWeights, logistic: bool, beam: int, n_jobs: int | None
) -> Iterator[tuple[Array, Array]]:
    """The rows and the nodes below the root that the beam sends them to, block after block."""
    search = kernels.TreeSearch(rows.n_features, weights.hierarchy.n_labels, logistic, 1.0, [weights.for_search()])

    def visits(block: slice) -> tuple[Array, Array]:
        found: tuple[Array, Array] = search.visited(
            0, rows.indptr, rows.indices, rows.data, block.start, block.stop, beam
        )
        return found

    n_rows = len(rows.indptr) - 1
    with progress.task("searching for negatives", total=n_rows) as advance:
        blocks = split(n_rows, _ROWS_SEARCHED)
        for block, pairs in zip(blocks, map_blocks(visits, blocks, n_jobs), strict=True):
            yield pairs
            advance(block.stop - block.start)
