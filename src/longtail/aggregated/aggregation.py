"""`Aggregation`: rows in groups and labels of groups, checked once and laid out for placing labels.

Values of members are stored in flat arrays: label by label, then the groups of the label, then the members of the
group.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy import sparse

from longtail.arrays import Array
from longtail.errors import InvalidInput
from longtail.memory import MemoryPlan
from longtail.validation import as_counts

_UNION_BYTES = 24  # a value and its column, twice while they are sorted
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Aggregation:
    """Which rows are in which group, and how often a group has each label.

    A *pair* is a label and one of its groups. Groups without members are left out, since no row could carry their
    labels.

    Parameters
    ----------
    n_rows, n_groups, n_labels : int
    group_indptr, group_rows : int64 arrays
        The members of each group, ascending.
    label_indptr, label_groups : int64 arrays
        The groups of each label, ascending: the pairs.
    counts : int64 array
        How often the label of each pair occurs in its group, at most the number of members.
    """

    n_rows: int
    n_groups: int
    n_labels: int
    group_indptr: Array
    group_rows: Array
    label_indptr: Array
    label_groups: Array
    counts: Array

    @classmethod
    def of(cls, groups: Any, group_labels: Any, n_rows: int | None = None) -> Self:
        """Check memberships and counts of labels.

        Parameters
        ----------
        groups : sparse or dense 0/1 matrix of shape (n_rows, n_groups)
            Duplicate memberships count once.
        group_labels : sparse or dense matrix of whole numbers, of shape (n_groups, n_labels)
        n_rows : int or None
            The expected number of rows.
        """
        groups = as_counts(groups, name="groups")
        groups.data[:] = 1
        if n_rows is not None and groups.shape[0] != n_rows:
            raise InvalidInput(f"groups has {groups.shape[0]} rows, but X has {n_rows}")
        labels = as_counts(group_labels, name="group_labels")
        n_groups, found = groups.shape[1], labels.shape[0]
        if found != n_groups:
            which = (
                f"group {n_groups} has labels but no members"
                if found > n_groups
                else f"group {found} has no row of labels"
            )
            raise InvalidInput(f"groups has {n_groups} columns and group_labels {found} rows: {which}")
        members = sparse.csr_array(groups.T)
        sizes = np.diff(members.indptr)
        lost = np.flatnonzero((sizes == 0) & (np.diff(labels.indptr) > 0))
        if len(lost):
            _log.warning(
                "%d groups have labels but no members, for example group %d; they are left out", len(lost), lost[0]
            )
        pairs = sparse.csc_array(labels)
        pairs.sort_indices()
        kept = sizes[pairs.indices] > 0
        owners = np.repeat(np.arange(labels.shape[1]), np.diff(pairs.indptr))[kept]
        label_indptr = np.concatenate([[0], np.cumsum(np.bincount(owners, minlength=labels.shape[1]))])
        label_groups = pairs.indices[kept].astype(np.int64)
        counts = np.minimum(pairs.data[kept].astype(np.int64), sizes[label_groups])
        return cls(
            *(groups.shape[0], n_groups, labels.shape[1]),
            *(members.indptr.astype(np.int64), members.indices.astype(np.int64)),
            *(label_indptr.astype(np.int64), label_groups, counts),
        )

    @cached_property
    def pair_sizes(self) -> Array:
        """The number of members of each pair's group."""
        return np.asarray(np.diff(self.group_indptr)[self.label_groups])

    @cached_property
    def pair_indptr(self) -> Array:
        """Where the members of each pair begin in flat arrays."""
        return np.concatenate([[0], np.cumsum(self.pair_sizes)]).astype(np.int64)

    @cached_property
    def pair_labels(self) -> Array:
        """The label of each pair."""
        return np.repeat(np.arange(self.n_labels), np.diff(self.label_indptr))

    @property
    def n_members(self) -> int:
        """The length of flat arrays."""
        return int(self.pair_indptr[-1])

    def members(self, pairs: slice) -> Array:
        """The rows of some pairs, flat."""
        starts, sizes = self.group_indptr[self.label_groups[pairs]], self.pair_sizes[pairs]
        ends = np.cumsum(sizes)
        return self.group_rows[np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - ends + sizes, sizes)]

    def union(self) -> Any:
        """Labels of rows where every member has every label of its groups."""
        MemoryPlan(
            "giving every label of a group to every member",
            {"rows with labels": _UNION_BYTES * min(self.n_members, self.n_rows * self.n_labels)},
            "Use a strategy that places labels, such as 'eagle', or split the groups into parts.",
        ).check()
        groups = sparse.csr_array(
            (np.ones(len(self.group_rows), np.float32), self.group_rows, self.group_indptr),
            shape=(self.n_groups, self.n_rows),
        )
        labels = sparse.csc_array(
            (np.ones(len(self.label_groups), np.float32), self.label_groups, self.label_indptr),
            shape=(self.n_groups, self.n_labels),
        )
        union = sparse.csr_array(groups.T @ labels)
        union.data[:] = 1
        union.sort_indices()
        return union

    def restricted_to(self, groups: Any) -> Aggregation:
        """The aggregation of some groups (a mask), with the same numbers of rows and labels."""
        kept = np.asarray(groups, dtype=bool)
        mine = kept[self.label_groups]
        owners = self.pair_labels[mine]
        sizes = np.where(kept, np.diff(self.group_indptr), 0)
        return Aggregation(
            *(self.n_rows, self.n_groups, self.n_labels),
            np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            self.group_rows[np.repeat(kept, np.diff(self.group_indptr))],
            np.concatenate([[0], np.cumsum(np.bincount(owners, minlength=self.n_labels))]).astype(np.int64),
            self.label_groups[mine],
            self.counts[mine],
        )
