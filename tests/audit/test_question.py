"""Audits by a model's own rule: labels without weights, twins, ties, wide layers, and what is left for the search."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from longtail import OneVsRest, Ridge
from longtail.audit import (
    ARGMAXABLE,
    UNARGMAXABLE,
    UNDETERMINED,
    LabelSets,
    audit,
    count_argmaxable,
)
from longtail.audit.proofs import check_witness_exactly
from longtail.errors import InvalidInput
from longtail.estimator import OutputLayer, Rule

ALL_SETS = LabelSets.of(np.array(list(product((0, 1), repeat=6))))


def layer_of(W: np.ndarray, offsets: np.ndarray | None = None) -> OutputLayer:
    return OutputLayer(W, np.zeros(len(W)) if offsets is None else offsets, "predict", "")


def gives(scores: np.ndarray, members: np.ndarray, rule: str, at_least: bool) -> np.ndarray:
    """Which rows of scores give exactly the labels of a set, as models do: ties to the lowest label."""
    if rule == "topk":
        order = np.argsort(-scores, axis=1, kind="stable")[:, : members.sum()]
        return np.isin(order, np.flatnonzero(members)).all(axis=1)
    return np.asarray(((scores >= 0 if at_least else scores > 0) == members).all(axis=1))


def test_independent_labels_leave_every_set_in_reach(rng: np.random.Generator) -> None:
    for W in (rng.normal(size=(6, 9)), sparse.csr_array(rng.normal(size=(6, 6)))):
        found = audit(layer_of(W, rng.normal(size=6)), ALL_SETS)
        assert found.count(ARGMAXABLE) == 64
        assert found.rank == 6
        assert "linearly independent" in found.reasons[0]
        assert found.examples("abcdef", 3) == []


def test_a_narrow_layer_has_as_many_sets_as_counting_says(rng: np.random.Generator) -> None:
    for d in (1, 2, 4):
        offsets = rng.normal(size=6)
        for layer, count in (
            (layer_of(rng.normal(size=(6, d)), offsets), count_argmaxable(6, d, bias=True)),
            (layer_of(np.abs(rng.normal(size=(6, d)))), count_argmaxable(6, d)),
        ):
            found = audit(layer, ALL_SETS)
            assert found.count(ARGMAXABLE) == count
            assert found.count(UNARGMAXABLE) == 64 - count
            assert found.rank == d


def test_offsets_much_larger_than_weights_leave_nothing_open(rng: np.random.Generator) -> None:
    for d in (1, 2, 3):
        found = audit(layer_of(0.05 * rng.normal(size=(6, d)), rng.normal(size=6)), ALL_SETS)
        assert found.count(ARGMAXABLE) == count_argmaxable(6, d, bias=True)
        assert found.count(UNARGMAXABLE) == 64 - found.count(ARGMAXABLE)


def test_wide_weights_of_low_rank_are_a_narrow_layer(rng: np.random.Generator) -> None:
    W = np.abs(rng.normal(size=(6, 3))) @ rng.normal(size=(3, 40))
    found = audit(layer_of(W), ALL_SETS)
    assert found.rank == 3
    assert found.count(ARGMAXABLE) == count_argmaxable(6, 3)
    assert (found.verdicts == audit(W, ALL_SETS.members).verdicts).all()


def test_labels_without_weights_decide_by_their_offset(rng: np.random.Generator) -> None:
    W = rng.normal(size=(6, 9))
    W[[1, 4]] = 0
    offsets = np.array([0.3, -1.0, 0.0, 0.1, 2.0, -0.2])
    found = audit(layer_of(W, offsets), ALL_SETS)
    members = ALL_SETS.members.toarray()
    assert ((found.verdicts == ARGMAXABLE) == ((members[:, 1] == 0) & (members[:, 4] == 1))).all()
    said = {example["says"] for example in found.examples("abcdef", 64)}
    assert said == {"no input can have b", "every input has e"}
    assert found.reasons[:2] == (
        "1 label has no weights and is never given.",
        "1 label has no weights and is always given.",
    )


def test_a_score_at_the_very_threshold_counts_as_the_model_counts_it() -> None:
    """Features that are all alike: ridge with an intercept fits one half, and gives what is at least one half."""
    model = Ridge(1.0, fit_intercept=True).fit(np.ones((4, 1)), [[1, 0], [0, 0], [1, 0], [0, 1]])
    assert model.coef_.ravel().tolist() == [0, 0]
    assert model.predict(np.ones((1, 1))).toarray().tolist() == [[1, 0]]
    found = audit(model.output_layer(), LabelSets.of([[1, 0], [0, 0]]))
    assert found.verdicts.tolist() == [ARGMAXABLE, UNARGMAXABLE]
    assert found.examples("ab", 1)[0]["says"] == "every input has a"
    bare = audit(layer_of(np.zeros((2, 1)), np.array([0.0, -1.0])), LabelSets.of([[1, 0], [0, 0]]))
    assert bare.verdicts.tolist() == [UNARGMAXABLE, ARGMAXABLE]


def test_a_one_vs_rest_model_whose_labels_lost_their_weights_gives_them_or_not(rng: np.random.Generator) -> None:
    X = rng.normal(size=(40, 3))
    model = OneVsRest(prune=1000.0, loss="logistic").fit(X, np.arange(40)[:, None] % 4 < [3, 1])
    scores = model.decision_function(X[:1]).ravel()
    for cut, given_labels in (
        (0.5, [1, 0]),
        (float(scores.min()) * 0.999, [1, 1]),
        (float(scores.max()) * 1.001, [0, 0]),
    ):
        model.thresholds_ = np.full(2, cut, dtype=np.float32)
        assert model.predict(X[:1]).toarray().tolist() == [given_labels]
        layer = model.output_layer()
        assert layer.at_least
        assert layer.constant_labels().tolist() == [0, 1]
        found = audit(layer, LabelSets.of([[0, 0], [1, 0], [0, 1], [1, 1]]))
        assert (found.verdicts == ARGMAXABLE).tolist() == (found.sets.members.toarray() == given_labels).all(
            axis=1
        ).tolist()


def test_inputs_exactly_at_a_threshold_are_not_ruled_out_by_proofs_about_others() -> None:
    """Opposite labels: at x = 0 both score 0, which is at least 0 and not above it."""
    W = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]])
    sets = LabelSets.of([[1, 1, 1], [0, 0, 1], [1, 0, 0], [0, 0, 0]])
    strict = audit(OutputLayer(W, np.zeros(3), "predict", ""), sets)
    assert strict.verdicts.tolist() == [UNARGMAXABLE, UNDETERMINED, ARGMAXABLE, ARGMAXABLE]
    assert "1 set needs inputs with scores that are equal" in " ".join(strict.reasons)
    loose = audit(OutputLayer(W, np.zeros(3), "predict", "", at_least=True), sets)
    assert loose.verdicts.tolist() == [ARGMAXABLE, UNARGMAXABLE, ARGMAXABLE, UNARGMAXABLE]
    assert "The input of zeros gets the set of row 1" in " ".join(loose.reasons)


@given(st.integers(1, 3), st.booleans(), st.sampled_from(["predict", "topk"]), st.integers(0, 2**20))
def test_no_input_gets_what_no_input_is_said_to_get(d: int, at_least: bool, rule: Rule, seed: int) -> None:
    """Small whole numbers, where scores are often equal, and labels with the same weights among them."""
    rng = np.random.default_rng(seed)
    W, offsets = rng.integers(-1, 2, size=(6, d)).astype(float), rng.integers(-1, 2, size=6).astype(float)
    offsets *= rng.integers(0, 2)
    found = audit(OutputLayer(W, offsets, rule, "", at_least), ALL_SETS)
    scores = np.array(list(product(np.arange(-4, 5) / 2, repeat=d))) @ W.T + offsets
    members = ALL_SETS.members.toarray() > 0
    for place in range(len(ALL_SETS)):
        given_here = gives(scores, members[place], rule, at_least)
        assert found.verdicts[place] != UNARGMAXABLE or not given_here.any()
    assert (found.recheck() == (found.verdicts != UNDETERMINED)).all()
    assert found.witnesses is not None
    for place in np.flatnonzero(found.verdicts == ARGMAXABLE).tolist():
        assert check_witness_exactly(found.layer, members[place], found.witnesses[place])


def test_a_layer_of_constants_gives_one_set() -> None:
    found = audit(layer_of(np.zeros((6, 2)), np.full(6, -1.0)), ALL_SETS)
    assert found.count(ARGMAXABLE) == 1
    assert found.verdicts[ALL_SETS.members.sum(axis=1) == 0] == [ARGMAXABLE]


def test_examples_name_labels_that_do_conflict(rng: np.random.Generator) -> None:
    """No input in a large sample has the labels of the conflict without one of the others."""
    W, offsets = rng.normal(size=(6, 2)), rng.normal(size=6)
    found = audit(layer_of(W, offsets), ALL_SETS)
    names = "abcdef"
    given = rng.normal(scale=3, size=(20000, 2)) @ W.T + offsets > 0
    examples = found.examples(names, 100)
    assert len(examples) == found.count(UNARGMAXABLE) > 10
    assert [len(e["weights"]) for e in examples] == sorted(len(e["weights"]) for e in examples)
    for example in examples:
        inside = [names.index(name) for name in example["conflict"]["with"]]
        outside = [names.index(name) for name in example["conflict"]["without"]]
        assert 1 <= len(inside) + len(outside) <= 4
        assert set(example["conflict"]["with"]) <= set(example["labels"])
        assert not set(example["conflict"]["without"]) & set(example["labels"])
        assert not (given[:, inside].all(axis=1) & ~given[:, outside].any(axis=1)).any()


def test_top_places_need_only_differences() -> None:
    """Three labels on a line: the one in the middle never comes first, but every set of one or two ends can."""
    W = np.array([[-1.0], [0.0], [1.0]])
    sets = LabelSets.of([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [1, 0, 1]])
    found = audit(OutputLayer(W, np.zeros(3), "topk", ""), sets)
    assert found.verdicts.tolist() == [1, -1, 1, 1, -1]
    said = [example["says"] for example in found.examples(["low", "middle", "high"], 2)]
    assert said == ["no input ranks middle above low and high", "no input ranks low and high above middle"]


def test_of_labels_that_rank_alike_the_lowest_comes_first() -> None:
    """Labels 0, 2 and 3 are one kind: they come one after the other, and the last place may part them."""
    W = np.array([[1.0], [-1.0], [1.0], [1.0], [0.5]])
    sets = LabelSets.of(
        [[1, 0, 0, 0, 0], [0, 0, 1, 0, 0], [1, 0, 1, 0, 0], [1, 0, 0, 1, 0], [1, 0, 1, 0, 1], [1, 1, 0, 0, 1]]
    )
    found = audit(OutputLayer(W, np.zeros(5), "topk", ""), sets)
    assert found.verdicts.tolist() == [1, -1, 1, -1, -1, 1]
    assert "3 labels have the same weights as another one: the lowest always comes first." in found.reasons
    said = {example["row"]: example["says"] for example in found.examples("abcde", 9)}
    assert said[2] == "no input ranks c above a"
    assert said[4] == "no input ranks d above c"
    assert said[5] == "no input ranks e above b and d"


def test_first_places_follow_the_rule_of_models(rng: np.random.Generator) -> None:
    """Every set that a ridge model puts first for some row is found to have an input, labels alike included."""
    X = rng.normal(size=(300, 3))
    Y = (X @ rng.normal(size=(3, 5)) > 0.3).astype(np.int8)
    model = Ridge(1.0).fit(X, Y[:, [0, 1, 2, 0, 3, 4, 1]])
    for k in (1, 2, 3, 4):
        given = np.zeros((300, 7), dtype=np.int8)
        np.put_along_axis(given, model.predict_topk(X, k)[0], 1, axis=1)
        found = audit(model.output_layer("topk"), LabelSets.of(given))
        assert (found.verdicts == ARGMAXABLE).all()
    every = LabelSets.of(np.array(list(product((0, 1), repeat=7))))
    verdicts = audit(model.output_layer("topk"), every).verdicts
    members = every.members.toarray() > 0
    assert (verdicts[(members[:, 3] & ~members[:, 0]) | (members[:, 6] & ~members[:, 1])] == UNARGMAXABLE).all()


def test_without_any_weights_the_lowest_labels_are_the_first() -> None:
    for d in (1, 4):
        found = audit(OutputLayer(np.zeros((6, d)), np.zeros(6), "topk", ""), ALL_SETS)
        members = ALL_SETS.members.toarray()
        lowest = (np.diff(members, axis=1) <= 0).all(axis=1)
        assert ((found.verdicts == ARGMAXABLE) == lowest).all()
        assert found.count(UNARGMAXABLE) == 64 - 7
    offsets = np.array([0.0, 3.0, 1.0, 3.0, 2.0, 5.0])
    found = audit(OutputLayer(np.zeros((6, 2)), offsets, "topk", ""), ALL_SETS)
    assert found.count(ARGMAXABLE) == 7
    assert found.verdicts[(ALL_SETS.members.toarray() == [0, 1, 0, 0, 0, 1]).all(axis=1)].tolist() == [ARGMAXABLE]


def test_rankings_need_one_dimension_less_than_there_are_labels(rng: np.random.Generator) -> None:
    """The sentence about the rank says what counting says: with 5 dimensions any of 6 labels can come first."""
    full = audit(OutputLayer(rng.normal(size=(6, 5)), np.zeros(6), "topk", ""), ALL_SETS)
    assert full.count(ARGMAXABLE) == 64
    assert "every set of these labels can come first" in full.reasons[0]
    assert full.rank == 5
    W = rng.normal(size=(6, 4))
    narrow = audit(OutputLayer(W, np.zeros(6), "topk", ""), ALL_SETS)
    assert narrow.count(UNARGMAXABLE) > 0
    assert "have rank 4: not every label set can come first" in narrow.reasons[0]
    strict = audit(W, ALL_SETS.members, rule="topk").verdicts
    lowest = (np.diff(ALL_SETS.members.toarray(), axis=1) <= 0).all(axis=1)  # to the input of zeros
    assert (narrow.verdicts == np.where(lowest, ARGMAXABLE, strict)).all()


def test_short_rows_are_not_lost_beside_long_ones(rng: np.random.Generator) -> None:
    """Verdicts do not depend on the lengths of rows, below full rank neither."""
    for scale in (1e-15, 1e-200):
        W, offsets = rng.normal(size=(6, 3)) @ rng.normal(size=(3, 40)), rng.normal(size=6)
        expected = audit(layer_of(W, offsets), ALL_SETS)
        lengths = np.array([1.0, scale, 1.0, scale, scale, 1 / scale])
        found = audit(layer_of(W * lengths[:, None], offsets * lengths), ALL_SETS)
        assert (found.verdicts == expected.verdicts).all()
        assert found.rank == expected.rank == 3
        assert found.count(ARGMAXABLE) == count_argmaxable(6, 3, bias=True)


def test_a_model_that_learned_twins_says_that_they_come_together() -> None:
    """Two labels that always stand together in training have the same weights: no input tells them apart."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 5))
    first = (X @ rng.normal(size=5) > 0).astype(np.int8)
    second = (X @ rng.normal(size=5) > 0).astype(np.int8)
    Y = np.column_stack([first, second, first])
    found = audit(Ridge(1.0).fit(X, Y).output_layer(), LabelSets.of([[1, 1, 0], [1, 0, 1]]))
    assert found.verdicts.tolist() == [UNARGMAXABLE, ARGMAXABLE]
    assert found.examples(["red", "round", "crimson"], 1)[0]["says"] == "no input can have red without crimson"


