"""`assign`: from a corpus with labels of groups to labelled rows, and how sure each label is."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from longtail.aggregated.assignment import Assignment
from longtail.aggregated.classifier import AggregatedClassifier
from longtail.arrays import Array
from longtail.data import Corpus, GroupedCorpus
from longtail.errors import InvalidInput
from longtail.text import fit_features

_log = logging.getLogger(__name__)
# A row is sure of a label if its lead over the next best row is more than this share of its similarity.
_SURE = 0.1


class LabelledRow(NamedTuple):
    """A row, the groups it is in, its labels and how sure each label is: see `Assignment.confidences`."""

    row: int
    groups: list[int]
    labels: list[int]
    confidences: list[float]


@dataclass(frozen=True)
class AssignedCorpus:
    """A corpus with labels of groups, and the row that each label went to.

    Parameters
    ----------
    corpus : GroupedCorpus
    assignment : Assignment
    """

    corpus: GroupedCorpus
    assignment: Assignment

    def labelled(self) -> Corpus:
        """The rows with their labels."""
        return self.corpus.labelled(self.assignment.row_labels)

    def rows(self) -> Iterator[LabelledRow]:
        """All rows in order, each with its labels in ascending order.

        A row that got a label in two groups has the higher confidence.
        """
        found, groups = self.assignment, self.corpus.groups
        order = np.lexsort((-found.confidences, found.labels, found.rows))
        rows, labels, confidences = found.rows[order], found.labels[order], found.confidences[order]
        first = np.ones(len(rows), dtype=bool)
        first[1:] = (rows[1:] != rows[:-1]) | (labels[1:] != labels[:-1])
        rows, labels, confidences = rows[first], labels[first], confidences[first]
        bounds = np.searchsorted(rows, np.arange(self.corpus.n_rows + 1))
        for row in range(self.corpus.n_rows):
            mine, homes = slice(*bounds[row : row + 2]), slice(*groups.indptr[row : row + 2])
            yield LabelledRow(row, groups.indices[homes].tolist(), labels[mine].tolist(), confidences[mine].tolist())

    def groups_to_show(self, count: int) -> list[int]:
        """At most `count` groups, spread evenly over those with several rows and a label."""
        several = self.corpus.group_sizes > 1
        groups = np.flatnonzero(several & (np.diff(self.corpus.group_labels.indptr) > 0))
        places = np.linspace(0, len(groups) - 1, min(count, len(groups))).round().astype(int)
        chosen: list[int] = groups[np.unique(places)].tolist()
        return chosen

    def members(self, group: int) -> list[LabelledRow]:
        """The rows of a group with the labels that they got in it, the surest first."""
        found = self.assignment
        here = np.flatnonzero(found.groups == group)
        here = here[np.argsort(-found.confidences[here], kind="stable")]
        members = []
        for row in self._rows_of_groups.indices[slice(*self._rows_of_groups.indptr[group : group + 2])].tolist():
            mine = here[found.rows[here] == row]
            members.append(LabelledRow(row, [group], found.labels[mine].tolist(), found.confidences[mine].tolist()))
        return members

    @cached_property
    def _rows_of_groups(self) -> Any:
        return sparse.csr_array(self.corpus.groups.T)

    @cached_property
    def in_one_group(self) -> Array:
        """A mask of the labels in fewer than two groups with rows.

        The vector of such a label is the mean of the group's own rows, so a high similarity proves nothing.
        """
        return _count_groups(self.corpus) < 2

    @property
    def unsure(self) -> Array:
        """A mask of the assignments, see `Assignment`, that could as well have gone to another row.

        Either another member of the group is nearly as similar to the label, or the label is in no other group.
        """
        found = self.assignment
        nearly_equal = found.confidences <= _SURE * np.abs(found.similarities)
        return np.asarray(nearly_equal | (self.in_one_group[found.labels] & np.isfinite(found.confidences)))

    @property
    def share_unsure(self) -> float:
        """The share of the assignments that are `unsure`."""
        return float(self.unsure.mean()) if len(self.assignment.rows) else 0.0

    @property
    def n_rows_without_labels(self) -> int:
        return int(np.count_nonzero(np.diff(self.assignment.row_labels.indptr) == 0))


def assign(
    corpus: GroupedCorpus,
    features: Any = None,
    *,
    strategy: str = "eagle",
    rule: str = "joint",
    n_iter: int = 20,
    step: float = 0.1,
    random_state: int | None = 0,
    n_jobs: int | None = None,
) -> AssignedCorpus:
    """Decide which rows of a corpus carry which labels of their groups.

    Parameters
    ----------
    corpus : GroupedCorpus
    features : TextFeatures, RowScaling, FeatureOptions or None
        Features of the rows, as in `longtail.text.fit_features`.
    strategy, rule, n_iter, step, random_state, n_jobs
        As in `longtail.AggregatedClassifier`.

    Returns
    -------
    AssignedCorpus

    Examples
    --------
    >>> pages = [["ripe apples", "grey sky"], ["red apples", "late train"], ["a train", "a grey sky"]]
    >>> corpus = GroupedCorpus.from_lists(pages, [["fruit", "weather"], ["fruit", "travel"], ["travel", "weather"]])
    >>> found = assign(corpus)
    >>> for row in found.rows():
    ...     print(corpus.texts[row.row], [corpus.label_names[label] for label in row.labels])
    ripe apples ['fruit']
    grey sky ['weather']
    red apples ['fruit']
    late train ['travel']
    a train ['travel']
    a grey sky ['weather']
    >>> found.share_unsure
    0.0
    """
    if corpus.n_rows == 0:
        raise InvalidInput("the corpus has no rows to label", code="no_rows")
    corpus = without_empty_groups(corpus)
    _, X = fit_features(features, corpus)
    model = AggregatedClassifier(
        strategy=strategy, rule=rule, n_iter=n_iter, step=step, random_state=random_state, n_jobs=n_jobs
    )
    return AssignedCorpus(corpus, model.assign_labels(X, corpus.groups, corpus.group_labels))


def without_empty_groups(corpus: GroupedCorpus) -> GroupedCorpus:
    """Drop the labels of groups without rows, which no row could carry, and log how many groups that are.

    >>> corpus = GroupedCorpus.from_lists([["red apples"], []], [["fruit"], ["weather"]])
    >>> without_empty_groups(corpus).group_labels.toarray().tolist()
    [[1, 0], [0, 0]]
    """
    labels = corpus.group_labels.copy()
    empty = corpus.group_sizes == 0
    lost = np.flatnonzero(empty & (np.diff(labels.indptr) > 0))
    if not len(lost):
        return corpus
    labels.data[np.repeat(empty, np.diff(labels.indptr))] = 0
    have = "1 group has" if len(lost) == 1 else f"{len(lost):,} groups have"
    first = corpus.describe_group(int(lost[0]))
    _log.info("%s labels but no rows, for example %s; these labels are dropped", have, first)
    return replace(corpus, group_labels=labels)


def without_unused_labels(corpus: GroupedCorpus) -> GroupedCorpus:
    """Drop the labels that occur in no group with rows, and log how many labels that are.

    >>> corpus = GroupedCorpus.from_lists([["red apples"], []], [["fruit"], ["weather"]])
    >>> without_unused_labels(corpus).label_names
    ('fruit',)
    """
    counts = _count_groups(corpus)
    if not counts.any():
        raise InvalidInput("no group has both rows and labels, so there is nothing to learn", code="no_labels")
    if counts.all():
        return corpus
    names = [name for name, count in zip(corpus.label_names, counts.tolist(), strict=True) if count]
    lost = corpus.n_labels - len(names)
    _log.info("dropped %s label%s that occur in no group with rows", f"{lost:,}", "" if lost == 1 else "s")
    return corpus.with_label_names(names)


def _count_groups(corpus: GroupedCorpus) -> Array:
    """In how many groups with rows each label is."""
    occupied = np.repeat(corpus.group_sizes > 0, np.diff(corpus.group_labels.indptr))
    return np.bincount(corpus.group_labels.indices[occupied], minlength=corpus.n_labels)
