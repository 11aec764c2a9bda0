"""Random boosted trees, and the plainest way to walk them."""

from __future__ import annotations

import numpy as np

from longtail.ranking import BoostedTrees

THRESHOLDS = np.array([-1, 0, 1, 2], dtype=np.float32)


def random_nodes(rng, leaves, n_features):
    """The features of the nodes of a random tree in preorder."""
    if leaves == 1:
        return [-1]
    left = int(rng.integers(1, leaves))
    return [
        int(rng.integers(n_features)),
        *random_nodes(rng, left, n_features),
        *random_nodes(rng, leaves - left, n_features),
    ]


def random_forest(rng, n_trees, most_leaves, n_features):
    """Trees of `most_leaves` or fewer leaves; the first has `most_leaves`."""
    sizes = [most_leaves, *rng.integers(1, most_leaves + 1, n_trees).tolist()][:n_trees]
    nodes = np.array([node for size in sizes for node in random_nodes(rng, size, n_features)], dtype=np.int16)
    n_leaves = int((nodes < 0).sum())
    return BoostedTrees(
        n_features=n_features,
        baseline=float(rng.normal()),
        features=nodes,
        thresholds=rng.choice(THRESHOLDS, len(nodes) - n_leaves),
        values=rng.normal(size=n_leaves),
        counts=rng.integers(1, 100, n_leaves),
    )


def walk(forest, pair, known=None):
    """The raw score of a pair, averaged by counts over the features that are not `known` (None: all are)."""
    nodes = iter(forest.features.tolist())
    thresholds, leaves = iter(forest.thresholds), iter(zip(forest.values, forest.counts.tolist(), strict=True))

    def visit(feature):
        """The value and the count of the subtree that starts here."""
        if feature < 0:
            return next(leaves)
        threshold = next(thresholds)
        (left, n_left), (right, n_right) = visit(next(nodes)), visit(next(nodes))
        if known is not None and feature not in known:
            value = (n_left * left + n_right * right) / (n_left + n_right)
        else:
            value = left if pair[feature] <= threshold else right
        return value, n_left + n_right

    score = forest.baseline
    for root in nodes:
        score += visit(root)[0]
    return score
