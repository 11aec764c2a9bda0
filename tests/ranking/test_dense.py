"""Dense vectors in the second stage: nearest rows and label texts, as brute force finds them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from longtail import LabelTree, load
from longtail.errors import InvalidInput, ModelFormatError
from longtail.estimator import check_estimator
from longtail.ranking import TwoStage
from longtail.ranking.dense import PENALTIES, Sentences, nearest, ridge_weights, unit_rows
from longtail.ranking.pairs import Pairs
from longtail.store import State, put_together

WIDTH, N_LABELS = 8, 40


@pytest.fixture
def vectors() -> Any:
    return np.random.default_rng(0).normal(size=(300, WIDTH)).astype(np.float32)


@pytest.fixture
def truth() -> Any:
    return sparse.csr_array(sparse.random(300, N_LABELS, 0.05, format="csr", rng=1, dtype=np.float32)).astype(bool)


@pytest.fixture
def texts() -> Any:
    found = np.random.default_rng(2).normal(size=(N_LABELS, WIDTH)).astype(np.float32)
    found[3] = 0
    return found


@pytest.fixture
def queries() -> Any:
    found = np.random.default_rng(3).normal(size=(150, WIDTH)).astype(np.float32)
    found[5] = 0
    return found


@pytest.fixture
def source(vectors: Any, truth: Any, texts: Any) -> Sentences:
    return Sentences.fit(vectors, truth.astype(np.float32), texts)


def cosines(A: Any, B: Any) -> Any:
    return unit_rows(A).astype(np.float64) @ unit_rows(B).astype(np.float64).T


def test_the_contract_of_estimators_holds_with_dense_features() -> None:
    def fit(model: Any, X: Any, Y: Any) -> Any:
        return (model.set_params(dense=1) if np.shape(X)[1] <= 5 else model).fit(X, Y)

    check_estimator(TwoStage([("tree", LabelTree())], dense=5, rounds=5), fit=fit)


def test_the_nearest_vectors_are_those_of_brute_force(vectors: Any, queries: Any) -> None:
    numbers, products = nearest(unit_rows(queries), unit_rows(vectors), 7, None, 1)
    exact = cosines(queries, vectors)
    order = np.argsort(-exact, axis=1, kind="stable")[:, :7]
    filled = np.arange(len(queries)) != 5
    np.testing.assert_array_equal(numbers[filled], order[filled])
    np.testing.assert_allclose(products[filled], np.take_along_axis(exact, order, 1)[filled], atol=1e-6)
    assert (numbers[5] == -1).all()
    assert np.isneginf(products[5]).all()


def test_only_vectors_in_the_mask_and_with_a_positive_product_are_found() -> None:
    points = np.array([[1, 0], [0.9, 0.1], [-1, 0], [0, 1], [0.5, 0.5]], dtype=np.float32)
    mask = np.array([False, True, True, True, True])
    numbers, _ = nearest(np.array([[1, 0]], dtype=np.float32), points, 4, mask, 1)
    assert numbers.tolist() == [[1, 4, -1, -1]]


def test_half_precision_finds_the_same_rows() -> None:
    points = np.eye(6, dtype=np.float32) + np.float32(0.25)
    single, half = (nearest(points, each, 2, None, 1) for each in (points, points.astype(np.float16)))
    np.testing.assert_array_equal(single[0], half[0])
    np.testing.assert_allclose(single[1], half[1], rtol=1e-3)


def test_votes_are_those_of_brute_force(source: Sentences, vectors: Any, truth: Any, queries: Any) -> None:
    found = source.find(queries, None, 1)
    exact = cosines(queries, vectors)
    every = Pairs.join([np.tile(np.arange(N_LABELS), (len(queries), 1))])
    columns = source.describe(queries, found, found, every, 1)
    for column, count in zip(columns, (30, 10), strict=False):
        near = np.argsort(-exact, axis=1, kind="stable")[:, :count]
        votes = np.zeros((len(queries), N_LABELS))
        for row in range(len(queries)):
            for neighbour in near[row]:
                votes[row, truth[[neighbour]].indices] += max(0, exact[row, neighbour]) ** 2
        np.testing.assert_allclose(column.reshape(votes.shape), votes, atol=1e-5)
    best = found.labels[:, 20:40]  # after those of ridge regression
    voted = columns[0].reshape(-1, N_LABELS)
    np.testing.assert_allclose(np.where(best >= 0, np.take_along_axis(voted, best, 1), -np.inf), found.scores[:, 20:40])
    np.testing.assert_allclose(columns[2].reshape(voted.shape)[:, 0], np.maximum(exact.max(axis=1), 0), atol=1e-6)


def test_pairs_are_compared_with_centroids_and_texts(source: Sentences, vectors: Any, truth: Any, texts: Any) -> None:
    pairs = Pairs.join([np.array([[0, 3], [7, 1]])])
    found = source.find(vectors[:2], None, 1)
    columns = source.describe(vectors[:2], found, found, pairs, 1)
    means = np.array(
        [unit_rows(vectors)[truth[:, [label]].toarray().ravel()].mean(axis=0) for label in range(N_LABELS)]
    )
    rows, labels = pairs.rows, pairs.labels
    np.testing.assert_allclose(columns[3], cosines(vectors, means)[rows, labels], atol=1e-6)
    np.testing.assert_allclose(columns[4], np.linalg.norm(means, axis=1)[labels], atol=1e-6)
    scores = unit_rows(vectors) @ source.weights.T
    np.testing.assert_allclose(columns[5], scores[rows, labels], atol=1e-6)
    np.testing.assert_allclose(columns[6], np.maximum(scores.max(axis=1), 0)[rows], atol=1e-6)
    np.testing.assert_allclose(columns[7], cosines(vectors, texts)[rows, labels], atol=1e-6)
    assert len(columns) == len(source.columns)


def test_ridge_weights_are_those_of_the_penalty_that_cross_validation_prefers(vectors: Any, truth: Any) -> None:
    X = unit_rows(vectors).astype(np.float64)
    Y = truth.toarray().astype(np.float64)
    Y[:, :5] = X[:, :5] > 0.3  # so that there is something to learn
    solutions, scores = [], []
    for alpha in PENALTIES * np.linalg.eigvalsh(X.T @ X).mean():
        inverse = np.linalg.inv(X.T @ X + alpha * np.eye(WIDTH))
        solutions.append(Y.T @ X @ inverse)
        scores.append(np.square(Y - X @ solutions[-1].T).sum() / (len(X) - np.trace(X @ inverse @ X.T)) ** 2)
    found = ridge_weights(X.astype(np.float32), (Y.T @ X).astype(np.float32), int(Y.sum()))
    assert 0 < np.argmin(scores) < len(scores) - 1
    np.testing.assert_allclose(found, solutions[np.argmin(scores)], atol=1e-5)


def test_labels_without_rows_are_found_by_their_texts(vectors: Any, truth: Any, texts: Any) -> None:
    without = truth.toarray()
    without[:, 9] = False
    source = Sentences.fit(vectors, sparse.csr_array(without).astype(np.float32), texts)
    assert source.find(texts[[9]], None, 1).labels[0, 40] == 9
    assert source.spreads[9] == 0


def test_only_labels_in_the_mask_are_found(source: Sentences, queries: Any) -> None:
    mask = np.zeros(N_LABELS, dtype=bool)
    mask[[2, 5, 11]] = True
    assert set(np.unique(source.find(queries, mask, 2).labels)) == {-1, 2, 5, 11}


def test_the_bytes_do_not_depend_on_the_number_of_threads(source: Sentences, queries: Any) -> None:
    outcomes = []
    for n_jobs in (1, 2, 5):
        found = source.find(queries, None, n_jobs)
        pairs = Pairs.join([found.labels], n_jobs)
        columns = source.describe(queries, found, found, pairs, n_jobs)
        outcomes.append((found.labels.tobytes(), found.scores.tobytes(), *(column.tobytes() for column in columns)))
    assert outcomes[0] == outcomes[1] == outcomes[2]


@pytest.fixture
def rows() -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    Y = sparse.csr_array((rng.random((200, 12)) < 0.15).astype(np.float32))
    words = sparse.random(200, 20, 0.2, format="csr", rng=2, dtype=np.float32)
    dense = Y @ rng.normal(size=(12, 6)) + 0.1 * rng.normal(size=(200, 6))
    Z = sparse.csr_array(np.hstack([np.eye(12, 20), rng.normal(size=(12, 6))]).astype(np.float32))
    return sparse.csr_array(sparse.hstack([words, dense], format="csr")), Y, Z


def test_vectors_that_tell_the_labels_raise_the_gain(rows: tuple[Any, Any, Any]) -> None:
    X, Y, Z = rows
    learners = [("tree", LabelTree())]
    plain = TwoStage(learners, rounds=20).rehearse(X[:, :20], Y, Z[:, :20])
    dense = TwoStage(learners, rounds=20, dense=6).rehearse(X, Y, Z, like=plain)
    alone = TwoStage(learners, rounds=20, dense=6).rehearse(X, Y, Z)
    assert dense.gains_ == alone.gains_
    assert dense.gains_["tree"] == plain.gains_["tree"]
    assert dense.gains_["two stages"] > plain.gains_["two stages"] + 0.1


def test_a_saved_model_answers_with_the_same_bytes(rows: tuple[Any, Any, Any], tmp_path: Any) -> None:
    X, Y, Z = rows
    model = TwoStage([("tree", LabelTree())], rounds=5, dense=6).fit(X, Y, Z)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.dense == 6
    for mine, loaded in zip(model.predict_topk(X, 5), again.predict_topk(X, 5), strict=True):
        assert mine.tobytes() == loaded.tobytes()
    assert "similarity with the vector of the label's text" in {each.name for each in again.explain(X[[0]], 1).evidence}


def test_a_mask_does_not_change_the_score_of_a_label(rows: tuple[Any, Any, Any]) -> None:
    X, Y, Z = rows
    model = TwoStage([("tree", LabelTree())], rounds=10, dense=6).fit(X, Y, Z)
    labels, scores = model.predict_topk(X[:40], 12)
    masked, masked_scores = model.predict_topk(X[:40], 3, allow=[1, 4, 7])
    for row in range(40):
        whole = dict(zip(labels[row].tolist(), scores[row].tolist(), strict=True))
        assert [whole[label] for label in masked[row].tolist()] == masked_scores[row].tolist()


def forged(state: State, **arrays: Any) -> State:
    """The model with other arrays in its source of vectors; None drops one."""
    [name] = [name for name, part in state.parts.items() if part.kind == "Sentences"]
    changed = {key: value for key, value in {**state.parts[name].arrays, **arrays}.items() if value is not None}
    return replace(state, parts={**state.parts, name: replace(state.parts[name], arrays=changed)})


@pytest.mark.parametrize(
    "arrays",
    [
        {"rows": np.zeros((200, 5), np.float32)},
        {"rows": np.zeros((199, 6), np.float32)},
        {"rows": np.zeros((200, 6), np.float64)},
        {"rows": None},
        {"label_starts": np.zeros(3, np.int64)},
        {"labels": np.zeros(3, np.int64)},
        {"centroids": np.zeros((11, 6), np.float32)},
        {"centroids": None},
        {"spreads": np.full(12, np.nan, np.float32)},
        {"texts": np.zeros((12, 7), np.float32)},
        {"texts": None},
    ],
)
def test_forged_vectors_are_refused(rows: tuple[Any, Any, Any], arrays: dict[str, Any]) -> None:
    X, Y, Z = rows
    state = TwoStage([("tree", LabelTree())], rounds=2, dense=6).fit(X, Y, Z).to_state()
    put_together(forged(state))
    with pytest.raises(ModelFormatError):
        put_together(forged(state, **arrays))


@pytest.mark.parametrize("dense", [None, 0, 5, 26, 60_000])
def test_a_forged_width_is_refused(rows: tuple[Any, Any, Any], dense: int | None) -> None:
    X, Y, Z = rows
    state = TwoStage([("tree", LabelTree())], rounds=2, dense=6).fit(X, Y, Z).to_state()
    with pytest.raises(ModelFormatError):
        put_together(replace(state, params={**state.params, "dense": dense}))


def test_forged_numbers_give_finite_scores(rows: tuple[Any, Any, Any]) -> None:
    X, Y, Z = rows
    state = TwoStage([("tree", LabelTree())], rounds=5, dense=6).fit(X, Y, Z).to_state()
    wild = np.full((200, 6), np.inf, np.float32)
    wild[::2] = np.nan
    labels = np.full(Y.nnz, 2**31 - 1, np.int32)
    starts = np.full(201, 2**62, np.int64)
    model = put_together(
        forged(state, rows=wild, centroids=wild[:12], texts=wild[:12], labels=labels, label_starts=starts)
    )
    assert np.isfinite(model.decision_function(X)).all()


def test_dense_features_must_leave_others() -> None:
    with pytest.raises(InvalidInput, match="dense is 3, but the rows have 3 features"):
        TwoStage(dense=3).fit(np.eye(3), np.eye(3))
