"""The race: who takes part, who wins, and that the clock decides nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from longtail import LabelTree, Ridge
from longtail.choice import Entrant, entrants, folds, run_race
from longtail.choice.cost import seconds_of
from longtail.estimator.checks import planted


@pytest.fixture(scope="module")
def data():
    return planted(np.random.default_rng(0), n_rows=400, n_features=40, n_labels=15)


def entrant(name, estimator, seconds=1.0):
    return Entrant(name, estimator, "words", seconds)


GOOD = entrant("good", LabelTree(C=1.0, leaf_size=5))
BAD = entrant("bad", LabelTree(C=1e-6, leaf_size=5))
OTHER = entrant("other", Ridge())


def run(data, entered, seconds=100.0, seed=0):
    X, Y = data
    return run_race(X, Y, entered, folds(X.shape[0], seed), seconds, seed)


def test_folds_are_disjoint_and_repeatable():
    for n_rows in (2, 9, 500, 5000, 20_000):
        parts = folds(n_rows, seed=3)
        held = np.concatenate([held for held, _ in parts])
        assert len(np.unique(held)) == len(held)
        for own, rest in parts:
            np.testing.assert_array_equal(np.union1d(own, rest), np.arange(n_rows))
            assert not np.intersect1d(own, rest).size
        for (one, _), (other, _) in zip(parts, folds(n_rows, seed=3), strict=True):
            np.testing.assert_array_equal(one, other)


def test_a_single_row_cannot_be_held_out():
    assert folds(1, seed=0) == []


def test_the_better_learner_wins(data):
    found = run(data, [BAD, GOOD])
    assert found.winner is GOOD
    scores = {each.name: each.ndcg for each in found.standings}
    assert scores["good"] > scores["bad"]


def test_the_winner_is_trained_on_the_rows_that_are_not_held_out(data):
    found = run(data, [BAD, GOOD, OTHER])
    X, Y = data
    [(_, rest), *_] = folds(X.shape[0], 0)
    again = type(found.fitted)(**found.winner.estimator.get_params()).fit(X[rest], Y[rest])
    np.testing.assert_array_equal(found.fitted.predict_topk(X)[0], again.predict_topk(X)[0])


def test_learners_that_take_too_long_are_left_out(data):
    dear = entrant("dear", LabelTree(), seconds=90.0)
    found = run(data, [GOOD, dear], seconds=100.0)
    assert [each.name for each in found.left_out] == ["dear"]
    assert found.winner.name == "good"


def test_the_cheapest_takes_part_whatever_it_costs(data):
    found = run(data, [GOOD, OTHER], seconds=0.0)
    assert found.winner.name == "good"


def test_the_winner_must_fit_into_the_time_that_is_left(data):
    dear = entrant("dear", LabelTree(leaf_size=5), seconds=40.0)
    found = run(data, [OTHER, dear], seconds=50.0)
    assert found.winner.name == "other"


def test_the_best_two_meet_on_all_parts_if_that_is_cheap(data):
    found = run(data, [BAD, GOOD, OTHER])
    n_parts = len(folds(data[0].shape[0], 0))
    finals = [each for each in found.standings if each.n_parts > 1]
    assert {each.n_parts for each in finals} == {n_parts}
    assert len(finals) == 2
    assert max(finals, key=lambda each: each.ndcg).name == found.winner.name
    dear = [replace(each, seconds=20.0) for each in (BAD, GOOD)]
    assert all(each.n_parts == 1 for each in run(data, dear).standings)


def test_a_training_on_all_rows_is_charged_once(data):
    # Both were trained on all rows while racing: one training of the dear one is left, and 30 s are.
    cheap, dear = replace(BAD, seconds=1.0), replace(GOOD, seconds=20.0)
    assert run(data, [cheap, dear], seconds=60.0).winner == dear


def test_the_same_seed_gives_the_same_race(data):
    one, other = (run(data, [BAD, GOOD, OTHER], seed=1) for _ in range(2))
    assert one.standings == other.standings
    assert one.winner == other.winner


def test_more_rows_labels_and_trees_are_estimated_to_take_longer(data):
    X, Y = data
    once = seconds_of(LabelTree(), X, Y)
    assert 0 < once < seconds_of(LabelTree(n_trees=3), X, Y)
    assert once < seconds_of(LabelTree(negatives="beam"), X, Y)
    twice = sparse.csr_array(sparse.vstack([X, X])), sparse.csr_array(sparse.vstack([Y, Y]))
    assert once < seconds_of(LabelTree(), *twice)


def test_every_entrant_has_an_estimate_and_the_cheapest_comes_first(data):
    found = entrants(*data, "words", seed=0, n_jobs=1)
    costs = [each.seconds for each in found]
    assert costs == sorted(costs)
    assert costs[0] > 0
    assert "ridge" in [each.name for each in found]
