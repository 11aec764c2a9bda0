"""Which learner is chosen for what, and that the reason is told with its numbers."""

from __future__ import annotations

import inspect
from dataclasses import fields

import numpy as np
import pytest
from scipy import sparse

from longtail.choice import LearnerOptions, choose_learner, learners_taking
from longtail.errors import InvalidInput
from longtail.ridge import Ridge, RidgeCV
from longtail.trees import LabelTree, OneVsRest


def problem(n_rows: int, n_labels: int, n_features: int = 50, per_row: int = 5):
    """Made-up data of a given size; only the size decides."""
    features = np.arange(n_rows * per_row) % n_features
    X = sparse.csr_array(
        (np.ones(n_rows * per_row, dtype=np.float32), features, np.arange(0, n_rows * per_row + 1, per_row)),
        shape=(n_rows, n_features),
    )
    labels = np.arange(n_rows) % n_labels
    Y = sparse.csr_array((np.ones(n_rows, dtype=np.int8), labels, np.arange(n_rows + 1)), shape=(n_rows, n_labels))
    return X, Y


def test_few_labels_are_for_ridge():
    estimator, reasons = choose_learner(*problem(100, 30))
    assert isinstance(estimator, RidgeCV)
    assert reasons == ["learner: ridge, as 30 labels x 100 rows are few; alpha chosen by leave-one-out"]


def test_more_labels_are_for_one_vs_rest_while_it_is_quick():
    estimator, reasons = choose_learner(*problem(2000, 1000), LearnerOptions(n_jobs=2, random_state=3))
    assert isinstance(estimator, OneVsRest)
    assert (estimator.n_jobs, estimator.random_state) == (2, 3)
    assert reasons == ["learner: one-vs-rest, as 1,000 labels x 2,000 rows take only about 1 s"]


def test_what_takes_one_vs_rest_long_is_for_a_tree():
    estimator, reasons = choose_learner(*problem(50_000, 50_000), LearnerOptions(n_jobs=2))
    assert isinstance(estimator, LabelTree)
    assert estimator.negatives == "beam"
    assert reasons == [
        "learner: label tree with negatives=beam, as 50,000 labels x 50,000 rows would take one-vs-rest about 3 min"
    ]


def test_negatives_are_not_searched_for_where_that_takes_long():
    estimator, reasons = choose_learner(
        *problem(400_000, 300_000, per_row=20), LearnerOptions(n_jobs=1, leaf_size=1000)
    )
    assert isinstance(estimator, LabelTree)
    assert estimator.negatives == "siblings"
    assert reasons == ["learner: label tree, as leaf_size is given"]


def test_little_memory_is_for_trees(monkeypatch):
    monkeypatch.setenv("LONGTAIL_MEMORY", "2M")
    estimator, reasons = choose_learner(*problem(2000, 1000))
    assert isinstance(estimator, LabelTree)
    assert "1,000 labels x 2,000 rows would take one-vs-rest " in reasons[0]
    assert reasons[0].endswith("MiB of memory")


@pytest.mark.parametrize(
    ("given", "kind", "reason"),
    [
        ({"alpha": 2.0}, Ridge, "learner: ridge with alpha=2, as given"),
        ({"n_trees": 2}, LabelTree, "learner: label tree with negatives=beam, as n_trees is given"),
        ({"negatives": "siblings"}, LabelTree, "learner: label tree, as negatives is given"),
        ({"weighting": "target"}, RidgeCV, "learner: ridge, as weighting is given; alpha chosen by leave-one-out"),
        ({"C": 2.0}, OneVsRest, "learner: one-vs-rest, as 30 labels x 100 rows take only about 1 s"),
        ({"learner": "tree", "beam": 3}, LabelTree, "learner: label tree with negatives=beam, as requested"),
        ({"learner": "one-vs-rest"}, OneVsRest, "learner: one-vs-rest, as requested"),
        ({"n_trees": None, "updatable": False}, RidgeCV, "learner: ridge, as 30 labels x 100 rows are few; alpha "),
    ],
)
def test_parameters_limit_the_choice_to_the_learners_that_have_them(given, kind, reason):
    estimator, reasons = choose_learner(*problem(100, 30), LearnerOptions(**given))
    assert type(estimator) is kind
    assert reasons[-1].startswith(reason)
    for name, value in given.items():
        if name != "learner" and value:
            assert getattr(estimator, name) == value


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"alpha": 1.0, "beam": 3}, "alpha is for ridge; it does not go with beam"),
        ({"learner": "ridge", "C": 3.0}, "C is for tree and one-vs-rest; it does not go with learner ridge"),
        ({"learner": "tree", "weighting": "target"}, "weighting target is for ridge; it does not go with learner tree"),
        ({"epochs": 3}, "epochs is for network; it does not go with learner auto"),
        ({"learner": "network", "alpha": 1.0}, "alpha is for ridge; it does not go with learner network"),
        ({"missing": "root"}, "missing needs taxonomy"),
    ],
)
def test_parameters_that_do_not_belong_together_are_refused(given, message):
    with pytest.raises(InvalidInput) as caught:
        choose_learner(*problem(100, 30), LearnerOptions(**given))
    assert (str(caught.value), caught.value.code) == (message, "conflicting_parameters")


