"""`LinearModel`: what every linear learner can do once it has coefficients.

Scores are X coef + intercept, computed for blocks of rows and labels and never as a matrix of all rows and labels
unless asked for.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from longtail import progress
from longtail.arrays import Array
from longtail.estimator import Estimator, Explanation, OutputLayer, Rule
from longtail.estimator.output_layer import check_memory
from longtail.native import kernels
from longtail.parallel import map_blocks, split
from longtail.ridge.centring import shift_columns, weighted_sum
from longtail.validation import finite

_ROWS = 512  # rows scored together
_PANEL = 128  # labels scored together: their dense weights stay in cache while the rows pass


class LinearModel(Estimator):
    """Prediction, explanation and decision values from ``coef_`` (n_features x n_labels) and ``intercept_``.

    Where features are far from zero, x coef + intercept is a small difference of large numbers. Scores are then
    computed as (x - centre) coef + the scores at the centre, which single precision can do.
    """

    _fitted_by = "coef_"

    n_jobs: int | None
    coef_: Any
    centre_: Array | None
    centre_scores_: Array

    @property
    def intercept_(self) -> Array:
        """The scores of a row of zeros; in float64 where features are far from zero."""
        if self.centre_ is None:
            return self.centre_scores_
        return self.centre_scores_ - weighted_sum(self.coef_, self.centre_.astype(np.float64))

    @intercept_.setter
    def intercept_(self, intercept: Array) -> None:
        self.centre_, self.centre_scores_ = None, intercept

    def _label_scale(self) -> Array | None:
        """Factor on each label's score, or None."""
        return None

    def _blocks(self, X: Any, scale: Array | None, panel: int) -> Any:
        """Yield (first label, scores) of the rows `X`, label block by label block in ascending order."""
        X = shift_columns(X, self.centre_)
        for block in [slice(0, self.n_labels_)] if sparse.issparse(self.coef_) else split(self.n_labels_, panel):
            scores = self._from_centre(X, block)
            if scale is not None:
                scores *= scale[block]
            yield block.start, scores

    def _from_centre(self, X: Any, block: slice) -> Array:
        """Scores of a block of labels, all labels where the weights are sparse, for rows measured from the centre."""
        out = np.empty((X.shape[0], block.stop - block.start), dtype=np.float32)
        coef = self.coef_
        if sparse.issparse(coef):
            kernels.multiply_sparse(X.indptr, X.indices, X.data, coef.indptr, coef.indices, coef.data, out)
        else:
            kernels.multiply(X.indptr, X.indices, X.data, np.ascontiguousarray(coef[:, block]), out)
        out += self.centre_scores_[block]
        return out

    def scores(self, X: Any, block: slice) -> Array:
        """Scores of a block of labels for checked rows; for dense weights, and without any weighting of labels."""
        return self._from_centre(shift_columns(X, self.centre_), block)

    def _rows_scored(self) -> int:
        return min(_ROWS, self._rows_at_once()) if sparse.issparse(self.coef_) else _ROWS

    def _topk(self, X: Any, k: int, mask: Array | None, *scales: Array | None) -> tuple[Array, Array]:
        [scale] = scales or [self._label_scale()]
        labels = np.full((X.shape[0], k), -1, dtype=np.int64)
        scores = np.full((X.shape[0], k), -np.inf, dtype=np.float32)
        # A single panel spares a copy of the weights when the rows are too few to pay for it.
        panel = _PANEL if X.shape[0] >= 32 else max(1, self.n_labels_)

        def score(rows: slice) -> int:
            # Cutting out all of the rows would cost more than to score a single one.
            part = X if rows == slice(0, X.shape[0]) else X[rows]
            for first, block in self._blocks(part, scale, panel):
                allowed = None if mask is None else mask[first : first + block.shape[1]]
                kernels.update_topk(finite(block), first, allowed, labels[rows], scores[rows])
            return rows.stop - rows.start

        with progress.task("predicting", total=X.shape[0]) as advance:
            for done in map_blocks(score, split(X.shape[0], self._rows_scored()), self.n_jobs):
                advance(done)
        return labels, scores

    def _scores(self, X: Any) -> Array:
        scores = np.empty((X.shape[0], self.n_labels_), dtype=np.float32)
        for rows in split(X.shape[0], self._rows_scored()):
            for first, block in self._blocks(X[rows], self._label_scale(), _PANEL):
                scores[rows, first : first + block.shape[1]] = block
        return scores

    def _predict(self, X: Any) -> Any:
        """Labels whose fitted value is at least one half, whatever the weighting of scores."""
        parts = [sparse.csr_array((0, self.n_labels_), dtype=np.int8)]
        for rows in split(X.shape[0], self._rows_at_once()):
            blocks = [np.zeros((rows.stop - rows.start, 0), dtype=bool)]
            blocks += [block >= 0.5 for _, block in self._blocks(X[rows], None, _PANEL)]
            parts.append(sparse.csr_array(np.concatenate(blocks, axis=1).astype(np.int8)))
        return sparse.csr_array(sparse.vstack(parts, format="csr"))

    def _explain(self, row: Any, label: int) -> Explanation:
        if sparse.issparse(self.coef_):
            column = self.coef_[row.indices][:, [label]].toarray().ravel()
        else:
            column = self.coef_[row.indices, label]
        scale = self._label_scale()
        factor = 1.0 if scale is None else float(scale[label])
        contributions = row.data.astype(np.float64) * column * factor
        intercept = float(self.centre_scores_[label])
        if self.centre_ is not None:
            weights = self.coef_[:, [label]]
            intercept -= float(weighted_sum(weights, self.centre_.astype(np.float64))[0])
        intercept *= factor
        order = np.argsort(-np.abs(contributions), kind="stable")
        order = order[contributions[order] != 0]
        score = float(contributions.sum() + intercept)
        return Explanation(
            label=label,
            score=score,
            margin=score,
            features=row.indices[order],
            contributions=contributions[order],
            intercept=intercept,
        )

    def _output_layer(self, rule: Rule) -> OutputLayer:
        coefficients = self.coef_.T
        if not sparse.issparse(coefficients):
            check_memory({"weights in 64 bits, twice": 16 * coefficients.size})
        weights = (
            sparse.csr_array(coefficients, dtype=np.float64)
            if sparse.issparse(coefficients)
            else np.ascontiguousarray(coefficients, dtype=np.float64)
        )
        intercepts = self.intercept_.astype(np.float64)
        if rule == "predict":
            return OutputLayer(weights, intercepts - 0.5, rule, "its fitted value is at least 0.5", at_least=True)
        scale = self._label_scale()
        if scale is not None:
            weights = (
                sparse.csr_array(sparse.diags_array(scale.astype(np.float64)) @ weights)
                if sparse.issparse(weights)
                else weights * scale.astype(np.float64)[:, None]
            )
            intercepts = intercepts * scale
        return OutputLayer(weights, intercepts, rule, "its score is among the highest")