def test_labels_with_the_same_weights_come_together_and_need_no_program(rng: np.random.Generator) -> None:
    W, offsets = rng.normal(size=(6, 9)), rng.normal(size=6)
    W[4], offsets[4] = W[1], offsets[1]
    W[5], offsets[5] = W[1], offsets[1]
    members = ALL_SETS.members.toarray()
    together = (members[:, 1] == members[:, 4]) & (members[:, 4] == members[:, 5])
    for weights in (W, sparse.csr_array(W)):
        found = audit(layer_of(weights, offsets), ALL_SETS)
        assert ((found.verdicts == ARGMAXABLE) == together).all()
        assert (found.verdicts == audit(W, ALL_SETS.members, offsets).verdicts).all()
        assert "3 labels have the same weights" in found.reasons[0]
        for example in found.examples("abcdef", 64):
            [inside], [outside] = example["conflict"]["with"], example["conflict"]["without"]
            assert {inside, outside} <= set("bef")


def test_wide_layers_too_large_for_programs_are_searched_by_algebra(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An input found is one that linear programs find too; what is not found stays open, and is said to."""
    W = np.abs(rng.normal(size=(6, 5))) @ rng.normal(size=(5, 9))
    proved = audit(W, ALL_SETS.members).verdicts
    monkeypatch.setattr("longtail.audit.question.MOST_DIMENSIONS", 3)
    found = audit(layer_of(W), ALL_SETS)
    assert (proved[found.verdicts == ARGMAXABLE] == ARGMAXABLE).all()
    assert found.count(ARGMAXABLE) > 0.9 * np.count_nonzero(proved == ARGMAXABLE)
    assert found.count(UNARGMAXABLE) == 0
    assert "remain not known" in found.reasons[-1]


def test_sets_of_other_labels_are_refused() -> None:
    with pytest.raises(InvalidInput, match="the label sets have 6 labels, the layer has 2"):
        audit(layer_of(np.eye(2)), ALL_SETS)


def test_a_direction_too_small_for_the_rank_rules_nothing_out(monkeypatch: pytest.MonkeyPatch) -> None:
    # Labels 0 and 1 differ by a hair, in a column that the rank of a large layer does not see.
    monkeypatch.setattr("longtail.estimator.output_layer.MOST_FOR_SINGULAR_VALUES", 4)
    rng = np.random.default_rng(0)
    base = rng.normal(size=(40, 5))
    base[1] = base[0]
    hair = np.zeros((40, 1))
    hair[0], hair[1] = 2e-8, -2e-8
    W = np.hstack([np.tile(base, 6), hair])
    wanted = (rng.normal(size=5) @ base.T > 0).astype(int)
    wanted[0], wanted[1] = 1, 0
    found = audit(OutputLayer(W, np.zeros(40), "predict", ""), LabelSets.of([wanted]))
    assert found.verdicts.tolist() == [0]
    assert any("taken for rounding" in reason for reason in found.reasons)
    W[:, -1] = 0
    assert audit(OutputLayer(W, np.zeros(40), "predict", ""), LabelSets.of([wanted])).verdicts.tolist() == [-1]


def test_options_that_need_strict_scores_are_refused_for_a_layer_with_a_rule() -> None:
    for options in ({"candidates": np.zeros((1, 2))}, {"alternating": True}, {"exact": True}):
        with pytest.raises(InvalidInput, match="without a rule for ties"):
            audit(layer_of(np.eye(2)), [[1, 0]], **options)
    with pytest.raises(InvalidInput, match="go with bare weights"):
        audit(layer_of(np.eye(2)), [[1, 0]], 1.0)


def test_witnesses_too_large_to_keep_are_checked_but_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longtail.audit.question._MOST_KEPT", 3)
    found = audit(layer_of(np.eye(2)), [[1, 0], [0, 1]])
    assert found.verdicts.tolist() == [ARGMAXABLE, ARGMAXABLE]
    assert found.witnesses is None
    with pytest.raises(InvalidInput, match="large witnesses are not kept"):
        found.recheck()
