"""`Paths`: which splits lead to which leaves, for the kernel and for exact Shapley values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from longtail.arrays import Array


@dataclass(frozen=True)
class Paths:
    """The splits of trees whose nodes are in preorder, and the leaves below them.

    Parameters
    ----------
    features : int16 array of n_splits
        The feature of each split.
    first_splits : int64 array of n_trees + 1
        The first split of each tree.
    first_leaves : int64 array of n_splits
        The first leaf below each split; leaves are numbered through all trees.
    left, right : int64 arrays of n_splits
        The number of leaves below the left and the right child.
    right_children : int64 array of n_splits
        The node of the right child; nodes are numbered through all trees.
    """

    features: Array
    first_splits: Array
    first_leaves: Array
    left: Array
    right: Array
    right_children: Array

    @classmethod
    def of(cls, features: Array) -> Paths:
        """Read nodes in preorder; leaves have the feature -1. `ValueError` if the last tree is incomplete.

        Examples
        --------
        >>> import numpy as np
        >>> paths = Paths.of(np.array([0, 1, -1, -1, -1, 0, -1, -1]))
        >>> paths.first_splits.tolist(), paths.left.tolist(), paths.right_children.tolist()
        ([0, 2, 3], [2, 1, 1], [4, 3, 7])
        """
        is_leaf = features < 0
        # A tree starts with one open place. A split fills one and opens two, a leaf fills one.
        balance = np.cumsum(np.where(is_leaf, -1, 1))
        ends = np.diff(np.minimum.accumulate(np.minimum(balance, 0)), prepend=0) < 0
        if len(ends) and not ends[-1]:
            raise ValueError("the last tree is incomplete")
        left, right = [], []
        below: list[int] = []  # the leaves of each subtree that starts after this node
        for leaf in reversed(is_leaf.tolist()):
            if leaf:
                below.append(1)
            else:
                left.append(below.pop())
                right.append(below.pop())
                below.append(left[-1] + right[-1])
        splits = np.flatnonzero(~is_leaf)
        left_leaves = np.array(left[::-1], dtype=np.int64)
        return cls(
            features=np.ascontiguousarray(features[splits]),
            first_splits=np.concatenate([[0], np.cumsum(~is_leaf)[ends]]).astype(np.int64),
            first_leaves=np.cumsum(is_leaf)[splits],
            left=left_leaves,
            right=np.array(right[::-1], dtype=np.int64),
            # The left subtree has one split less than leaves.
            right_children=splits + 2 * left_leaves,
        )

    @property
    def masks(self) -> Array:
        """The leaves that remain, in the tree of each split, for a pair that goes to the right; uint32 bits."""
        # A tree has one leaf more than splits.
        first_of_tree = self.first_splits[:-1] + np.arange(len(self.first_splits) - 1)
        first = self.first_leaves - np.repeat(first_of_tree, np.diff(self.first_splits))
        one = np.uint64(1)
        return (~(((one << self.left.astype(np.uint64)) - one) << first.astype(np.uint64))).astype(np.uint32)

    def shapley_values(self, pair: Array, thresholds: Array, values: Array, counts: Array) -> Array:
        """The Shapley value of each feature of `pair`, and in the last place the mean of the trees.

        The value of a set of features is the mean of the leaves: at a split whose feature is in the set, the side of
        the pair counts; at any other, both sides count by their training pairs. For one leaf that is a product over
        the features of its path: 1 or 0 for a feature in the set, the share of training pairs for another. The weights
        of a Shapley value are Beta integrals, so the sum over all sets is the integral from 0 to 1 of a product of
        linear functions, which Gauss-Legendre quadrature gives exactly.
        """
        sizes = self.left + self.right
        step_splits = np.repeat(np.arange(len(sizes)), sizes)
        offsets = np.arange(len(step_splits)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        is_left = offsets < self.left[step_splits]
        # Each step of the path to a leaf: the leaf, the feature of the split, and the split and side.
        steps = (self.first_leaves[step_splits] + offsets, self.features[step_splits])
        sides = 2 * step_splits + is_left
        side_counts = np.bincount(sides, weights=counts[steps[0]], minlength=2 * len(sizes)).reshape(-1, 2)
        side_shares = side_counts / side_counts.sum(axis=1, keepdims=True)
        is_taken = pair[self.features] <= thresholds

        n_features = len(pair)
        absent = np.ones((len(values), n_features))
        np.multiply.at(absent, steps, side_shares.ravel()[sides])
        present = np.ones((len(values), n_features))
        np.multiply.at(present, steps, is_taken[step_splits] == is_left)

        out = np.zeros(n_features + 1)
        most_features = int(np.count_nonzero(absent < 1, axis=1).max(initial=0))
        places, weights = np.polynomial.legendre.leggauss(most_features // 2 + 1)
        for place, weight in zip((places + 1) / 2, weights / 2, strict=True):
            factors = (1 - place) * absent + place * present
            products = weight * values * factors.prod(axis=1)
            out[:-1] += products @ ((present - absent) / factors)
        out[-1] = values @ absent.prod(axis=1)
        return out
