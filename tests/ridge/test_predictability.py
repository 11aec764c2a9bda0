"""The predictability of labels, compared with models refitted without each row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from longtail import Ridge
from longtail.errors import InvalidInput
from longtail.ridge import label_predictability, predictability


def refitted(X: Any, Y: Any, alpha: float, fit_intercept: bool) -> Any:
    rows = np.arange(len(X))
    predicted = np.vstack(
        [
            Ridge(alpha, fit_intercept=fit_intercept).fit(X[rows != row], Y[rows != row]).decision_function(X[[row]])
            for row in rows
        ]
    )
    return 1 - ((Y - predicted) ** 2).sum(axis=0) / ((Y - Y.mean(axis=0)) ** 2).sum(axis=0)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("n_features", [4, 60])
def test_scores_are_those_of_models_trained_without_each_row(
    rng: np.random.Generator, n_features: int, fit_intercept: bool
) -> None:
    X = rng.normal(size=(25, n_features)) + 0.5
    Y = (X[:, :4] @ rng.normal(size=(4, 6)) + rng.normal(size=(25, 6)) > 0).astype(int)
    Y[0], Y[1] = 1, 0
    expected = refitted(X, Y, 2.0, fit_intercept)
    np.testing.assert_allclose(label_predictability(X, Y, alpha=2.0, fit_intercept=fit_intercept), expected, atol=1e-4)
    sparse_X = label_predictability(sparse.csr_array(X), sparse.csc_array(Y), alpha=2.0, fit_intercept=fit_intercept)
    np.testing.assert_allclose(sparse_X, expected, atol=1e-4)


def test_an_ill_conditioned_problem_is_solved_all_the_same(rng: np.random.Generator) -> None:
    X = np.repeat(rng.normal(size=(30, 3)), 2, axis=1).astype(np.float32)
    Y = (X[:, [0, 2]] > 0).astype(int)
    scores = label_predictability(X, Y, alpha=1e-9)
    half = label_predictability(X[:, ::2], Y, alpha=1e-9)
    np.testing.assert_allclose(scores, half, atol=1e-3)
    assert (scores > 0.3).all()


def test_labels_that_no_row_or_every_row_has_get_0(rng: np.random.Generator) -> None:
    X = rng.normal(size=(12, 3))
    Y = np.zeros((12, 3), dtype=int)
    Y[:, 1] = 1
    Y[:, 2] = X[:, 0] > 0
    scores = label_predictability(X, Y)
    assert scores[:2].tolist() == [0, 0]
    assert scores[2] > 0.2
    assert label_predictability(X, Y[:, :2]).tolist() == [0, 0]
    assert label_predictability(X[:1], Y[:1]).tolist() == [0, 0, 0]


def test_labels_with_the_same_rows_get_the_same_and_blocks_make_no_difference(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = rng.normal(size=(40, 5))
    Y = (X @ rng.normal(size=(5, 50)) > 1).astype(int)
    scores = label_predictability(X, np.hstack([Y, Y]))
    np.testing.assert_array_equal(scores[:50], scores[50:])
    monkeypatch.setattr(predictability, "split", lambda n, size: [slice(i, min(i + 7, n)) for i in range(0, n, 7)])
    np.testing.assert_allclose(label_predictability(X, np.hstack([Y, Y])), scores, atol=1e-5)


def test_a_sample_is_a_seeded_choice_of_rows(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    X = rng.normal(size=(200, 3))
    Y = (X > 0).astype(int)
    first, again, other = (label_predictability(X, Y, sample=50, random_state=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert first.tolist() != other.tolist()
    np.testing.assert_array_equal(label_predictability(X, Y, sample=500), label_predictability(X, Y))
    monkeypatch.setattr(predictability, "_ENTRIES", 150.0)
    np.testing.assert_array_equal(label_predictability(X, Y), first)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"alpha": 0}, "alpha is 0; expected a number above 0 or None"),
        ({"sample": 1}, "sample is 1; expected a whole number at least 2 or None"),
        ({"random_state": -1}, "random_state is -1; expected"),
    ],
)
def test_bad_settings_are_named(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        label_predictability(np.eye(3), np.eye(3), **given)


def test_rows_must_agree() -> None:
    with pytest.raises(InvalidInput, match="inconsistent numbers of samples"):
        label_predictability(np.eye(3), np.eye(4))
