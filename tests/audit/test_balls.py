"""Radii are those of the linear program over inputs, written out in full and solved by SciPy."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog

from longtail import Ridge
from longtail.arrays import Array
from longtail.audit import ARGMAXABLE, UNARGMAXABLE, Box, OutputLayer, audit, audit_classes, audit_corpus
from longtail.data import Corpus
from longtail.errors import InvalidInput
from longtail.estimator import Rule

MODES = ["sign", "bias", "thresholds", "topk", "topk with bias", "classes", "rank-deficient", "sparse", "wide"]


def planes_of(W: Array, offsets: Array, members: Array, rule: Rule) -> tuple[Array, Array]:
    """Rows and offsets that must all be above 0: one for each label, or for each pair inside and outside."""
    if rule == "predict":
        signs = np.where(members, 1.0, -1.0)
        return signs[:, None] * W, signs * offsets
    pairs = [(i, j) for i in np.flatnonzero(members) for j in np.flatnonzero(~members)]
    first, second = (np.array([pair[side] for pair in pairs], dtype=int) for side in (0, 1))
    return W[first] - W[second], offsets[first] - offsets[second]


def program(rows: Array, offsets: Array, lengths: Array, low: Array, high: Array) -> float:
    """The largest r with rows @ x + offsets >= r * lengths for some x of the box."""
    found = linprog(
        np.append(np.zeros(rows.shape[1]), -1.0),
        A_ub=np.concatenate([-rows, lengths[:, None]], axis=1),
        b_ub=offsets,
        bounds=[*zip(low, high, strict=True), (None, None)],
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert found.status == 0
    return float(found.x[-1])


def expected_radius(W: Array, offsets: Array, members: Array, rule: Rule, low: Array, high: Array) -> float:
    rows, offsets = planes_of(W, offsets, members, rule)
    lengths = np.linalg.norm(rows, axis=1)
    rows, offsets, lengths = rows[lengths > 0], offsets[lengths > 0], lengths[lengths > 0]
    if not len(rows):
        return float("inf")
    radius = program(rows, offsets, lengths, low, high)
    if 0 < radius < 0.1:  # the solver's tolerance is absolute
        scale = 1 / radius
        radius = program(rows, scale * offsets, lengths, scale * low, scale * high) / scale
    return max(0.0, radius)


def is_argmaxable(layer: OutputLayer, W: Array, members: Array) -> bool:
    """By the program that asks for a margin of 1. Scores that are always 0 go by the rule of the layer."""
    rows, offsets = planes_of(W, layer.offsets, members, layer.rule)
    lengths = np.linalg.norm(np.column_stack([rows, offsets]), axis=1)
    if layer.rule == "predict":
        if (members[lengths == 0] != bool(layer.at_least)).any():
            return False
        rows, offsets, lengths = rows[lengths > 0], offsets[lengths > 0], lengths[lengths > 0]
    if not len(rows):
        return True
    # The offsets are multiplied by a positive number t of its own.
    homogeneous = np.column_stack([rows, offsets]) / lengths[:, None]
    positive = np.zeros((1, homogeneous.shape[1]))
    positive[0, -1] = 1.0
    homogeneous = np.vstack([homogeneous, positive])
    found = linprog(
        np.zeros(homogeneous.shape[1]), A_ub=-homogeneous, b_ub=-np.ones(len(homogeneous)), bounds=(None, None)
    )
    return bool(found.status == 0)


def cases(mode: str, count: int) -> Iterator[tuple[OutputLayer, Array, Array]]:
    """Layers, a label set for each, and inputs that were seen. Half of the label sets are given by an input."""
    rng = np.random.default_rng([MODES.index(mode), 7])
    for number in range(count):
        n, d = int(rng.integers(2, 14)), int(rng.integers(1, 6))
        W = rng.normal(size=(n, d)) * rng.uniform(0.2, 3, size=(n, 1))
        offsets = np.zeros(n)
        rule: Rule = "topk" if mode in ("topk", "topk with bias", "classes") else "predict"
        if mode in ("bias", "thresholds", "topk with bias", "rank-deficient", "wide"):
            offsets = rng.normal(size=n)
        if mode == "rank-deficient":
            W = W[:, : max(1, d // 2)] @ rng.normal(size=(max(1, d // 2), d))
        if mode == "wide":
            W = rng.normal(size=(n, n + d))
        if mode == "sparse":
            W = W * (rng.random(W.shape) < 0.5)
        seen = rng.uniform(0, 1, size=(1, W.shape[1])) + rng.normal(size=(6, W.shape[1]))
        scores = W @ (rng.normal(size=W.shape[1]) if number % 4 else seen.mean(axis=0)) + offsets
        members = scores > 0
        if rule == "topk":
            size = 1 if mode == "classes" else int(rng.integers(0, n + 1))
            members = np.isin(np.arange(n), np.argsort(-scores)[:size])
        if number % 2:
            members = rng.permutation(members) if rule == "topk" else rng.random(n) < 0.5
        weights = sparse.csr_array(W) if mode == "sparse" else W
        at_least = (None, False, True)[number % 3]
        yield OutputLayer(weights, offsets, rule, "", at_least), members, seen


def disagreements(mode: str, count: int) -> list[str]:
    """What an audit says and the programs do not."""
    found = []
    for number, (layer, members, seen) in enumerate(cases(mode, count)):
        W = layer.weights.toarray() if sparse.issparse(layer.weights) else layer.weights
        half_width = (0.3, 1.0, 50.0)[number % 3]
        result = audit(layer, members[None, :], exact_radii=True, box=half_width, seen=seen, n_jobs=1)
        lower = audit(layer, members[None, :], box=half_width, seen=seen, n_jobs=1)
        if result.methods[0] == "ties":  # not known, because only inputs with equal scores could get it
            continue
        # The program has strict scores only; the input of zeros may get a set by the rule for equal ones.
        reached = is_argmaxable(layer, W, members) or result.methods[0] == "origin"
        if result.verdicts[0] != (ARGMAXABLE if reached else UNARGMAXABLE):
            found.append(f"{mode} {number}: {result.names[0]}, the program says {reached}")
            continue
        if not reached:
            continue
        everywhere = np.full(W.shape[1], half_width)
        for name, low, high in (("room", -everywhere, everywhere), ("seen_room", seen.min(axis=0), seen.max(axis=0))):
            room, bound = getattr(result, name), getattr(lower, name)
            expected = expected_radius(W, layer.offsets, members, layer.rule, low, high)
            if not (room.exact[0] and room.values[0] == pytest.approx(expected, rel=1e-6, abs=1e-12)):
                found.append(f"{mode} {number}, {name}: {room.values[0]} ({room.exact[0]}), expected {expected}")
            if not bound.values[0] <= room.values[0] * (1 + 1e-9):
                found.append(f"{mode} {number}, {name}: a lower bound of {bound.values[0]}, expected {expected}")
    return found


@pytest.mark.parametrize("mode", MODES)
def test_verdicts_and_radii_are_those_of_independent_programs(mode: str) -> None:
    assert disagreements(mode, 112) == []


def test_a_bias_counts_in_the_space_of_inputs() -> None:
    """No input of the box exceeds a threshold of 5; in wider boxes the ball is one of inputs."""
    for box, radius in ((1.0, 0.0), (5.0, 0.0), (7.0, 2.0)):
        found = audit([[1.0]], [[1]], -5.0, box=box, exact_radii=True)
        assert found.verdicts.tolist() == [ARGMAXABLE]
        assert found.radii == pytest.approx([radius])
        assert found.radii_are_exact


def test_every_input_gets_a_set_without_planes() -> None:
    found = audit_classes([[1.0, 2.0]], exact_radii=True)
    assert found.radii.tolist() == [float("inf")]
    assert found.radii_are_exact
    assert found.smallest_radius() is None
    assert found.share(1e9) == 1


def test_the_box_of_a_layer_cut_to_a_rank_is_that_of_the_features(rng: np.random.Generator) -> None:
    X, Y = rng.normal(size=(60, 7)), (rng.random((60, 5)) < 0.4).astype(np.int8)
    layer = Ridge(1.0).fit(X, Y).output_layer()
    corpus = Corpus(labels=Y, label_names=list("abcde"), features=X)
    found = audit_corpus(layer, corpus, "abcde", ranks=(2,), exact_radii=True, box=3.0, seen=X)
    left, values, right = np.linalg.svd(layer.weights, full_matrices=False)
    [(_, cut)] = found.ranks
    W = (left[:, :2] * values[:2]) @ right[:2]
    low, high = np.full(7, -3.0), np.full(7, 3.0)
    reached = np.flatnonzero(cut.verdicts == ARGMAXABLE)
    assert len(reached) > 2
    for place in reached.tolist():
        members = cut.sets.dense([place])[0]
        expected = expected_radius(W, layer.offsets, members, "predict", low, high)
        assert cut.radii[place] == pytest.approx(expected, rel=1e-6)
        assert cut.seen_room is not None
        expected = expected_radius(W, layer.offsets, members, "predict", X.min(axis=0), X.max(axis=0))
        assert cut.seen_room.values[place] == pytest.approx(expected, rel=1e-6, abs=1e-12)


def test_the_share_of_sets_with_room_counts_only_what_is_measured() -> None:
    W = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    found = audit(W, [[1, 1, 1], [1, 1, 0], [1, 0, 1], [0, 0, 0]], exact_radii=True)
    # Balls at (1, 1), in the wedge between x > 0 and y < 0 < x + y, and at (-1, -1).
    assert found.radii == pytest.approx([1.0, 0.0, 1 / (1 + np.sqrt(2)), 1.0])
    assert [found.share(radius) for radius in (0.0, 0.4, 0.5, 1.1)] == [0.75, 0.75, 0.5, 0.0]
    with pytest.raises(InvalidInput, match="give `seen`"):
        found.share(0.1, seen=True)


def test_what_is_no_box_is_refused() -> None:
    for box in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(InvalidInput, match="expected a positive number"):
            audit([[1.0]], [[1]], box=box)
    with pytest.raises(InvalidInput, match="3 features, the layer has 1 inputs"):
        audit([[1.0]], [[1]], seen=np.zeros((2, 3)))
    with pytest.raises(InvalidInput, match="NaN"):
        Box.seen([[np.nan]])


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_verdicts_and_radii_agree_over_five_thousand_cases(mode: str) -> None:
    assert disagreements(mode, 556) == []
