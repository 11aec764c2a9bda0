"""`LabelHierarchy`: labels as the leaves of a tree, stored in two arrays.

Taxonomies and learned trees have the same form, so learners need not tell them apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from longtail.arrays import Array
from longtail.errors import InvalidInput, ModelFormatError
from longtail.labels.assembly import assemble, breadth_first, count_below
from longtail.labels.printing import describe_nodes, format_tree
from longtail.validation import check_whole

_DEEPEST = 10_000  # maximum number of levels; walking all paths of a deeper chain would take too long


@dataclass(frozen=True, eq=False)
class LabelHierarchy:
    """A tree whose leaves are labels.

    Nodes are numbered breadth-first from the root, 0. The children of a node may be nodes and labels. A label occurs at
    most once in the tree, and may be absent. A hierarchy without labels has no nodes.

    Parameters
    ----------
    pointers : int64 array of n_nodes + 1
        The children of node i are ``children[pointers[i]:pointers[i + 1]]``; each node has at least one.
    children : int64 array
        A value of at least 0 is a node, and nodes ascend over the whole array. A negative value is the label
        ``~value``.
    n_labels : int
        Labels are numbered from 0 to ``n_labels - 1``.
    node_names : sequence of str or None
        One name per node, if nodes have names.

    Examples
    --------
    >>> tree = LabelHierarchy(pointers=[0, 3, 5], children=[1, ~0, ~3, ~1, ~2], n_labels=4)
    >>> print(tree.format(["apple", "cat", "dog", "stone"]))
    node 0: 4 labels
    ├─ node 1: 2 labels
    │  ├─ cat
    │  └─ dog
    ├─ apple
    └─ stone
    >>> tree.n_nodes, tree.n_leaves, tree.depth, tree.path(2)
    (2, 1, 2, [0, 1])
    """

    pointers: Array
    children: Array
    n_labels: int
    node_names: Sequence[str] | None = None

    def __post_init__(self) -> None:
        for name in ("pointers", "children"):
            array = np.asarray(getattr(self, name))
            if array.ndim != 1 or (array.dtype.kind not in "iu" and array.size):
                raise InvalidInput(
                    f"{name} of a label hierarchy has dtype {array.dtype} and shape {array.shape}; expected a "
                    f"one-dimensional array of integers"
                )
            object.__setattr__(self, name, array.astype(np.int64, copy=False))
        object.__setattr__(self, "n_labels", check_whole("n_labels", self.n_labels, 0))
        if self.node_names is not None:
            object.__setattr__(self, "node_names", tuple(self.node_names))
        if fault := self._fault():
            raise InvalidInput(f"the label hierarchy is not a tree: {fault}")

    @classmethod
    def loaded(
        cls, pointers: Array, children: Array, n_labels: int, node_names: Sequence[str] | None = None
    ) -> LabelHierarchy:
        """Build a hierarchy from a file; faults raise `ModelFormatError`."""
        try:
            return cls(pointers, children, n_labels, node_names)
        except InvalidInput as error:
            raise ModelFormatError(str(error)) from None

    def _fault(self) -> str | None:
        """Why the arrays are not a hierarchy, or None."""
        pointers, children = self.pointers, self.children
        if not len(pointers) or pointers[0] != 0 or pointers[-1] != len(children):
            return f"the pointers do not run from 0 to the number of children, {len(children)}"
        # Comparisons cannot overflow, unlike differences.
        if (childless := np.flatnonzero(pointers[1:] <= pointers[:-1])).size:
            return f"node {childless[0]} has no children"
        n_nodes = len(pointers) - 1
        owners = np.repeat(np.arange(n_nodes), np.diff(pointers))
        inner = children >= 0
        nodes, node_owners = children[inner], owners[inner]
        expected = np.arange(1, len(nodes) + 1)
        if (wrong := np.flatnonzero(nodes != expected)).size:
            at = wrong[0]
            return f"node {node_owners[at]} has the child node {nodes[at]}; expected node {expected[at]}"
        if len(nodes) != max(0, n_nodes - 1):
            return f"there are {n_nodes} nodes, but {len(nodes)} have a parent; expected all but the root"
        if (wrong := np.flatnonzero(node_owners >= nodes)).size:
            return f"node {node_owners[wrong[0]]} has the child node {nodes[wrong[0]]}, which comes before it"
        labels = ~children[~inner]
        if (wrong := np.flatnonzero(labels >= self.n_labels)).size:
            return (
                f"node {owners[~inner][wrong[0]]} has the label {labels[wrong[0]]}; "
                f"expected labels below {self.n_labels}"
            )
        in_order = np.sort(labels)
        if (wrong := np.flatnonzero(in_order[1:] == in_order[:-1])).size:
            label = in_order[wrong[0]]
            places = owners[~inner][labels == label]
            return f"label {label} occurs more than once, in nodes {places[0]} and {places[1]}"
        if self.depth > _DEEPEST:
            return f"it has more than {_DEEPEST} levels"
        if self.node_names is not None and len(self.node_names) != n_nodes:
            return f"there are {len(self.node_names)} names for {n_nodes} nodes"
        return None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LabelHierarchy):
            return NotImplemented
        return (
            self.n_labels == other.n_labels
            and self.node_names == other.node_names
            and np.array_equal(self.pointers, other.pointers)
            and np.array_equal(self.children, other.children)
        )

    __hash__ = None  # type: ignore[assignment]  # arrays cannot be hashed

    def __repr__(self) -> str:
        return (
            f"LabelHierarchy({len(self.labels)} of {self.n_labels} labels, {self.n_nodes} nodes, "
            f"{self.n_leaves} leaves, depth {self.depth})"
        )

    @property
    def n_nodes(self) -> int:
        return len(self.pointers) - 1

    @property
    def n_leaves(self) -> int:
        """The number of nodes whose children are all labels."""
        return self.n_nodes - len(np.unique(self.parents()[0][1:]))

    @property
    def depth(self) -> int:
        """The number of levels of nodes, which is the number of steps from the root to the deepest label."""
        return len(self.levels) - 1

    @property
    def labels(self) -> Array:
        """The labels in the tree, ascending."""
        return np.sort(~self.children[self.children < 0])

    @cached_property
    def levels(self) -> Array:
        """Where each level starts: the nodes of level i are ``range(levels[i], levels[i + 1])``."""
        nodes_before = np.concatenate([[0], np.cumsum(self.children >= 0)])[self.pointers]
        ends = [0]
        end = min(1, self.n_nodes)
        while end > ends[-1] and len(ends) <= _DEEPEST + 1:
            ends.append(end)
            end = 1 + int(nodes_before[end])
        return np.array(ends, dtype=np.int64)

    @cached_property
    def _parents(self) -> tuple[Array, Array]:
        owners = np.repeat(np.arange(self.n_nodes), np.diff(self.pointers))
        inner = self.children >= 0
        nodes = np.full(self.n_nodes, -1, dtype=np.int64)
        nodes[self.children[inner]] = owners[inner]
        labels = np.full(self.n_labels, -1, dtype=np.int64)
        labels[~self.children[~inner]] = owners[~inner]
        nodes.flags.writeable = labels.flags.writeable = False
        return nodes, labels

    def parents(self) -> tuple[Array, Array]:
        """The parent of each node (-1 for the root) and the node of each label (-1 for absent labels)."""
        return self._parents

    def label_order(self) -> tuple[Array, Array]:
        """The labels in depth-first order, and the bounds of each node in this order.

        All labels below node i are ``order[bounds[i, 0]:bounds[i, 1]]``.

        Examples
        --------
        >>> tree = LabelHierarchy(pointers=[0, 3, 5], children=[1, ~0, ~3, ~1, ~2], n_labels=4)
        >>> order, bounds = tree.label_order()
        >>> order.tolist(), bounds.tolist()
        ([1, 2, 0, 3], [[0, 4], [0, 2]])
        """
        return self._label_order

    @cached_property
    def _label_order(self) -> tuple[Array, Array]:
        inner = self.children >= 0
        counts = self._label_counts(self.parents()[1])
        sizes = np.where(inner, counts[np.where(inner, self.children, 0)] if self.n_nodes else 0, 1)
        before = np.concatenate([[0], np.cumsum(sizes)])
        offsets = before[:-1] - np.repeat(before[self.pointers[:-1]], np.diff(self.pointers))
        starts = np.zeros(self.n_nodes, dtype=np.int64)
        order = np.empty(len(self.labels), dtype=np.int64)
        for first, last in zip(self.levels[:-1], self.levels[1:], strict=True):
            edges = slice(self.pointers[first], self.pointers[last])
            owners = np.repeat(np.arange(first, last), np.diff(self.pointers[first : last + 1]))
            places, values = offsets[edges] + starts[owners], self.children[edges]
            below = values >= 0
            starts[values[below]] = places[below]
            order[places[~below]] = ~values[~below]
        bounds = np.stack([starts, starts + counts], axis=1)
        order.flags.writeable = bounds.flags.writeable = False
        return order, bounds

    def _label_counts(self, label_parents: Array) -> Array:
        """The number of labels below each node, given the parents of the labels."""
        own = np.bincount(label_parents[label_parents >= 0], minlength=self.n_nodes)
        return count_below(self.parents()[0], own, np.arange(self.n_nodes), self.levels)

    def path(self, label: int) -> list[int]:
        """The nodes from the root to the parent of `label`."""
        nodes, labels = self.parents()
        if not 0 <= label < self.n_labels:
            raise InvalidInput(
                f"there is no label {label}; labels are numbered 0..{self.n_labels - 1}", code="unknown_label"
            )
        node = int(labels[label])
        if node < 0:
            raise InvalidInput(
                f"label {label} is not in the hierarchy, which has {len(self.labels)} labels", code="unknown_label"
            )
        path = [node]
        while path[-1]:
            path.append(int(nodes[path[-1]]))
        return path[::-1]

    def restricted_to(self, mask: Any) -> LabelHierarchy:
        """The tree of the labels in `mask`, without empty nodes and nodes with a single child.

        Parameters
        ----------
        mask : bool array of n_labels
            Labels to keep, for example those with rows.

        Examples
        --------
        >>> tree = LabelHierarchy(pointers=[0, 3, 5], children=[1, ~0, ~3, ~1, ~2], n_labels=4)
        >>> tree.restricted_to(np.array([True, True, False, False])).children.tolist() == [~0, ~1]
        True
        """
        mask = np.asarray(mask)
        if mask.dtype != bool or mask.shape != (self.n_labels,):
            raise InvalidInput(
                f"the mask has dtype {mask.dtype} and shape {mask.shape}; expected bool and ({self.n_labels},)"
            )
        nodes, labels = self.parents()
        return prune_tree(nodes, np.where(mask, labels, -1), self.node_names)[0]

    def format(
        self,
        label_names: Sequence[str] | None = None,
        max_depth: int | None = None,
        max_labels: int | None = 5,
        vectors: Any = None,
        feature_names: Sequence[str] | None = None,
        n_terms: int = 4,
    ) -> str:
        """The tree as text.

        Parameters
        ----------
        label_names : sequence of str or None
            None prints label numbers.
        max_depth : int or None
            Maximum number of levels to show.
        max_labels : int or None
            Maximum number of labels to show per node.
        vectors : csr_array of shape (n_labels, n_features) or None
            Label vectors. With `feature_names`, each node shows the terms with the largest weights in its labels.
        feature_names : sequence of str or None
        n_terms : int
            Number of terms to show per node.
        """
        return format_tree(self, label_names, max_depth, max_labels, vectors, feature_names, n_terms)

    def to_dict(self, label_names: Sequence[str] | None = None) -> dict[str, Any]:
        """The tree as JSON values: a flat list of nodes, each with its parent, child nodes and labels.

        Examples
        --------
        >>> LabelHierarchy([0, 2], [~0, ~1], 2).to_dict(["cat", "dog"])
        {'n_labels': 2, 'nodes': [{'node': 0, 'name': None, 'parent': None, 'nodes': [], 'labels': ['cat', 'dog']}]}
        """
        return {"n_labels": self.n_labels, "nodes": describe_nodes(self, label_names)}


def prune_tree(
    node_parents: Array, label_parents: Array, node_names: Sequence[str] | None = None
) -> tuple[LabelHierarchy, Array]:
    """The tree given by parents, without empty nodes and nodes with a single child, and the old number of each node.

    Parameters
    ----------
    node_parents : the parent of each node, -1 for the single root; without cycles
    label_parents : the node of each label, -1 for labels that are not in the tree
    node_names : names of the nodes, or None
    """
    present = np.flatnonzero(label_parents >= 0)
    if len(present) <= 1:
        names = None if node_names is None else node_names[: len(present)]
        lonely = LabelHierarchy(np.arange(len(present) + 1), ~present, len(label_parents), names)
        return lonely, np.arange(len(present))
    order, levels = breadth_first(node_parents)
    own = np.bincount(label_parents[present], minlength=len(node_parents))
    full = count_below(node_parents, own, order, levels) > 0
    inner = full & (node_parents >= 0)
    kept = full & (np.bincount(node_parents[inner], minlength=len(node_parents)) + own > 1)
    # The nearest kept node at or above each node becomes the parent of its children.
    above = np.where(kept, np.arange(len(node_parents)), -1)
    for first, last in pairwise(levels[1:].tolist()):
        level = order[first:last]
        level = level[~kept[level]]
        above[level] = above[node_parents[level]]
    number = np.cumsum(kept) - 1
    old = np.flatnonzero(kept)
    parents = _renumber(number, np.where(node_parents[old] >= 0, above[node_parents[old]], -1))
    pointers, children, found = assemble(
        parents, _renumber(number, np.where(label_parents >= 0, above[label_parents], -1))
    )
    names = None if node_names is None else [node_names[i] for i in old[found]]
    return LabelHierarchy(pointers, children, len(label_parents), names), old[found]


def _renumber(number: Array, old: Array) -> Array:
    return np.where(old >= 0, number[old], -1)
