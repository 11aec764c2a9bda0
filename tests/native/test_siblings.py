"""All forms of the training of siblings, compared with LIBLINEAR, the duality gap and the twin."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from longtail import native
from longtail.data import read_repository
from longtail.native.siblings import block_widths, train_siblings

losses = pytest.mark.parametrize("logistic", [False, True], ids=["squared_hinge", "logistic"])


@pytest.fixture(params=["avx2", "plain", "twin"])
def trainer(request):
    """`train_siblings` with vector instructions, without, and in NumPy."""
    if request.param == "twin":
        yield native.twins.train_siblings
        return
    if not native.is_native():
        pytest.skip("the native kernels are not built here")
    before = native.kernels.simd()
    try:
        native.kernels.use_simd(request.param)
    except ValueError:
        pytest.skip(f"this processor has no {request.param}")
    yield native.kernels.train_siblings
    native.kernels.use_simd(before)


class Problem(NamedTuple):
    X: sparse.csr_array
    wanted: np.ndarray
    costs: np.ndarray

    @property
    def negative_cost(self):
        return float(self.costs[~self.wanted][0])

    def rows(self, chosen):
        return Problem(sparse.csr_array(self.X[chosen]), self.wanted[chosen], self.costs[chosen])


class Result(NamedTuple):
    weights: np.ndarray
    intercepts: np.ndarray
    gap: float
    sweeps: int
    duals: np.ndarray


def planted(rng, n_rows=40, n_features=25, n_siblings=5, cost=1.0, dear=False):
    X = sparse.csr_array(sparse.random_array((n_rows, n_features), density=0.3, rng=rng, dtype=np.float32))
    scores = X @ rng.normal(size=(n_features, n_siblings)) + 0.5 * rng.normal(size=(n_rows, n_siblings))
    wanted = scores > np.quantile(scores, 0.7, axis=0)
    costs = np.full(wanted.shape, cost, dtype=np.float32)
    if dear:
        costs[wanted] *= rng.uniform(0.5, 4, size=wanted.sum()).astype(np.float32)
    return Problem(X, wanted, costs)


def blocks_of(duals, n_rows, n_siblings):
    """The dual variables (rows x siblings), without the padding of blocks."""
    parts, at, first = [], 0, 0
    for width in block_widths(n_siblings):
        own = min(width, n_siblings - first)
        parts.append(duals[at : at + n_rows * width].reshape(n_rows, width)[:, :own])
        at, first = at + n_rows * width, first + own
    return np.concatenate(parts, axis=1)


def no_duals(n_rows, n_siblings):
    return np.zeros(n_rows * sum(block_widths(n_siblings)), dtype=np.float32)


def call(trainer, problem, logistic, tol=1e-6, max_sweeps=1000, seed=0, threshold=0.0, top=0, duals=None, rows=None):
    X, n_siblings = problem.X, problem.wanted.shape[1]
    positives = sparse.csr_array(problem.wanted)
    return trainer(
        *(X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data, X.shape[1]),
        np.arange(X.shape[0]) if rows is None else rows,
        *(positives.indptr.astype(np.int64), positives.indices.astype(np.int32), problem.costs[problem.wanted]),
        *(problem.negative_cost, n_siblings, 1.0, logistic, tol, max_sweeps, seed, threshold, top, duals),
    )


def dense_weights(found, n_features, n_siblings):
    features, pointers, siblings, weights = found[:4]
    dense = np.zeros((n_features, n_siblings))
    dense[np.repeat(features, np.diff(pointers)), siblings] = weights
    return dense


def solve(trainer, problem, logistic, duals=None, **options):
    n_rows, n_siblings = problem.wanted.shape
    duals = no_duals(n_rows, n_siblings) if duals is None else duals
    found = call(trainer, problem, logistic, duals=duals, **options)
    weights = dense_weights(found, problem.X.shape[1], n_siblings)
    return Result(weights, found[4], found[5], found[6], blocks_of(duals, n_rows, n_siblings).astype(np.float64))


def liblinear(problem, logistic, sibling):
    if logistic:
        reference = LogisticRegression(solver="liblinear", dual=True, tol=1e-8, max_iter=100_000)
    else:
        reference = LinearSVC(loss="squared_hinge", dual=True, tol=1e-8, max_iter=100_000)
    reference.fit(problem.X.astype(np.float64), problem.wanted[:, sibling], problem.costs[:, sibling])
    return reference.coef_[0], reference.intercept_[0]


def exact_values(problem, logistic, found):
    """Primal and dual objective of all siblings together, in float64."""
    signs, costs = np.where(problem.wanted, 1.0, -1.0), problem.costs.astype(np.float64)
    X = problem.X.toarray().astype(np.float64)
    margins = signs * (X @ found.weights + found.intercepts.astype(np.float64))
    share = found.duals / costs
    if logistic:
        loss = np.logaddexp(0, -margins)
        terms = -costs * sum(p * np.log(np.where(p > 0, p, 1)) for p in (share, np.maximum(1 - share, 0)))
    else:
        loss = np.maximum(0, 1 - margins) ** 2
        terms = found.duals - found.duals * share / 4
    square = (found.weights**2).sum() + (found.intercepts.astype(np.float64) ** 2).sum()
    made = signs * found.duals
    dual_square = ((X.T @ made) ** 2).sum() + (made.sum(axis=0) ** 2).sum()
    return (costs * loss).sum() + square / 2, terms.sum() - dual_square / 2


@losses
@pytest.mark.parametrize("cost", [0.1, 3.0])
@pytest.mark.parametrize("dear", [False, True], ids=["one cost", "a cost of each positive"])
def test_weights_are_those_of_liblinear(trainer, logistic, cost, dear):
    problem = planted(np.random.default_rng(0), cost=cost, dear=dear)
    found = solve(trainer, problem, logistic, tol=1e-7, max_sweeps=400)
    for sibling in range(5):
        weights, intercept = liblinear(problem, logistic, sibling)
        np.testing.assert_allclose(found.weights[:, sibling], weights, atol=2e-3 * np.abs(weights).max())
        assert found.intercepts[sibling] == pytest.approx(intercept, abs=2e-3 * np.abs(weights).max())


@losses
def test_a_class_weight_is_a_cost_of_positives(trainer, logistic):
    problem = planted(np.random.default_rng(3), n_siblings=1)
    problem.costs[problem.wanted] = 3
    if logistic:
        reference = LogisticRegression(solver="liblinear", dual=True, tol=1e-8, max_iter=100_000, class_weight={1: 3})
    else:
        reference = LinearSVC(loss="squared_hinge", dual=True, tol=1e-8, max_iter=100_000, class_weight={1: 3})
    reference.fit(problem.X.astype(np.float64), problem.wanted[:, 0].astype(int))
    found = solve(trainer, problem, logistic, tol=1e-7, max_sweeps=400)
    np.testing.assert_allclose(found.weights[:, 0], reference.coef_[0], atol=2e-3)


@losses
def test_weights_of_a_node_of_real_text_are_those_of_liblinear(benchmark_data, logistic):
    corpus = read_repository(benchmark_data("eurlex-4k") / "train.txt.gz")
    siblings = np.argsort(-np.asarray(corpus.labels.sum(axis=0)).ravel(), kind="stable")[100:106]
    labels = sparse.csr_array(corpus.labels[:, siblings])
    rows = np.flatnonzero(np.diff(labels.indptr))
    X = sparse.csr_array(corpus.features[rows], dtype=np.float32)
    X.data /= np.repeat(np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel()), np.diff(X.indptr)).astype(np.float32)
    wanted = labels[rows].toarray() > 0
    problem = Problem(X, wanted, np.ones(wanted.shape, dtype=np.float32))
    found = solve(native.kernels.train_siblings, problem, logistic, tol=1e-7, max_sweeps=2000)
    for sibling in range(6):
        weights, _ = liblinear(problem, logistic, sibling)
        np.testing.assert_allclose(found.weights[:, sibling], weights, atol=2e-3 * np.abs(weights).max())


@losses
@pytest.mark.parametrize("tol", [0.1, 0.01, 1e-4])
@pytest.mark.parametrize("n_siblings", [1, 8, 70])
def test_training_ends_with_an_exact_gap_of_at_most_the_tolerance(trainer, logistic, tol, n_siblings):
    problem = planted(np.random.default_rng(1), n_siblings=n_siblings, dear=True)
    found = solve(trainer, problem, logistic, tol=tol)
    primal, dual = exact_values(problem, logistic, found)
    assert 0 < found.sweeps < 1000
    assert -1e-6 <= (primal - dual) / primal <= tol + 1e-6
    assert found.gap == pytest.approx((primal - dual) / primal, abs=2e-6)


@losses
def test_every_sweep_raises_the_dual_value_and_never_above_a_primal_one(trainer, logistic):
    problem = planted(np.random.default_rng(2), cost=5.0, dear=True)
    values = [
        exact_values(problem, logistic, solve(trainer, problem, logistic, tol=1e-12, max_sweeps=sweeps))
        for sweeps in range(1, 7)
    ]
    primal, dual = np.array(values).T
    assert (np.diff(dual) > -1e-6 * primal[-1]).all()
    assert dual[-1] > dual[0]
    assert dual.max() <= primal.min() * (1 + 1e-6)


@losses
def test_dual_variables_stay_within_their_bounds(trainer, logistic):
    problem = planted(np.random.default_rng(3), cost=50.0, dear=True)
    for sweeps in (1, 3, 12):
        duals = solve(trainer, problem, logistic, max_sweeps=sweeps).duals
        assert (duals >= 0).all()
        assert not logistic or (duals <= problem.costs * (1 + 1e-6)).all()


@losses
def test_the_sweeps_are_no_more_than_allowed(trainer, logistic):
    problem = planted(np.random.default_rng(3))
    assert [solve(trainer, problem, logistic, tol=1e-12, max_sweeps=n).sweeps for n in (1, 2, 7)] == [1, 2, 7]


@losses
@pytest.mark.parametrize("n_siblings", [5, 70])
def test_training_that_goes_on_from_its_end_is_done_at_once(trainer, logistic, n_siblings):
    problem = planted(np.random.default_rng(4), n_siblings=n_siblings)
    duals = no_duals(40, n_siblings)
    first = solve(trainer, problem, logistic, tol=1e-5, duals=duals)
    again = solve(trainer, problem, logistic, tol=1e-5, duals=duals)
    assert first.sweeps > 1
    assert again.sweeps == 0
    assert again.gap == pytest.approx(first.gap, abs=1e-6)
    np.testing.assert_array_equal(again.duals, first.duals)
    np.testing.assert_allclose(again.weights, first.weights, atol=1e-5 * np.abs(first.weights).max())


@losses
@pytest.mark.parametrize("n_siblings", [5, 70])
def test_rows_that_come_later_lead_to_the_same_classifiers(trainer, logistic, n_siblings):
    problem = planted(np.random.default_rng(5), n_siblings=n_siblings)
    scratch = solve(trainer, problem, logistic, tol=1e-7, max_sweeps=300)
    old, duals = no_duals(25, n_siblings), no_duals(40, n_siblings)
    solve(trainer, problem.rows(slice(0, 25)), logistic, tol=1e-3, duals=old)
    before = after = 0
    for width in block_widths(n_siblings):
        duals[after : after + 25 * width] = old[before : before + 25 * width]
        before, after = before + 25 * width, after + 40 * width
    found = solve(trainer, problem, logistic, tol=1e-7, max_sweeps=300, duals=duals)
    np.testing.assert_allclose(found.weights, scratch.weights, atol=3e-3 * np.abs(scratch.weights).max())


@losses
def test_siblings_learned_together_are_those_learned_alone(trainer, logistic):
    problem = planted(np.random.default_rng(6), n_siblings=10)
    together = solve(trainer, problem, logistic, tol=1e-7, max_sweeps=300)
    for sibling in (0, 9):
        one = slice(sibling, sibling + 1)
        alone = Problem(problem.X, problem.wanted[:, one], problem.costs[:, one])
        found = solve(trainer, alone, logistic, tol=1e-7, max_sweeps=300)
        np.testing.assert_allclose(found.weights, together.weights[:, one], atol=3e-3 * np.abs(found.weights).max())


@losses
@pytest.mark.parametrize("n_siblings", [1, 7, 64, 65, 100, 256])
def test_every_sibling_has_its_own_weights_whatever_their_number(trainer, logistic, n_siblings):
    problem = planted(np.random.default_rng(7), n_rows=12, n_siblings=n_siblings)
    found = solve(trainer, problem, logistic, max_sweeps=3)
    expected = solve(train_siblings, problem, logistic, max_sweeps=3)
    assert found.weights.shape == (25, n_siblings)
    np.testing.assert_allclose(found.weights, expected.weights, atol=1e-4 * np.abs(expected.weights).max())
    np.testing.assert_allclose(found.intercepts, expected.intercepts, atol=1e-4)
    np.testing.assert_allclose(found.duals, expected.duals, atol=1e-4)


@given(st.integers(0, 10**6), st.integers(1, 20), st.integers(1, 12), st.booleans(), st.integers(1, 4))
def test_the_kernel_and_its_twin_take_the_same_steps(seed, n_rows, n_siblings, logistic, sweeps):
    if not native.is_native():
        pytest.skip("the native kernels are not built here")
    rng = np.random.default_rng(seed)
    problem = planted(rng, n_rows + 1, 12, n_siblings, cost=float(rng.choice([0.1, 1, 10])), dear=True)
    results = [
        solve(form, problem, logistic, tol=1e-9, max_sweeps=sweeps, seed=seed)
        for form in (native.kernels.train_siblings, train_siblings)
    ]
    scale = np.abs(results[1].weights).max() + 1e-3
    np.testing.assert_allclose(results[0].weights, results[1].weights, atol=1e-3 * scale)
    np.testing.assert_allclose(results[0].gap, results[1].gap, atol=1e-3)


def test_the_same_seed_gives_the_same_bytes_and_another_does_not(trainer):
    problem = planted(np.random.default_rng(8))
    one, same, other = (call(trainer, problem, False, max_sweeps=3, seed=seed) for seed in (7, 7, 2**64 - 1))
    assert one[3].tobytes() == same[3].tobytes()
    assert one[3].tobytes() != other[3].tobytes()


def test_weights_up_to_the_threshold_are_dropped(trainer):
    problem = planted(np.random.default_rng(9), n_siblings=70)
    whole = solve(trainer, problem, False, max_sweeps=5).weights
    threshold = np.float32(np.median(np.abs(whole)))
    pruned = solve(trainer, problem, False, max_sweeps=5, threshold=threshold).weights
    np.testing.assert_array_equal(pruned, np.where(np.abs(whole) > threshold, whole, 0))


@pytest.mark.parametrize("top", [1, 4, 24, 25, 1000])
def test_the_largest_weights_of_each_sibling_are_kept(trainer, top):
    problem = planted(np.random.default_rng(10), n_siblings=70)
    whole = solve(trainer, problem, False, max_sweeps=5).weights
    pruned = solve(trainer, problem, False, max_sweeps=5, top=top).weights
    expected = np.zeros_like(whole)
    best = np.argsort(-np.abs(whole), axis=0, kind="stable")[:top]
    np.put_along_axis(expected, best, np.take_along_axis(whole, best, axis=0), axis=0)
    np.testing.assert_array_equal(pruned, expected)
    both = solve(trainer, problem, False, max_sweeps=5, top=top, threshold=0.3).weights
    np.testing.assert_array_equal(both, np.where(np.abs(expected) > np.float32(0.3), expected, 0))


def test_what_is_kept_comes_feature_by_feature_and_sibling_by_sibling(trainer):
    problem = planted(np.random.default_rng(11), n_siblings=70)
    features, pointers, siblings, weights = call(trainer, problem, False, max_sweeps=3, threshold=0.2)[:4]
    assert (np.diff(features) > 0).all()
    assert (np.diff(pointers) > 0).all()
    assert pointers[0] == 0
    assert pointers[-1] == len(siblings) == len(weights)
    owners = np.repeat(features, np.diff(pointers)).astype(np.int64) * 256 + siblings
    assert (np.diff(owners) > 0).all()
    assert [array.dtype for array in (features, pointers, siblings, weights)] == [
        np.int32,
        np.int64,
        np.uint8,
        np.float32,
    ]


def test_siblings_of_other_blocks_are_not_learned(trainer):
    problem = planted(np.random.default_rng(12), n_siblings=12)
    positives = sparse.csr_array(problem.wanted)
    part = Problem(problem.X, problem.wanted[:, 4:8], problem.costs[:, 4:8])
    found = trainer(
        *(problem.X.indptr.astype(np.int64), problem.X.indices.astype(np.int32), problem.X.data, 25, np.arange(40)),
        *(positives.indptr.astype(np.int64), positives.indices.astype(np.int32) - np.int32(4)),
        *(np.ones(positives.nnz, np.float32), 1.0, 4, 1.0, False, 1e-6, 5, 0, 0.0, 0, None),
    )
    expected = solve(trainer, part, False, max_sweeps=5).weights
    np.testing.assert_array_equal(dense_weights(found, 25, 4), expected)


def test_only_the_rows_asked_for_are_learned_from(trainer):
    problem = planted(np.random.default_rng(13))
    chosen = np.array([3, 8, 9, 21, 30, 38])
    part = problem.rows(chosen)
    spread = Problem(problem.X, part.wanted, part.costs)
    found = dense_weights(call(trainer, spread, False, max_sweeps=5, rows=chosen), 25, 5)
    np.testing.assert_array_equal(found, solve(trainer, part, False, max_sweeps=5).weights)


@losses
def test_no_rows_no_siblings_and_rows_without_features_are_learned_from(trainer, logistic):
    nothing = Problem(sparse.csr_array((0, 25), dtype=np.float32), np.zeros((0, 3), bool), np.zeros((0, 3)))
    nobody, empty = np.zeros(0, np.int32), np.zeros(0, np.float32)
    arrays = (np.zeros(1, np.int64), nobody, empty, 25, np.zeros(0, np.int64), np.zeros(1, np.int64), nobody, empty)
    for n_siblings in (0, 3):
        found = trainer(*arrays, 1.0, n_siblings, 1.0, logistic, 0.01, 5, 0, 0.0, 0, None)
        assert [len(each) for each in found[:5]] == [0, 1, 0, 0, n_siblings]
        assert not found[4].any()
        assert found[5] == 0
    blank = nothing._replace(X=sparse.csr_array((4, 25), dtype=np.float32), wanted=np.array([[1], [0], [0], [0]]) > 0)
    found = solve(trainer, blank._replace(costs=np.ones((4, 1), np.float32)), logistic, tol=1e-6)
    assert not found.weights.any()
    assert found.intercepts[0] < 0
