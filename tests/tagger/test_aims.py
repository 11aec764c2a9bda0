"""`longtail.tagger.aims`."""

from __future__ import annotations

import numpy as np
import pytest

from longtail.errors import InvalidInput
from longtail.tagger import Aim, Rule

CHANCES = np.array([0.9, 0.4, 0.8, 0.3, 0.2, 0.1], dtype=np.float32)
HITS = np.array([True, False, True, True, False, False])
FIRST = np.array([True, False, True, False, True, False])


def given(aim: str, n_true: int = 4) -> list[bool]:
    return Aim.parse(aim).rule(CHANCES, HITS, FIRST, n_true).given(CHANCES, FIRST).tolist()


def test_f1_is_the_best_of_all_cuts() -> None:
    assert given("f1") == [True, True, True, True, False, False]


def test_precision_gives_as_many_labels_as_it_allows() -> None:
    assert given("precision=0.75") == [True, True, True, True, False, False]
    assert given("precision=1") == [True, False, True, False, False, False]


def test_recall_gives_as_few_labels_as_it_needs() -> None:
    assert given("recall=0.5") == [True, False, True, False, False, False]
    assert given("recall=0.75") == [True, True, True, True, False, False]


def test_a_recall_out_of_reach_gives_what_comes_nearest() -> None:
    assert given("recall=0.9") == [True, True, True, True, False, False]  # more would only add wrong ones


def test_an_aim_says_what_it_misses() -> None:
    assert Aim("recall", 0.9).missing(3, 4, 4) == "recall=0.9 is not reached on held-out rows, only 0.75"
    assert Aim("precision", 0.9).missing(3, 4, 9) == "precision=0.9 is not reached on held-out rows, only 0.75"
    assert Aim("precision", 0.75).missing(3, 4, 9) == Aim("f1").missing(0, 1, 1) == ""


def test_count_gives_as_many_labels_as_rows_have() -> None:
    assert sum(given("count")) == 4
    assert sum(given("count", n_true=2)) == 2


def test_the_best_label_is_always_given_where_that_is_better() -> None:
    chances = np.array([0.9, 0.5, 0.1, 0.05], dtype=np.float32)  # the second row's best label is right
    hits, first = np.array([True, False, True, False]), np.array([True, False, True, False])
    rule = Aim("f1").rule(chances, hits, first, 2)
    assert rule.always_one
    assert rule.given(chances, first).tolist() == [True, False, True, False]
    assert not Aim("precision", 0.9).rule(chances, hits, first, 2).always_one


def test_equal_probabilities_are_given_together() -> None:
    chances = np.array([0.5, 0.5, 0.5], dtype=np.float32)
    rule = Aim("count").rule(chances, np.array([True, False, False]), np.ones(3, dtype=bool), 1)
    assert rule.given(chances, np.ones(3, dtype=bool)).all()


def test_nothing_ranked_gives_the_usual_threshold() -> None:
    nothing = np.zeros(0)
    assert Aim("f1").rule(nothing, nothing.astype(bool), nothing.astype(bool), 0) == Rule(0.5)


@pytest.mark.parametrize(
    "text", ["", "fame", "f1=0.5", "precision", "precision=", "recall=0", "recall=1.01", "recall=nan"]
)
def test_other_aims_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="aim is") as refused:
        Aim.parse(text)
    assert refused.value.code == "bad_parameter"


@pytest.mark.parametrize("text", ["f1", "count", "precision=0.8", "recall=0.95"])
def test_an_aim_reads_what_it_writes(text: str) -> None:
    assert str(Aim.parse(text)) == text
