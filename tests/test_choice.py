"""Which learner is chosen for what, and that the reason is told with its numbers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from longtail.choice import choose_learner, learners_taking
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
    estimator, reasons = choose_learner(*problem(2000, 1000), n_jobs=2, random_state=3)
    assert isinstance(estimator, OneVsRest)
    assert (estimator.n_jobs, estimator.random_state) == (2, 3)
    assert reasons == ["learner: one-vs-rest, as 1,000 labels x 2,000 rows take it about 1 s"]


def test_what_takes_one_vs_rest_long_is_for_a_tree():
    estimator, reasons = choose_learner(*problem(50_000, 50_000), n_jobs=2)
    assert isinstance(estimator, LabelTree)
    assert estimator.negatives == "beam"
    assert reasons == [
        "learner: label tree with negatives=beam, as 50,000 labels x 50,000 rows would take one-vs-rest about 3 min"
    ]


def test_negatives_are_not_searched_for_where_that_takes_long():
    estimator, reasons = choose_learner(*problem(400_000, 300_000, per_row=20), n_jobs=1, leaf_size=1000)
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
        ({"C": 2.0}, OneVsRest, "learner: one-vs-rest, as 30 labels x 100 rows take it about 1 s"),
        ({"learner": "tree", "beam": 3}, LabelTree, "learner: label tree with negatives=beam, as asked for"),
        ({"learner": "one-vs-rest"}, OneVsRest, "learner: one-vs-rest, as asked for"),
        ({"n_trees": None, "updatable": False}, RidgeCV, "learner: ridge, as 30 labels x 100 rows are few; alpha "),
    ],
)
def test_parameters_limit_the_choice_to_the_learners_that_have_them(given, kind, reason):
    estimator, reasons = choose_learner(*problem(100, 30), **given)
    assert type(estimator) is kind
    assert reasons[-1].startswith(reason)
    for name, value in given.items():
        if name != "learner" and value:
            assert getattr(estimator, name) == value


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"alpha": 1.0, "beam": 3}, "beam is a parameter of tree; what else is given leaves ridge"),
        ({"learner": "ridge", "C": 3.0}, "C is a parameter of tree and one-vs-rest; what else is given leaves ridge"),
        ({"learner": "tree", "weighting": "target"}, "weighting='target' is a parameter of ridge; "),
        ({"depth": 3}, "depth is a parameter of no learner; "),
        ({"learner": "forest"}, "learner is 'forest'; expected one of 'auto', 'tree', 'one-vs-rest', 'ridge'"),
    ],
)
def test_parameters_that_do_not_belong_together_are_refused(given, message):
    with pytest.raises(InvalidInput) as caught:
        choose_learner(*problem(100, 30), **given)
    assert str(caught.value).startswith(message)


def test_every_parameter_knows_its_learners():
    assert learners_taking("n_jobs", None) == ("tree", "one-vs-rest", "ridge")
    assert learners_taking("weighting", "loss") == ("tree", "one-vs-rest", "ridge")
    assert learners_taking("weighting", "score") == ("tree", "one-vs-rest")
    assert learners_taking("nonsense", 1) == ()
