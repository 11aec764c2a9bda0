"""The index of similar rows: exact answers whatever the threads, saving, and states that are refused."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from longtail.errors import InvalidInput, ModelFormatError
from longtail.ranking import SparseIndex, pairs
from longtail.store import State, read_model, write_model


def tf_idf_like(rng, n_rows, n_features, length=6):
    """Rows of unit length in which few features are frequent and most are rare."""
    features = np.minimum(rng.zipf(1.3, size=(n_rows, length)) - 1, n_features - 1)
    rows = np.repeat(np.arange(n_rows), length)
    counts = sparse.csr_array((np.ones(rows.size), (rows, features.ravel())), shape=(n_rows, n_features))
    df = np.bincount(counts.indices, minlength=n_features)
    X = counts @ sparse.diags_array(np.log((1 + n_rows) / (1 + df)) + 1)
    return sparse.csr_array(sparse.diags_array(1 / np.sqrt((X * X).sum(axis=1))) @ X).astype(np.float32)


def brute_force(X, Q, k, mask=None):
    products = (Q.astype(np.float64) @ X.T.astype(np.float64)).toarray()
    if mask is not None:
        products[:, ~mask] = 0
    order = np.argsort(-products, axis=1, kind="stable")[:, :k]
    scores = np.take_along_axis(products, order, axis=1)
    return products, np.where(scores > 0, scores, -np.inf)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("n_features", [40, 3000])
def test_answers_are_those_of_brute_force(rng, n_features, masked):
    X, Q = tf_idf_like(rng, 800, n_features), tf_idf_like(rng, 150, n_features)
    mask = rng.random(800) < 0.3 if masked else None
    items, scores = SparseIndex.build(X).topk(Q, 12, mask)
    products, expected = brute_force(X, Q, 12, mask)
    np.testing.assert_allclose(scores, expected, rtol=1e-5)
    given = items >= 0
    rows = np.nonzero(given)[0]
    np.testing.assert_allclose(products[rows, items[given]], scores[given], rtol=1e-5)
    assert all(len(set(row[row >= 0].tolist())) == (row >= 0).sum() for row in items)


def test_the_result_does_not_depend_on_threads_and_blocks(rng, monkeypatch):
    X, Q = tf_idf_like(rng, 500, 300), tf_idf_like(rng, 300, 300)
    searched = SparseIndex.build(X)
    items, scores = searched.topk(Q, 7, n_jobs=1)
    for size, n_jobs in ((1, 3), (17, 2), (300, 1), (64, None)):
        monkeypatch.setattr(pairs, "_FEWEST_ROWS", size)
        monkeypatch.setattr(pairs, "_MOST_ROWS", size)
        again = searched.topk(Q, 7, n_jobs=n_jobs)
        assert again[0].tobytes() == items.tobytes()
        assert again[1].tobytes() == scores.tobytes()


def test_frequent_features_are_left_out():
    X = np.array([[1, 1, 0], [1, 0, 0], [1, 0, 1], [1, 0, 1]], dtype=np.float32)
    searched = SparseIndex.build(X, max_df=0.5)
    assert np.diff(searched.starts).tolist() == [0, 1, 2]
    items, scores = searched.topk(np.ones((1, 3)), 4)
    assert items.tolist() == [[0, 2, 3, -1]]
    assert scores.tolist() == [[1, 1, 1, -np.inf]]


@pytest.mark.parametrize("shape", [(0, 4), (4, 0), (3, 4)])
def test_an_index_without_entries_finds_nothing(shape):
    searched = SparseIndex.build(sparse.csr_array(shape, dtype=np.float32))
    items, scores = searched.topk(np.ones((2, shape[1])), 3)
    assert items.tolist() == [[-1] * 3] * 2
    assert (scores == -np.inf).all()
    assert searched.topk(np.ones((0, shape[1])), 3)[0].shape == (0, 3)


def test_wrong_arguments_are_refused(rng):
    searched = SparseIndex.build(tf_idf_like(rng, 9, 5))
    with pytest.raises(InvalidInput, match="features"):
        searched.topk(np.ones((1, 4)), 2)
    with pytest.raises(InvalidInput, match="k is 0"):
        searched.topk(np.ones((1, 5)), 0)
    for mask in (np.ones(8, dtype=bool), np.ones(9)):
        with pytest.raises(InvalidInput, match="mask"):
            searched.topk(np.ones((1, 5)), 2, mask)
    for max_df in (-0.1, 1.1, np.nan):
        with pytest.raises(InvalidInput, match="max_df"):
            SparseIndex.build(np.ones((1, 5)), max_df)


def test_a_saved_index_gives_the_same_answers(rng, tmp_path):
    X, Q = tf_idf_like(rng, 200, 80), tf_idf_like(rng, 40, 80)
    searched = SparseIndex.build(X, max_df=0.2)
    write_model(State("Ranking", parts={"index": searched.to_state()}), tmp_path / "model")
    again = SparseIndex.from_state(read_model(tmp_path / "model").part("index", "SparseIndex"))
    assert (again.n_items, again.n_features) == (200, 80)
    for one, other in zip(searched.topk(Q, 5), again.topk(Q, 5), strict=True):
        np.testing.assert_array_equal(one, other)


def changed(name, change):
    return lambda facts, arrays: arrays.update({name: change(arrays[name])})


def claimed(value):
    return lambda facts, arrays: facts.update(n_items=value)


@pytest.mark.parametrize(
    "attack",
    [
        changed("starts", lambda a: a[:0]),
        changed("starts", lambda a: a + 1),
        changed("starts", lambda a: a[:-1]),
        changed("starts", lambda a: np.concatenate([[0, len(a) * 10**6], a[1:]])),
        changed("starts", lambda a: np.concatenate([a[:-1], [-(2**63)], a[-1:]])),
        changed("starts", lambda a: a.astype(np.int32)),
        changed("items", lambda a: a[:-1]),
        changed("items", lambda a: a.astype(np.int64)),
        changed("values", lambda a: a[:-1]),
        changed("values", lambda a: a[:, None]),
        changed("values", lambda a: None),
        *(claimed(value) for value in (None, -1, 2**31, 2**70, 3.5, True, "9")),
    ],
)
def test_a_state_that_does_not_fit_together_is_refused(attack):
    state = SparseIndex.build(tf_idf_like(np.random.default_rng(0), 30, 20)).to_state()
    facts, arrays = dict(state.facts), dict(state.arrays)
    attack(facts, arrays)
    with pytest.raises(ModelFormatError):
        SparseIndex.from_state(State("SparseIndex", facts=facts, arrays=arrays))


def test_an_index_that_claims_more_items_than_memory_holds_is_refused(monkeypatch):
    monkeypatch.setattr("longtail.memory.available_memory", lambda: 10**9)
    state = SparseIndex.build(np.ones((3, 2))).to_state()
    with pytest.raises(ModelFormatError):
        SparseIndex.from_state(State("SparseIndex", facts={"n_items": 2**31 - 1}, arrays=state.arrays))


@pytest.mark.parametrize("name", ["items", "values"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_entries_of_any_bytes_give_items_that_exist(rng, name):
    state = SparseIndex.build(tf_idf_like(rng, 30, 20)).to_state()
    array = state.arrays[name]
    arrays = {**state.arrays, name: np.frombuffer(rng.bytes(array.nbytes), dtype=array.dtype)}
    items, scores = SparseIndex.from_state(State("SparseIndex", facts=state.facts, arrays=arrays)).topk(
        tf_idf_like(rng, 10, 20), 5
    )
    assert ((items >= -1) & (items < 30)).all()
    assert (scores[items >= 0] > 0).all()
