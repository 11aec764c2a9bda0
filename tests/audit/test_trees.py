"""Audits of label trees."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from longtail import LabelTree
from longtail.audit import LabelSets, audit_tree
from longtail.errors import InvalidInput


def test_a_tree_says_which_sets_its_beam_cannot_reach(rng: np.random.Generator) -> None:
    X = sparse.csr_array(np.tile(np.eye(6), (20, 1)))
    Y = sparse.csr_array(np.tile(np.eye(6, dtype=np.int8), (20, 1)))
    Y = sparse.csr_array(sparse.hstack([Y, sparse.csr_array((120, 1), dtype=np.int8)]))
    model = LabelTree(leaf_size=2, branching=4, beam=1).fit(X, Y)
    [hierarchy] = model.hierarchies_
    sets = LabelSets.of([*np.eye(7, dtype=np.int8).tolist(), [1, 1, 1, 1, 1, 1, 0]])
    found = audit_tree(model, sets)
    assert hierarchy.n_nodes > 1
    assert found.verdicts.tolist() == [0] * 6 + [-1, -1]
    assert found.example(6, "abcdefg")["says"] == "no input can have g"
    assert found.example(7, "abcdefg")["says"].endswith("together")
    assert "no linear output layer" in found.reasons[0]
    with pytest.raises(InvalidInput, match="label trees have none"):
        found.recheck()
    assert audit_tree(model.set_params(beam=10), sets).verdicts.tolist() == [0] * 6 + [-1, 0]


def test_a_tree_says_which_labels_never_reach_their_threshold() -> None:
    X = sparse.csr_array(np.tile(np.eye(6), (20, 1)))
    Y = np.tile(np.eye(6, dtype=np.int8), (20, 1))
    model = LabelTree(leaf_size=3, n_trees=2).fit(X, Y)
    sets = LabelSets.of(np.eye(6, dtype=np.int8))
    assert not audit_tree(model, sets).verdicts.any()
    model.thresholds_ = np.array([0.5, 1.5, 0.5, 0.5, 0.5, 1.01], dtype=np.float32)
    found = audit_tree(model, sets)
    assert found.verdicts.tolist() == [0, -1, 0, 0, 0, -1]
    assert not model.predict(X).toarray()[:, [1, 5]].any()
    assert "2 labels are never given, because their threshold is above the best score" in found.reasons[-1]
