"""NumPy twin of the beam search through label trees, row by row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from longtail.arrays import Array
from longtail.parallel import check_stop

_BLOCK_CHILDREN = 256
_EXACT_SHIFT, _LARGEST_SHIFT = 6, 16
_FEW_PROPOSED = 16  # minimum number of labels that each of several trees proposes
_FEW_COMPARED = 3  # minimum k of the k-th best score that scores in other trees are compared with
_LEAST_SHARE = np.float32(0.3)  # of the first tree's k-th best score; a tree does not count for labels that score less
_APART = np.float32(0.01)  # separates classifiers that all have margins above 1


def log_probability(margin: Array, logistic: bool) -> Array:
    """The log probability of a margin m: log sigmoid(m), or for the hinge -max(0, 1 - m)^3 - 0.01 e^-max(-4, m)."""
    if logistic:
        return np.asarray(-np.logaddexp(0, -margin))
    missing = np.maximum(0, 1 - margin)
    return np.asarray(-missing * missing * missing - _APART * np.exp(-np.maximum(-4, margin)))


def block_entries(tree: Mapping[str, Array], block: int, n_features: int) -> tuple[Array, Array, Array]:
    """Feature, child within the block and stored value of every weight in a block of a tree.

    Entries that a damaged directory places outside the block or the features are left out.
    """

    def part(name: str, first: str) -> Array:
        return tree[name][int(tree[first][block]) : int(tree[first][block + 1])]

    counts, slots, weights = part("counts", "first_row"), part("slots", "first_weight"), part("weights", "first_weight")
    shift = min(max(int(tree["shifts"][block]) & 0x7F, _EXACT_SHIFT), _LARGEST_SHIFT)
    if shift == _EXACT_SHIFT:
        bits = np.unpackbits(part("masks", "first_bucket").astype("<u8").view(np.uint8), bitorder="little")
        features = np.flatnonzero(bits)[: len(counts)]
    else:
        buckets, lows = part("bucket_rows", "first_bucket"), part("lows", "first_low")
        bucket = np.searchsorted(np.maximum.accumulate(buckets), np.arange(len(lows)), side="right") - 1
        features = ((bucket << shift) + lows)[: len(counts)]
    owners = np.repeat(features, counts[: len(features)].astype(np.int64) + 1)[: len(slots)]
    inside = np.flatnonzero((owners >= 0) & (owners < n_features))
    return owners[inside], slots[inside], weights[inside]


def _best(labels: Array, logs: Array, label_factors: Array | None, count: int) -> tuple[Array, Array]:
    ranks = logs if label_factors is None else logs + np.log(label_factors[labels])
    order = np.lexsort((labels, -ranks))[:count]
    return labels[order], logs[order]


def _needed(scores: Array, k: int, places: int) -> Any:
    """The score that a label needs to count beside the first tree's scores: the one in the last place, or a share."""
    ordered = -np.sort(-scores)
    last, kth = (ordered[place - 1] if len(ordered) >= place else np.float32(0) for place in (places, k))
    return max(last, _LEAST_SHARE * kth)


