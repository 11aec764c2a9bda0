"""`Revision`: what the rows of a fitted model were, and what they are now; `Estimator.updated` learns from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from longtail.arrays import Array
from longtail.errors import InvalidInput
from longtail.validation import as_features, as_labels


@dataclass(frozen=True)
class Revision:
    """Changed training rows and labels.

    Parameters
    ----------
    X_before, Y_before : csr_array
        The rows that the model was fitted to, and their labels.
    X, Y : csr_array
        The rows that it is to be fitted to. They begin with the rows that stay, in their old order; new rows follow.
    kept : int64 array
        The number that each row that stays had, ascending.
    relabelled : int64 array
        Those of the rows that stay, by their new number, whose labels are others.
    labels : int64 array
        For each label its old number, or -1 if it is new. Old labels that are not here are dropped.
    label_features : sequence of csr_array, or None
        The texts of the new labels in the features of the rows: for each reading a matrix with a row for each new
        label. For learners that read label texts, see `Estimator.reads_label_texts`.

    Examples
    --------
    >>> rows, truth = np.eye(3, dtype=np.float32), np.array([[1, 0], [0, 1], [0, 1]])
    >>> more, labels = np.vstack([rows, rows[:1]]), np.array([[1, 0, 0], [0, 1, 0], [0, 1, 0], [0, 0, 1]])
    >>> Revision.of(rows, truth, more, labels, kept=[0, 1, 2], labels=[0, 1, -1]).gained.tolist()
    [False, False, True]
    """

    X_before: Any
    Y_before: Any
    X: Any
    Y: Any
    kept: Array
    relabelled: Array
    labels: Array
    label_features: Sequence[Any] | None = None

    @classmethod
    def of(
        cls,
        X_before: Any,
        Y_before: Any,
        X: Any,
        Y: Any,
        kept: Any,
        labels: Any,
        relabelled: Any = (),
        label_features: Sequence[Any] | None = None,
    ) -> Self:
        """Check the parts, and raise `InvalidInput` if they contradict each other."""
        X_before, X = as_features(X_before, "X_before"), as_features(X)
        Y_before, Y = as_labels(Y_before, X_before.shape[0], "Y_before"), as_labels(Y, X.shape[0])
        found = cls(X_before, Y_before, X, Y, _ids(kept), _ids(relabelled), _ids(labels), label_features)
        known = found.labels[found.labels >= 0]
        if X.shape[1] != X_before.shape[1]:
            raise InvalidInput(f"the rows had {X_before.shape[1]} features and have {X.shape[1]}")
        if len(found.kept) > X.shape[0] or not _ascend(found.kept, X_before.shape[0]):
            raise InvalidInput(
                f"kept must be ascending numbers of the {X_before.shape[0]} old rows that lead the new ones"
            )
        if not _ascend(found.relabelled, len(found.kept)):
            raise InvalidInput(f"relabelled must be ascending numbers of the {len(found.kept)} rows that stay")
        if len(found.labels) != Y.shape[1] or not _ascend(np.sort(known), Y_before.shape[1]):
            raise InvalidInput(f"labels must have the old number of each of the {Y.shape[1]} labels once, or -1")
        return found

    def seen(self, view: Callable[[Any], Any]) -> Self:
        """The same change of rows of which a learner sees only a part."""
        return replace(self, X_before=view(self.X_before), X=view(self.X), label_features=None)

    @cached_property
    def new_labels(self) -> Array:
        """The new number of each old label, or -1."""
        found = np.full(self.Y_before.shape[1], -1, dtype=np.int64)
        known = np.flatnonzero(self.labels >= 0)
        found[self.labels[known]] = known
        return found

    @cached_property
    def left(self) -> Array:
        """The old rows that are gone or have other labels, ascending."""
        stays = np.zeros(self.X_before.shape[0], dtype=bool)
        stays[self.kept] = True
        stays[self.kept[self.relabelled]] = False
        return np.flatnonzero(~stays)

    @cached_property
    def came(self) -> Array:
        """The rows that are new or have other labels, ascending."""
        return np.concatenate([self.relabelled, np.arange(len(self.kept), self.X.shape[0])])

    @cached_property
    def lost(self) -> Array:
        """Which old labels are dropped, or lose a row."""
        return self._exchanged[0]

    @cached_property
    def gained(self) -> Array:
        """Which labels are new, or get a row."""
        return self._exchanged[1]

    @cached_property
    def _exchanged(self) -> tuple[Array, Array]:
        lost, gained = self.new_labels < 0, self.labels < 0
        rows = self.kept[self.relabelled]
        before, after = self.Y_before[rows], self.Y[self.relabelled]
        places = [np.repeat(np.arange(len(rows)), np.diff(each.indptr)) for each in (before, after)]
        columns = self.new_labels[before.indices]
        was = places[0][columns >= 0] * self.Y.shape[1] + columns[columns >= 0]
        now = places[1] * self.Y.shape[1] + after.indices
        lost[self.labels[np.setdiff1d(was, now) % max(1, self.Y.shape[1])]] = True
        gained[np.setdiff1d(now, was) % max(1, self.Y.shape[1])] = True
        gone = np.setdiff1d(self.left, rows, assume_unique=True)
        lost[self.Y_before[gone].indices] = True
        gained[self.Y[np.arange(len(self.kept), self.X.shape[0])].indices] = True
        return lost, gained


def _ids(values: Any) -> Array:
    found = np.asarray(values)
    if found.ndim != 1 or (found.dtype.kind not in "iu" and found.size):
        raise InvalidInput(f"expected a list of whole numbers, found dtype {found.dtype} and shape {found.shape}")
    return found.astype(np.int64, copy=False)


def _ascend(values: Array, limit: int) -> bool:
    return not len(values) or bool(values[0] >= 0 and values[-1] < limit and (values[1:] > values[:-1]).all())
