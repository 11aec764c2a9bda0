"""Linearised ADMM in products of labels: the facts of its iterates, and that it arrives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtail.subset import admm, label_affinity, sparse_decoder

problems = {
    "seed": st.integers(0, 2**32 - 1),
    "n_labels": st.integers(2, 12),
    "density": st.floats(0.1, 0.6),
    "alpha": st.sampled_from([0.5, 2.0, 10.0]),
}


def _program(seed, n_labels, density, alpha):
    Y = (np.random.default_rng(seed).random((20, n_labels)) < density).astype(np.float64)
    Y[0] = 1
    gram = Y.T @ Y
    allowed = ~np.eye(n_labels, dtype=bool)
    return Y, admm.Program(gram, gram, gram.diagonal(), allowed, alpha, admm.row_sums(gram))


def _written_out(Y, vectors):
    return vectors.y * Y - Y @ vectors.a


@given(**problems, growth=st.sampled_from([1.0, 1.01, 1.1]))
def test_multipliers_stay_within_alpha_and_residuals_within_twice_alpha_over_the_penalty(growth, **problem):
    Y, program = _program(**problem)
    at = admm.start(program)
    for _ in range(40):
        penalty = at.penalty
        at = admm.step(program, at, growth)
        multiplier = np.linalg.norm(_written_out(Y, at.multiplier), axis=0)
        assert (multiplier <= program.alpha * (1 + 1e-7)).all()
        residual = Y - Y @ at.z - _written_out(Y, at.left)
        assert (np.linalg.norm(residual, axis=0) <= 2 * program.alpha / penalty + 1e-6).all()


@given(**problems)
def test_a_step_in_products_is_the_step_written_out_in_rows(**problem):
    Y, program = _program(**problem)
    at = admm.start(program)
    z, left, multiplier = np.zeros_like(program.targets), Y.copy(), np.zeros_like(Y)
    for _ in range(20):
        penalty = at.penalty
        at = admm.step(program, at)
        moved = z - Y.T @ (Y @ z + left - Y - multiplier / penalty) / program.curvature
        z = np.sign(moved) * np.maximum(np.abs(moved) - 1 / (penalty * program.curvature), 0)
        np.fill_diagonal(z, 0)
        whole = Y - Y @ z + multiplier / penalty
        left = whole * np.maximum(1 - program.alpha / penalty / np.maximum(np.linalg.norm(whole, axis=0), 1e-300), 0)
        multiplier = multiplier + penalty * (Y - Y @ z - left)
    np.testing.assert_allclose(at.z, z, atol=1e-6)
    np.testing.assert_allclose(_written_out(Y, at.left), left, atol=1e-5)
    np.testing.assert_allclose(_written_out(Y, at.multiplier), multiplier, atol=1e-5 * program.alpha)


@given(**problems, iterations=st.integers(1, 200))
def test_the_lower_bound_never_passes_the_objective_and_more_iterations_never_lose(iterations, **problem):
    _, program = _program(**problem)
    _, _, objectives, bounds, _ = admm.solve(program, 1e-9, iterations)
    _, _, later, later_bounds, _ = admm.solve(program, 1e-9, 10 * iterations)
    assert (bounds <= later * (1 + 1e-9)).all()
    # The longer run looks at other iterations, and stops at the first that is good enough.
    assert (later <= objectives * (1 + 1e-9)).all()
    assert (later_bounds >= bounds - 1e-9 * later).all()


@given(seed=st.integers(0, 2**32 - 1), n_labels=st.integers(1, 30), density=st.floats(0.02, 0.8))
def test_the_row_sums_exceed_the_products_by_a_matrix_without_negative_eigenvalues(seed, n_labels, density):
    Y = (np.random.default_rng(seed).random((30, n_labels)) < density).astype(np.float64)
    gram = Y.T @ Y
    curvature = admm.row_sums(gram)
    assert curvature.min() > 0
    assert np.linalg.eigvalsh(np.diag(curvature[:, 0]) - gram)[0] >= -1e-9 * curvature.max()


@pytest.mark.parametrize("alpha", [0.5, 2.0, 10.0])
def test_admm_and_descent_reach_the_same_optimum(rng, alpha):
    Y = rng.random((60, 15)) < 0.25
    one = label_affinity(Y, alpha=alpha, solver="admm", tolerance=1e-5)
    other = label_affinity(Y, alpha=alpha, solver="descent", tolerance=1e-5)
    assert one.gap <= 1e-5
    assert one.objective == pytest.approx(other.objective, rel=2e-5)
    np.testing.assert_allclose(one.outlier_norms, other.outlier_norms, rtol=0.02, atol=0.01)


def test_admm_leaves_labels_without_positives_alone(rng):
    Y = rng.random((40, 8)) < 0.3
    Y[:, 3] = False
    decoder = sparse_decoder(Y, [3, 5], solver="admm")
    assert decoder.gap <= 1e-4
    assert decoder.coefficients[:, [3]].nnz == 0
    assert decoder.coefficients[[0]].nnz == 0
