"""Ridge on real data sets: deterministic, so the figures are facts."""

from __future__ import annotations

import numpy as np
import pytest

from longtail import Ridge, RidgeCV
from longtail.data import read_corpus
from longtail.metrics import evaluate, inverse_propensity
from longtail.text import RowScaling


@pytest.fixture
def corpora(benchmark_data):
    def read(name):
        folder = benchmark_data(name)
        return read_corpus(folder / "train.txt.gz"), read_corpus(folder / "test.txt.gz")

    return read


def measure(model, train, test, scaling=None):
    """P and PSP at 1, 3 and 5 in percent, after `model` was fitted on the training part alone."""
    X, X_test = train.features, test.features
    if scaling is not None:
        X, X_test = scaling.fit_transform(X), scaling.transform(X_test)
    top, _ = model.fit(X, train.labels).predict_topk(X_test, k=5)
    weights = inverse_propensity(train.label_counts, train.n_rows)
    report = evaluate(test.labels, top, inverse_propensity=weights)
    return [[100 * report.metrics[name][k] for k in (1, 3, 5)] for name in ("P", "PSP")]


@pytest.mark.parametrize(
    ("model", "precision", "propensity_scored"),
    [
        (Ridge(92), (63.10, 39.76, 29.15), (48.28, 53.28, 58.97)),
        (Ridge(93, weighting="target"), (65.92, 41.06, 29.73), (52.40, 56.28, 61.05)),
    ],
)
@pytest.mark.parametrize("solver", ["primal", "dual"])
def test_bibtex_has_the_known_figures(corpora, model, solver, precision, propensity_scored):
    found = measure(model.set_params(solver=solver), *corpora("bibtex"))
    np.testing.assert_allclose(found, [precision, propensity_scored], atol=0.05)


def test_delicious_with_an_intercept_reaches_its_bar(corpora):
    precision, _ = measure(RidgeCV(fit_intercept=True), *corpora("delicious"), RowScaling())
    assert (np.array(precision) >= (66.2, 60.3, 55.6)).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scaling", "bar"), [(RowScaling(), (80.8, 67.3, 56.3)), (RowScaling(log=True), (82.2, 68.4, 56.9))]
)
def test_eurlex_with_alpha_chosen_on_its_training_part_reaches_its_bar(corpora, scaling, bar):
    precision, _ = measure(RidgeCV(), *corpora("eurlex-4k"), scaling)
    assert (np.array(precision) >= bar).all()


def test_the_tolerance_of_conjugate_gradients_hardly_moves_the_ranking(corpora):
    train, test = corpora("bibtex")
    exact = measure(Ridge(92, solver="primal"), train, test)
    found = measure(Ridge(92, solver="cg"), train, test)
    np.testing.assert_allclose(found, exact, atol=0.1)