def test_names_of_parameters_can_be_spelled_otherwise():
    with pytest.raises(InvalidInput, match="--C is for tree and one-vs-rest; it does not go with --learner ridge"):
        LearnerOptions("ridge", C=3.0).candidates(spell=lambda name: f"--{name}")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"learner": "forest"},
            "learner is 'forest'; expected one of 'auto', 'tree', 'one-vs-rest', 'ridge', 'net",
        ),
        ({"weighting": "none"}, "weighting is 'none'; expected one of None, 'loss', 'target', 'score'"),
        ({"learner": "network"}, "a network or a taxonomy cannot be chosen by size"),
        ({"taxonomy": "file"}, "a network or a taxonomy cannot be chosen by size"),
    ],
)
def test_what_is_no_choice_is_refused(given, message):
    with pytest.raises(InvalidInput, match=message):
        choose_learner(*problem(100, 30), LearnerOptions(**given))


def test_every_parameter_knows_its_learners():
    assert learners_taking("n_jobs", None) == ("tree", "one-vs-rest", "ridge", "network")
    assert learners_taking("weighting", "loss") == ("tree", "one-vs-rest", "ridge", "network")
    assert learners_taking("weighting", "score") == ("tree", "one-vs-rest")
    with pytest.raises(KeyError):
        learners_taking("nonsense", 1)


@pytest.mark.parametrize(("name", "learner"), [("tree", LabelTree), ("one-vs-rest", OneVsRest), ("ridge", Ridge)])
def test_options_belong_to_the_learners_that_have_the_parameter(name, learner):
    parameters = set(inspect.signature(learner).parameters) - {"tol", "propensity"}
    options = {each.name for each in fields(LearnerOptions) if each.metadata and name in each.metadata["learners"]}
    assert options - {"taxonomy", "missing", "density", "prune"} <= parameters
    for other in fields(LearnerOptions):
        if other.metadata and name not in other.metadata["learners"]:
            assert other.name not in parameters
    for weighting in ("loss", "target", "score"):
        accepted = learner._parameters["weighting"].accepts(weighting)
        assert accepted == (name in learners_taking("weighting", weighting))


@pytest.mark.parametrize(("prune", "kept"), [(2, 2), (100.0, 0), (0, 4)])
def test_prune_is_the_same_for_ridge_as_for_the_others(prune, kept):
    """A whole number counts the weights of each label, a float is the smallest weight."""
    X = np.array([[1, 2, 0, 0], [0, 1, 3, 0], [0, 0, 1, 2], [1, 0, 0, 1]], dtype=np.float32)
    ridge = choose_learner(X, np.eye(4), LearnerOptions("ridge", alpha=0.5, prune=prune)).estimator.fit(X, np.eye(4))
    assert np.bincount(sparse.csr_array(ridge.coef_.T).nonzero()[0], minlength=4).max() == kept


def test_two_ways_to_sparsify_are_refused_before_anything_is_computed():
    with pytest.raises(InvalidInput, match="--density and --prune exclude each other") as caught:
        LearnerOptions(density=0.5, prune=3).candidates(spell=lambda name: f"--{name}")
    assert (caught.value.code, caught.value.name) == ("conflicting_parameters", "density")
