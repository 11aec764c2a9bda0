"""Training on labels of groups."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

import longtail
from longtail import AggregatedClassifier, LabelTree, OneVsRest, Ridge
from longtail.aggregated import aggregate_labels
from longtail.aggregated.aggregation import Aggregation
from longtail.aggregated.refinement import explained, member_scores
from longtail.errors import InvalidInput, LongtailError, ModelFormatError
from longtail.metrics import precision_at_k
from tests.aggregated.examples import grouped_problem, planted_problem

STRATEGIES = ("iterate", "eagle", "eagle-0", "all")


def make(**params):
    return AggregatedClassifier(LabelTree(leaf_size=5), **params)


@pytest.fixture
def noisy(rng):
    """Groups of three rows about different things, told apart only with some work."""
    return planted_problem(rng, n_labels=8, n_groups=150, noise=0.3)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("estimator", [LabelTree(leaf_size=5), OneVsRest(), Ridge()])
def test_any_estimator_learns_what_was_planted(noisy, strategy, estimator):
    X, Y, groups, labels = noisy
    model = AggregatedClassifier(estimator, strategy=strategy).fit(X, groups, labels)
    top, _ = model.predict_topk(X, 1)
    assert precision_at_k(Y, top, 1) > 0.9
    assert (model.n_features_in_, model.n_labels_, model.strategy_) == (8, 8, strategy)


def test_placing_labels_beats_giving_them_to_everyone(noisy):
    X, Y, groups, labels = noisy
    shares = {
        name: make(strategy=name).fit(X, groups, labels).row_labels_.multiply(Y).sum() / Y.sum()
        for name in ("eagle", "iterate")
    }
    everyone = make(strategy="all").fit(X, groups, labels).row_labels_
    assert everyone.multiply(Y).sum() / everyone.nnz < 0.5 < min(shares.values())


def test_iteration_places_more_labels_right_than_it_was_given(rng):
    X, Y, groups, labels = planted_problem(rng, n_labels=12, size=6, n_groups=150, noise=0.5)
    start, refined = (
        make(strategy=name, rule="count", n_iter=0).fit(X, groups, labels).row_labels_.multiply(Y).sum()
        for name in ("eagle", "iterate")
    )
    assert refined > start


def test_without_anything_to_place_all_strategies_learn_the_same(rng):
    X, Y, groups, labels = grouped_problem(rng, size=1)
    models = [make(strategy=name).fit(X, groups, labels) for name in STRATEGIES]
    for model in models:
        np.testing.assert_array_equal(model.row_labels_.toarray(), Y.toarray())
        np.testing.assert_array_equal(model.predict_topk(X, 3)[0], models[0].predict_topk(X, 3)[0])


def test_auto_keeps_labels_together_where_members_are_alike(rng):
    # Every member of a group is the same row with the same labels: nothing can be told apart, nothing need be.
    centres = np.eye(12, dtype=np.float32)[rng.integers(12, size=60)]
    X = np.repeat(centres, 4, axis=0)
    Y = sparse.csr_array(np.concatenate([X, X[:, ::-1]], axis=1))
    groups = sparse.csr_array(np.kron(np.eye(60), np.ones((4, 1))))
    model = make(strategy="auto").fit(X, groups, aggregate_labels(Y, groups, "set"))
    assert model.evidence_["all"] >= model.evidence_["eagle"] - 1e-9
    assert model.strategy_ == "all"


def test_auto_places_labels_where_members_differ(noisy):
    X, _, groups, labels = noisy
    model = make(strategy="auto").fit(X, groups, labels)
    assert set(model.evidence_) == set(STRATEGIES)
    assert model.strategy_ != "all"
    assert model.evidence_[model.strategy_] == max(model.evidence_.values())


def test_auto_compares_nothing_by_a_few_groups(rng, caplog):
    # Members alike, so that by any comparison giving every label to everyone would be as good as placing it.
    X = np.repeat(np.eye(19, dtype=np.float32), 2, axis=0)
    groups = np.kron(np.eye(20), np.ones((2, 1)))
    with caplog.at_level("INFO", logger="longtail.aggregated"):
        few = make(strategy="auto").fit(X, groups[:38, :19], np.eye(19))
    assert (few.strategy_, few.evidence_) == ("iterate", {})
    assert "19 groups are too few to compare strategies; using iterate" in caplog.text
    enough = make(strategy="auto").fit(np.vstack([X, X[:2]]), groups, np.eye(20))
    assert set(enough.evidence_) == set(STRATEGIES)


@pytest.mark.parametrize("strategy", ["iterate", "eagle", "eagle-0", "auto"])
def test_labels_are_assigned_as_in_training_without_a_final_training(noisy, strategy, monkeypatch):
    X, _, groups, labels = noisy
    fitted = make(strategy=strategy).fit(X, groups, labels)
    model = make(strategy=strategy)
    # Two rounds of two parts; auto tries each strategy before, iterate among them.
    trainings = 4 * (fitted.strategy_ == "iterate") + (4 + 4) * (strategy == "auto")
    trained = []
    monkeypatch.setattr(model, "_train", lambda X, Y: trained.append(1) or LabelTree(leaf_size=5).fit(X, Y))
    found = model.assign_labels(X, groups, labels)
    for one, other in zip(found[1:], fitted.assignment_[1:], strict=True):
        np.testing.assert_array_equal(one, other)
    assert len(trained) == trainings
    assert not hasattr(model, "estimator_")


def test_the_evidence_is_the_share_of_labels_that_members_predict():
    class Fixed:
        def predict_topk(self, X, k):
            return np.array([[0, 1], [0, 2], [3, 3]])[: len(X), :k], None

    groups = np.array([[1, 0], [1, 0], [0, 1]])
    counted = Aggregation.of(groups, np.array([[2, 1, 0, 0], [0, 0, 0, 1]]))
    # Group 0: three labels, so each member predicts round(3 / 2) = 2: 0, 1, 0, 2; three are right. Group 1: all.
    assert explained(Fixed(), np.zeros((3, 1)), counted) == pytest.approx((2 * 3 / (4 + 3) + 1) / 2)
    once = Aggregation.of(groups, np.array([[1, 1, 0, 0], [0, 0, 0, 1]]))
    # Each member predicts one: 0 and 0, both right, one of two labels covered.
    assert explained(Fixed(), np.zeros((3, 1)), once) == pytest.approx((2 * 1 * 0.5 / 1.5 + 1) / 2)


def test_scores_of_members_are_those_of_the_model_and_below_them_similarities(rng):
    X, Y, groups, labels = grouped_problem(rng)
    model = LabelTree(leaf_size=3).fit(X, Y)
    aggregation = Aggregation.of(groups, labels)
    everything = np.ones(len(aggregation.label_groups), dtype=bool)
    similarities = rng.normal(size=aggregation.n_members)
    scores = member_scores(model, X, aggregation, everything, similarities)
    dense = model.decision_function(X)
    rows, columns = aggregation.members(slice(None)), np.repeat(aggregation.pair_labels, aggregation.pair_sizes)
    np.testing.assert_allclose(scores, dense[rows, columns], atol=1e-6)

    class Nobody:
        def predict_topk(self, X, k):
            return np.full((X.shape[0], k), -1), np.full((X.shape[0], k), -np.inf)

    unseen = member_scores(Nobody(), X, aggregation, everything, similarities)
    np.testing.assert_array_equal(np.argsort(unseen), np.argsort(similarities))


@pytest.mark.parametrize("strategy", ["iterate", "auto"])
def test_the_same_seed_gives_the_same_model(noisy, strategy):
    X, _, groups, labels = noisy
    one, other = (make(strategy=strategy).fit(X, groups, labels) for _ in range(2))
    np.testing.assert_array_equal(one.row_labels_.toarray(), other.row_labels_.toarray())
    np.testing.assert_array_equal(one.predict_topk(X, 3)[1], other.predict_topk(X, 3)[1])


def test_a_saved_model_predicts_the_same(noisy, tmp_path):
    X, _, groups, labels = noisy
    model = make().fit(X, groups, labels)
    model.save(tmp_path / "model")
    loaded = longtail.load(tmp_path / "model", verify=True)
    assert (loaded.strategy_, loaded.rule) == ("iterate", "joint")
    for one, other in zip(model.predict_topk(X, 3, deny=[1]), loaded.predict_topk(X, 3, deny=[1]), strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(model.decision_function(X), loaded.decision_function(X))
    np.testing.assert_array_equal(model.predict(X).toarray(), loaded.predict(X).toarray())
    assert loaded.explain(X[:1], 0).score == pytest.approx(model.decision_function(X[:1])[0, 0])


def test_a_model_without_its_estimator_is_not_loaded(noisy):
    from longtail.store import State

    with pytest.raises(ModelFormatError, match="estimator"):
        AggregatedClassifier.from_state(State("AggregatedClassifier", {}, {"strategy": "eagle"}))


def test_rows_outside_of_groups_and_groups_without_labels_are_left_out(rng):
    X, _Y, groups, labels = grouped_problem(rng)
    lost = groups.toarray()
    lost[:7] = 0
    fewer = labels.toarray()
    fewer[3] = 0
    model = make(strategy="eagle").fit(X, lost, fewer)
    assert model.row_labels_[:7].nnz == 0
    assert model.row_labels_[np.flatnonzero(lost[:, 3])].nnz == 0
    assert model.assignment_ is not None
    assert set(model.assignment_.groups) <= set(range(labels.shape[0])) - {3}


def test_bad_input_is_refused_with_reasons(rng):
    X, _, groups, labels = grouped_problem(rng)
    with pytest.raises(InvalidInput, match="no group has both members and labels"):
        make().fit(X, groups, np.zeros(labels.shape))
    with pytest.raises(InvalidInput, match=r"holdout=0\.01 of 20 groups"):
        make(strategy="auto", holdout=0.01).fit(X[:20], np.eye(20), np.ones((20, 1)))
    with pytest.raises(InvalidInput, match="'all' gives every label to every member; there is nothing to assign"):
        make(strategy="all").assign_labels(X, groups, labels)
    for name, constraint in AggregatedClassifier._parameters.items():
        for bad in constraint.bad_values():
            with pytest.raises(LongtailError, match=name):
                make(**{name: bad}).fit(X, groups, labels)


def test_parameters_survive_cloning_and_an_unfitted_model_says_so():
    model = make(rounds=5, rule="count")
    assert clone(model).get_params()["rounds"] == 5
    with pytest.raises(ValueError, match="not fitted"):
        model.predict_topk([[1.0]])
