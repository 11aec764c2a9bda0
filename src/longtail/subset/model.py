"""`SubsetModel`: scores of all labels from what was learned of a few, for blocks of rows and labels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from longtail import progress
from longtail.arrays import Array
from longtail.errors import InvalidInput
from longtail.estimator import Explanation
from longtail.native import kernels
from longtail.parallel import map_blocks, split
from longtail.ridge.model import RidgeModel
from longtail.subset.decoding import Decoding
from longtail.subset.outliers import Outliers
from longtail.validation import finite

_ROWS = 512  # rows scored together
_LABELS = 1024  # labels scored together


@dataclass(frozen=True)
class SubsetModel:
    """An estimator of the subset, the decoder, and the outliers."""

    estimator: Any
    decoding: Decoding
    outliers: Outliers | None
    n_jobs: int | None

    def best(self, X: Any, k: int, mask: Array | None) -> tuple[Array, Array]:
        """The k best labels that `mask` allows, and their scores."""
        n_labels = self.decoding.n_labels
        labels = np.full((X.shape[0], k), -1, dtype=np.int64)
        scores = np.full((X.shape[0], k), -np.inf, dtype=np.float32)
        decoded = mask
        replaced = self._replaced()
        if len(replaced):
            decoded = np.ones(n_labels, dtype=bool) if mask is None else mask.copy()
            decoded[replaced] = False

        def search(rows: slice) -> int:
            for block, part in self._decoded(X[rows]):
                allowed = None if decoded is None else decoded[block]
                kernels.update_topk(finite(part), block.start, allowed, labels[rows], scores[rows])
            return rows.stop - rows.start

        with progress.task("predicting", total=X.shape[0]) as advance:
            for done in map_blocks(search, split(X.shape[0], _ROWS), self.n_jobs):
                advance(done)
        if len(replaced) and self.outliers is not None:
            labels, scores = _merged((labels, scores), self.outliers.best(X, k, mask))
        return labels, scores

    def all_scores(self, X: Any) -> Array:
        """Scores of every label for every row, dense."""
        scores = np.empty((X.shape[0], self.decoding.n_labels), dtype=np.float32)
        for rows in split(X.shape[0], _ROWS):
            for block, part in self._decoded(X[rows]):
                scores[rows, block] = part
        if len(self._replaced()) and self.outliers is not None:
            scores[:, self.outliers.labels] = self.outliers.estimator.decision_function(X)
        return scores

    def given(self, X: Any) -> Any:
        """Labels with a score of at least one half, and of the outliers those that their estimator gives."""
        n_labels, replaced = self.decoding.n_labels, self._replaced()
        parts = [sparse.csr_array((0, n_labels), dtype=np.int8)]
        for rows in split(X.shape[0], _ROWS):
            blocks = [sparse.csr_array((part >= 0.5).astype(np.int8)) for _, part in self._decoded(X[rows])]
            parts.append(sparse.csr_array(sparse.hstack(blocks, format="csr")))
        found = sparse.csr_array(sparse.vstack(parts, format="csr"))
        if not len(replaced) or self.outliers is None:
            return found
        kept = np.ones(n_labels, dtype=np.int8)
        kept[replaced] = 0
        own = self.outliers.estimator.predict(X).tocoo()
        placed = sparse.csr_array((own.data, (own.row, replaced[own.col])), shape=found.shape, dtype=np.int8)
        found.data *= kept[found.indices]
        found = sparse.csr_array(found + placed)
        found.eliminate_zeros()
        return found

    def explain(self, x: Any, label: int) -> Explanation:
        """What each feature of a row adds to a label's score."""
        own = self.outliers is not None and label in self.outliers.labels
        if own and self.outliers is not None and not self.outliers.residual:
            return self.outliers.explain(x, label)
        weights = self.decoding.columns(np.array([label]))[:, 0]
        used = np.flatnonzero(weights)
        parts = [(self.estimator.explain(x, int(place)), float(weights[place])) for place in used]
        if not isinstance(self.estimator, RidgeModel):
            if len(parts) == 1 and parts[0][1] == 1 and not own:
                return _relabelled(parts[0][0], label)
            raise InvalidInput(
                f"label {label} is decoded from scores of a {type(self.estimator).__name__}, which are not linear in "
                f"the features; only labels of the subset and outliers can be explained",
                code="cannot_explain",
            )
        if own and self.outliers is not None:
            parts.append((self.outliers.explain(x, label), 1.0))
        dense = np.zeros(x.shape[1])
        for part, weight in parts:
            dense[part.features] += weight * part.contributions
        intercept = float(sum(weight * part.intercept for part, weight in parts))
        features = np.flatnonzero(dense)
        features = features[np.argsort(-np.abs(dense[features]), kind="stable")]
        score = float(dense.sum() + intercept)
        return Explanation(label, score, score, features, dense[features], intercept)

    def _replaced(self) -> Array:
        return np.zeros(0, dtype=np.int64) if self.outliers is None else self.outliers.replaced

    def _decoded(self, X: Any) -> Iterator[tuple[slice, Array]]:
        """Scores of the rows `X` by blocks of labels, with residuals but no outliers learned as labels."""
        mixed = self.decoding.mix(self.estimator.decision_function(X))
        for block in split(self.decoding.n_labels, _LABELS):
            scores = self.decoding.decode(mixed, block)
            if self.outliers is not None:
                self.outliers.add_residuals(X, block, scores)
            yield block, np.ascontiguousarray(scores.T)


def _relabelled(found: Explanation, label: int) -> Explanation:
    # Steps name nodes of a tree over other labels, which would mislead here.
    return Explanation(label, found.score, found.margin, found.features, found.contributions, found.intercept)


def _merged(one: tuple[Array, Array], other: tuple[Array, Array]) -> tuple[Array, Array]:
    """The best of two rankings of different labels, as many as each has; ties to the lowest label."""
    labels, scores = (np.concatenate(pair, axis=1) for pair in zip(one, other, strict=True))
    order = np.lexsort((labels, -scores), axis=1)[:, : one[0].shape[1]]
    return np.take_along_axis(labels, order, axis=1), np.take_along_axis(scores, order, axis=1)
