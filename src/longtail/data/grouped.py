"""`GroupedCorpus`: rows in groups, with labels known only for the groups."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from longtail.arrays import Array
from longtail.data.corpus import Corpus, check_contents, column_places, encode_labels
from longtail.data.label_texts import renumbered
from longtail.errors import InvalidInput
from longtail.memory import MemoryPlan
from longtail.validation import as_counts, as_labels, checked_texts

_UNION_BYTES = 24  # per label of a row: a value and its column, twice while they are checked


@dataclass(frozen=True)
class GroupedCorpus:
    """Rows whose labels are unknown, in groups whose labels are known.

    Parameters
    ----------
    groups : csr_array of shape (n_rows, n_groups)
        Membership of rows in groups; all stored values are 1. Groups can overlap, differ in size and be empty, and a
        row can be in no group.
    group_labels : csr_array of shape (n_groups, n_labels), int64
        The count of each label in a group, or 1 if the count is unknown.
    label_names : sequence of str
        One distinct name per column of `group_labels`.
    texts : sequence of str or None
        One text per row.
    features : csr_array of shape (n_rows, n_features) or None
        One feature vector per row. A corpus has texts, features or both.
    row_names, group_names : sequence of str or None
        Names of the rows and of the groups.
    label_texts : sequence of sequences of str, or None
        The texts of each label, as in `Corpus`.

    Examples
    --------
    >>> pages = [["a red apple", "a blue sky"], ["grey sky"]]
    >>> corpus = GroupedCorpus.from_lists(pages, [["fruit", "weather"], ["weather"]])
    >>> corpus.n_rows, corpus.n_groups, corpus.label_names
    (3, 2, ('fruit', 'weather'))
    """

    groups: Any
    group_labels: Any
    label_names: Sequence[str]
    texts: Sequence[str] | None = None
    features: Any = None
    row_names: Sequence[str] | None = None
    group_names: Sequence[str] | None = None
    label_texts: Sequence[Sequence[str]] | None = None

    def __post_init__(self) -> None:
        counts = as_counts(self.group_labels, name="group_labels")
        groups = as_labels(self.groups, name="groups")
        object.__setattr__(self, "group_labels", counts)
        object.__setattr__(self, "groups", groups)
        check_contents(self, self.n_labels, "group_labels")
        if counts.shape[0] != self.n_groups:
            at = min(counts.shape[0], self.n_groups)
            lacking = "no column of members" if counts.shape[0] > self.n_groups else "no row of labels"
            raise InvalidInput(
                f"groups has {self.n_groups} columns and group_labels {counts.shape[0]} rows: "
                f"{self.describe_group(at)} has {lacking}"
            )
        for name, found, expected, of in self._lengths():
            if found != expected:
                raise InvalidInput(f"{found} {name} for {expected} {of} of groups")

    def _lengths(self) -> Iterable[tuple[str, int, int, str]]:
        rows = self.n_rows, "rows"
        if self.texts is not None:
            yield "texts", len(self.texts), *rows
        if self.features is not None:
            yield "rows of features", self.features.shape[0], *rows
        if self.row_names is not None:
            yield "row names", len(self.row_names), *rows
        if self.group_names is not None:
            yield "group names", len(self.group_names), self.n_groups, "columns"

    @property
    def n_rows(self) -> int:
        return int(self.groups.shape[0])

    @property
    def n_groups(self) -> int:
        return int(self.groups.shape[1])

    @property
    def n_labels(self) -> int:
        return int(self.group_labels.shape[1])

    @property
    def group_sizes(self) -> Array:
        """The number of members of each group."""
        return np.bincount(self.groups.indices, minlength=self.n_groups).astype(np.int64)

    def describe_group(self, group: int) -> str:
        """A group for messages: its number, counted from 0, and its name."""
        named = self.group_names is not None and group < len(self.group_names)
        return f"group {group} ({self.group_names[group]!r})" if named and self.group_names else f"group {group}"

    @classmethod
    def from_lists(
        cls,
        texts_of_groups: Iterable[Iterable[str]],
        labels_of_groups: Iterable[Iterable[str]],
        label_names: Sequence[str] | None = None,
        group_names: Sequence[str] | None = None,
    ) -> GroupedCorpus:
        """Build a corpus from the texts and the label names of each group; a repeated label counts as often.

        Label ids follow `label_names` (an unknown label is an error) or, by default, the sorted names.
        """
        groups = []
        for number, texts in enumerate(texts_of_groups):
            if isinstance(texts, str):
                raise InvalidInput(f"the texts of group {number} are a single text; expected a list of texts")
            try:
                groups.append(list(checked_texts(texts)))
            except InvalidInput as error:
                raise InvalidInput(f"group {number}: {error}") from None
        counts, names = encode_labels(labels_of_groups, label_names, counted=True, what="group")
        if len(groups) != counts.shape[0]:
            raise InvalidInput(f"{len(groups)} lists of texts for {counts.shape[0]} lists of labels")
        owners = np.repeat(np.arange(len(groups)), [len(texts) for texts in groups])
        return cls(
            groups=memberships(owners, len(groups)),
            group_labels=counts,
            label_names=names,
            texts=[text for texts in groups for text in texts],
            group_names=group_names,
        )

    @classmethod
    def from_corpus(
        cls, corpus: Corpus, merge: str = "list", group_names: Sequence[str] | None = None
    ) -> GroupedCorpus:
        """Keep only the labels of the groups: their counts (merge="list"), or which labels there are (merge="set").

        Parameters
        ----------
        corpus : Corpus
            With groups.
        merge : {"list", "set"}
        group_names : sequence of str or None
        """
        if corpus.groups is None:
            raise InvalidInput("the corpus has no groups; add them: dataclasses.replace(corpus, groups=...)")
        counts = aggregate_labels(corpus.labels, corpus.groups, merge)
        return cls(
            groups=corpus.groups,
            group_labels=counts,
            label_names=corpus.label_names,
            texts=corpus.texts,
            features=corpus.features,
            row_names=corpus.row_names,
            group_names=group_names,
            label_texts=corpus.label_texts,
        )

    def labelled(self, row_labels: Any) -> Corpus:
        """The rows with their own labels, for example those of `longtail.aggregated.assign_labels`, and the groups."""
        labels = as_labels(row_labels, name="row_labels")
        if labels.shape != (self.n_rows, self.n_labels):
            raise InvalidInput(
                f"row_labels has shape {labels.shape}; expected {self.n_rows} rows and {self.n_labels} labels"
            )
        return Corpus(
            labels=labels,
            label_names=self.label_names,
            texts=self.texts,
            features=self.features,
            groups=self.groups,
            row_names=self.row_names,
            label_texts=self.label_texts,
        )

    def union(self) -> Corpus:
        """Every row with every label of its groups, of which only some are correct."""
        pairs = int(self.group_sizes @ np.diff(self.group_labels.indptr).astype(np.int64))
        MemoryPlan(
            "giving every label of a group to every row of it",
            {"rows with labels": _UNION_BYTES * min(pairs, self.n_rows * self.n_labels)},
            "Split the groups into parts.",
        ).check()
        union = sparse.csr_array(self.groups @ (self.group_labels > 0).astype(np.float32))
        union.data[:] = 1
        return self.labelled(union)

    def with_label_names(self, label_names: Sequence[str]) -> GroupedCorpus:
        """The same groups with labels numbered as in `label_names`; labels not in it are dropped."""
        places = column_places(self.label_names, label_names)
        columns = places[self.group_labels.indices]
        owners = np.repeat(np.arange(self.n_groups), np.diff(self.group_labels.indptr))
        known = columns >= 0
        counts = sparse.csr_array(
            (self.group_labels.data[known], (owners[known], columns[known])), shape=(self.n_groups, len(label_names))
        )
        return replace(
            self,
            group_labels=counts,
            label_names=label_names,
            label_texts=renumbered(self.label_texts, places, len(label_names)),
        )


def aggregate_labels(Y: Any, groups: Any, merge: str = "list") -> Any:
    """Compute the labels of groups from the labels of their rows.

    Parameters
    ----------
    Y : sparse or dense 0/1 matrix of shape (n_rows, n_labels)
    groups : sparse or dense 0/1 matrix of shape (n_rows, n_groups)
    merge : {"list", "set"}
        Whether a label counts once for each member that has it, or once per group.

    Returns
    -------
    csr_array of shape (n_groups, n_labels), int64

    Examples
    --------
    >>> Y, groups = [[1, 0], [1, 1], [0, 1]], [[1, 0], [1, 0], [0, 1]]
    >>> aggregate_labels(Y, groups).toarray().tolist(), aggregate_labels(Y, groups, "set").toarray().tolist()
    ([[2, 1], [0, 1]], [[1, 1], [0, 1]])
    """
    if merge not in ("list", "set"):
        raise InvalidInput(f"merge is {merge!r}; expected 'list' or 'set'")
    Y = as_labels(Y)
    groups = as_labels(groups, n_rows=Y.shape[0], name="groups")
    counts = sparse.csr_array(sparse.csr_array(groups.T).astype(np.int64) @ Y.astype(np.int64))
    if merge == "set":
        counts.data[:] = 1
    counts.sort_indices()
    return counts


def memberships(owners: Array, n_groups: int) -> Any:
    """The 0/1 matrix in which row i belongs to group ``owners[i]`` only."""
    n_rows = len(owners)
    ones = np.ones(n_rows, dtype=np.float32)
    return sparse.csr_array((ones, owners, np.arange(n_rows + 1)), shape=(n_rows, n_groups))
