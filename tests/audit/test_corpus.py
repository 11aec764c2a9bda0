"""Audits of models on the label sets of a corpus."""

from __future__ import annotations

import json

import numpy as np
import pytest

from longtail import LabelTree, Ridge
from longtail.audit import OutputLayer, audit, audit_corpus
from longtail.data import Corpus
from longtail.errors import InvalidInput

PLANE = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])


def corpus(sets: list[list[int]], names: str = "ABC") -> Corpus:
    return Corpus(labels=np.array(sets), label_names=list(names), features=np.ones((len(sets), 1)))


def test_rows_with_unknown_labels_are_counted_apart() -> None:
    found = audit_corpus(
        OutputLayer.of(PLANE, at_least=False),
        corpus([[1, 1, 0, 0], [1, 0, 0, 1], [1, 0, 0, 1], [0, 1, 0, 1], [1, 1, 0, 0]], "ABCD"),
        "ABC",
    )
    assert (found.unknown_sets, found.unknown_rows) == (2, 3)
    assert found.found.verdicts.tolist() == [-1]
    assert found.found.sets.rows.tolist() == [2]
    facts = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert facts["rows_with_unknown_labels"] == 3
    assert facts["examples"][0]["says"] == "no input can have A and B without C"
    assert found.verdict_rows()[-1] == ["has an unknown label", "2", "-", "3"]
    with pytest.raises(InvalidInput, match="no row has only labels that the model knows"):
        audit_corpus(OutputLayer.of(PLANE), corpus([[1, 0, 0]]), "XYZ")


def test_each_rank_is_an_audit_of_the_layer_cut_down_to_it(rng: np.random.Generator) -> None:
    layer = OutputLayer.of(rng.normal(size=(5, 4)), rng.normal(size=5), at_least=True)
    rows = corpus((rng.random((40, 5)) < 0.5).astype(int).tolist(), "ABCDE")
    found = audit_corpus(layer, rows, "ABCDE", ranks=(3, 1, 3))
    assert [rank for rank, _ in found.ranks] == [1, 3]
    weights = layer.truncations(3)(1)
    cut = audit(OutputLayer(weights, layer.offsets, "predict", "", True), found.found.sets)
    assert found.ranks[0][1].verdicts.tolist() == cut.verdicts.tolist()
    assert [panel.title for panel in found.panels()] == ["Cut down to a rank", "Radii"]
    with pytest.raises(InvalidInput, match="a rank of at most 4"):
        audit_corpus(layer, rows, "ABCDE", ranks=(5,))


def test_the_card_has_a_few_short_examples(rng: np.random.Generator) -> None:
    layer = OutputLayer.of(rng.normal(size=(30, 1)), at_least=False)
    names = [f"label {number}" for number in range(30)]
    rows = Corpus(labels=np.tri(30, dtype=int), label_names=names, features=np.ones((30, 1)))
    section = audit_corpus(layer, rows, names).for_card()
    assert section["rule"] == "predict"
    assert len(section["examples"]) == 3
    assert all(len(example["labels"]) <= 20 for example in section["examples"])
    assert set(section["examples"][0]) == {"row", "rows", "labels", "says"}


def test_a_fitted_model_is_asked_what_it_is() -> None:
    X, Y = np.tile(np.eye(3), (10, 1)), np.tile(np.eye(3, dtype=int), (10, 1))
    rows = corpus([[1, 0, 0], [0, 1, 0]])
    linear = audit_corpus(Ridge(0.1).fit(X, Y), rows, "ABC", rule="topk")
    assert linear.found.rule == "topk"
    assert linear.found.verdicts.tolist() == [1, 1]
    tree = LabelTree(leaf_size=2).fit(X, Y)
    assert audit_corpus(tree, rows, "ABC").found.layer is None
    for name, value in (("rule", "predict"), ("ranks", (1,)), ("exact_radii", True)):
        with pytest.raises(InvalidInput) as refused:
            audit_corpus(tree, rows, "ABC", **{name: value})
        assert (refused.value.code, refused.value.name) == ("needs_linear_layer", name)
