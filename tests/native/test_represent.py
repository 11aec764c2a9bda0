"""Labels as sparse combinations of others: the kernel compared with its twin."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from longtail import native


def _solve(kernels, Y, alpha, tolerance=1e-5, max_sweeps=5000):
    Y = sparse.csr_array(np.asarray(Y, dtype=np.float64))
    gram = sparse.csr_array(Y.T @ Y)
    gram.sort_indices()
    arrays = gram.indptr.astype(np.int64), gram.indices.astype(np.int32), gram.data
    n_labels = gram.shape[0]
    counts, sweeps = np.full((2, n_labels), -1, dtype=np.int64)
    norms, objectives, bounds = np.full((3, n_labels), np.nan)
    labels, coefficients = kernels.represent_labels(
        *(*arrays, *arrays, gram.diagonal(), np.arange(n_labels), alpha, tolerance, max_sweeps),
        *(counts, sweeps, norms, objectives, bounds),
    )
    indptr = np.concatenate([[0], np.cumsum(counts)])
    Z = sparse.csc_array((coefficients, labels, indptr), shape=(n_labels, n_labels)).toarray()
    return Z, norms, objectives, bounds, sweeps


@given(
    seed=st.integers(0, 2**32 - 1),
    n_labels=st.integers(1, 40),
    density=st.floats(0.02, 0.6),
    alpha=st.sampled_from([0.3, 1.0, 10.0]),
)
def test_the_kernel_takes_the_steps_of_its_twin(seed, n_labels, density, alpha):
    if not native.is_native():
        pytest.skip("the native kernels are not built here")
    Y = np.random.default_rng(seed).random((30, n_labels)) < density
    for one, other in zip(_solve(native.kernels, Y, alpha), _solve(native.twins, Y, alpha), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)


def test_what_is_reported_is_so(kernels, rng):
    Y = rng.random((50, 30)) < 0.2
    Z, norms, objectives, bounds, sweeps = _solve(kernels, Y, 3.0)
    left = np.linalg.norm(Y - Y @ Z, axis=0)
    np.testing.assert_allclose(norms, left, atol=1e-7)
    np.testing.assert_allclose(objectives, np.abs(Z).sum(axis=0) + 3 * left, rtol=1e-8)
    assert (bounds <= objectives).all()
    assert (objectives - bounds <= 1e-5 * objectives).all()
    assert not Z.diagonal().any()
    assert sweeps.max() < 5000


def test_sweeps_stop_at_their_limit(kernels, rng):
    Y = rng.random((50, 30)) < 0.4
    _, _, objectives, bounds, sweeps = _solve(kernels, Y, 3.0, max_sweeps=2)
    assert sweeps.max() == 2
    assert (bounds <= objectives).all()
    assert (objectives <= 3 * np.sqrt(Y.sum(axis=0)) + 1e-9).all()
