"""Every learner keeps the contract, and the checks find each fault."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge as ForeignRidge

from longtail import AggregatedClassifier, LabelSubsetClassifier, LabelTree, OneVsRest, Ridge, RidgeCV
from longtail.errors import InvalidInput
from longtail.estimator import Revision, check_estimator, register
from longtail.estimator.checks import CHECKS, planted
from tests.estimator.centroids import Centroids

LEARNERS = {
    "tree": LabelTree(leaf_size=3, branching=2),
    "tree with negatives of the beam": LabelTree(
        leaf_size=2, loss="logistic", negatives="beam", weighting="loss", precision=32
    ),
    "forest": LabelTree(leaf_size=4, branching=3, n_trees=2, negatives="beam"),
    "weighted forest": LabelTree(leaf_size=4, n_trees=3, prune=4, weighting="score"),
    "one-vs-rest": OneVsRest(),
    "logistic one-vs-rest": OneVsRest(loss="logistic", prune=5, weighting="score", precision=32),
    "ridge": Ridge(),
    "ridge with intercepts": Ridge(fit_intercept=True),
    "sparse ridge": Ridge(density=0.6, fit_intercept=True),
    "conjugate gradients": Ridge(solver="cg", tol=1e-6, weighting="target"),
    "updatable ridge": Ridge(updatable=True),
    "ridge with its alpha chosen": RidgeCV(),
    "dual ridge with its alpha chosen": RidgeCV(solver="dual", fit_intercept=True, weighting="target"),
    "subset": LabelSubsetClassifier(n_labels=4),
    "subset without outliers": LabelSubsetClassifier(n_labels=5, outliers=0, decoder="l1"),
    "subset of a tree": LabelSubsetClassifier(LabelTree(leaf_size=4), outliers=0, criterion="frequency"),
    "subset with a tree of outliers": LabelSubsetClassifier(
        n_labels=4, outliers=3, outlier_estimator=LabelTree(leaf_size=2), criterion="frequency"
    ),
}
SMALL = {"width": 8, "epochs": 2, "batch_size": 16, "head_width": 4, "n_jobs": 1}


def fit(estimator, X, Y):
    """Fit an estimator; a subset has no more labels than `Y`."""
    n_labels = estimator.get_params().get("n_labels")
    width = Y.shape[1] if hasattr(Y, "shape") else max(map(len, Y))
    if isinstance(n_labels, int) and n_labels > width:
        estimator.set_params(n_labels=width)
    return estimator.fit(X, Y)


@pytest.mark.parametrize("name", LEARNERS)
def test_every_linear_learner_keeps_the_contract(name):
    check_estimator(LEARNERS[name], fit=fit)


@pytest.mark.parametrize("name", LEARNERS)
def test_linear_learners_do_not_depend_on_the_number_of_threads(name, rng):
    X, Y = planted(rng)
    one, many = (clone(LEARNERS[name]).set_params(n_jobs=n_jobs).fit(X, Y).predict_topk(X) for n_jobs in (1, 3))
    for first, second in zip(one, many, strict=True):
        np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("name", LEARNERS)
def test_labels_other_than_zero_and_one_are_refused(name, rng):
    X, Y = planted(rng)
    with pytest.raises(InvalidInput, match="only 0 and 1"):
        clone(LEARNERS[name]).fit(X, 2 * Y)


@pytest.mark.parametrize("name", LEARNERS)
def test_every_label_is_ranked_but_trees_leave_out_labels_without_rows(name, rng):
    X, Y = planted(rng)
    labels, _ = clone(LEARNERS[name]).fit(X, Y).predict_topk(X, k=15)
    trees = isinstance(LEARNERS[name], LabelTree | OneVsRest)
    given = 11 if trees else 12
    assert (labels[:, :given] >= 0).all()
    assert (labels[:, given:] == -1).all()
    assert trees != (labels == 11).any()


@pytest.mark.parametrize("head", ["cascade", "one-hot", "product", "sampling", "bottleneck"])
def test_every_network_keeps_the_contract(head):  # but for dft, which one label is too few for
    neural = pytest.importorskip("longtail.neural")
    check_estimator(neural.MultiHeadClassifier(head, **SMALL))


def test_an_ensemble_of_networks_keeps_the_contract():
    neural = pytest.importorskip("longtail.neural")
    check_estimator(neural.MultiHeadClassifier(n_networks=2, **SMALL))


def fit_single_groups(estimator, X, Y):
    return estimator.fit(X, np.eye(np.shape(X)[0]), Y)


def test_learners_of_groups_keep_the_contract():
    neural = pytest.importorskip("longtail.neural")
    for learner in (AggregatedClassifier(Ridge()), neural.DeepMIML(epochs=2, hidden=8, n_jobs=1)):
        check_estimator(learner, fit=fit_single_groups, rows=False)


@register
class KeepsNothingOpen(Centroids):
    """A learner with a choice of faults, each of which breaks one promise."""

    fault = ""

    def fit(self, X, Y, sample_weight=None):
        if self.fault == "forgets parameters":
            self._check_parameters = lambda: None
        if self.fault == "ignores weights":
            sample_weight = None
        fitted = super().fit(X, Y, sample_weight)
        if self.fault == "changes its data":
            X.data[:] = 0
        return fitted

    def _fit(self, X, Y, weights):
        super()._fit(X, Y, weights)
        if self.fault == "differs from fit to fit":
            self.centroids_ = self.centroids_ + np.random.default_rng().random(self.centroids_.shape, dtype=np.float32)

    def _scores(self, X):
        scores = super()._scores(X)
        return scores * np.nan if self.fault == "scores are no numbers" else scores

    def _topk(self, X, k, mask):
        labels, scores = super()._topk(X, k, None if self.fault == "gives what is denied" else mask)
        if self.fault == "worst first":
            return labels[:, ::-1], scores[:, ::-1]
        if self.fault == "the same label twice":
            labels[:, -1] = labels[:, 0]
            scores[:, -1] -= 1
        if self.fault == "ties to the highest label":
            scores[:] = 0
            labels = np.sort(labels, axis=1)[:, ::-1]
        return labels, scores

    def to_state(self):
        state = super().to_state()
        if self.fault == "loses weights":
            state.arrays["centroids"][:] = 0
        return state

    @property
    def explains(self):
        return self.fault == "promises to explain"


FAULTS = {
    "forgets parameters": "bad parameters",
    "changes its data": "",
    "differs from fit to fit": "same model",
    "scores are no numbers": "",
    "gives what is denied": "only allowed labels",
    "worst first": "order",
    "the same label twice": "twice",
    "ties to the highest label": "ties",
    "loses weights": "saved model",
    "promises to explain": "explanations add up",
    "ignores weights": "weights count rows",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_the_checks_find_every_fault(fault, monkeypatch):
    check_estimator(KeepsNothingOpen())
    monkeypatch.setattr(KeepsNothingOpen, "fault", fault)
    with pytest.raises(AssertionError, match=f"KeepsNothingOpen breaks the contract: .*{FAULTS[fault]}"):
        check_estimator(KeepsNothingOpen())


def test_a_learner_of_another_library_is_named():
    with pytest.raises(AssertionError, match="Ridge does not derive from"):
        check_estimator(ForeignRidge())


def test_a_learner_fitted_to_classes_refuses_updates():
    X = np.eye(3, dtype=np.float32)
    Y = [[1, 0], [0, 1], [1, 0]]
    revision = Revision.of(X, Y, X[:2], Y[:2], kept=[0, 1], labels=[0, 1])
    with pytest.raises(InvalidInput, match="one class for each row") as caught:
        OneVsRest().fit(X, [4, 5, 4]).updated(revision)
    assert caught.value.code == "cannot_update"


def test_checks_are_named_after_what_they_check():
    names = [check.__name__ for check in CHECKS]
    assert len(set(names)) == len(names) == 25
