"""The linear layer of a fitted model gives the labels that the model gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from longtail import LabelTree, OneVsRest, Ridge
from longtail.errors import InvalidInput, NotEnoughMemory
from longtail.estimator import OutputLayer


def made_up(rng: np.random.Generator, n_rows: int = 300, n_labels: int = 12) -> tuple[Any, Any]:
    X = sparse.csr_array(rng.random((n_rows, 20)) * (rng.random((n_rows, 20)) < 0.3))
    scores = X @ rng.normal(size=(20, n_labels))
    return X, sparse.csr_array((scores > np.quantile(scores, 0.6)).astype(np.int8))


def given_by(layer: OutputLayer, X: Any) -> np.ndarray:
    return np.asarray(X @ layer.weights.T + layer.offsets > 0)


@pytest.mark.parametrize(
    "model",
    [
        Ridge(0.1),
        Ridge(0.1, fit_intercept=True),
        Ridge(0.1, density=0.3),
        Ridge(0.1, weighting="target"),
        OneVsRest(prune=0.0),
        OneVsRest(loss="logistic"),
        OneVsRest(weighting="score"),
        OneVsRest(calibrate="platt"),
        OneVsRest(calibrate="isotonic", thresholds="macro_f1"),
        OneVsRest(thresholds="f1", precision=32),
    ],
    ids=repr,
)
def test_the_layer_gives_the_labels_that_predict_gives(model: Any, rng: np.random.Generator) -> None:
    X, Y = made_up(rng)
    model = clone(model).fit(X, Y)  # what is parametrized outlives the test
    layer = model.output_layer()
    assert layer.n_labels == 12
    found, expected = given_by(layer, X), model.predict(X).toarray() > 0
    # The model adds up in 32-bit floats: scores at the very threshold may fall on either side.
    assert np.count_nonzero(found != expected) <= 2
    assert expected.any()


@pytest.mark.parametrize("model", [Ridge(0.1), Ridge(0.1, weighting="target"), OneVsRest(prune=0.0)], ids=repr)
def test_the_layer_ranks_as_the_model_does(model: Any, rng: np.random.Generator) -> None:
    X, Y = made_up(rng)
    model = clone(model).fit(X, Y)  # what is parametrized outlives the test
    layer = model.output_layer("topk")
    best = np.argmax(X @ layer.weights.T + layer.offsets, axis=1)
    assert np.mean(best == model.predict_topk(X, k=1)[0].ravel()) > 0.99


def test_labels_never_trained_are_never_given(rng: np.random.Generator) -> None:
    X, Y = made_up(rng)
    Y = sparse.csr_array(sparse.hstack([Y, sparse.csr_array((300, 2), dtype=np.int8)]))
    for model in (Ridge(0.1), OneVsRest()):
        layer = model.fit(X, Y).output_layer()
        assert layer.constant_labels().tolist() == [12, 13]
        assert (layer.offsets[12:] < 0).all()
        assert layer.rank() == 12


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_the_rank_is_that_of_linear_algebra(make: Any, rng: np.random.Generator) -> None:
    for n, d, rank in ((10, 30, 10), (30, 10, 10), (20, 20, 3), (25, 40, 24)):
        W = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, d))
        assert OutputLayer(make(W), np.zeros(n), "predict", "").rank() == rank == np.linalg.matrix_rank(W)
    assert OutputLayer(make(np.zeros((3, 4))), np.zeros(3), "predict", "").rank() == 0


def test_small_singular_values_count_where_they_are_more_than_rounding(rng: np.random.Generator) -> None:
    W = rng.normal(size=(6, 9))
    W[5] = W[4] + 1e-9 * rng.normal(size=9)
    assert OutputLayer(W, np.zeros(6), "predict", "").rank() == 6
    W[5] = W[4]
    assert OutputLayer(W, np.zeros(6), "predict", "").rank() == 5


def test_a_truncation_is_the_nearest_matrix_of_its_rank(rng: np.random.Generator) -> None:
    W = rng.normal(size=(8, 5))
    layer = OutputLayer(W, np.zeros(8), "predict", "")
    truncate = layer.truncations(5)
    values = np.linalg.svd(W, compute_uv=False)
    for rank in (1, 3, 5):
        cut = truncate(rank)
        nearest = np.linalg.norm(W - cut @ np.linalg.lstsq(cut, W)[0])
        assert nearest == pytest.approx(np.sqrt((values[rank:] ** 2).sum()), abs=1e-9)
    with pytest.raises(InvalidInput, match="rank 6 of a layer"):
        layer.truncations(6)
    with pytest.raises(InvalidInput, match="rank 4 of truncations"):
        layer.truncations(3)(4)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_a_truncation_keeps_equal_rows_equal_and_empty_rows_empty(make: Any, rng: np.random.Generator) -> None:
    """Rounding would tell labels apart that nothing tells apart, and give weights to those that have none."""
    W = rng.normal(size=(12, 9))
    W[5], W[7], W[8] = 0, W[2], -0.0
    W[[3, 9]] = 0
    W[[3, 9], 8] = [1e-20, 1e-22]
    for rank in (2, 5):
        cut = OutputLayer(make(W), np.zeros(12), "predict", "").truncations(6)(rank)
        assert (cut[7] == cut[2]).all()
        assert cut[2].any()
        assert not cut[[3, 5, 8, 9]].any()


def test_rows_of_length_1_and_a_cut_change_no_label(rng: np.random.Generator) -> None:
    W, offsets, x = rng.normal(size=(8, 4)), rng.normal(size=8), rng.normal(size=4)
    lengths = 10.0 ** rng.integers(-200, 200, size=8)
    for make in (np.asarray, sparse.csr_array):
        layer = OutputLayer(make(W * lengths[:, None]), offsets * lengths, "predict", "").unit()
        assert ((layer.weights @ x + layer.offsets > 0) == (W @ x + offsets > 0)).all()
        dense = layer.weights.toarray() if sparse.issparse(layer.weights) else layer.weights
        assert np.linalg.norm(dense, axis=1) == pytest.approx(1)
        ranked = OutputLayer(make(W), offsets, "topk", "").with_cut(2.0)
        scores = W @ x + offsets
        at = -(np.sort(scores)[-3] + np.sort(scores)[-4]) / 2 / ranked.weights[[0], [4]][0]
        given = ranked.weights @ np.append(x, at) + ranked.offsets > 0
        assert set(np.flatnonzero(given)) == set(np.argsort(-scores)[:3])


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_truncations_of_large_layers_are_those_of_small_ones(
    make: Any, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    layer = OutputLayer(make(rng.normal(size=(30, 20))), np.zeros(30), "predict", "")
    small = layer.truncations(4)(4)
    monkeypatch.setattr("longtail.estimator.output_layer.MOST_DENSE", 100)
    large = layer.truncations(4)(4)
    assert np.allclose(np.abs(large), np.abs(small), atol=1e-8)


def test_weights_too_large_to_be_dense_are_refused_before_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGTAIL_MEMORY", "1K")
    with pytest.raises(NotEnoughMemory, match="dense weights"):
        OutputLayer(np.ones((30, 20)), np.zeros(30), "predict", "").dense()


def test_a_dense_model_that_does_not_fit_is_refused(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Ridge(0.1).fit(*made_up(rng))
    monkeypatch.setenv("LONGTAIL_MEMORY", "1K")
    with pytest.raises(NotEnoughMemory, match="weights in 64 bits"):
        model.output_layer()


def test_models_without_a_linear_layer_are_refused(rng: np.random.Generator) -> None:
    X, Y = made_up(rng)
    with pytest.raises(InvalidInput, match="product along its path"):
        LabelTree(leaf_size=4).fit(X, Y).output_layer()
    with pytest.raises(InvalidInput, match="not that of a linear layer"):
        OneVsRest(weighting="score").fit(X, Y).output_layer("topk")
    with pytest.raises(InvalidInput, match="'best'"):
        Ridge(0.1).fit(X, Y).output_layer("best")  # type: ignore[arg-type]
