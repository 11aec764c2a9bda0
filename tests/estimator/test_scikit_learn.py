"""scikit-learn's own checks of an estimator.

Labels here are a 0/1 matrix and anything else is refused, while the checks bring numbers of all kinds as targets; so
they are run on estimators that turn such targets into 0/1 first and are otherwise the real ones.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator

from longtail import LabelSubsetClassifier, LabelTree, OneVsRest, Ridge, RidgeCV


class _BinaryTargets:
    def fit(self, X, y=None):
        return super().fit(X, None if y is None else _binary(y))


def _binary(y):
    y = np.asarray(y)
    return (y > y.min()).astype(int) if y.size and y.dtype.kind in "iuf" and np.isfinite(y).all() else y


class BinaryRidge(_BinaryTargets, Ridge):
    def partial_fit(self, X, y=None):
        return super().partial_fit(X, None if y is None else _binary(y))


class BinaryRidgeCV(_BinaryTargets, RidgeCV):
    pass


class BinaryLabelTree(_BinaryTargets, LabelTree):
    pass


class BinaryLabelSubset(_BinaryTargets, LabelSubsetClassifier):
    pass


class BinaryOneVsRest(_BinaryTargets, OneVsRest):
    pass


# Checks that call partial_fit on a model which was not asked to be updatable, or whose solver keeps no sums: it is
# refused there because the result could not be exact. BinaryRidge(updatable=True) passes them.
_NOT_UPDATABLE = ("check_fit_score_takes_y", "check_n_features_in_after_fitting")


def cases():
    for estimator in (
        BinaryRidge(updatable=True),
        BinaryRidge(fit_intercept=True, weighting="loss"),
        BinaryRidge(solver="cg", density=0.5),
        BinaryRidgeCV(),
        BinaryLabelTree(),
        BinaryLabelTree(loss="logistic", negatives="beam", leaf_size=1, n_trees=2),
        BinaryOneVsRest(),
        BinaryLabelSubset(n_labels=1, outliers="all"),
    ):
        for checked, check in estimator_checks_generator(estimator, legacy=True):
            name = check.func.__name__
            if isinstance(estimator, BinaryRidge) and not estimator.updatable and name in _NOT_UPDATABLE:
                continue
            yield pytest.param(checked, check, id=f"{estimator!r}-{name}")


@pytest.mark.parametrize(("estimator", "check"), list(cases()))
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)
