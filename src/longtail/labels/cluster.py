"""Learned label trees: balanced spherical 2-means on label vectors, repeated until nodes are small.

The shape of the tree depends only on the number of labels; clustering decides which label goes where. A node with b
children is bisected repeatedly, and the sizes of its children differ by at most one label.
"""

from __future__ import annotations

import secrets
from typing import Any

import numpy as np
from scipy import sparse

from longtail.arrays import Array
from longtail.errors import InvalidInput
from longtail.labels.assembly import assemble, ranges
from longtail.labels.bisection import Problem, bisected
from longtail.labels.hierarchy import LabelHierarchy
from longtail.labels.shape import balanced_shape
from longtail.parallel import blas_threads
from longtail.validation import as_features, check_whole
from longtail.work import InMemory, Results, Stacked, Work

_LONGEST = 1.001


def cluster_labels(
    vectors: Any, leaf_size: int = 100, branching: int = 16, random_state: int | None = 0, n_jobs: int | None = None
) -> LabelHierarchy:
    """Learn a balanced tree in which similar labels are close to each other.

    Parameters
    ----------
    vectors : csr_array of shape (n_labels, n_features)
        Vectors of norm 1, or empty, as from `label_vectors`. Labels with an empty vector are left out.
    leaf_size : int
        Maximum number of labels in a leaf.
    branching : int
        Maximum number of children of a node. The tree has as few levels as possible, with about equal branching on
        each.
    random_state : int or None
        Random seed. The tree does not depend on `n_jobs`; None gives a different tree each time.
    n_jobs : int or None
        Threads; None uses every core.

    Examples
    --------
    >>> import numpy as np
    >>> vectors = np.array([[1, 0], [0, 1], [0.8, 0.6], [0.6, 0.8]], dtype=np.float32)
    >>> print(cluster_labels(vectors, leaf_size=2).format(["red", "blue", "pink", "purple"]))
    node 0: 4 labels
    ├─ node 1: 2 labels
    │  ├─ blue
    │  └─ purple
    └─ node 2: 2 labels
       ├─ red
       └─ pink
    """
    _check_sizes(leaf_size, branching, random_state)
    matrix = _checked_vectors(vectors)
    labels = np.flatnonzero(np.diff(matrix.indptr))
    pointers, children = cluster_rows(matrix, labels, leaf_size, branching, _seed(random_state), n_jobs)
    return LabelHierarchy(pointers, children, matrix.shape[0])


def split_wide(
    hierarchy: LabelHierarchy,
    vectors: Any,
    leaf_size: int = 100,
    branching: int = 16,
    random_state: int | None = 0,
    n_jobs: int | None = None,
) -> LabelHierarchy:
    """Insert learned nodes between a node with more than `leaf_size` children and its children.

    A class of a taxonomy may have thousands of children, and training would compare all of them at once. Its children,
    labels and classes, are clustered by the vectors of the labels below them. All other nodes stay unchanged.

    Parameters
    ----------
    hierarchy : LabelHierarchy
    vectors, leaf_size, branching, random_state, n_jobs
        As in `cluster_labels`. Labels with an empty vector are kept and placed arbitrarily.

    Examples
    --------
    >>> import numpy as np
    >>> flat = LabelHierarchy([0, 4], [~0, ~1, ~2, ~3], n_labels=4, node_names=["colours"])
    >>> vectors = np.array([[1, 0], [0, 1], [0.8, 0.6], [0.6, 0.8]], dtype=np.float32)
    >>> split_wide(flat, vectors, leaf_size=2).node_names
    ('colours', 'colours / 1', 'colours / 2')
    """
    _check_sizes(leaf_size, branching, random_state)
    matrix = _checked_vectors(vectors)
    if matrix.shape[0] != hierarchy.n_labels:
        raise InvalidInput(f"there are {matrix.shape[0]} vectors, but the hierarchy has {hierarchy.n_labels} labels")
    wide = np.flatnonzero(np.diff(hierarchy.pointers) > leaf_size)
    if not len(wide):
        return hierarchy
    order, bounds = hierarchy.label_order()
    node_parents, label_parents = (parents.copy() for parents in hierarchy.parents())
    names = None if hierarchy.node_names is None else list(hierarchy.node_names)
    taken = set(names or ())
    seed = _seed(random_state)
    added: list[Array] = []
    n_nodes = hierarchy.n_nodes
    for node in wide:
        children = hierarchy.children[hierarchy.pointers[node] : hierarchy.pointers[node + 1]]
        rows = _vectors_of_children(matrix, children, order, bounds)
        pointers, places = cluster_rows(
            rows, np.arange(len(children)), leaf_size, branching, [*seed, int(node)], n_jobs
        )
        parts = np.concatenate([[node], np.arange(n_nodes, n_nodes + len(pointers) - 2)])
        owners = np.repeat(parts, np.diff(pointers))
        inner = places >= 0
        added.append(owners[inner])
        moved = children[~places[~inner]]
        below = moved >= 0
        node_parents[moved[below]] = owners[~inner][below]
        label_parents[~moved[~below]] = owners[~inner][~below]
        n_nodes += len(parts) - 1
        if names is not None:
            names += _part_names(names[node], len(parts) - 1, taken)
    pointers, places, old = assemble(np.concatenate([node_parents, *added]), label_parents)
    return LabelHierarchy(pointers, places, hierarchy.n_labels, None if names is None else [names[i] for i in old])


