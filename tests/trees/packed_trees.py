"""Trees with weights that a test chooses, and rows to search them with."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from longtail.labels import LabelHierarchy, members_by_label
from longtail.trees.examples import block_of, layout_of
from longtail.trees.weights import TrainedBlock, TreeWeights
from longtail.work import InMemory, Rows

LARGE_ARRAYS = ("shifts", "masks", "bucket_rows", "bucket_weights", "lows", "counts", "slots", "weights")


def flat(n_children):
    """A root with this many labels."""
    return LabelHierarchy(np.array([0, n_children]), ~np.arange(n_children), n_children)


def trained_block(weights, intercepts):
    """The trained block with these weights, features x children."""
    csr = sparse.csr_array(weights, dtype=np.float32)
    counts = np.diff(csr.indptr)
    features = np.flatnonzero(counts)
    pointers = np.concatenate([[0], np.cumsum(counts[features])]).astype(np.int64)
    return TrainedBlock(
        features.astype(np.int32), pointers, csr.indices.astype(np.uint8), csr.data, intercepts.astype(np.float32)
    )


def blocks_of(hierarchy):
    """All blocks of siblings, in the order of storage."""
    layout = layout_of(hierarchy, np.ones(hierarchy.n_labels, np.float32))
    return [block_of(layout, number) for number in range(int(layout["first_block"][-1]))]


def members_of(Y):
    """The rows of each label."""
    return members_by_label(InMemory(1, {"labels": Y}), np.bincount(Y.indices, minlength=Y.shape[1]))


def packed(hierarchy, weights, intercepts, precision=32):
    """A tree whose edges have the columns of `weights`, features x edges."""
    blocks = []
    for block in blocks_of(hierarchy):
        first = int(hierarchy.pointers[block.node]) + block.first
        edges = slice(first, first + block.n_children)
        blocks.append(trained_block(weights[:, edges], intercepts[edges]))
    return TreeWeights.pack(hierarchy, weights.shape[0], blocks, precision)


def random_tree(rng, hierarchy, n_features=30, density=0.4, precision=32, grid=None):
    """Random weights; on a `grid` all arithmetic is exact in any order, and ties are frequent."""
    edges = len(hierarchy.children)
    weights, intercepts = rng.normal(size=(n_features, edges)), rng.normal(size=edges)
    if grid is not None:
        weights, intercepts = np.rint(weights / grid) * grid, np.rint(intercepts / grid) * grid
    return packed(hierarchy, weights * (rng.random((n_features, edges)) < density), intercepts, precision)


def random_rows(rng, n_rows, n_features=30, density=0.2, grid=None):
    X = sparse.csr_array(sparse.random_array((n_rows, n_features), density=density, rng=rng, dtype=np.float32))
    if grid is not None:
        X.data = np.ceil(X.data * 2).astype(np.float32) * np.float32(grid)
    return Rows.of(X)


def with_bytes(rng, tree, names=LARGE_ARRAYS):
    """The arrays of a tree for the search, with those in `names` overwritten by random bytes."""
    arrays = tree.for_search()
    for name in names:
        old = arrays[name]
        arrays[name] = np.frombuffer(rng.bytes(old.nbytes), dtype=old.dtype)
    return arrays
