"""A label hierarchy as indented text and as JSON values."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from longtail.errors import InvalidInput
from longtail.printable import printable

if TYPE_CHECKING:
    from longtail.labels.hierarchy import LabelHierarchy

_LEVELS_INDENTED = 100


def check_label_names(label_names: Sequence[str] | None, n_labels: int) -> None:
    """Raise `InvalidInput` if there are names, but not as many as labels."""
    if label_names is not None and len(label_names) != n_labels:
        raise InvalidInput(f"there are {len(label_names)} label names, but the hierarchy has {n_labels} labels")


def describe_nodes(hierarchy: LabelHierarchy, label_names: Sequence[str] | None) -> list[dict[str, Any]]:
    """One dictionary per node, in order."""
    check_label_names(label_names, hierarchy.n_labels)
    parents = hierarchy.parents()[0].tolist()
    described = []
    for node, (nodes, labels) in enumerate(_split_children(hierarchy)):
        described.append(
            {
                "node": node,
                "name": None if hierarchy.node_names is None else hierarchy.node_names[node],
                "parent": None if node == 0 else parents[node],
                "nodes": nodes,
                "labels": labels if label_names is None else [label_names[label] for label in labels],
            }
        )
    return described


def _split_children(hierarchy: LabelHierarchy) -> list[tuple[list[int], list[int]]]:
    children, pointers = hierarchy.children.tolist(), hierarchy.pointers.tolist()
    return [
        ([c for c in children[start:stop] if c >= 0], [~c for c in children[start:stop] if c < 0])
        for start, stop in pairwise(pointers)
    ]


def format_tree(
    hierarchy: LabelHierarchy,
    label_names: Sequence[str] | None,
    max_depth: int | None,
    max_labels: int | None,
    vectors: Any,
    feature_names: Sequence[str] | None,
    n_terms: int,
) -> str:
    """See `LabelHierarchy.format`."""
    check_label_names(label_names, hierarchy.n_labels)
    if (vectors is None) != (feature_names is None):
        raise InvalidInput("pass both vectors and feature_names to show terms of nodes")
    if hierarchy.n_nodes == 0:
        return "no labels"
    order, bounds = hierarchy.label_order()
    below = _split_children(hierarchy)
    lines: list[str] = []
    # A stack instead of recursion, since a taxonomy may be deeper than Python's recursion limit.
    pending: list[tuple[int | str, str, str, int]] = [(0, "", "", 1)]
    while pending:
        item, branch, indent, depth = pending.pop()
        if isinstance(item, str):
            lines.append(branch + printable(item))
            continue
        start, stop = bounds[item]
        title = f"node {item}" if hierarchy.node_names is None else hierarchy.node_names[item]
        line = f"{title}: {stop - start} label{'s' if stop - start != 1 else ''}"
        if feature_names is not None:
            line += f" ({', '.join(_top_terms(vectors, order[start:stop], feature_names, n_terms))})"
        lines.append(branch + printable(line))
        if max_depth is not None and depth >= max_depth:
            continue
        nodes, labels = below[item]
        shown = labels if max_labels is None else labels[:max_labels]
        items: list[int | str] = [
            *nodes,
            *(str(label) if label_names is None else label_names[label] for label in shown),
        ]
        if len(shown) < len(labels):
            items.append(f"... and {len(labels) - len(shown)} more")
        last = len(items) - 1
        # Very deep levels share one indent, or the text of a chain would grow quadratically with its length.
        wider = depth < _LEVELS_INDENTED
        for i, child in reversed(list(enumerate(items))):
            fork, beside = ("└─ ", "   ") if i == last else ("├─ ", "│  ")
            pending.append((child, indent + fork, indent + beside * wider, depth + 1))
    return "\n".join(lines)


def _top_terms(vectors: Any, labels: Any, feature_names: Sequence[str], n_terms: int) -> list[str]:
    weights = np.asarray(vectors[labels].sum(axis=0)).ravel()
    best = np.argsort(-weights, kind="stable")[:n_terms]
    return [feature_names[feature] for feature in best if weights[feature] > 0]
