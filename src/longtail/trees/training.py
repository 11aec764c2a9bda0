"""Training of a label tree: blocks of sibling classifiers, trained in lockstep, as tasks of a `Work`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from longtail.arrays import Array
from longtail.labels import LabelHierarchy
from longtail.native import block_widths, kernels
from longtail.parallel import check_stop
from longtail.trees.examples import Block, Examples, block_of, examples_of, layout_of, visits_by_node
from longtail.trees.objective import Objective
from longtail.trees.weighting import VISITS, Weighting, train_weighted
from longtail.trees.weights import BLOCK_CHILDREN, PACKED, TrainedBlock, TreeWeights, pack_block
from longtail.work import Piece, Results, Rows, Work, even_ranges

_WORK_OF_A_PIECE = 2**25  # rows times siblings
_ROWS_SEARCHED = 2**10
_MOST_SEARCHES = 128  # every block looks through the results of all
_COPIES = 2  # of the results of a task: one by one, and joined
_WEIGHT_BYTES = 5
_KEPT_SHARE = 0.25  # of the weights that rows can have; a guess, since only training tells


class Grown(NamedTuple):
    """A trained tree, the largest gap of a block at the end of training, and the largest number of sweeps."""

    weights: TreeWeights
    gap: float
    sweeps: int


def grow(
    work: Work,
    name: str,
    members: Results,
    counts: Array,
    hierarchy: LabelHierarchy,
    label_costs: Array,
    objective: Objective,
    *,
    beam: int,
    weighting: Weighting | None = None,
) -> Grown:
    """Train the classifiers of one tree.

    A `beam` above 0 trains a second time, with the rows that the beam sends to a node by mistake as negatives. Rows
    without labels are negatives of the root.

    Parameters
    ----------
    work : Work
        With the matrices "features" and "labels".
    name : str
        Prefix of the stages.
    members : Results
        The rows of each label.
    counts : array
        The number of rows of each label.
    hierarchy : LabelHierarchy
    label_costs : float32 array
        The cost of missing each label.
    objective : Objective
    beam : int
    weighting : Weighting or None
        The weights of rows and the relevance of labels; only for training in memory.
    """
    X, n_features = work.matrix("features"), work.opened("features").n_columns
    n_rows = len(work.opened("features"))
    layout = layout_of(hierarchy, label_costs)
    kept = work.keep(f"{name}layout", layout)
    costs, memory, weights, duals = estimates(layout, counts, work.opened("features"))
    ranges = work.divide(costs, _WORK_OF_A_PIECE)
    unlabelled = np.flatnonzero(np.diff(work.opened("labels").indptr) == 0)
    outside = work.keep(f"{name}outside", visits_by_node(unlabelled, np.zeros(len(unlabelled), dtype=np.int64)))

    def train(stage: str, mistaken: Results | None, keep_duals: bool, before: Results | None) -> Any:
        arguments = X, kept, members, outside, mistaken, objective, keep_duals, before, weighting
        results = _COPIES * (weights + duals if keep_duals else weights)
        return work.run(f"{name}{stage}", _train, ranges, *arguments, costs=costs, memory=memory, results=results)

    def joined(stage: str, done: Results) -> Grown:
        arrays = work.join(f"{name}{stage}", done, (*reversed(PACKED), "sizes", "gaps", "sweeps")) if len(done) else {}
        weights = TreeWeights.joined(hierarchy, n_features, arrays, objective.precision)
        gap, sweeps = (arrays[each].max(initial=0) if arrays else 0 for each in ("gaps", "sweeps"))
        return Grown(weights, float(gap), int(sweeps))

    done = train("training-classifiers", None, beam > 0, None)
    grown = joined("joining-classifiers", done)
    if beam > 0 and hierarchy.n_nodes > 1:
        search = work.keep(f"{name}search", grown.weights.for_search())
        by_rows = even_ranges(np.ones(n_rows), max(_ROWS_SEARCHED, n_rows / _MOST_SEARCHES))
        sizes = n_features, hierarchy.n_labels
        mistaken = work.run(
            f"{name}searching-for-negatives", _mistaken, by_rows, X, search, *sizes, objective.loss == "logistic", beam
        )
        done = train("training-classifiers-again", mistaken, False, done)
        grown = joined("joining-classifiers-again", done)
    return grown


def estimates(layout: Piece, counts: Array, X: Rows) -> tuple[Array, Array, Array, Array]:
    """Of each block: the relative duration and the bytes of training, and those of its weights and dual variables."""
    below = np.concatenate([[0], np.cumsum(counts[layout["order"]])])
    entries = below[layout["bounds"][:, 1]] - below[layout["bounds"][:, 0]]
    children = np.diff(layout["pointers"])
    blocks = np.diff(layout["first_block"])
    nodes = np.repeat(np.arange(len(blocks)), blocks)
    firsts = np.arange(len(nodes)) - np.repeat(layout["first_block"][:-1], blocks)
    siblings = np.minimum(BLOCK_CHILDREN, children[nodes] - firsts * BLOCK_CHILDREN)
    known = {each: sum(block_widths(each)) for each in np.unique(siblings).tolist()}
    lanes = np.array([known[each] for each in siblings.tolist()], dtype=np.float64)
    rows = np.minimum(entries[nodes], len(X))
    features = X.indptr[-1] / max(1, len(X))  # of a row
    values = rows * features
    kept = np.minimum(lanes * np.minimum(values, X.n_columns), _KEPT_SHARE * entries[nodes] * features)
    costs = (1 + rows) * lanes
    memory = training_bytes(rows, values, entries[nodes], lanes, len(X), X.n_columns)
    return costs, memory, _WEIGHT_BYTES * kept, 4 * costs


def training_bytes(rows: Array, values: Array, entries: Array, lanes: Array, n_rows: int, n_features: int) -> Array:
    """The bytes of training blocks with these numbers of rows, of their features, and of pairs of row and label."""
    scratch = 4 * np.minimum(lanes, 64) * (rows + np.minimum(values, n_features))
    return np.asarray(scratch + 16 * values + 64 * entries + n_rows)


def _train(
    X: Rows,
    layout: Piece,
    members: Results,
    outside: Piece,
    mistaken: Results | None,
    objective: Objective,
    keep_duals: bool,
    before: Results | None,
    weighting: Weighting | None,
    start: int,
    stop: int,
) -> Piece:
    """Train blocks of siblings; with duals, a later training of the same blocks continues from the result."""
    parts: list[dict[str, Array]] = []
    for number in range(start, stop):
        check_stop()
        block = block_of(layout, number)
        relevance = None if weighting is None else weighting.relevance
        examples = examples_of(layout, members, (outside, *(mistaken or ())), block, len(X), relevance)
        n_visited = len(examples.rows)
        if weighting is not None and weighting.rows is not None:
            n_visited *= VISITS
        duals = None
        if keep_duals or before is not None:
            duals = _continued(before, number, n_visited, block.n_children)
        trained, gap, sweeps = train_block(X, examples, block, objective, duals, weighting)
        parts.append(pack_block(trained, X.n_columns, objective.precision))
        parts[-1] |= {"gaps": np.array([gap]), "sweeps": np.array([sweeps])}
        if keep_duals and duals is not None:
            parts[-1] |= {"duals": duals, "n_duals": np.array([len(duals)]), "n_rows": np.array([n_visited])}
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def train_block(
    X: Rows,
    examples: Examples,
    block: Block,
    objective: Objective,
    duals: Array | None = None,
    weighting: Weighting | None = None,
) -> tuple[TrainedBlock, float, int]:
    """Train one block; returns its weights, the final gap and the number of sweeps."""
    if weighting is not None and weighting.rows is not None:
        return train_weighted(X, examples, weighting.rows, block, objective, duals)
    features, feature_pointers, siblings, weights, intercepts, gap, sweeps = kernels.train_siblings(
        *X,
        *examples,
        objective.cost,
        block.n_children,
        1.0,
        objective.loss == "logistic",
        objective.tolerance,
        objective.max_sweeps,
        objective.seed_of(block),
        objective.smallest,
        objective.top,
        duals,
    )
    return TrainedBlock(features, feature_pointers, siblings, weights, intercepts), gap, sweeps


def _continued(before: Results | None, number: int, n_rows: int, n_siblings: int) -> Array:
    """The dual variables of an earlier training, and zeros for the rows added since."""
    widths = block_widths(n_siblings)
    duals = np.zeros(n_rows * sum(widths), dtype=np.float32)
    if before is not None:
        piece, place = before.find(number)
        n_before = int(piece["n_rows"][place])
        old, new = int(piece["n_duals"][:place].sum()), 0
        for width in widths:
            duals[new : new + n_before * width] = piece["duals"][old : old + n_before * width]
            old += n_before * width
            new += n_rows * width
    return duals


def _mistaken(
    X: Rows, arrays: Piece, n_features: int, n_labels: int, logistic: bool, beam: int, start: int, stop: int
) -> Piece:
    """The nodes below the root that the beam sends rows to."""
    search = kernels.TreeSearch(n_features, n_labels, logistic, 1.0, [dict(arrays)])
    return visits_by_node(*search.visited(0, X.indptr, X.indices, X.data, start, stop, beam))
