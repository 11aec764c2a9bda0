"""Taxonomies: hierarchies given by parents, in memory or in a file with two columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from longtail.arrays import Array
from longtail.data import read_text_lines
from longtail.errors import DataFormatError, InvalidInput
from longtail.files import PathName, writing
from longtail.labels.assembly import assemble, breadth_first, count_below
from longtail.labels.hierarchy import LabelHierarchy
from longtail.labels.printing import check_label_names
from longtail.validation import check_whole, is_whole

_MISSING = ("error", "root", "drop")
_NAMES_SHOWN = 3


def from_parents(
    parents: Mapping[Any, Any] | Any, n_labels: int, label_names: Sequence[str] | None = None, missing: str = "error"
) -> LabelHierarchy:
    """Build a hierarchy from the parent of each label and class.

    Parameters
    ----------
    parents : mapping or int array
        A mapping of child to parent. Children and parents are labels, by number or name, or classes, by a name that no
        label has. If a label is a parent, its node also has the label itself as a child. Classes without a parent (not
        among the children, or with parent None) are at the top. A single one is the root; several get a common root.
        Classes without labels below are left out.

        Or an array with the parent of each item, -1 for none. Items are numbered: first the labels, then the classes.
    n_labels : int
    label_names : sequence of str or None
        Required if labels are given by name.
    missing : {"error", "root", "drop"}
        What to do with labels that have neither parent nor children: raise an error, put them below the root, or leave
        them out.

    Examples
    --------
    >>> tree = from_parents({"cat": "animals", "dog": "animals"}, 3, ["cat", "dog", "stone"], missing="root")
    >>> print(tree.format(["cat", "dog", "stone"]))
    animals: 3 labels
    ├─ cat
    ├─ dog
    └─ stone
    >>> from_parents([3, 3, 4, -1, 3], n_labels=3).children.tolist() == [1, ~0, ~1, ~2]
    True
    """
    n_labels = check_whole("n_labels", n_labels, 0)
    if missing not in _MISSING:
        raise InvalidInput(f"missing is {missing!r}; expected one of {', '.join(map(repr, _MISSING))}")
    check_label_names(label_names, n_labels)
    if label_names is not None and len(set(label_names)) != n_labels:
        raise InvalidInput("label names repeat; each label needs its own name")
    if isinstance(parents, Mapping):
        item_parents, class_names = _read_mapping(parents, n_labels, label_names)
    else:
        item_parents, class_names = _read_array(parents, n_labels), None

    def name(item: int) -> str:
        if item < n_labels:
            return f"label {item}" if label_names is None else f"label {label_names[item]!r}"
        return f"class {item}" if class_names is None else f"class {class_names[item - n_labels]!r}"

    return _build(item_parents, n_labels, class_names, label_names, missing, name)


def _read_array(parents: Any, n_labels: int) -> Array:
    array = np.asarray(parents)
    if array.ndim != 1 or (array.dtype.kind not in "iu" and array.size) or len(array) < n_labels:
        raise InvalidInput(
            f"parents has dtype {array.dtype} and shape {array.shape}; expected one integer for each of the {n_labels} "
            f"labels, then one for each class"
        )
    if (wrong := np.flatnonzero((array < -1) | (array >= len(array)))).size:
        raise InvalidInput(
            f"item {wrong[0]} has the parent {array[wrong[0]]}; expected an item below {len(array)}, or -1 for none"
        )
    return array.astype(np.int64)


def _read_mapping(
    parents: Mapping[Any, Any], n_labels: int, label_names: Sequence[str] | None
) -> tuple[Array, list[str]]:
    numbers: dict[str, int] = {} if label_names is None else {name: i for i, name in enumerate(label_names)}
    class_names: list[str] = []

    def number(item: Any, role: str) -> int:
        if isinstance(item, str):
            found = numbers.setdefault(item, n_labels + len(class_names))
            if found == n_labels + len(class_names):
                class_names.append(item)
            return found
        if not is_whole(item) or not 0 <= item < n_labels:
            raise InvalidInput(
                f"the {role} {item!r} is unknown; expected a label below {n_labels}, or the name of a label or class"
            )
        return int(item)

    found: dict[int, int] = {}
    for child, parent in parents.items():
        item = number(child, "child")
        if item in found:
            raise InvalidInput(f"{child!r} is given twice, by number and by name")
        found[item] = -1 if parent is None else number(parent, "parent")
    result = np.full(n_labels + len(class_names), -1, dtype=np.int64)
    result[list(found.keys())] = list(found.values())
    return result, class_names


def _build(
    parents: Array,
    n_labels: int,
    class_names: Sequence[str] | None,
    label_names: Sequence[str] | None,
    missing: str,
    name: Callable[[int], str],
) -> LabelHierarchy:
    n_items = len(parents)
    order, levels = breadth_first(parents)
    if len(order) < n_items:
        raise InvalidInput(f"the parents form a cycle: {_describe_cycle(parents, order, name)}", code="cycle")
    has_children = np.bincount(parents[parents >= 0], minlength=n_items) > 0
    alone = (parents[:n_labels] < 0) & ~has_children[:n_labels]
    if missing == "error" and alone.any():
        first = ", ".join(name(int(item)) for item in np.flatnonzero(alone)[:_NAMES_SHOWN])
        raise InvalidInput(
            f"{np.count_nonzero(alone)} of {n_labels} labels have no parent ({first})",
            code="labels_without_parent",
            advice="add them, or choose missing='root' to put them below the root or missing='drop' to leave them out",
        )
    own = np.zeros(n_items, dtype=np.int64)
    own[:n_labels] = 1 if missing == "root" else ~alone
    if not own.any():
        return LabelHierarchy([0], [], n_labels)  # type: ignore[arg-type]
    counts = count_below(parents, own, order, levels)
    # A label is a node only if there is more than itself below.
    is_node = counts > (np.arange(n_items) < n_labels)
    items = np.flatnonzero(is_node)
    tops = items[parents[items] < 0]
    number = np.full(n_items + 1, -1, dtype=np.int64)
    number[items] = np.arange(len(items))
    node_parents = number[parents[items]]
    if len(tops) == 1:
        root = number[tops[0]]
    else:
        root = len(items)
        node_parents = np.append(np.where(node_parents < 0, root, node_parents), -1)
    label_parents = np.where(is_node[:n_labels], number[:n_labels], number[parents[:n_labels]])
    label_parents = np.where(own[:n_labels] > 0, np.where(label_parents < 0, root, label_parents), -1)
    pointers, children, old = assemble(node_parents, label_parents)
    if class_names is None:
        return LabelHierarchy(pointers, children, n_labels)
    names = [_item_name(int(item), n_labels, class_names, label_names) for item in items]
    if root == len(items):
        names.append(_fresh_name("root", {*names, *(label_names or ())}))
    return LabelHierarchy(pointers, children, n_labels, [names[node] for node in old])


def _describe_cycle(parents: Array, reached: Array, name: Callable[[int], str]) -> str:
    outside = np.ones(len(parents), dtype=bool)
    outside[reached] = False
    item = int(np.flatnonzero(outside)[0])
    seen: dict[int, None] = {}
    while item not in seen:
        seen[item] = None
        item = int(parents[item])
    walked = list(seen)
    circle = [*walked[walked.index(item) :], item]
    shown = [name(i) for i in circle]
    if len(shown) > 2 * _NAMES_SHOWN:
        shown = [*shown[:_NAMES_SHOWN], "...", *shown[-_NAMES_SHOWN:]]
    return " below ".join(shown)


def _item_name(item: int, n_labels: int, class_names: Sequence[str], label_names: Sequence[str] | None) -> str:
    if item >= n_labels:
        return class_names[item - n_labels]
    return f"label {item}" if label_names is None else label_names[item]


def _fresh_name(name: str, taken: set[str]) -> str:
    while name in taken:
        name += " (class)"
    return name


def to_parents(hierarchy: LabelHierarchy) -> Array:
    """The array of parents, as for `from_parents`: first the labels, then the nodes.

    Examples
    --------
    >>> tree = LabelHierarchy(pointers=[0, 3, 5], children=[1, ~0, ~3, ~1, ~2], n_labels=5)
    >>> to_parents(tree).tolist()
    [5, 6, 6, 5, -1, -1, 5]
    >>> from_parents(to_parents(tree), n_labels=5, missing="drop") == tree
    True
    """
    nodes, labels = hierarchy.parents()
    parents = np.concatenate([labels, nodes])
    return np.where(parents >= 0, parents + hierarchy.n_labels, -1)


def read_taxonomy(path: PathName, label_names: Sequence[str], missing: str = "error") -> LabelHierarchy:
    """Read a hierarchy from a file with two tab-separated columns: the name of a child and of its parent.

    Parameters
    ----------
    path : str or path-like
        UTF-8, plain or gzipped; empty lines are skipped. See `from_parents` for the meaning of the lines.
    label_names : sequence of str
        The names of the labels; all other names are classes.
    missing : {"error", "root", "drop"}
        What to do with labels that are not in the file.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "taxonomy.tsv"
    >>> _ = path.write_text("cat\\tanimals\\ndog\\tanimals\\n")
    >>> read_taxonomy(path, ["cat", "dog"]).node_names
    ('animals',)
    """
    parents: dict[str, str] = {}
    lines: dict[str, int] = {}
    for number, line in read_text_lines(path):
        text = line.rstrip("\r\n")
        if not text.strip():
            continue
        columns = [column.strip() for column in text.split("\t")]
        if len(columns) != 2 or not all(columns):
            raise DataFormatError(
                path, number, f"expected the name of a child, a tab, and the name of its parent; found {text[:80]!r}"
            )
        child, parent = columns
        if child in parents:
            again = "again" if parents[child] == parent else f"below {parent!r} and below {parents[child]!r}"
            raise DataFormatError(
                path, number, f"{child!r} occurs {again}, first in line {lines[child]}; each name has one parent"
            )
        if child == parent:
            raise DataFormatError(path, number, f"{child!r} is its own parent")
        parents[child], lines[child] = parent, number
    try:
        return from_parents(parents, len(label_names), label_names, missing)
    except InvalidInput as error:
        raise DataFormatError(path, None, error.problem, code=error.code, advice=error.advice) from None


def write_taxonomy(hierarchy: LabelHierarchy, path: PathName, label_names: Sequence[str]) -> None:
    """Write a hierarchy in the format of `read_taxonomy`; nodes without names get names.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "tree.tsv"
    >>> write_taxonomy(LabelHierarchy([0, 2], [~0, ~1], n_labels=2), path, ["cat", "dog"])
    >>> path.read_text()
    'cat\\tnode 0\\ndog\\tnode 0\\n'
    """
    check_label_names(label_names, hierarchy.n_labels)
    nodes, labels = (parents.tolist() for parents in hierarchy.parents())
    names = _written_names(hierarchy, label_names)
    present = hierarchy.labels.tolist()
    for name in (*names, *(label_names[label] for label in present)):
        if "\t" in name or "\n" in name or "\r" in name or not name or name != name.strip():
            raise InvalidInput(
                f"the name {name!r} cannot be written: it is empty, contains a tab or a line break, or starts or ends "
                f"with a space"
            )
    with writing(path) as stream:
        for node in range(1, hierarchy.n_nodes):
            stream.write(f"{names[node]}\t{names[nodes[node]]}\n".encode())
        for label in present:
            # A label that is a class needs no line of its own: it is known by its children.
            if label_names[label] != names[labels[label]]:
                stream.write(f"{label_names[label]}\t{names[labels[label]]}\n".encode())


def _written_names(hierarchy: LabelHierarchy, label_names: Sequence[str]) -> list[str]:
    """Unique names of nodes; a node shares its name with a label only if it stands for that label."""
    numbers = {name: label for label, name in enumerate(label_names)}
    label_parents = hierarchy.parents()[1]
    widths = np.diff(hierarchy.pointers)
    taken = set(numbers)
    names = []
    for node in range(hierarchy.n_nodes):
        name = f"node {node}" if hierarchy.node_names is None else hierarchy.node_names[node]
        label = numbers.get(name)
        if label is None or label_parents[label] != node or widths[node] == 1:
            name = _fresh_name(name, taken)
        taken.add(name)
        names.append(name)
    return names
