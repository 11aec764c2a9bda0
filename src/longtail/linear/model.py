"""`LinearModel`: what every linear learner can do once it has coefficients.

Scores are X coef + intercept, computed for blocks of rows and labels and never as a matrix of all rows and labels
unless asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from longtail import progress
from longtail.errors import InvalidInput
from longtail.linear.centring import shift_columns, weighted_sum
from longtail.memory import MemoryPlan
from longtail.native import kernels
from longtail.parallel import map_blocks, split
from longtail.store import Persistent
from longtail.validation import as_features, as_label_mask, check_k

Array = np.ndarray[Any, np.dtype[Any]]

_ROWS = 512  # rows scored together
_PANEL = 128  # labels scored together: their dense weights stay in cache while the rows pass
_CELLS = 2**22  # scores held at once for sparse weights


@dataclass(frozen=True)
class Step:
    """One classifier on the path to a label: ``contributions.sum() + intercept == margin``.

    Parameters
    ----------
    tree : int
        Which of the trees.
    node : int
        The node whose child the classifier is for.
    probability : float
        What the margin comes to: the factor in the score.
    margin : float
    features, contributions : arrays
        Features of the row with a part in the margin and what each adds, the largest first.
    intercept : float
    """

    tree: int
    node: int
    probability: float
    margin: float
    features: Array
    contributions: Array
    intercept: float


@dataclass(frozen=True)
class Explanation:
    """Why a label has its score: ``contributions.sum() + intercept == margin``.

    Parameters
    ----------
    label : int
    score : float
    margin : float
        The linear part of the score: for ridge the score itself, for a tree the sum of the margins along the path.
    features : array of int
        Features of the row with a part in the margin, the largest contribution first.
    contributions : array of float
        What each adds.
    intercept : float
    steps : tuple of Step
        For a tree, the classifiers on the path.
    """

    label: int
    score: float
    margin: float
    features: Array
    contributions: Array
    intercept: float
    steps: tuple[Step, ...] = ()


class LinearModel(BaseEstimator, Persistent):
    """Prediction, explanation and decision values from ``coef_`` (n_features x n_labels) and ``intercept_``.

    Where features are far from zero, x coef + intercept is a small difference of large numbers. Scores are then
    computed as (x - centre) coef + the scores at the centre, which single precision can do.
    """

    n_jobs: int | None
    coef_: Any
    n_features_in_: int
    n_labels_: int
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

    def _scored(self, X: Any, scale: Array | None, panel: int) -> Any:
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

    def _rows_at_once(self) -> int:
        return max(1, min(_ROWS, _CELLS // max(1, self.n_labels_))) if sparse.issparse(self.coef_) else _ROWS

    def _top(self, X: Any, k: int, mask: Array | None, scale: Array | None) -> tuple[Array, Array]:
        X = self._check_rows(X)
        k = check_k(k)
        places = min(k, max(1, self.n_labels_))
        labels = np.full((X.shape[0], places), -1, dtype=np.int64)
        scores = np.full((X.shape[0], places), -np.inf, dtype=np.float32)
        # A single panel spares a copy of the weights when the rows are too few to pay for it.
        panel = _PANEL if X.shape[0] >= 32 else max(1, self.n_labels_)

        def score(rows: slice) -> int:
            # Cutting out all of the rows would cost more than to score a single one.
            part = X if rows == slice(0, X.shape[0]) else X[rows]
            for first, block in self._scored(part, scale, panel):
                allowed = None if mask is None else mask[first : first + block.shape[1]]
                kernels.update_topk(block, first, allowed, labels[rows], scores[rows])
            return rows.stop - rows.start

        with progress.task("predicting", total=X.shape[0]) as advance:
            for done in map_blocks(score, split(X.shape[0], self._rows_at_once()), self.n_jobs):
                advance(done)
        if k == places:
            return labels, scores
        beyond = ((0, 0), (0, k - places))
        return np.pad(labels, beyond, constant_values=-1), np.pad(scores, beyond, constant_values=-np.inf)

    def _check_rows(self, X: Any) -> Any:
        check_is_fitted(self, "coef_")
        return as_features(X, n_features=self.n_features_in_, owner=type(self).__name__)

    def predict_topk(self, X: Any, k: int = 5, allow: Any = None, deny: Any = None) -> tuple[Array, Array]:
        """The k best labels of each row and their scores.

        Parameters
        ----------
        X : sparse matrix or array of shape (n_rows, n_features)
        k : int
        allow, deny : sequence of label ids, or mask over all labels, or None
            Labels that may, or may not, be given; applied before labels compete for the k places.

        Returns
        -------
        labels : int64 array of shape (n_rows, k)
            Best first, ties to the lowest label; -1 where there are fewer than k.
        scores : float32 array of shape (n_rows, k)
            -inf where there is no label.
        """
        check_is_fitted(self, "coef_")
        return self._top(X, k, as_label_mask(allow, deny, self.n_labels_), self._label_scale())

    def decision_function(self, X: Any) -> Array:
        """Scores of every label for every row, as one dense matrix: for small vocabularies."""
        X = self._check_rows(X)
        MemoryPlan(
            "decision_function",
            {"scores": 4 * X.shape[0] * self.n_labels_},
            "Use predict_topk, which never holds all scores, or fewer rows at a time.",
        ).check()
        scores = np.empty((X.shape[0], self.n_labels_), dtype=np.float32)
        for rows in split(X.shape[0], self._rows_at_once()):
            for first, block in self._scored(X[rows], self._label_scale(), _PANEL):
                scores[rows, first : first + block.shape[1]] = block
        return scores

    def predict(self, X: Any) -> Any:
        """Labels whose fitted value is at least one half, as a sparse 0/1 matrix (n_rows x n_labels)."""
        X = self._check_rows(X)
        parts = [sparse.csr_array((0, self.n_labels_), dtype=np.int8)]
        for rows in split(X.shape[0], max(1, _CELLS // max(1, self.n_labels_))):
            blocks = [np.zeros((rows.stop - rows.start, 0), dtype=bool)]
            blocks += [block >= 0.5 for _, block in self._scored(X[rows], None, _PANEL)]
            parts.append(sparse.csr_array(np.concatenate(blocks, axis=1).astype(np.int8)))
        return sparse.csr_array(sparse.vstack(parts, format="csr"))

    def explain(self, x: Any, label: int) -> Explanation:
        """Which features of the one row `x` gave `label` its score, exactly."""
        row = self._check_rows(x)
        if row.shape[0] != 1:
            raise InvalidInput(f"explain takes one row; found {row.shape[0]}")
        if isinstance(label, bool) or not isinstance(label, int | np.integer) or not 0 <= label < self.n_labels_:
            raise InvalidInput(f"label is {label!r}; expected a label id in 0..{self.n_labels_ - 1}")
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
            label=int(label),
            score=score,
            margin=score,
            features=row.indices[order],
            contributions=contributions[order],
            intercept=intercept,
        )
