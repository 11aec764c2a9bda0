"""`Corpus`: rows with texts or features, their labels, and the names of the labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from longtail.arrays import Array
from longtail.data.label_texts import LabelTexts, checked_label_texts, match_label_texts, renumbered
from longtail.errors import InvalidInput
from longtail.validation import as_features, as_labels, checked_texts, own


@dataclass(frozen=True)
class Corpus:
    """Labelled rows to train or evaluate on.

    Parameters
    ----------
    labels : csr_array of shape (n_rows, n_labels)
        All stored values are 1. The matrix is read-only.
    label_names : sequence of str
        One distinct name per column of `labels`.
    texts : sequence of str or None
        One text per row.
    features : csr_array of shape (n_rows, n_features) or None
        One feature vector per row. A corpus has texts, features or both.
    groups : csr_array of shape (n_rows, n_groups) or None
        Membership of rows in groups; a row can be in none or in several.
    row_names : sequence of str or None
        Names of the rows.
    label_texts : sequence of sequences of str, or None
        The texts of each label, in the order of `label_names`: its name in words, then alternative names and the
        description. The sequence is empty if nothing is known. A label can have texts and no rows.
    made_by : fitted features or None
        What made `features`, in a prepared corpus; None if they are given.
    weights : float32 array of shape (n_rows,) or None
        How much each row counts in training, not negative; None if all rows count 1.

    Examples
    --------
    >>> corpus = Corpus.from_lists(["a red apple", "a blue sky"], [["fruit", "red"], ["sky"]])
    >>> corpus.n_rows, corpus.n_labels, corpus.label_names
    (2, 3, ('fruit', 'red', 'sky'))
    """

    labels: Any
    label_names: Sequence[str]
    texts: Sequence[str] | None = None
    features: Any = None
    groups: Any = None
    row_names: Sequence[str] | None = None
    label_texts: Sequence[Sequence[str]] | None = None
    made_by: Any = None
    weights: Array | None = None

    def __post_init__(self) -> None:
        labels = as_labels(self.labels, name="labels")
        rows = labels.shape[0]
        object.__setattr__(self, "labels", labels)
        check_contents(self, labels.shape[1], "labels")
        if self.groups is not None:
            object.__setattr__(self, "groups", as_labels(self.groups, name="groups"))
        for name, length in self._lengths():
            if length != rows:
                raise InvalidInput(f"{length} {name} for {rows} rows of labels")

    def _lengths(self) -> Iterable[tuple[str, int]]:
        if self.texts is not None:
            yield "texts", len(self.texts)
        if self.features is not None:
            yield "rows of features", self.features.shape[0]
        if self.groups is not None:
            yield "rows of groups", self.groups.shape[0]
        if self.row_names is not None:
            yield "row names", len(self.row_names)
        if self.weights is not None:
            yield "weights", len(self.weights)

    @property
    def n_rows(self) -> int:
        return int(self.labels.shape[0])

    @property
    def n_labels(self) -> int:
        return int(self.labels.shape[1])

    @property
    def is_single_label(self) -> bool:
        """Whether every row has exactly one label."""
        return bool(self.n_rows and (np.diff(self.labels.indptr) == 1).all())

    @property
    def label_counts(self) -> Array:
        """The number of rows of each label."""
        return np.bincount(self.labels.indices, minlength=self.n_labels).astype(np.int64)

    @classmethod
    def from_lists(
        cls,
        texts: Iterable[str],
        labels: Iterable[Iterable[str]],
        label_names: Sequence[str] | None = None,
        row_names: Sequence[str] | None = None,
    ) -> Corpus:
        """Build a corpus from texts and, for each, the names of its labels.

        Label ids follow `label_names` (an unknown label is an error) or, by default, the sorted names. In columns of
        data frames (pandas, polars, Arrow), a missing text counts as empty and missing labels as none, with a warning.
        """
        from longtail.data.formats.frames import filled

        texts, labels = filled(texts, "", "texts"), filled(labels, (), "labels")
        texts = list(checked_texts(texts))
        matrix, names = encode_labels(labels, label_names)
        if len(texts) != matrix.shape[0]:
            raise InvalidInput(f"{len(texts)} texts for {matrix.shape[0]} lists of labels")
        return cls(labels=matrix, label_names=names, texts=texts, row_names=row_names)

    @classmethod
    def from_table(
        cls,
        table: Any,
        *,
        text: str | int | Sequence[str | int] = "text",
        labels: str | int | None = "labels",
        id: str | int | None = None,
        label_separator: str = ";",
    ) -> Corpus:
        """Build a corpus from a table in memory, such as a data frame.

        Parameters
        ----------
        table : data frame or mapping
            A pandas data frame; any object with ``__arrow_c_stream__``, such as a data frame of polars, an Arrow table
            or a relation of DuckDB, for which pyarrow is needed; or a mapping of names to columns.
        text : str, int or list of them
            The column of the texts, by name or by number from 0; several columns are joined by line ends.
        labels : str, int or None
            The column of the labels; its cells are lists of names, or texts in which `label_separator` joins names.
        id : str, int or None
            The column of the names of the rows. The default is a column called ``id``, if there is one.
        label_separator : str

        Notes
        -----
        A row without a text (null, None, NaN) is kept with an empty text, one without labels has no labels. A warning
        counts them.

        Examples
        --------
        >>> table = {"title": ["a red apple"], "tags": [["fruit", "red"]]}
        >>> corpus = Corpus.from_table(table, text="title", labels="tags")
        >>> corpus.texts, corpus.label_names
        (['a red apple'], ('fruit', 'red'))
        """
        from longtail.data.formats.frames import read_table

        return read_table(table, text=text, labels=labels, id=id, label_separator=label_separator)

    def select(self, rows: Any) -> Corpus:
        """The corpus of the given rows (ids or a mask), in that order."""
        chosen = np.asarray(rows)
        ids = np.flatnonzero(chosen) if chosen.dtype == bool else chosen.astype(np.intp, copy=False)
        return replace(
            self,
            labels=own(self.labels[ids]),
            texts=None if self.texts is None else [self.texts[i] for i in ids],
            features=None if self.features is None else own(self.features[ids]),
            groups=None if self.groups is None else own(self.groups[ids]),
            row_names=None if self.row_names is None else [self.row_names[i] for i in ids],
            weights=None if self.weights is None else self.weights[ids],
        )

    def weighted_rows(self) -> Corpus:
        """The corpus without the rows of weight 0."""
        return self if self.weights is None or self.weights.all() else self.select(self.weights > 0)

    def with_label_names(self, label_names: Sequence[str]) -> Corpus:
        """The same rows with labels numbered as in `label_names`; labels not in it are dropped."""
        places = column_places(self.label_names, label_names)
        columns = places[self.labels.indices]
        rows = np.repeat(np.arange(self.n_rows), np.diff(self.labels.indptr))
        known = columns >= 0
        matrix = sparse.csr_array(
            (np.ones(int(known.sum()), dtype=np.float32), (rows[known], columns[known])),
            shape=(self.n_rows, len(label_names)),
        )
        return replace(
            self,
            labels=own(matrix),
            label_names=label_names,
            label_texts=renumbered(self.label_texts, places, len(label_names)),
        )

    def with_label_texts(self, found: LabelTexts | Mapping[str, str | Sequence[str]], add: bool = True) -> Corpus:
        """The same rows, with texts for the labels.

        A label takes the texts of the entry with this label. If there is none, it takes those of the entries whose
        name, the first text, is the label. Names go first if more labels match by name. Labels that match no entry
        keep the texts that they have.

        Parameters
        ----------
        found : LabelTexts or mapping
            For example from `longtail.data.read_label_texts`; or a text, or a list of texts, for each label.
        add : bool
            Whether to add the entries that match no label as labels without rows: under their names if the labels of
            the corpus matched by name, else under the labels of the entries.

        Examples
        --------
        >>> corpus = Corpus.from_lists(["a red apple"], [["fruit"]])
        >>> described = corpus.with_label_texts({"fruit": ["fruit", "edible seeds"], "sky": "the sky above us"})
        >>> described.label_names, described.label_texts, described.label_counts.tolist()
        (('fruit', 'sky'), (('fruit', 'edible seeds'), ('the sky above us',)), [1, 0])
        """
        if isinstance(found, Mapping):
            found = LabelTexts.from_mapping(found)
        elif not isinstance(found, LabelTexts):
            raise InvalidInput(f"label_texts is {found!r:.40}; expected a text or a list of texts for each label")
        names, texts = match_label_texts(self.label_names, self.label_texts, found, add)
        wider = self.with_label_names(names) if len(names) > self.n_labels else self
        return replace(wider, label_texts=texts)

    def merge_groups(self) -> Corpus:
        """One row per group: the texts of its members joined by a blank line, and the union of their labels."""
        if self.groups is None or self.texts is None:
            raise InvalidInput("merge_groups needs a corpus with groups and texts")
        members = sparse.csr_array(self.groups.T)
        merged = sparse.csr_array(members @ self.labels)
        merged.data[:] = 1
        texts = [
            "\n\n".join(self.texts[i] for i in members.indices[start:stop])
            for start, stop in zip(members.indptr[:-1], members.indptr[1:], strict=True)
        ]
        return Corpus(labels=merged, label_names=self.label_names, texts=texts, label_texts=self.label_texts)


def check_contents(corpus: Any, n_labels: int, labels: str) -> None:
    """Check the label names, label texts, texts and features of a corpus and store them in their final form."""
    names = tuple(corpus.label_names)
    object.__setattr__(corpus, "label_names", names)
    if len(names) != n_labels:
        raise InvalidInput(f"{len(names)} label names for {n_labels} columns of {labels}")
    if len(set(names)) != len(names):
        raise InvalidInput("label names repeat; every label needs its own name")
    if corpus.label_texts is not None:
        object.__setattr__(corpus, "label_texts", checked_label_texts(corpus.label_texts, n_labels))
    if corpus.texts is None and corpus.features is None:
        raise InvalidInput("a corpus needs texts or features")
    if corpus.texts is not None and not isinstance(corpus.texts, list | tuple):
        object.__setattr__(corpus, "texts", list(checked_texts(corpus.texts)))
    if corpus.features is not None:
        object.__setattr__(corpus, "features", as_features(corpus.features, name="features"))


def column_places(label_names: Sequence[str], among: Sequence[str]) -> Array:
    """The position of each label in `among`, or -1."""
    position = {name: i for i, name in enumerate(among)}
    return np.array([position.get(name, -1) for name in label_names], dtype=np.int64)


def encode_labels(
    labels: Iterable[Iterable[str]],
    label_names: Sequence[str] | None = None,
    *,
    counted: bool = False,
    what: str = "row",
) -> tuple[sparse.csr_array[Any], tuple[str, ...]]:
    """Turn lists of label names into a 0/1 matrix and the names of its columns.

    Parameters
    ----------
    labels : iterable of iterables of str
    label_names : sequence of str or None
        Names of the columns; the default is all names that occur, sorted.
    counted : bool
        Whether to count repetitions of a label in a list.
    what : str
        What a list belongs to, for messages.
    """
    if not isinstance(labels, Iterable):
        raise InvalidInput(f"labels is {labels!r:.40}; expected a list of names for each {what}")
    rows = []
    for number, row in enumerate(labels):
        if isinstance(row, str):
            raise InvalidInput(f"the labels of {what} {number} are the single text {row!r}; expected a list: [{row!r}]")
        if not isinstance(row, Iterable):
            raise InvalidInput(f"the labels of {what} {number} are {row!r:.40}; expected a list of names, [] for none")
        found = list(row)
        for name in found:
            if not isinstance(name, str):
                raise InvalidInput(f"{what} {number} has label {name!r:.40}; labels are names (strings)")
        rows.append(found if counted else list(dict.fromkeys(found)))
    distinct = {name for row in rows for name in row}
    names = tuple(map(str, sorted(distinct))) if label_names is None else tuple(label_names)  # np.str_ is a str, too
    position = {name: i for i, name in enumerate(names)}
    try:
        indices = np.array([position[name] for row in rows for name in row], dtype=np.int64)
    except KeyError as unknown:
        raise InvalidInput(f"label {unknown.args[0]!r} is not among the {len(names)} given label names") from None
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows], dtype=np.int64)]).astype(np.int64)
    ones = np.ones(len(indices), np.int64 if counted else np.float32)
    matrix = sparse.csr_array((ones, indices, indptr), shape=(len(rows), len(names)))
    matrix.sum_duplicates()
    return own(matrix), names
