"""`SubsetModel` as a state to save, and back from one that nobody vouches for."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from longtail.arrays import Array
from longtail.errors import ModelFormatError
from longtail.ridge import Ridge, RidgeCV
from longtail.store import State, rises
from longtail.subset.decoding import Decoding
from longtail.subset.model import SubsetModel
from longtail.subset.outliers import Outliers
from longtail.trees import LabelTree, OneVsRest

LEARNERS: dict[str, Any] = {cls.__name__: cls for cls in (LabelTree, OneVsRest, Ridge, RidgeCV)}


def model_state(kind: str, params: dict[str, Any], labels: Array, model: SubsetModel) -> State:
    """The state of a model of the subset `labels`."""
    parts = {"estimator": model.estimator.to_state()}
    if model.outliers is not None:
        parts["outliers"] = model.outliers.estimator.to_state()
    arrays = {
        "labels": labels,
        "mixing": model.decoding.mixing,
        "codes": model.decoding.codes,
        "outlier_labels": np.zeros(0, dtype=np.int64) if model.outliers is None else model.outliers.labels,
    }
    return State(kind, params, {"residual": model.outliers is not None and model.outliers.residual}, arrays, parts)


def model_from(state: State, n_jobs: int | None) -> tuple[Array, SubsetModel]:
    """The labels of the subset and the model, or `ModelFormatError`."""
    part = state.part("estimator", *LEARNERS)
    estimator = LEARNERS[part.kind].from_state(part)
    count = estimator.n_labels_
    labels = state.array("labels", np.int64, (count,))
    mixing = state.array("mixing", np.float32, (count, None))
    codes = state.csr("codes", np.float32, (None, mixing.shape[1]))
    if not (np.isfinite(mixing).all() and np.isfinite(codes.data).all()):
        raise ModelFormatError(f"{state.kind}: the decoder must be finite")
    decoding = Decoding(mixing, codes)
    _check_ids(state, np.sort(labels), decoding.n_labels, "labels")
    outliers = _outliers_from(state, labels, decoding.n_labels, estimator.n_features_in_)
    return labels, SubsetModel(estimator, decoding, outliers, n_jobs)


def _outliers_from(state: State, subset: Array, n_labels: int, n_features: int) -> Outliers | None:
    labels = state.array("outlier_labels", np.int64, (None,))
    _check_ids(state, labels, n_labels, "outlier_labels")
    if np.isin(labels, subset).any():
        raise ModelFormatError(f"{state.kind}: a label is in the subset and an outlier")
    residual = state.fact("residual", bool)
    if not len(labels):
        return None
    part = state.part("outliers", *(("Ridge", "RidgeCV") if residual else LEARNERS))
    estimator = LEARNERS[part.kind].from_state(part)
    if (estimator.n_labels_, estimator.n_features_in_) != (len(labels), n_features):
        raise ModelFormatError(
            f"{state.kind}: the outliers' estimator has {estimator.n_labels_} labels and {estimator.n_features_in_} "
            f"features; expected {len(labels)} and {n_features}"
        )
    if residual and sparse.issparse(estimator.coef_):
        raise ModelFormatError(f"{state.kind}: weights of residuals must be dense")
    return Outliers(labels, estimator, residual, np.ones(len(labels), dtype=bool))


def _check_ids(state: State, ids: Array, n_labels: int, name: str) -> None:
    if len(ids) and (ids[0] < 0 or ids[-1] >= n_labels or not rises(ids)):
        raise ModelFormatError(f"{state.kind}: {name!r} must hold each label once, with ids in 0..{n_labels - 1}")
