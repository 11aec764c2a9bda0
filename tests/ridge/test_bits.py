"""The bits of a ridge model do not depend on the number of threads; factors by tiles are Cholesky factors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from longtail import Ridge, RidgeCV, in_pieces
from longtail.errors import InvalidInput
from longtail.estimator.checks import planted
from longtail.ridge import cholesky
from longtail.ridge.cholesky import factor_in_place

LEARNERS = [
    Ridge(0.5, solver="primal"),
    Ridge(0.5, solver="primal", fit_intercept=True, prune=20),
    Ridge(0.5, solver="dual", fit_intercept=True, density=0.3),
    Ridge(0.5, solver="primal", updatable=True),
    Ridge(0.5, solver="primal", weighting="loss"),
    Ridge(0.5, solver="cg", fit_intercept=True, prune=0.01),
    RidgeCV(solver="primal", prune=20),
    RidgeCV(np.geomspace(0.1, 100, 60), solver="dual", fit_intercept=True, density=0.3),
]


@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.integers(1, 50), st.sampled_from(["float32", "float64"]))
def test_a_factor_by_tiles_is_a_cholesky_factor(seed: int, size: int, tile: int, dtype: str) -> None:
    rows = np.random.default_rng(seed).normal(size=(size + 5, size))
    matrix = (rows.T @ rows + np.eye(size)).astype(dtype)
    factor = np.triu(matrix)  # what is below the diagonal does not count
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cholesky, "_TILE", tile)
        assert factor_in_place(factor, 2)
    upper = np.triu(factor).astype(np.float64)
    np.testing.assert_allclose(upper.T @ upper, matrix, rtol=0, atol=100 * np.finfo(dtype).eps * np.abs(matrix).max())


@pytest.mark.parametrize("place", [0, 3, 9])
def test_a_matrix_that_is_not_positive_definite_has_no_factor(place: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cholesky, "_TILE", 4)
    matrix = np.eye(10)
    matrix[place, place] = -1
    assert not factor_in_place(matrix, 2)


@pytest.mark.parametrize("learner", LEARNERS, ids=repr)
def test_any_number_of_threads_gives_the_same_bits(
    rng: np.random.Generator, learner: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("longtail.ridge.cost._SMALL", 0)  # factor in float32, where BLAS is most sensitive
    monkeypatch.setattr(cholesky, "_TILE", 64)
    X, Y = planted(rng, 300, 260, 150)
    one, *others = (clone(learner).set_params(n_jobs=n_jobs).fit(X, Y) for n_jobs in (1, 2, 3))
    for other in others:
        for name in ("data", "indices", "indptr") if learner.prune or learner.density else ("data",):
            np.testing.assert_array_equal(getattr(one.coef_, name), getattr(other.coef_, name))
        np.testing.assert_array_equal(one.intercept_, other.intercept_)
        np.testing.assert_array_equal(getattr(one, "cv_scores_", 0), getattr(other, "cv_scores_", 0))


@pytest.mark.parametrize("learner", [Ridge(density=0.5), Ridge(updatable=True), RidgeCV(density=0.5)], ids=repr)
def test_what_needs_all_weights_or_sums_at_once_is_refused_in_pieces(
    rng: np.random.Generator, learner: Any, tmp_path: Any
) -> None:
    assert not learner.trains_in_pieces
    with (
        pytest.raises(InvalidInput, match="use prune instead of density") as caught,
        in_pieces(tmp_path / "unfinished"),
    ):
        learner.fit(*planted(rng))
    assert caught.value.code == "not_in_pieces"
