"""What an audit found: label sets, summaries, and conflicts in words."""

from __future__ import annotations

import json
from itertools import product

import numpy as np
from scipy import sparse

from longtail.audit import LabelSets, OutputLayer, audit, describe_conflict

ALL_SETS = LabelSets.of(np.array(list(product((0, 1), repeat=6))))


def test_different_sets_are_counted_once(rng: np.random.Generator) -> None:
    labels = (rng.random((200, 4)) < 0.4).astype(np.int8)
    sets = LabelSets.of(sparse.csr_array(labels))
    expected = np.unique(labels, axis=0, return_counts=True)
    assert sorted(map(tuple, sets.members.toarray().tolist())) == sorted(map(tuple, expected[0].tolist()))
    assert sets.rows.sum() == 200
    for place in range(len(sets)):
        same = (labels == sets.members[[place]].toarray()).all(axis=1)
        assert same.sum() == sets.rows[place]
        assert np.flatnonzero(same)[0] == sets.first_row[place]
    few = LabelSets.of(labels, limit=3, random_state=1)
    assert len(few) == 3


def test_the_dictionary_is_plain(rng: np.random.Generator) -> None:
    found = audit(OutputLayer.of(np.abs(rng.normal(size=(6, 2))), at_least=False), ALL_SETS)
    facts = json.loads(json.dumps(found.to_dict("abcdef", 2), allow_nan=False))
    assert facts["argmaxable"] == 12
    assert facts["rows"] == 64
    assert facts["rows_unargmaxable"] == 52
    assert len(facts["examples"]) == 2
    assert facts["smallest_radius"] > 0


def test_conflicts_in_words() -> None:
    assert describe_conflict(["A"], []) == "no input can have A"
    assert describe_conflict(["A", "B", "C"], []) == "no input can have A, B and C together"
    assert describe_conflict([], ["C"]) == "every input has C"
    assert describe_conflict(["A"], list("BCDE"), most=2) == "no input can have A without one of B, C and 2 others"
