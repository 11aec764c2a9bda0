"""`SubsetModel`: scores of all labels from a model of a few, in blocks of rows and labels; saved and loaded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from longtail import progress
from longtail.arrays import Array
from longtail.errors import InvalidInput, ModelFormatError
from longtail.estimator import Explanation, OutputLayer, Rule, check_memory
from longtail.metrics import ndcg_at_k
from longtail.native import kernels
from longtail.parallel import map_blocks, split
from longtail.store import State, part_state, put_learner_together, rises
from longtail.subset.decoding import Decoding
from longtail.subset.outliers import Outliers, worst_explained
from longtail.validation import finite

_ROWS = 512  # rows in a block
_LABELS = 1024  # labels in a block
PLACES = 5  # of the nDCG that budgets are compared by
# Shares of the labels outside the subset that `outliers="auto"` tries.
_SHARES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)


@dataclass(frozen=True)
class SubsetModel:
    """The estimator of the subset, the decoder, and the outliers."""

    estimator: Any
    decoding: Decoding
    outliers: Outliers
    n_jobs: int | None

    def best(self, X: Any, k: int, mask: Array | None) -> tuple[Array, Array]:
        """The k best labels that `mask` allows, and their scores."""
        n_labels = self.decoding.n_labels
        labels = np.full((X.shape[0], k), -1, dtype=np.int64)
        scores = np.full((X.shape[0], k), -np.inf, dtype=np.float32)
        decoded = mask
        replaced = self.outliers.replaced
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
        if len(replaced):
            labels, scores = _merged((labels, scores), self.outliers.best(X, k, mask))
        return labels, scores

    def all_scores(self, X: Any) -> Array:
        """Scores of every label for every row, dense."""
        scores = np.empty((X.shape[0], self.decoding.n_labels), dtype=np.float32)
        for rows in split(X.shape[0], _ROWS):
            for block, part in self._decoded(X[rows]):
                scores[rows, block] = part
        if len(self.outliers.replaced):
            scores[:, self.outliers.labels] = self.outliers.estimator.decision_function(X)
        return scores

    def given(self, X: Any) -> Any:
        """Labels with a score of at least one half; outliers as their own estimator predicts them."""
        n_labels, replaced = self.decoding.n_labels, self.outliers.replaced
        parts = [sparse.csr_array((0, n_labels), dtype=np.int8)]
        for rows in split(X.shape[0], _ROWS):
            blocks = [sparse.csr_array((part >= 0.5).astype(np.int8)) for _, part in self._decoded(X[rows])]
            parts.append(sparse.csr_array(sparse.hstack(blocks, format="csr")))
        found = sparse.csr_array(sparse.vstack(parts, format="csr"))
        if not len(replaced):
            return found
        kept = np.ones(n_labels, dtype=np.int8)
        kept[replaced] = 0
        own = self.outliers.estimator.predict(X).tocoo()
        placed = sparse.csr_array((own.data, (own.row, replaced[own.col])), shape=found.shape, dtype=np.int8)
        found.data *= kept[found.indices]
        found = sparse.csr_array(found + placed)
        found.eliminate_zeros()
        return found

    def output_layer(self, rule: Rule) -> OutputLayer:
        """The decoded scores as one linear layer, whose rank is at most the size of the subset plus the outliers.

        Raises
        ------
        InvalidInput
            If the scores of the subset, or of outliers, are not linear in the features.
        """
        learners = [self.estimator, *([self.outliers.estimator] if len(self.outliers.labels) else [])]
        for learner in learners:
            if not learner.linear_in_targets:
                raise InvalidInput(
                    f"the scores of a {type(learner).__name__} are not linear in the features, so the labels decoded "
                    f"from them have no linear output layer; a label subset learned by ridge has one",
                    code="needs_linear_layer",
                )
        decoding, width = self.decoding, self.estimator.n_features_in_
        check_memory({"decoded weights, twice": 16 * decoding.n_labels * width})
        scored = [learner.output_layer("topk") for learner in learners]
        rows = [np.column_stack([_dense(each.weights), each.offsets]) for each in scored]
        both = np.asarray(decoding.codes @ (decoding.mixing.T.astype(np.float64) @ rows[0]))
        if len(rows) > 1:
            labels, active = self.outliers.labels, self.outliers.active
            added = both[labels] if self.outliers.residual else 0.0
            both[labels[active]] = (rows[1] + added)[active]
        if rule == "topk":
            return OutputLayer(both[:, :-1], both[:, -1], rule, "its score is among the highest")
        return OutputLayer(both[:, :-1], both[:, -1] - 0.5, rule, "its decoded score is at least 0.5", at_least=True)

    def explain(self, x: Any, label: int) -> Explanation:
        """What each feature of the row adds to the label's score."""
        own = label in self.outliers.labels
        if own and not self.outliers.residual:
            return self.outliers.explain(x, label)
        weights = self.decoding.columns(np.array([label]))[:, 0]
        used = np.flatnonzero(weights)
        parts = [(self.estimator.explain(x, int(place)), float(weights[place])) for place in used]
        if not self.estimator.is_linear:
            if len(parts) == 1 and parts[0][1] == 1 and not own:
                return replace(parts[0][0], label=label, steps=())
            raise InvalidInput(
                f"label {label} is decoded from scores of a {type(self.estimator).__name__}, which are not linear in "
                f"the features; only labels of the subset and outliers can be explained",
                code="cannot_explain",
            )
        if own:
            parts.append((self.outliers.explain(x, label), 1.0))
        dense = np.zeros(x.shape[1])
        for part, weight in parts:
            dense[part.features] += weight * part.contributions
        intercept = float(sum(weight * part.intercept for part, weight in parts))
        features = np.flatnonzero(dense)
        features = features[np.argsort(-np.abs(dense[features]), kind="stable")]
        score = float(dense.sum() + intercept)
        return Explanation(label, score, score, features, dense[features], intercept)

    def quality_by_budget(self, norms: Array, X: Any, Y: Any) -> dict[int, float]:
        """The nDCG on the rows `X` by number of outliers, from a model with all outliers."""
        order, others, found = worst_explained(norms), Y.shape[1] - self.estimator.n_labels_, {}
        for share in _SHARES:
            budget = round(share * others)
            limited = replace(self, outliers=self.outliers.limited_to(order[:budget]))
            top, _ = limited.best(X, PLACES, None)
            found[budget] = ndcg_at_k(Y, top, PLACES)
        return found

    def to_state(self, kind: str, params: dict[str, Any], labels: Array) -> State:
        """The state of a model whose subset is `labels`."""
        parts = {"estimator": part_state(self.estimator)}
        if len(self.outliers.labels):
            parts["outliers"] = part_state(self.outliers.estimator)
        arrays = {
            "labels": labels,
            "mixing": self.decoding.mixing,
            "codes": self.decoding.codes,
            "outlier_labels": self.outliers.labels,
        }
        return State(kind, params, {"residual": self.outliers.residual}, arrays, parts)

    @classmethod
    def from_state(cls, state: State, n_jobs: int | None) -> tuple[Array, SubsetModel]:
        """The labels of the subset and the model, or `ModelFormatError`."""
        estimator = _part(state, "estimator")
        count = estimator.n_labels_
        labels = state.array("labels", np.int64, (count,))
        mixing = state.array("mixing", np.float32, (count, None))
        codes = state.csr("codes", np.float32, (None, mixing.shape[1]))
        if not (np.isfinite(mixing).all() and np.isfinite(codes.data).all()):
            raise ModelFormatError(f"{state.kind}: the decoder must be finite")
        decoding = Decoding(mixing, codes)
        _check_ids(state, np.sort(labels), decoding.n_labels, "labels")
        outliers = _outliers_from(state, labels, decoding.n_labels, estimator.n_features_in_)
        return labels, cls(estimator, decoding, outliers, n_jobs)

    def _decoded(self, X: Any) -> Iterator[tuple[slice, Array]]:
        """Decoded scores of the rows `X` in blocks of labels, with the residuals added."""
        mixed = self.decoding.mix(self.estimator.decision_function(X))
        for block in split(self.decoding.n_labels, _LABELS):
            scores = self.decoding.decode(mixed, block)
            self.outliers.add_residuals(X, block, scores)
            yield block, np.ascontiguousarray(scores.T)


