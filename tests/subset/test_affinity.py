"""How much labels explain one another: optimality, certificates, closed forms and odd input."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import minimize

from longtail import progress
from longtail.data import load_data_set
from longtail.errors import InvalidInput, NotEnoughMemory
from longtail.subset import label_affinity, sparse_decoder

labels_01 = st.builds(
    lambda seed, rows, labels, density: np.random.default_rng(seed).random((rows, labels)) < density,
    st.integers(0, 2**32 - 1),
    st.integers(1, 25),
    st.integers(1, 12),
    st.floats(0.05, 0.6),
)
alphas = st.sampled_from([0.2, 0.5, 1.0, 3.0, 10.0])


def _objective(Y, Z, alpha):
    return np.abs(Z).sum() + alpha * np.linalg.norm(Y - Y @ Z, axis=0).sum()


@given(Y=labels_01, alpha=alphas)
def test_the_objective_is_that_of_the_coefficients_and_the_gap_within_tolerance(Y, alpha):
    affinity = label_affinity(Y, alpha=alpha)
    Z = affinity.coefficients.toarray()
    np.testing.assert_allclose(affinity.outlier_norms, np.linalg.norm(Y - Y @ Z, axis=0), atol=1e-6)
    assert affinity.objective == pytest.approx(_objective(Y, Z, alpha), rel=1e-6)
    assert 0 <= affinity.gap <= 1e-4
    np.testing.assert_array_equal(affinity.weights.toarray(), np.abs(Z).T)
    assert not Z.diagonal().any()


@given(Y=labels_01, alpha=alphas, seed=st.integers(0, 1000))
def test_no_combination_of_labels_beats_the_bound(Y, alpha, seed):
    affinity = label_affinity(Y, alpha=alpha)
    rng = np.random.default_rng(seed)
    near = affinity.coefficients.toarray()
    for scale in (0.01, 0.1, 1.0):
        Z = near + scale * rng.normal(size=near.shape) * (rng.random(near.shape) < 0.3)
        np.fill_diagonal(Z, 0)
        assert _objective(Y, Z, alpha) >= affinity.bound * (1 - 1e-9)


@settings(max_examples=10)
@given(Y=labels_01, alpha=st.sampled_from([0.5, 1.0, 2.0]))
def test_a_quasi_newton_method_finds_nothing_better(Y, alpha):
    affinity = label_affinity(Y, alpha=alpha, tolerance=1e-6)
    reached = 0.0
    for label in range(Y.shape[1]):
        y, A = Y[:, label].astype(float), np.delete(Y, label, axis=1).astype(float)
        size = A.shape[1]

        def cost(parts, y=y, A=A, size=size):
            left = y - A @ (parts[:size] - parts[size:])
            norm = np.sqrt(left @ left + 1e-14)
            slope = -alpha * (A.T @ left) / norm
            return parts.sum() + alpha * norm, np.concatenate([1 + slope, 1 - slope])

        if size == 0 or not y.any():
            reached += alpha * np.linalg.norm(y)
            continue
        found = minimize(cost, np.full(2 * size, 0.01), jac=True, bounds=[(0, None)] * 2 * size, method="L-BFGS-B")
        reached += found.fun
    assert affinity.bound <= reached + 1e-6
    assert affinity.objective <= reached * (1 + 2e-6) + 1e-5


@pytest.mark.parametrize("alpha", [0.5, 2.0, 10.0])
def test_coefficients_satisfy_the_conditions_of_an_optimum(rng, alpha):
    Y = (rng.random((80, 12)) < 0.2).astype(float)
    affinity = label_affinity(Y, alpha=alpha, tolerance=1e-6)
    Z = affinity.coefficients.toarray()
    left = Y - Y @ Z
    norms = np.linalg.norm(left, axis=0)
    assert norms.min() > 0.01
    pull = alpha * Y.T @ (left / norms)
    pull[np.eye(len(Z), dtype=bool)] = 0
    assert np.abs(pull).max() <= 1 + 5e-3
    used = np.abs(Z) > 1e-3
    np.testing.assert_allclose(pull[used], np.sign(Z[used]), atol=5e-3)


@given(Y=labels_01, alpha=st.floats(0.05, 3.0))
def test_a_label_is_left_alone_exactly_where_alpha_is_below_its_closed_form(Y, alpha):
    affinity = label_affinity(Y, alpha=alpha)
    shared = Y.T.astype(float) @ Y
    norms = np.sqrt(shared.diagonal())
    np.fill_diagonal(shared, 0)
    strength = alpha * shared.max(axis=0, initial=0) / np.maximum(norms, 1)
    counts = np.diff(sparse.csc_array(affinity.coefficients).indptr)
    assert not counts[strength <= 1].any()
    np.testing.assert_allclose(affinity.outlier_norms[strength <= 1], norms[strength <= 1])
    assert counts[strength > 1.05].all()


@given(Y=labels_01, alpha=st.floats(1.0, 20.0), data=st.data(), solver=st.sampled_from(["descent", "admm"]))
def test_labels_of_the_subset_are_reproduced_exactly(Y, alpha, data, solver):
    subset = data.draw(st.permutations(range(Y.shape[1])))[: data.draw(st.integers(1, Y.shape[1]))]
    decoder = sparse_decoder(Y, subset, alpha=alpha, solver=solver, max_iterations=200)
    filled = Y[:, subset].any(axis=0)
    own = decoder.coefficients.toarray()[:, subset]
    np.testing.assert_array_equal(own, np.diag(filled.astype(float)))
    assert not decoder.outlier_norms[subset].any()


@given(Y=labels_01, alpha=alphas)
def test_a_decoder_keeps_its_certificate(Y, alpha):
    subset = list(range(0, Y.shape[1], 2))
    decoder = sparse_decoder(Y, subset, alpha=alpha)
    Z = decoder.coefficients.toarray()
    assert Z.shape == (len(subset), Y.shape[1])
    left = np.linalg.norm(Y - Y[:, subset] @ Z, axis=0)
    np.testing.assert_allclose(decoder.outlier_norms, left, atol=1e-6)
    assert decoder.objective == pytest.approx(np.abs(Z).sum() + alpha * left.sum(), rel=1e-6)
    assert 0 <= decoder.gap <= 1e-4


def test_a_label_that_is_another_without_a_third_is_found_though_it_never_meets_the_third():
    whole = np.repeat([1, 0], [20, 10])
    part = np.repeat([1, 0], [8, 22])
    affinity = label_affinity(np.stack([whole - part, whole, part], axis=1), alpha=10)
    np.testing.assert_allclose(affinity.coefficients.toarray()[:, 0], [0, 1, -1], atol=1e-3)
    assert affinity.outlier_norms[0] < 1e-3


@pytest.mark.parametrize("solver", ["descent", "admm"])
def test_duplicate_labels_stand_for_one_another_and_the_lowest_for_the_rest(rng, solver):
    y, other = rng.random((2, 40)) < 0.3
    Y = np.stack([other, y, y, y], axis=1)
    affinity = label_affinity(Y, solver=solver, max_iterations=500)
    expected = [[0, 1, 0, 0], [0, 1, 0, 0]]
    np.testing.assert_array_equal(affinity.weights.toarray()[2:], expected)
    np.testing.assert_array_equal(affinity.weights.toarray()[1], [0, 0, 1, 0])
    assert not affinity.outlier_norms[1:].any()


@pytest.mark.parametrize("method", ["self-representation", "co-occurrence", "conditional"])
def test_labels_without_positives_or_without_company_have_no_affinity(rng, method):
    Y = np.zeros((30, 6), dtype=int)
    Y[:10, 1] = Y[5:20, 2] = 1
    Y[25:, 4] = 1
    affinity = label_affinity(Y, method)
    weights = affinity.weights.toarray()
    assert np.isfinite(weights).all()
    alone = [0, 3, 4, 5]
    assert not weights[alone].any()
    assert not weights[:, alone].any()
    assert weights[1, 2] > 0
    assert np.isfinite(affinity.outlier_norms).all()


@pytest.mark.parametrize("method", ["self-representation", "co-occurrence", "conditional"])
@pytest.mark.parametrize("shape", [(5, 1), (0, 4), (3, 0)])
def test_a_single_label_no_rows_or_no_labels_give_nothing(method, shape):
    affinity = label_affinity(np.ones(shape), method)
    assert affinity.weights.shape == (shape[1], shape[1])
    assert affinity.weights.nnz == 0
    assert affinity.outlier_norms.shape == (shape[1],)


@given(Y=labels_01)
def test_counted_affinities_are_their_formulas(Y):
    shared = Y.T.astype(float) @ Y
    counts = np.maximum(shared.diagonal(), 1)
    np.fill_diagonal(shared, 0)
    cosine, conditional = label_affinity(Y, "co-occurrence"), label_affinity(Y, "conditional")
    np.testing.assert_allclose(cosine.weights.toarray(), shared / np.sqrt(np.outer(counts, counts)))
    np.testing.assert_allclose(conditional.weights.toarray(), shared / counts[:, None])
    np.testing.assert_array_equal(conditional.coefficients.toarray(), conditional.weights.toarray().T)
    assert np.isnan(cosine.gap)


@pytest.mark.parametrize("solver", ["descent", "admm"])
def test_the_number_of_threads_changes_nothing(rng, solver):
    Y = sparse.csr_array(rng.random((60, 300)) < 0.05)
    one, other = (label_affinity(Y, solver=solver, max_iterations=30, n_jobs=jobs) for jobs in (1, 3))
    np.testing.assert_array_equal(one.coefficients.toarray(), other.coefficients.toarray())
    np.testing.assert_array_equal(one.outlier_norms, other.outlier_norms)
    assert (one.objective, one.bound, one.n_iterations) == (other.objective, other.bound, other.n_iterations)


def test_progress_is_told_in_labels(rng):
    told = []

    @contextmanager
    def listener(description, total):
        amounts = []
        yield amounts.append
        told.append((description, total, sum(amounts)))

    with progress.listening(listener):
        label_affinity(rng.random((40, 70)) < 0.1)
    assert told == [("labels explained by labels", 70, 70)]


@pytest.mark.parametrize("method", ["self-representation", "co-occurrence"])
def test_what_does_not_fit_is_refused_before_it_is_counted(rng, monkeypatch, method):
    monkeypatch.setenv("LONGTAIL_MEMORY", "10K")
    with pytest.raises(NotEnoughMemory, match="counting the rows that labels share"):
        label_affinity(rng.random((100, 200)) < 0.5, method)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "guess"}, "method is 'guess'"),
        ({"alpha": 0}, "alpha is 0"),
        ({"alpha": np.nan}, "alpha is nan"),
        ({"alpha": 1e200}, r"alpha is 1e\+200; expected a number above 0 and at most 1e\+09"),
        ({"tolerance": 0}, "tolerance is 0"),
        ({"max_iterations": 0}, "max_iterations is 0"),
        ({"solver": "simplex"}, "solver is 'simplex'"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(InvalidInput, match=message):
        label_affinity(np.eye(3), **options)


@pytest.mark.parametrize(
    ("subset", "message"),
    [
        ([], "at least one"),
        ([[0]], r"shape \(1, 1\)"),
        ([0.5], "dtype float64"),
        ([0, 0], "more than once"),
        ([3], "label id 3; Y has the labels 0 to 2"),
        ([-1], "label id -1"),
        ([0, 1, 2, 0], "more than once"),
    ],
)
def test_a_bad_subset_is_named(subset, message):
    with pytest.raises(InvalidInput, match=message):
        sparse_decoder(np.eye(3), subset)


@pytest.mark.parametrize("alpha", [5, 10, 20])
def test_bibtex_is_certified(benchmark_data, alpha):
    benchmark_data("bibtex")
    affinity = label_affinity(load_data_set("bibtex", "train").labels, alpha=alpha)
    assert 0 <= affinity.gap <= 1e-4
    assert 0 < affinity.weights.nnz < 159 * 158
