"""`LinearModel`: what every linear learner can do once it has coefficients.

Scores are X coef + intercept, computed for blocks of rows and labels and never as a matrix of all rows and labels
unless asked for.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from longtail import progress
from longtail.estimator import Estimator, Explanation, OutputLayer, Rule
from longtail.estimator.output_layer import check_memory
from longtail.native import kernels
from longtail.parallel import map_blocks, split

Array = np.ndarray[Any, np.dtype[Any]]

_ROWS = 512  # rows scored together
_PANEL = 128  # labels scored together: their dense weights stay in cache while the rows pass


class LinearModel(Estimator):
    """Prediction, explanation and decision values from ``coef_`` (n_features x n_labels) and ``intercept_``."""

    _fitted_by = "coef_"

    n_jobs: int | None
    coef_: Any
    intercept_: Array

    def _label_scale(self) -> Array | None:
        """Factor on each label's score, or None."""
        return None

    def _blocks(self, X: Any, scale: Array | None, panel: int) -> Any:
        """Yield (first label, scores) of the rows `X`, label block by label block in ascending order."""
        coef, labels = self.coef_, self.n_labels_
        if sparse.issparse(coef):
            out = np.empty((X.shape[0], labels), dtype=np.float32)
            kernels.multiply_sparse(X.indptr, X.indices, X.data, coef.indptr, coef.indices, coef.data, out)
            yield 0, self._finish(out, slice(0, labels), scale)
            return
        for block in split(labels, panel):
            out = np.empty((X.shape[0], block.stop - block.start), dtype=np.float32)
            kernels.multiply(X.indptr, X.indices, X.data, np.ascontiguousarray(coef[:, block]), out)
            yield block.start, self._finish(out, block, scale)

    def _finish(self, scores: Array, block: slice, scale: Array | None) -> Array:
        scores += self.intercept_[block]
        if scale is not None:
            scores *= scale[block]
        return scores

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
                kernels.update_topk(block, first, allowed, labels[rows], scores[rows])
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
        intercept = float(self.intercept_[label]) * factor
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
