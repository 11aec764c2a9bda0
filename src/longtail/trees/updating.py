"""Change a trained tree: the classifiers whose rows have changed are trained again, the others stay as they are.

A classifier is trained again if one of its positive rows came or went. Other rows only came or went as negatives. They
move the objective by a sum that is known without training. Siblings stay while these sums together are within the
solver's tolerance, which also is one for all siblings; what has added up over several updates is kept as staleness.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import expit

from longtail.arrays import Array
from longtail.estimator import Revision
from longtail.labels import Growth, LabelHierarchy
from longtail.native import kernels
from longtail.parallel import check_stop
from longtail.trees.examples import Block, Examples, block_of, examples_of, layout_of, rows_visiting, visits_by_node
from longtail.trees.objective import Objective
from longtail.trees.training import _WORK_OF_A_PIECE, estimates, train_block
from longtail.trees.weights import BLOCK_CHILDREN, PACKED, TrainedBlock, TreeWeights, pack_block
from longtail.work import Piece, Results, Rows, Stacked, Work, even_ranges

_ROWS_SEARCHED = 2**14
_ROWS_JUDGED = 2**12


class Regrown(NamedTuple):
    """A changed tree.

    Parameters
    ----------
    weights : TreeWeights
    staleness : float32 array
        For each classifier, how far its objective may be above that of a training since the last one.
    gap, sweeps : float and int
        The largest of the blocks that were trained again.
    trained : int
        The number of classifiers that were trained again.
    """

    weights: TreeWeights
    staleness: Array
    gap: float
    sweeps: int
    trained: int


class _Moved(NamedTuple):
    """Rows that left or came: their features, their members by label, visits by node, and numbers for comparison."""

    X: Any
    squares: Array
    members: Results
    visits: list[Piece]
    numbers: Array

    def at(self, layout: Piece, node: int) -> Array:
        """The places of those that are examples of a node."""
        start, stop = layout["bounds"][node].tolist()
        below = Stacked(self.members).take(np.asarray(layout["order"][start:stop]))[1]
        return np.unique(np.concatenate([below, *(rows_visiting(each, node) for each in self.visits)]))


class _Old(NamedTuple):
    """The old tree, and what became of it.

    Parameters
    ----------
    tree : TreeWeights
    layout : mapping
        Of the old tree.
    staleness : float32 array
        Of the old classifiers.
    nodes : int64 array
        The old node of each node, or -1.
    edges : int64 array
        The old classifier of each edge, or -1 if there is none or it must be trained again.
    left, came : _Moved
    """

    tree: TreeWeights
    layout: Piece
    staleness: Array
    nodes: Array
    edges: Array
    left: _Moved
    came: _Moved


def regrow(
    work: Work,
    name: str,
    members: Results,
    counts: Array,
    tree: TreeWeights,
    staleness: Array,
    growth: Growth,
    revision: Revision,
    label_costs: Array,
    objective: Objective,
    *,
    beam: int,
    everything: bool,
) -> Regrown:
    """Train those classifiers of a changed tree again that need it.

    Parameters
    ----------
    work, name, members, counts, label_costs, objective, beam
        As for `longtail.trees.training.grow`, of the new rows. With a `beam`, the old tree finds the negatives.
    tree : TreeWeights
        The old tree.
    staleness : float32 array
        Of its classifiers.
    growth : Growth
    revision : Revision
    everything : bool
        Train all classifiers.
    """
    hierarchy, logistic = growth.hierarchy, objective.loss == "logistic"
    X = work.opened("features")
    layout, old_layout = layout_of(hierarchy, label_costs), layout_of(tree.hierarchy, label_costs)
    edges = _old_edges(tree.hierarchy, growth, revision.labels)
    known = np.flatnonzero(edges >= 0)
    touched = everything | _any_below(hierarchy, revision.gained)[known]
    touched |= _any_below(tree.hierarchy, revision.lost)[edges[known]]
    edges[known[touched]] = -1
    visits: list[Piece] = []
    parts: list[_Moved] = []
    search = None
    if beam > 0 and tree.hierarchy.n_nodes > 1:
        search = kernels.TreeSearch(X.n_columns, tree.hierarchy.n_labels, logistic, 1.0, [tree.for_search()])
        ranges = even_ranges(np.ones(len(X)), _ROWS_SEARCHED)
        found = work.run(f"{name}searching-for-negatives", _visited, ranges, work.matrix("features"), search, beam)
        rows, nodes = (np.concatenate([each[part] for each in found]) for part in ("rows", "nodes"))
        visits.append(visits_by_node(*_renumbered(rows, nodes, growth)))
    number = np.full(revision.X_before.shape[0], -1, dtype=np.int64)
    number[revision.kept] = np.arange(len(revision.kept))
    for matrix, labels, rows, numbers in (
        (revision.X_before, revision.Y_before, revision.left, number[revision.left]),
        (revision.X, revision.Y, revision.came, revision.came),
    ):
        parts.append(_moved(matrix[rows], labels[rows], numbers, search, beam, growth if parts else None))
    old = _Old(tree, old_layout, staleness, growth.origins, edges, *parts)
    unlabelled = np.flatnonzero(np.diff(work.opened("labels").indptr) == 0)
    visits.append(visits_by_node(unlabelled, np.zeros(len(unlabelled), dtype=np.int64)))
    costs, memory, _, _ = estimates(layout, counts, X)
    arguments = work.matrix("features"), layout, members, visits, old, objective
    ranges = work.divide(costs, _WORK_OF_A_PIECE)
    done = work.run(f"{name}updating-classifiers", _update, ranges, *arguments, costs=costs, memory=memory)
    columns = (*reversed(PACKED), "sizes", "gaps", "sweeps", "staleness", "trained")
    arrays = work.join(f"{name}joining-classifiers", done, columns) if len(done) else {}
    weights = TreeWeights.joined(hierarchy, X.n_columns, arrays, objective.precision)
    if not arrays:
        return Regrown(weights, np.zeros(0, np.float32), 0.0, 0, 0)
    gap, sweeps = float(arrays["gaps"].max(initial=0)), int(arrays["sweeps"].max(initial=0))
    return Regrown(weights, arrays["staleness"], gap, sweeps, int(arrays["trained"].sum()))


def _old_edges(old: LabelHierarchy, growth: Growth, labels: Array) -> Array:
    """The number of each edge in the old tree, or -1 if it led elsewhere."""
    hierarchy, origins = growth
    owners = np.repeat(np.arange(hierarchy.n_nodes), np.diff(hierarchy.pointers))
    is_label = hierarchy.children < 0
    children = np.where(is_label, 0, hierarchy.children)
    if not old.n_nodes:
        return np.full(len(owners), -1, dtype=np.int64)
    places = np.flatnonzero(old.children < 0)
    of_label, of_node = np.full(old.n_labels + 1, -1, dtype=np.int64), np.full(old.n_nodes + 1, -1, dtype=np.int64)
    of_label[~old.children[places]] = places
    inner = np.flatnonzero(old.children >= 0)
    of_node[old.children[inner]] = inner
    names = labels[np.where(is_label, ~hierarchy.children, 0)] if hierarchy.n_labels else owners
    edges = np.where(is_label, of_label[names], of_node[origins[children]])
    old_owners = np.repeat(np.arange(old.n_nodes), np.diff(old.pointers))
    same = (edges >= 0) & (origins[owners] >= 0) & (old_owners[edges] == origins[owners])
    return np.where(same, edges, -1)


def _any_below(hierarchy: LabelHierarchy, chosen: Array) -> Array:
    """Whether each edge leads to one of the chosen labels."""
    order, bounds = hierarchy.label_order()
    before = np.concatenate([[0], np.cumsum(chosen[order])])
    is_label = hierarchy.children < 0
    below = before[bounds[:, 1]] > before[bounds[:, 0]]
    return np.where(
        is_label, chosen[np.where(is_label, ~hierarchy.children, 0)], below[np.where(is_label, 0, hierarchy.children)]
    )


def _visited(X: Rows, search: Any, beam: int, start: int, stop: int) -> Piece:
    rows, nodes = search.visited(0, X.indptr, X.indices, X.data, start, stop, beam)
    return {"rows": rows, "nodes": nodes}


def _renumbered(rows: Array, nodes: Array, growth: Growth) -> tuple[Array, Array]:
    """Visits of old nodes as visits of the nodes that they became; those that were split count for all parts."""
    anchors = growth.origins.copy()
    parents = growth.hierarchy.parents()[0]
    for first, last in pairwise(growth.hierarchy.levels[1:].tolist()):
        level = np.arange(first, last)
        homeless = level[anchors[level] < 0]
        anchors[homeless] = anchors[parents[homeless]]
    order = np.argsort(anchors, kind="stable")
    starts, stops = (np.searchsorted(anchors[order], nodes, side=side) for side in ("left", "right"))
    sizes = stops - starts
    ends = np.cumsum(sizes)
    places = np.repeat(starts - ends + sizes, sizes) + np.arange(ends[-1] if len(ends) else 0)
    return np.repeat(rows, sizes), order[places]


def _moved(X: Any, Y: Any, numbers: Array, search: Any, beam: int, growth: Growth | None) -> _Moved:
    """Some rows; a `growth` tells that the nodes that they visit are renumbered."""
    by_label = sparse.csc_array(Y)
    by_label.sort_indices()
    members = {"indptr": by_label.indptr.astype(np.int64), "indices": by_label.indices.astype(np.int64)}
    unlabelled = np.flatnonzero(np.diff(Y.indptr) == 0)
    visits: list[Piece] = [visits_by_node(unlabelled, np.zeros(len(unlabelled), dtype=np.int64))]
    if search is not None:
        rows = Rows.of(X)
        rows_of, nodes = search.visited(0, rows.indptr, rows.indices, rows.data, 0, len(rows), beam)
        visits.append(visits_by_node(*((rows_of, nodes) if growth is None else _renumbered(rows_of, nodes, growth))))
    squares = np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel() + 1  # with the constant feature
    return _Moved(X, squares, Results([(0, Y.shape[1])], [members]), visits, numbers)


def _update(
    X: Rows,
    layout: Piece,
    members: Results,
    visits: list[Piece],
    old: _Old,
    objective: Objective,
    start: int,
    stop: int,
) -> Piece:
    """Blocks of siblings: those classifiers that need it are trained, the others are taken over."""
    parts: list[dict[str, Array]] = []
    for number in range(start, stop):
        check_stop()
        block = block_of(layout, number)
        first = int(layout["pointers"][block.node]) + block.first
        edges = old.edges[first : first + block.n_children]
        staleness = np.zeros(block.n_children, dtype=np.float32)
        stored, examples = None, None
        kept = np.flatnonzero(edges >= 0)
        if len(kept):
            stored = old.tree.entries_of(edges[kept])
            stale = old.staleness[edges[kept]] + _excess(layout, old, block.node, edges[kept], stored, objective)
            fresh = np.ones(len(kept), dtype=bool)
            if stale.any():
                examples = examples_of(layout, members, visits, block, len(X))
                intercepts = old.tree.intercepts[edges[kept]]
                least = _least_objectives(X, examples, kept, stored, intercepts, objective)
                fresh = _within(stale, objective.tolerance * least)
            staleness[kept[fresh]] = stale[fresh]
            stored = _only(stored, fresh)
            kept = kept[fresh]
        needed = np.setdiff1d(np.arange(block.n_children), kept, assume_unique=True)
        gap, sweeps = 0.0, 0
        whole = _whole_block(old.tree, edges) if not len(needed) else None
        if whole is not None:
            packed = old.tree.packed_block(whole)
        else:
            trained = None
            if len(needed):
                examples = examples or examples_of(layout, members, visits, block, len(X))
                mine = _among(examples, needed, block.n_children)
                found = train_block(X, mine, block._replace(n_children=len(needed)), objective)
                trained, gap, sweeps = found
            intercepts = old.tree.intercepts[edges[kept]]
            packed = pack_block(
                _joined(block, needed, trained, kept, stored, intercepts), X.n_columns, objective.precision
            )
        packed |= {"gaps": np.array([gap]), "sweeps": np.array([sweeps]), "staleness": staleness}
        parts.append({**packed, "trained": np.array([len(needed)])})
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


Entries = tuple[Array, Array, Array]  # features, places of classifiers, values


def _excess(layout: Piece, old: _Old, node: int, edges: Array, stored: Entries, objective: Objective) -> Array:
    """How much higher the objective of old classifiers may be than that of a training on the present rows.

    With the dual variables of the old rows, a row that came adds its loss to the gap, and a row with the dual variable
    a that left adds a^2 |x|^2 / 2.
    """
    gone, here = old.left.at(old.layout, int(old.nodes[node])), old.came.at(layout, node)
    there_before, there_now = old.left.numbers[gone], old.came.numbers[here]
    gone, here = gone[~np.isin(there_before, there_now)], here[~np.isin(there_now, there_before)]
    total = np.zeros(len(edges), dtype=np.float64)
    if not len(gone) and not len(here):
        return total
    features, places, values = stored
    weights = sparse.csr_array((values, (features, places)), shape=(old.tree.n_features, len(edges)))
    intercepts = old.tree.intercepts[edges]
    for moved, rows in ((old.left, gone), (old.came, here)):
        for start in range(0, len(rows), _ROWS_JUDGED):  # the margins are dense
            some = rows[start : start + _ROWS_JUDGED]
            scores = (moved.X[some] @ weights).toarray() + intercepts
            if moved is old.came:
                total += _losses(scores, objective).sum(axis=0)
            else:
                total += (_duals(scores, objective) ** 2 * (moved.squares[some] / 2)[:, None]).sum(axis=0)
    return total


def _losses(scores: Array, objective: Objective) -> Array:
    """What the loss of negative rows with these scores costs."""
    if objective.loss == "logistic":
        return np.asarray(objective.cost * np.logaddexp(0, scores))
    return np.asarray(objective.cost * np.maximum(1 + scores, 0) ** 2)


def _duals(scores: Array, objective: Objective) -> Array:
    """The dual variables of negative rows with these scores, at the optimum."""
    if objective.loss == "logistic":
        return np.asarray(objective.cost * expit(scores))
    return np.asarray(2 * objective.cost * np.maximum(1 + scores, 0))


def _least_objectives(
    X: Rows, examples: Examples, kept: Array, stored: Entries, intercepts: Array, objective: Objective
) -> Array:
    """A part of the objectives of the classifiers `kept`: their penalties, and the losses of their positive rows."""
    features, places, values = stored
    squares = np.bincount(places, weights=values.astype(np.float64) ** 2, minlength=len(kept))
    place = np.full(max(int(kept[-1]), int(examples.slots.max(initial=0))) + 1, -1, dtype=np.int64)
    place[kept] = np.arange(len(kept))
    mine = np.flatnonzero(place[examples.slots] >= 0)
    mine = mine[np.argsort(place[examples.slots[mine]], kind="stable")]
    owners = place[examples.slots[mine]]
    rows = np.repeat(examples.rows[: len(examples.pointers) - 1], np.diff(examples.pointers))[mine]
    order = np.argsort(places, kind="stable")
    scores = np.zeros(len(mine), dtype=np.float32)
    kernels.pair_dots(
        _starts(places, len(kept)),
        features[order].astype(np.int32),
        values[order],
        0,
        len(kept),
        _starts(owners, len(kept)),
        rows.astype(np.int32),
        *X[:3],
        X.n_columns,
        scores,
    )
    losses = examples.costs[mine] / objective.cost * _losses(-(scores + intercepts[owners]), objective)
    penalties = (squares + intercepts.astype(np.float64) ** 2) / 2
    return np.asarray(penalties + np.bincount(owners, weights=losses, minlength=len(kept)))


def _starts(owners: Array, count: int) -> Array:
    """Where the entries of each owner start, if entries are ordered by owner."""
    return np.concatenate([[0], np.cumsum(np.bincount(owners, minlength=count))]).astype(np.int64)


def _within(stale: Array, allowed: Array) -> Array:
    """As many classifiers as together are no staler than allowed.

    >>> _within(np.array([3.0, 0.5, 0.0]), np.array([1.0, 1.0, 1.0])).tolist()
    [False, True, True]
    """
    order = np.argsort(stale / allowed, kind="stable")
    found = np.zeros(len(stale), dtype=bool)
    found[order] = np.cumsum(stale[order]) <= np.cumsum(allowed[order])
    return found


def _only(stored: Entries, chosen: Array) -> Entries:
    features, places, values = stored
    mine = chosen[places]
    return features[mine], (np.cumsum(chosen) - 1)[places[mine]], values[mine]


def _whole_block(tree: TreeWeights, edges: Array) -> int | None:
    """The old block that has exactly these classifiers, or None."""
    node = int(np.searchsorted(tree.hierarchy.pointers, edges[0], side="right")) - 1
    first = int(tree.hierarchy.pointers[node])
    block, rest = divmod(int(edges[0]) - first, BLOCK_CHILDREN)
    stop = min(first + (block + 1) * BLOCK_CHILDREN, int(tree.hierarchy.pointers[node + 1]))
    same = rest == 0 and len(edges) == stop - edges[0] and (np.diff(edges) == 1).all()
    return int(tree.blocks_before[node]) + block if same else None


def _among(examples: Examples, needed: Array, n_children: int) -> Examples:
    """The examples of some siblings, numbered anew; all rows stay."""
    if len(needed) == n_children:
        return examples
    places = np.full(n_children, -1, dtype=np.int32)
    places[needed] = np.arange(len(needed), dtype=np.int32)
    slots = places[examples.slots]
    mine = slots >= 0
    ends = np.concatenate([[0], np.cumsum(mine)])[examples.pointers].astype(np.int64)
    return Examples(examples.rows, ends, slots[mine], examples.costs[mine])


def _joined(
    block: Block, needed: Array, trained: TrainedBlock | None, kept: Array, stored: Entries | None, before: Array
) -> TrainedBlock:
    """A block of classifiers of which some were trained and the others are stored."""
    intercepts = np.zeros(block.n_children, dtype=np.float32)
    intercepts[kept] = before
    keys, values = [np.zeros(0, np.int64)], [np.zeros(0, np.float32)]
    if stored is not None:
        keys.append(stored[0] * BLOCK_CHILDREN + kept[stored[1]])
        values.append(stored[2])
    if trained is not None:
        intercepts[needed] = trained.intercepts
        features = np.repeat(trained.features, np.diff(trained.pointers)).astype(np.int64)
        keys.append(features * BLOCK_CHILDREN + needed[trained.siblings])
        values.append(trained.weights)
    key, value = np.concatenate(keys), np.concatenate(values)
    order = np.argsort(key, kind="stable")  # which merges the two ascending parts
    feature, sibling = np.divmod(key[order], BLOCK_CHILDREN)
    starts = np.flatnonzero(np.diff(feature, prepend=-1))
    return TrainedBlock(
        feature[starts].astype(np.int32),
        np.append(starts, len(order)).astype(np.int64),
        sibling.astype(np.uint8),
        value[order].astype(np.float32),
        intercepts,
    )
