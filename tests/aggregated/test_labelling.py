"""`assign`: rows, groups to show, and unsure labels of a corpus with labels of groups."""

from __future__ import annotations

import numpy as np
import pytest

from longtail.aggregated import AssignedCorpus, Assignment, assign, without_empty_groups, without_unused_labels
from longtail.data import GroupedCorpus
from longtail.errors import InvalidInput
from longtail.text import RowScaling, TextFeatures

PAGES = [["ripe apples", "grey sky"], ["red apples", "late train"], ["a train", "a grey sky"], ["a sky"], []]
LABELS = [["fruit", "weather"], ["fruit", "travel"], ["travel", "weather"], [], ["lost"]]


@pytest.fixture
def corpus():
    return GroupedCorpus.from_lists(PAGES, LABELS, group_names=list("abcde"))


def made(groups, group_labels, assignments):
    """An assigned corpus from tuples (group, label, row, similarity, confidence)."""
    names = [str(label) for label in range(len(group_labels[0]))]
    corpus = GroupedCorpus(groups, group_labels, names, features=np.eye(len(groups)))
    group, label, row, similarity, confidence = (np.array(each) for each in zip(*assignments, strict=True))
    row_labels = np.zeros((corpus.n_rows, corpus.n_labels))
    row_labels[row, label] = 1
    row_labels = corpus.labelled(row_labels).labels
    return AssignedCorpus(corpus, Assignment(row_labels, group, label, row, similarity, confidence))


@pytest.mark.parametrize("strategy", ["eagle", "eagle-0", "iterate"])
def test_every_strategy_labels_the_rows(corpus, strategy):
    found = assign(corpus, strategy=strategy)
    names = [[corpus.label_names[label] for label in row.labels] for row in found.rows()]
    assert names == [["fruit"], ["weather"], ["fruit"], ["travel"], ["travel"], ["weather"], []]
    assert [row.groups for row in found.rows()] == [[0], [0], [1], [1], [2], [2], [3]]
    assert found.n_rows_without_labels == 1
    assert found.labelled().label_counts.sum() == 6


def test_features_may_be_given(corpus):
    assert next(iter(assign(corpus, TextFeatures(min_df=1, ngrams=(1, 2))).rows())).confidences[0] > 0.5
    with pytest.raises(InvalidInput, match="the model takes features; the corpus has only texts"):
        assign(corpus, RowScaling())


def test_a_row_with_a_label_from_two_groups_has_the_higher_confidence():
    found = made([[1, 1], [1, 0], [0, 1]], [[1], [1]], [(0, 0, 0, 1.0, 0.2), (1, 0, 0, 1.0, 0.7)])
    first, *_ = found.rows()
    assert (first.groups, first.labels, first.confidences) == ([0, 1], [0], [0.7])
    assert found.members(0)[0].confidences == [0.2]


def test_groups_to_show_are_spread_over_those_that_leave_a_choice(corpus):
    found = assign(corpus)
    assert found.groups_to_show(10) == [0, 1, 2]
    assert found.groups_to_show(2) == [0, 2]
    assert [member.row for member in found.members(1)] == [2, 3]
    alone = GroupedCorpus.from_lists([["red sky"], ["red sea"]], [["x"], ["x"]])
    assert assign(alone).groups_to_show(3) == []


def test_members_list_the_surest_label_first():
    found = made([[1], [1]], [[1, 1]], [(0, 0, 0, 1.0, 0.1), (0, 1, 0, 1.0, 0.4)])
    assert [(member.labels, member.confidences) for member in found.members(0)] == [([1, 0], [0.4, 0.1]), ([], [])]


def test_unsure_labels_have_a_close_second_or_a_single_group():
    found = made(
        [[1, 0], [1, 0], [0, 1]],
        [[1, 1, 0], [1, 0, 1]],
        [(0, 0, 0, 1.0, 0.05), (0, 1, 1, 1.0, 0.9), (1, 0, 2, 1.0, np.inf), (1, 2, 2, 1.0, np.inf)],
    )
    assert found.in_one_group.tolist() == [False, True, True]
    assert found.unsure.tolist() == [True, True, False, False]
    assert found.share_unsure == 0.5


def test_labels_of_groups_without_rows_are_left_out(corpus, caplog):
    with caplog.at_level("INFO", logger="longtail.aggregated"):
        kept = without_empty_groups(corpus)
    assert kept.group_labels.sum() == 6
    assert "1 group has labels but no rows, for example group 4 ('e'); these labels are dropped" in caplog.text
    assert without_empty_groups(kept) is kept
    with caplog.at_level("INFO", logger="longtail.aggregated"):
        assert without_unused_labels(corpus).label_names == ("fruit", "travel", "weather")
    assert "dropped 1 label that occur in no group with rows" in caplog.text


def test_a_corpus_without_labels_leaves_every_row_unlabelled():
    found = assign(GroupedCorpus.from_lists([["red sky", "red sea"]], [[]], label_names=["x"]))
    assert [row.labels for row in found.rows()] == [[], []]
    assert found.share_unsure == 0


def test_errors_have_codes():
    with pytest.raises(InvalidInput) as raised:
        assign(GroupedCorpus.from_lists([[]], [["x"]]))
    assert raised.value.code == "no_rows"
    with pytest.raises(InvalidInput) as raised:
        without_unused_labels(GroupedCorpus.from_lists([["a"], []], [[], ["x"]]))
    assert raised.value.code == "no_labels"
