"""Label sets in any form: 0/1 or -1/+1 matrices, lists of ids or of names, and corpora."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from longtail.arrays import Array
from longtail.data import Corpus
from longtail.errors import InvalidInput
from longtail.estimator import OutputLayer
from longtail.parallel import split
from longtail.validation import as_labels


@dataclass(frozen=True, eq=False)
class LabelSets:
    """Label sets to audit, and how many rows have each.

    Examples
    --------
    >>> sets = LabelSets.of([[1, 0], [0, 1], [1, 0]])
    >>> sets.members.toarray().tolist(), sets.rows.tolist(), sets.first_row.tolist()
    ([[1.0, 0.0], [0.0, 1.0]], [2, 1], [0, 1])
    """

    members: Any
    rows: Array
    first_row: Array

    @classmethod
    def of(cls, labels: Any, limit: int | None = None, random_state: int = 0) -> LabelSets:
        """The distinct rows of a 0/1 matrix, or a random sample of `limit` of them."""
        matrix = as_labels(labels, name="labels")
        places: dict[bytes, int] = {}
        indices, indptr = matrix.indices, matrix.indptr.tolist()
        number = np.array(
            [places.setdefault(indices[a:b].tobytes(), len(places)) for a, b in pairwise(indptr)], dtype=np.int64
        )
        _, first_row, rows = np.unique(number, return_index=True, return_counts=True)
        if limit is not None and limit < len(rows):
            chosen = np.sort(np.random.default_rng(random_state).choice(len(rows), size=limit, replace=False))
            rows, first_row = rows[chosen], first_row[chosen]
        return cls(matrix[first_row], rows, first_row)

    @classmethod
    def each(cls, labels: Any) -> LabelSets:
        """Every row of a 0/1 matrix as a set of its own, in order."""
        matrix = as_labels(labels, name="label_sets")
        return cls(matrix, np.ones(matrix.shape[0], dtype=np.int64), np.arange(matrix.shape[0]))

    def __len__(self) -> int:
        return len(self.rows)

    def ids(self, place: int) -> Array:
        """The labels of a set."""
        return np.asarray(self.members.indices[self.members.indptr[place] : self.members.indptr[place + 1]])

    def dense(self, places: Any) -> Array:
        """Some sets as a boolean matrix."""
        return np.asarray(self.members[places].toarray()) > 0

    def blocks(self) -> list[slice]:
        """Slices of sets that take about 64 MiB as dense rows of float64."""
        return split(len(self), max(1, min(1024, (1 << 23) // max(1, self.members.shape[1]))))


def as_label_sets(given: Any, layer: OutputLayer) -> LabelSets:
    """The label sets that a caller means; a corpus stands for its distinct ones.

    A list of lists of numbers is a matrix if every list has a 0 or 1, or a -1 or +1, for each label. Else its numbers
    are ids. Arrays and sparse matrices are always matrices.

    Examples
    --------
    >>> layer = OutputLayer.of(np.eye(3)).named(["a", "b", "c"])
    >>> [as_label_sets(sets, layer).members.toarray().tolist() for sets in ([["a", "c"]], [[0, 2]], [[1, -1, 1]])]
    [[[1.0, 0.0, 1.0]], [[1.0, 0.0, 1.0]], [[1.0, 0.0, 1.0]]]
    """
    if isinstance(given, LabelSets):
        return given
    if isinstance(given, Corpus):
        return _of_corpus(given, layer)
    if not sparse.issparse(given) and isinstance(given, Iterable) and not hasattr(given, "__array__"):
        rows = [_listed(row) for row in given]
        if any(isinstance(label, str) for row in rows for label in row):
            return of_ids(_ids(rows, layer.label_names), layer.n_labels)
        if rows and not _is_matrix(rows, layer.n_labels):
            return of_ids(rows, layer.n_labels)
        given = rows if rows else np.zeros((0, layer.n_labels))
    if not sparse.issparse(given):
        given = np.asarray(given)
        if given.dtype.kind in "if" and (given == -1).any() and np.isin(given, (-1, 1)).all():
            given = given > 0
    return LabelSets.each(given)


def of_ids(rows: Iterable[Iterable[int]], n_labels: int) -> LabelSets:
    """A label set for each list of label ids."""
    lists = [list(row) for row in rows]
    for place, row in enumerate(lists):
        wrong = [label for label in row if not isinstance(label, int | np.integer) or not 0 <= label < n_labels]
        if wrong:
            raise InvalidInput(f"label set {place} has {wrong[0]!r}; expected label ids from 0 to {n_labels - 1}")
        if len(set(row)) < len(row):
            raise InvalidInput(f"label set {place} has a label twice")
    indptr = np.cumsum([0, *map(len, lists)])
    indices = np.array([label for row in lists for label in sorted(row)], dtype=np.int64)
    matrix = sparse.csr_array((np.ones(len(indices), dtype=np.int8), indices, indptr), shape=(len(lists), n_labels))
    return LabelSets.each(matrix)


def _listed(row: Any) -> list[Any]:
    if isinstance(row, str) or not isinstance(row, Iterable):
        raise InvalidInput(f"{row!r} is no label set; expected a list of labels for each set")
    labels = row.tolist() if isinstance(row, np.ndarray) else list(row)
    wrong = [label for label in labels if isinstance(label, Iterable) and not isinstance(label, str)]
    if wrong:
        raise InvalidInput(
            f"a label set has {wrong[0]!r:.100}; expected a label id, a name, or a 0 or 1 for each label"
        )
    return labels


def _is_matrix(rows: Sequence[Sequence[Any]], n_labels: int) -> bool:
    """Whether lists of numbers are the rows of a matrix; raises `InvalidInput` where both could be meant."""
    lengths, values = {len(row) for row in rows}, {value for row in rows for value in row}
    if not (values <= {0, 1} or values <= {-1, 1}) or len(lengths) > 1:
        return False
    if lengths == {n_labels}:
        return True
    if max(lengths) > 1 and values == {0, 1}:
        raise InvalidInput(f"the label sets have {max(lengths)} labels, the layer has {n_labels}")
    return False


def _ids(rows: Sequence[Sequence[Any]], names: Sequence[str] | None) -> list[list[int]]:
    if names is None:
        raise InvalidInput("the layer has no label names; give label ids, or layer.named(names)")
    places = {name: place for place, name in enumerate(names)}
    unknown = [label for row in rows for label in row if label not in places]
    if unknown:
        raise InvalidInput(f"{unknown[0]!r} is no label of the model")
    if len(places) < len(names):
        asked, seen = {label for row in rows for label in row}, set()
        for name in names:
            if name in seen and name in asked:
                raise InvalidInput(f"{name!r} is the name of several labels; give label ids")
            seen.add(name)
    return [sorted({places[label] for label in row}) for row in rows]


def _of_corpus(corpus: Corpus, layer: OutputLayer) -> LabelSets:
    """The distinct label sets of the rows whose labels are all known."""
    if layer.label_names is None:
        if corpus.n_labels != layer.n_labels:
            raise InvalidInput(f"the label sets have {corpus.n_labels} labels, the layer has {layer.n_labels}")
        return LabelSets.of(corpus.labels)
    labels = corpus.with_label_names(layer.label_names).labels
    known = np.flatnonzero(np.diff(labels.indptr) == np.diff(corpus.labels.indptr))
    if not len(known):
        raise InvalidInput("no row has only labels that the model knows; there is no label set to audit")
    sets = LabelSets.of(labels[known])
    return replace(sets, first_row=known[sets.first_row])
