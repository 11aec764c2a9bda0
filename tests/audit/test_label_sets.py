"""The same label sets in every form."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from longtail.audit import LabelSets, OutputLayer, audit
from longtail.audit.label_sets import as_label_sets, of_ids
from longtail.data import Corpus
from longtail.errors import InvalidInput

SETS = np.array([[1, 0, 1, 0], [0, 0, 0, 1], [1, 1, 1, 1], [0, 1, 1, 0]])
LAYER = OutputLayer.of(np.eye(4)).named("abcd")


@pytest.mark.parametrize(
    "given",
    [
        SETS,
        SETS.astype(bool),
        SETS.tolist(),
        2 * SETS - 1,
        (2.0 * SETS - 1).tolist(),
        sparse.csr_array(SETS),
        [[0, 2], [3], [0, 1, 2, 3], [1, 2]],
        [np.array([2, 0]), {3}, range(4), (1, 2)],
        [["a", "c"], ["d"], ["d", "c", "b", "a"], ["b", "c"]],
        LabelSets.each(SETS),
        Corpus(labels=SETS[:, ::-1].astype(np.int8), label_names=list("dcba"), texts=["text"] * 4),
    ],
    ids=["0/1", "bool", "lists", "+-1", "+-1 lists", "sparse", "ids", "iterables", "names", "LabelSets", "corpus"],
)
def test_every_form_means_the_same_sets(given: Any) -> None:
    assert as_label_sets(given, LAYER).members.toarray().tolist() == SETS.tolist()
    assert len(audit(LAYER, given)) == 4


def test_empty_sets_and_no_sets_are_told_apart() -> None:
    assert as_label_sets([[]], LAYER).members.toarray().tolist() == [[0, 0, 0, 0]]
    assert len(as_label_sets([], LAYER)) == 0
    assert len(as_label_sets(np.zeros((0, 4)), LAYER)) == 0


def test_a_corpus_is_audited_for_its_distinct_sets_of_known_labels() -> None:
    labels = np.array([[1, 0], [1, 1], [1, 0]], dtype=np.int8)
    sets = as_label_sets(Corpus(labels=labels, label_names=["b", "new"], texts=["text"] * 3), LAYER)
    assert sets.members.toarray().tolist() == [[0, 1, 0, 0]]
    assert (sets.rows.tolist(), sets.first_row.tolist()) == ([2], [0])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([[0, 1], [1, 0]], "the label sets have 2 labels, the layer has 4"),
        ([[4]], "label set 0 has 4; expected label ids from 0 to 3"),
        ([[1], [2, 2]], "label set 1 has a label twice"),
        ([[0.5, 2]], "label set 0 has 0.5"),
        ([["a", "e"]], "'e' is no label of the model"),
        (["a", "b"], "'a' is no label set"),
        ([1, 2], "1 is no label set"),
        ([[[0]], [1]], r"a label set has \[0\]"),
        (2 * np.ones((1, 4)), "0 and 1"),
    ],
)
def test_what_is_no_label_set_is_refused(given: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        as_label_sets(given, LAYER)


def test_names_need_a_layer_with_names() -> None:
    with pytest.raises(InvalidInput, match="has no label names"):
        audit(np.eye(4), [["a"]])
    assert of_ids([[1]], 2).members.toarray().tolist() == [[0, 1]]


def test_a_name_of_several_labels_is_refused_where_it_is_used() -> None:
    layer = OutputLayer.of(np.eye(3)).named(["a", "a", "b"])
    assert as_label_sets([["b"]], layer).members.toarray().tolist() == [[0, 0, 1]]
    with pytest.raises(InvalidInput, match="'a' is the name of several labels"):
        as_label_sets([["b", "a"]], layer)
