"""The same weights are kept for any division into blocks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtail import Ridge
from longtail.estimator.checks import planted
from longtail.ridge.sparsify import Sparsification, columns_of


def collect(rule, weights, size):
    blocks = [weights[start : start + size] for start in range(0, len(weights), size)]
    if rule.is_identity:
        return weights.T
    if rule.prunes:
        pruned = [rule.pruned(block) for block in blocks]
        return columns_of(
            {name: np.concatenate([part[name] for part in pruned]) for name in pruned[0]}, weights.shape[1]
        )
    collector = rule.collector(weights.shape[1], weights.shape[0])
    for number, block in enumerate(blocks):
        collector.add(number * size, block)
    return collector.finish()


@given(st.integers(0, 2**32 - 1), st.floats(0.01, 1), st.integers(1, 9))
def test_keep_takes_the_largest_of_all_labels(seed, share, size):
    weights = np.random.default_rng(seed).normal(size=(9, 14)).astype(np.float32)
    kept = collect(Sparsification(density=share), weights, size)
    kept = kept if isinstance(kept, np.ndarray) else kept.toarray()
    count = round(share * 9 * 14)
    order = np.sort(np.abs(weights).ravel())[::-1]
    floor = order[count - 1] if count else np.inf
    expected = np.where(np.abs(weights) >= floor, weights, 0).T
    np.testing.assert_array_equal(kept, expected)


def test_keep_breaks_ties_by_count_not_by_threshold():
    weights = np.ones((4, 5), dtype=np.float32)
    assert collect(Sparsification(density=0.5), weights, 1).nnz == 10


@given(st.integers(0, 2**32 - 1), st.integers(1, 20), st.integers(1, 9))
def test_each_label_keeps_its_own_largest(seed, count, size):
    weights = np.random.default_rng(seed).normal(size=(9, 14)).astype(np.float32)
    kept = collect(Sparsification(top=count), weights, size).toarray()
    for label, row in enumerate(weights):
        largest = np.sort(np.argsort(-np.abs(row))[:count])
        assert np.flatnonzero(kept[:, label]).tolist() == largest.tolist()
        np.testing.assert_array_equal(kept[largest, label], row[largest])


@given(st.integers(0, 2**32 - 1), st.floats(0.01, 3), st.integers(1, 9))
def test_a_threshold_keeps_what_reaches_it(seed, threshold, size):
    weights = np.random.default_rng(seed).normal(size=(9, 14)).astype(np.float32)
    kept = collect(Sparsification(smallest=threshold), weights, size).toarray()
    np.testing.assert_array_equal(kept, np.where(np.abs(weights) >= np.float32(threshold), weights, 0).T)


@pytest.mark.parametrize("rule", [{"density": 0.2}, {"prune": 5}, {"prune": 0.05}])
def test_a_sparse_model_scores_with_what_it_kept(rng, rule):
    X, Y = planted(rng)
    dense = Ridge().fit(X, Y).coef_
    model = Ridge(block_size=5, **rule).fit(X, Y)
    kept = model.coef_.toarray()
    np.testing.assert_allclose(kept[kept != 0], dense[kept != 0], atol=1e-6)
    np.testing.assert_allclose(model.decision_function(X), X @ kept, atol=1e-5)


def test_weights_that_are_zero_are_not_stored():
    weights = np.zeros((3, 8), dtype=np.float32)
    weights[1, 4] = 2
    assert collect(Sparsification(top=5), weights, 2).nnz == 1


def test_memory_stays_near_what_is_kept():
    import tracemalloc

    rule = Sparsification(density=0.01)
    collector = rule.collector(2000, 4000)
    rng = np.random.default_rng(0)
    block = rng.normal(size=(50, 2000)).astype(np.float32)
    tracemalloc.start()
    for start in range(0, 4000, 50):
        collector.add(start, block)
    coefficients = collector.finish()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert coefficients.nnz == 80_000
    assert peak < 4 * 2000 * 4000 / 2