def _dense(weights: Any) -> Array:
    return np.asarray(weights.toarray() if sparse.issparse(weights) else weights)


def _merged(one: tuple[Array, Array], other: tuple[Array, Array]) -> tuple[Array, Array]:
    """Merge two rankings of different labels into one of the same length; ties go to the lowest label."""
    labels, scores = (np.concatenate(pair, axis=1) for pair in zip(one, other, strict=True))
    order = np.lexsort((labels, -scores), axis=1)[:, : one[0].shape[1]]
    return np.take_along_axis(labels, order, axis=1), np.take_along_axis(scores, order, axis=1)


def _part(state: State, name: str) -> Any:
    part = state.part(name)
    if part.kind == state.kind:
        raise ModelFormatError(f"{state.kind}: {name!r} is a {state.kind} itself")
    return put_learner_together(part)


def _outliers_from(state: State, subset: Array, n_labels: int, n_features: int) -> Outliers:
    labels = state.array("outlier_labels", np.int64, (None,))
    _check_ids(state, labels, n_labels, "outlier_labels")
    if np.isin(labels, subset).any():
        raise ModelFormatError(f"{state.kind}: a label is both in the subset and an outlier")
    residual = state.fact("residual", bool)
    if not len(labels):
        return Outliers.none()
    estimator = _part(state, "outliers")
    if (estimator.n_labels_, estimator.n_features_in_) != (len(labels), n_features):
        raise ModelFormatError(
            f"{state.kind}: the outliers' estimator has {estimator.n_labels_} labels and {estimator.n_features_in_} "
            f"features; expected {len(labels)} and {n_features}"
        )
    if residual and not (estimator.linear_in_targets and isinstance(estimator.coef_, np.ndarray)):
        raise ModelFormatError(f"{state.kind}: residuals need a linear estimator with dense weights")
    return Outliers(labels, estimator, residual, np.ones(len(labels), dtype=bool))


def _check_ids(state: State, ids: Array, n_labels: int, name: str) -> None:
    if len(ids) and (ids[0] < 0 or ids[-1] >= n_labels or not rises(ids)):
        raise ModelFormatError(f"{state.kind}: {name!r} must contain distinct label ids in 0..{n_labels - 1}")