def _check_sizes(leaf_size: Any, branching: Any, random_state: Any) -> None:
    check_whole("leaf_size", leaf_size)
    check_whole("branching", branching, 2)
    if random_state is not None:
        check_whole("random_state", random_state, 0)


def _checked_vectors(vectors: Any) -> Any:
    matrix = as_features(vectors, name="vectors")
    if matrix.shape[1] >= 2**31:
        raise InvalidInput(f"the vectors have {matrix.shape[1]} features; expected fewer than 2^31")
    longest = max(float(matrix.data.max(initial=0)), -float(matrix.data.min(initial=0)))
    if longest > _LONGEST:
        raise InvalidInput(
            f"the vectors have an entry of {longest:.4g}; expected vectors of norm 1, as from label_vectors"
        )
    if not matrix.data.all():
        matrix = matrix.copy()
        matrix.eliminate_zeros()
    return matrix


def _seed(random_state: int | None) -> list[int]:
    return [secrets.randbits(64) if random_state is None else int(random_state)]


def _vectors_of_children(matrix: Any, children: Array, order: Array, bounds: Array) -> Any:
    """One row per child: the vector of a label, or the normalised sum of the vectors below a node."""
    inner = children >= 0
    starts, stops = np.zeros((2, len(children)), dtype=np.int64)
    starts[inner], stops[inner] = bounds[children[inner]].T
    sizes = np.where(inner, stops - starts, 1)
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    members = np.empty(indptr[-1], dtype=np.int64)
    members[np.repeat(inner, sizes)] = order[ranges(starts[inner], stops[inner])]
    members[np.repeat(~inner, sizes)] = ~children[~inner]
    if not inner.any():
        return matrix[members]
    sums = (
        sparse.csr_array((np.ones(len(members), np.float32), members, indptr), (len(children), matrix.shape[0]))
        @ matrix
    )
    squares = np.bincount(
        np.repeat(np.arange(len(children)), np.diff(sums.indptr)), weights=sums.data.astype(np.float64) ** 2
    )
    lengths = np.sqrt(np.pad(squares, (0, len(children) - len(squares))))
    sums.data /= np.repeat(np.where(lengths > 0, lengths, 1), np.diff(sums.indptr)).astype(np.float32)
    return sums


def _part_names(name: str, count: int, taken: set[str]) -> list[str]:
    """Unique names for the parts of a node."""
    stem = name
    while any(f"{stem} / {i + 1}" in taken for i in range(count)):
        stem += " /"
    fresh = [f"{stem} / {i + 1}" for i in range(count)]
    taken.update(fresh)
    return fresh


def cluster_vectors(
    work: Work, name: str, vectors: Results, n_features: int, leaf_size: int, branching: int, seed: int
) -> LabelHierarchy:
    """As `cluster_labels`, in a training; `name` is the prefix of its stages."""
    lengths = Stacked(vectors).lengths()
    problem = Problem(int(np.count_nonzero(lengths)), leaf_size, branching, n_features, (int(seed),))
    order = bisected(work, name, vectors, lengths, np.flatnonzero(lengths), problem)
    return LabelHierarchy(*_filled(problem, order), len(lengths))


def cluster_rows(
    matrix: Any, rows: Array, leaf_size: int, branching: int, seed: list[int], n_jobs: int | None
) -> tuple[Array, Array]:
    """Pointers and children of a tree over `rows` of `matrix`; a child below 0 is ``~row``."""
    piece = {"indptr": matrix.indptr, "indices": matrix.indices.astype(np.int32, copy=False), "data": matrix.data}
    vectors = Results([(0, matrix.shape[0])], [piece])
    problem = Problem(len(rows), leaf_size, branching, matrix.shape[1], tuple(seed))
    with blas_threads(1):
        order = bisected(InMemory(n_jobs, {}), "", vectors, np.diff(matrix.indptr), rows.astype(np.int64), problem)
    return _filled(problem, order)


def _filled(problem: Problem, order: Array) -> tuple[Array, Array]:
    """The pointers and children of a tree whose places are filled by labels in this order."""
    shape = balanced_shape(problem.n_labels, problem.leaf_size, problem.branching)
    children = shape.children.copy()
    is_label = children < 0
    children[is_label] = ~order[~children[is_label]]
    return shape.pointers, children