class TreeSearch:
    """Beam search in trees with the arrays of `longtail.trees.weights.TreeWeights`.

    Parameters
    ----------
    n_features, n_labels : int
    logistic : bool
    path_weight : float
        Weight of the nodes above a label in its log score.
    trees : sequence of mappings from names to arrays
    """

    def __init__(
        self,
        n_features: int,
        n_labels: int,
        logistic: bool,
        path_weight: float,
        trees: Sequence[Mapping[str, Array]],
    ) -> None:
        self._n_features, self._n_labels, self._logistic, self._trees = n_features, n_labels, logistic, list(trees)
        self._path_weight = np.float32(path_weight)
        self._calibrations: dict[int, tuple[float, float, Array, Array]] = {}
        self._dense: dict[tuple[int, int], tuple[Array, Array]] = {}

    def calibrate(self, tree: int, slope: float, offset: float, knots: Array, values: Array) -> None:
        """Map log scores s of a tree to sigmoid(slope s + offset), or interpolate them in a table if there is one."""
        self._calibrations[tree] = slope, offset, knots, values

    def _probability(self, tree: int, log_scores: Array) -> Array:
        # Never 0, so that a label that was found differs from one that was not.
        return np.maximum(self._calibrated(tree, log_scores).astype(np.float32), np.finfo(np.float32).tiny)

    def _calibrated(self, tree: int, log_scores: Array) -> Array:
        if tree not in self._calibrations:
            return np.asarray(np.exp(log_scores))
        slope, offset, knots, values = self._calibrations[tree]
        if len(knots):
            return np.interp(log_scores, knots, values)
        return np.asarray(1 / (1 + np.exp(-(slope * log_scores + offset))))

    def _weights(self, tree: int, block: int, wanted: Array) -> Array:
        """The weights of a block: wanted features x children."""
        if (tree, block) not in self._dense:
            features, slots, weights = block_entries(self._trees[tree], block, self._n_features)
            known, rows = np.unique(features, return_inverse=True)
            # One row per feature with weights, and a row of zeros for all others.
            dense = np.zeros((len(known) + 1, _BLOCK_CHILDREN), dtype=np.float32)
            dense[rows, slots] = weights
            self._dense[tree, block] = np.append(known, -1), dense
        known, dense = self._dense[tree, block]
        rows = np.searchsorted(known[:-1], wanted)
        return np.asarray(dense[np.where(known[rows] == wanted, rows, len(dense) - 1)])

    def _children(self, tree: int, node: int, features: Array, values: Array) -> tuple[Array, Array]:
        """The children of a node, and the log probability of each."""
        t = self._trees[tree]
        edges = slice(int(t["pointers"][node]), int(t["pointers"][node + 1]))
        first, last = int(t["first_block"][node]), int(t["first_block"][node + 1])
        parts = [values @ self._weights(tree, block, features) for block in range(first, last)]
        scores = np.concatenate(parts)[: edges.stop - edges.start]
        margins = scores * t["scales"][edges] + t["intercepts"][edges]
        return t["children"][edges], log_probability(margins.astype(np.float32), self._logistic)

    def _search(
        self, tree: int, features: Array, values: Array, beam: int, allowed: Array | None, seen: list[int] | None = None
    ) -> tuple[Array, Array]:
        """The labels that the beam reaches, and their log scores."""
        if len(self._trees[tree]["pointers"]) < 2:
            return np.zeros(0, np.int64), np.zeros(0, np.float32)
        open_nodes = None if allowed is None else self._open_nodes(tree, allowed)
        level = [(0.0, 0)]
        labels, scores = [], []
        while level:
            nodes: list[tuple[float, int]] = []
            for score, node in sorted(level, key=lambda each: each[1]):
                children, added = self._children(tree, node, features, values)
                to_nodes, to_labels = np.float32(score) + added, self._path_weight * np.float32(score) + added
                there = added > -np.inf  # False for NaN, which damaged weights can give
                is_label = children < 0
                mine = is_label & there
                if allowed is not None:
                    mine = mine & allowed[np.where(is_label, ~children, 0)]
                labels.append(~children[mine])
                scores.append(to_labels[mine])
                below = ~is_label & there
                if open_nodes is not None:
                    below = below & open_nodes[np.where(below, children, 0)]
                nodes += zip(to_nodes[below].tolist(), children[below].tolist(), strict=True)
            level = sorted(nodes, key=lambda each: (-each[0], each[1]))[:beam]
            if seen is not None:
                seen += sorted(node for _, node in level)
        return np.concatenate(labels), np.concatenate(scores)

    def _open_nodes(self, tree: int, allowed: Array) -> Array:
        t = self._trees[tree]
        opened = np.zeros(len(t["pointers"]) - 1, dtype=bool)
        for node in range(len(opened) - 1, -1, -1):
            children = t["children"][t["pointers"][node] : t["pointers"][node + 1]]
            opened[node] = allowed[~children[children < 0]].any() or opened[children[children >= 0]].any()
        return opened

    def _rows(
        self, indptr: Array, indices: Array, data: Array, first: int, last: int
    ) -> Iterator[tuple[int, Any, Any]]:
        for row in range(first, last):
            check_stop()
            part = slice(int(indptr[row]), int(indptr[row + 1]))
            yield row, indices[part], data[part]

    def topk(
        self,
        indptr: Array,
        indices: Array,
        data: Array,
        first: int,
        last: int,
        beam: int,
        allowed: Array | None,
        label_factors: Array | None,
        labels: Array,
        scores: Array,
    ) -> None:
        """Write the best labels of rows `first` to `last`, best first, to `labels` and `scores`."""
        k = labels.shape[1]
        for row, features, values in self._rows(indptr, indices, data, first, last):
            found, ranks, probabilities = self._found(features, values, beam, allowed, label_factors, k)
            order = np.lexsort((found, -ranks))[:k]
            labels[row] = -1
            scores[row] = -np.inf
            labels[row, : len(order)] = found[order]
            scores[row, : len(order)] = probabilities[order]

    def _found(
        self,
        features: Array,
        values: Array,
        beam: int,
        allowed: Array | None,
        label_factors: Array | None,
        k: int | None = None,
    ) -> tuple[Array, Array, Array]:
        """Labels found, their ranks and their scores; with `k`, each of several trees only counts for its best labels.

        A tree does not count for a label with a low score in it: lower than the first tree's score in the last place,
        or than a share of its k-th best score. If there is a place for every label, all trees count.
        """
        per_tree = [self._search(tree, features, values, beam, allowed) for tree in range(len(self._trees))]
        if len(per_tree) == 1:
            found, logs = per_tree[0]
            factors = np.float32(1) if label_factors is None else label_factors[found]
            return found, logs + np.log(factors), self._probability(0, logs) * factors
        places = self._n_labels if k is None else min(self._n_labels, max(_FEW_PROPOSED, 3 * k))
        every_factor = np.ones(self._n_labels, dtype=np.float32) if label_factors is None else label_factors
        sums, needed = np.zeros(self._n_labels, dtype=np.float32), np.float32(0)
        for tree, (labels, logs) in enumerate(per_tree):
            labels, logs = _best(labels, logs, label_factors, places)
            scores = self._probability(tree, logs)
            if k is not None and places < self._n_labels:
                weighted = scores * every_factor[labels]
                needed = _needed(weighted, max(_FEW_COMPARED, k), places) if tree == 0 else needed
                labels, scores = labels[weighted >= needed], scores[weighted >= needed]
            sums[labels] += scores
        found = np.flatnonzero(sums)
        mean = np.minimum(1, sums[found] / np.float32(len(per_tree))) * every_factor[found]
        return found, mean, mean

    def all(
        self,
        indptr: Array,
        indices: Array,
        data: Array,
        first: int,
        last: int,
        beam: int,
        label_factors: Array | None,
        scores: Array,
    ) -> None:
        """Add the scores of all labels that the beam reaches to `scores` (rows x labels)."""
        for row, features, values in self._rows(indptr, indices, data, first, last):
            found, _, probabilities = self._found(features, values, beam, None, label_factors)
            scores[row, found] += probabilities

    def visited(
        self, tree: int, indptr: Array, indices: Array, data: Array, first: int, last: int, beam: int
    ) -> tuple[Array, Array]:
        """Rows and nodes below the root that the beam visits, sorted by level, node and row."""
        pairs = []
        parents = self._levels(tree)
        for row, features, values in self._rows(indptr, indices, data, first, last):
            seen: list[int] = []
            self._search(tree, features, values, beam, None, seen)
            pairs += [(parents[node], node, row) for node in seen]
        pairs.sort()
        return np.array([row for _, _, row in pairs], dtype=np.int64), np.array(
            [node for _, node, _ in pairs], dtype=np.int64
        )

    def _levels(self, tree: int) -> Array:
        """The level of each node."""
        t = self._trees[tree]
        levels = np.zeros(max(0, len(t["pointers"]) - 1), dtype=np.int64)
        for node in range(len(levels)):
            children = t["children"][t["pointers"][node] : t["pointers"][node + 1]]
            levels[children[children >= 0]] = levels[node] + 1
        return levels
