"""Facts of the geometry that verdicts must respect, on layers small enough to know every answer."""

from __future__ import annotations

import itertools
import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.spatial import ConvexHull

from longtail.arrays import Array
from longtail.audit import ARGMAXABLE, UNARGMAXABLE, Audit, LabelSets, OutputLayer, System, audit, audit_classes
from longtail.audit.screens import match_inputs, reflect
from longtail.errors import InvalidInput, NotEnoughMemory
from longtail.parallel import split


def every_set(n_labels: int) -> Array:
    return np.array(list(itertools.product([0, 1], repeat=n_labels)))


def random_layer(n_labels: int, d: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=(n_labels, d))


def regions(n_rows: int, d: int) -> int:
    return 2 * sum(math.comb(n_rows - 1, i) for i in range(d))


def holds(found: Audit) -> bool:
    return bool(np.array_equal(found.recheck(), found.verdicts != 0))


@pytest.mark.parametrize(("n_labels", "d", "count"), [(6, 2, 12), (7, 3, 44), (8, 3, 58), (9, 4, 186)])
def test_as_many_sets_as_cover_counted_can_be_had(n_labels: int, d: int, count: int) -> None:
    found = audit(random_layer(n_labels, d), every_set(n_labels))
    assert count == regions(n_labels, d)
    assert found.count(ARGMAXABLE) == count
    assert found.count(UNARGMAXABLE) == 2**n_labels - count
    assert holds(found)


@pytest.mark.parametrize(("n_labels", "d"), [(3, 2), (6, 2), (7, 3)])
def test_a_bias_leaves_the_regions_of_an_affine_arrangement(n_labels: int, d: int, rng: np.random.Generator) -> None:
    found = audit(random_layer(n_labels, d), every_set(n_labels), rng.normal(size=n_labels))
    assert found.count(ARGMAXABLE) == sum(math.comb(n_labels, i) for i in range(d + 1))
    assert found.count(ARGMAXABLE) + found.count(UNARGMAXABLE) == 2**n_labels
    assert found.recheck(exact=True).all()


def test_a_threshold_is_a_bias_of_the_other_sign(rng: np.random.Generator) -> None:
    W, cut = random_layer(7, 3), rng.normal(size=7)
    by_bias, by_threshold = audit(W, every_set(7), -cut), audit(W, every_set(7), threshold=cut)
    assert (by_bias.verdicts == by_threshold.verdicts).all()
    assert (audit(W, every_set(7), cut, threshold=cut).verdicts == audit(W, every_set(7)).verdicts).all()


@given(st.integers(3, 9), st.integers(1, 5), st.integers(0, 2**20))
def test_a_set_can_be_had_exactly_if_its_complement_can(n_labels: int, d: int, seed: int) -> None:
    W = random_layer(n_labels, d, seed)
    sets = np.random.default_rng(seed).integers(0, 2, size=(8, n_labels))
    assert (audit(W, sets).verdicts == audit(W, 1 - sets).verdicts).all()


@given(st.integers(4, 9), st.integers(2, 4), st.integers(0, 2**20))
def test_bases_lengths_and_the_order_of_labels_do_not_matter(n_labels: int, d: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    W = random_layer(n_labels, d, seed)
    sets = rng.integers(0, 2, size=(8, n_labels))
    expected = audit(W, sets).verdicts
    mixing = rng.normal(size=(d, d)) + 3 * np.eye(d)
    order = rng.permutation(n_labels)
    assert (expected != 0).all()
    assert (audit(W @ mixing, sets).verdicts == expected).all()
    assert (audit(W * rng.uniform(0.01, 100, size=(n_labels, 1)), sets).verdicts == expected).all()
    assert (audit(W[order], sets[:, order]).verdicts == expected).all()


@given(st.integers(4, 12), st.integers(2, 4), st.integers(0, 2**20))
def test_more_columns_never_lose_a_set_nor_shrink_its_radius(n_labels: int, d: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    W = random_layer(n_labels, d, seed)
    W /= np.linalg.norm(W, axis=1)[:, None]
    sets = rng.integers(0, 2, size=(6, n_labels))
    narrow = audit(W, sets, exact_radii=True)
    # Zeros in new columns keep the lengths of rows, so radii can be compared.
    same = audit(np.hstack([W, np.zeros((n_labels, 2))]), sets, exact_radii=True)
    wide = audit(np.hstack([W, rng.normal(size=(n_labels, 1))]), sets)
    assert (same.verdicts == narrow.verdicts).all()
    assert same.radii == pytest.approx(narrow.radii, rel=1e-5, abs=1e-12)
    assert (wide.verdicts >= narrow.verdicts).all()


@given(st.integers(2, 7), st.integers(0, 3), st.integers(0, 2**20))
def test_with_as_many_dimensions_as_labels_everything_can_be_had(n_labels: int, more: int, seed: int) -> None:
    found = audit(random_layer(n_labels, n_labels + more, seed), every_set(n_labels))
    assert (found.verdicts == ARGMAXABLE).all()
    assert holds(found)


def test_the_sets_of_a_layer_and_of_its_orthogonal_complement_share_out_all_signs() -> None:
    Q = np.linalg.qr(random_layer(8, 8))[0]
    found, other = audit(Q[:, :3], every_set(8)), audit(Q[:, 3:], every_set(8))
    assert found.count(ARGMAXABLE) == regions(8, 3)
    assert other.count(ARGMAXABLE) == regions(8, 5)
    assert found.count(ARGMAXABLE) + other.count(ARGMAXABLE) == 2**8


def test_a_verdict_has_exactly_one_proof() -> None:
    found = audit(random_layer(8, 3), every_set(8))
    has_witness = np.isfinite(found.witnesses).all(axis=1)
    has_certificate = np.array([certificate is not None for certificate in found.certificates])
    assert (has_witness == (found.verdicts == ARGMAXABLE)).all()
    assert (has_certificate == (found.verdicts == UNARGMAXABLE)).all()
    for certificate in found.certificates:
        if certificate is not None:
            assert 1 <= len(certificate.labels) <= 4
            assert certificate.weights.sum() == pytest.approx(1)
            assert certificate.residual < 1e-14


def test_top_k_sets_are_those_that_some_input_ranks_first(rng: np.random.Generator) -> None:
    W, bias = random_layer(9, 3), rng.normal(size=9)
    scores = rng.normal(scale=20, size=(20_000, 3)) @ W.T + bias
    top = {tuple(sorted(row)) for row in np.argsort(-scores, axis=1)[:, :2].tolist()}
    pairs = list(itertools.combinations(range(9), 2))
    sets = np.zeros((len(pairs), 9))
    for row, pair in zip(sets, pairs, strict=True):
        row[list(pair)] = 1
    found = audit(W, sets, bias, rule="topk")
    assert holds(found)
    reached = {pair for pair, verdict in zip(pairs, found.verdicts, strict=True) if verdict == ARGMAXABLE}
    assert top <= reached
    assert (found.verdicts != 0).all()
    for row, witness in zip(sets, found.witnesses, strict=True):
        if np.isfinite(witness).all():
            assert set(np.argsort(-(W @ witness + bias))[:2]) == set(np.flatnonzero(row))


def test_no_labels_and_all_labels_are_top_sets_of_any_layer() -> None:
    found = audit(random_layer(6, 2), [[0] * 6, [1] * 6], rule="topk")
    assert (found.verdicts == ARGMAXABLE).all()
    assert found.recheck(exact=True).all()


def test_classes_inside_the_hull_of_others_never_win(rng: np.random.Generator) -> None:
    corners = np.array([[2.0, 0, 0], [0, 2, 0], [0, 0, 2], [-2, -2, -2]])
    inside = rng.dirichlet(np.ones(4), size=5) @ corners
    found = audit_classes(np.vstack([corners, inside]))
    assert found.verdicts.tolist() == [1] * 4 + [-1] * 5
    assert holds(found)
    certificate = found.certificates[4]
    assert certificate is not None
    assert audit_classes(np.vstack([corners, inside]), classes=[8, 0]).verdicts.tolist() == [-1, 1]
    # A bias can lift a class out of the hull.
    assert audit_classes(np.vstack([corners, inside]), [0] * 4 + [9.0] + [0] * 4).verdicts[4] == ARGMAXABLE


@given(st.integers(2, 25), st.integers(1, 4), st.booleans(), st.integers(0, 2**20))
def test_reflections_find_winners_and_change_no_verdict(n_classes: int, d: int, biased: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(n_classes, d))
    bias = rng.normal(size=n_classes) if biased else None
    found = audit_classes(W, bias)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "longtail.audit.search.reflect",
            lambda layer, classes: (layer.weights[classes], np.zeros(len(classes), bool)),
        )
        without = audit_classes(W, bias)
    assert "reflection" not in without.methods
    assert (found.verdicts == without.verdicts).all()
    assert holds(found)
    # Whoever wins somewhere in a large sample can win.
    sample = rng.normal(scale=3, size=(3000, d)) @ W.T + (0 if bias is None else bias)
    assert (found.verdicts[np.unique(sample.argmax(axis=1))] == ARGMAXABLE).all()


def test_reflections_find_the_corners_of_a_hull() -> None:
    """In the plane the classes that can win are known: the corners of the convex hull of their weights."""
    W = random_layer(200, 2)
    corners = np.zeros(200, dtype=bool)
    corners[ConvexHull(W).vertices] = True
    layer = OutputLayer.of(W, rule="topk")
    inputs, wins = reflect(layer, np.arange(200))
    assert not wins[~corners].any()
    assert np.count_nonzero(wins) > 0.7 * np.count_nonzero(corners)
    assert ((inputs[wins] @ W.T).argmax(axis=1) == np.flatnonzero(wins)).all()
    found = audit_classes(W)
    assert ((found.verdicts == ARGMAXABLE) == corners).all()
    # Where drawing inputs has no hope, even a few classes are settled so.
    assert audit_classes(random_layer(300, 8), classes=[1, 2, 5]).methods.tolist() == ["reflection"] * 3


@pytest.mark.parametrize("scale", [1e-250, 1e250])
def test_classes_with_nearly_the_same_weights_do_not_stop_reflections(scale: float) -> None:
    W = np.array([[1.0, 0.0], [1.0, 1e-160], [1.0, 1e-160], [-1.0, 0.0], [0.0, 0.0]]) * scale
    found = audit_classes(W)
    assert found.verdicts[2:].tolist() == [-1, 1, -1]
    assert holds(found)


def test_the_certificate_of_a_class_writes_it_as_a_mixture_of_others() -> None:
    W = np.array([[0.5, 0.5], [2.0, 0.0], [0.0, 2.0], [-1.0, -1.0]])
    [certificate] = audit_classes(W, classes=[0]).certificates
    assert certificate is not None
    # Weights are for rows of length 1; the rows are those of the system, with the coordinate of the cut.
    layer = System.of(OutputLayer.of(W, rule="topk"))
    raw = certificate.weights / layer.lengths[certificate.labels]
    mixture = raw[1:] / raw[0]
    assert certificate.labels[0] == 0
    assert mixture.sum() == pytest.approx(1)
    assert mixture @ W[certificate.labels[1:]] == pytest.approx(W[0])


def test_exact_radii_are_the_values_of_the_whole_program(rng: np.random.Generator) -> None:
    W = random_layer(60, 6)
    sets = (rng.normal(size=(12, 6)) @ W.T > 0).astype(int)
    found = audit(W, sets, exact_radii=True)
    bounds = audit(W, sets)
    assert found.radius_is_exact.all()
    assert not bounds.radius_is_exact.any()
    assert (bounds.radii <= found.radii * (1 + 1e-9)).all()
    from longtail.audit.program import solve_whole

    layer = System.of(OutputLayer.of(W))
    for members, radius in zip(sets, found.radii, strict=True):
        solution = solve_whole(layer.rows, np.where(members > 0, 1.0, -1.0))
        assert solution is not None
        assert radius == pytest.approx(solution.lower, rel=1e-6)


def test_candidates_are_tried_first_and_still_checked(rng: np.random.Generator) -> None:
    W = random_layer(200, 8)
    inputs = rng.normal(size=(30, 8))
    sets = (inputs @ W.T > 0).astype(int)
    found = audit(W, sets, candidates=inputs)
    assert set(found.methods) == {"candidates"}
    assert holds(found)
    misleading = audit(W, sets, candidates=np.zeros((3, 8)))
    assert (misleading.verdicts == ARGMAXABLE).all()
    assert "candidates" not in set(misleading.methods)


def test_candidates_serve_top_k_sets_too(rng: np.random.Generator) -> None:
    W, inputs = random_layer(100, 8), rng.normal(size=(20, 8))
    sets = np.zeros((20, 100))
    sizes = rng.integers(1, 6, size=20)
    for row, scores, size in zip(sets, inputs @ W.T, sizes, strict=True):
        row[np.argsort(-scores)[:size]] = 1
    found = audit(W, sets, rule="topk", candidates=inputs)
    assert set(found.methods) == {"candidates"}
    assert holds(found)


def test_many_labels_are_compared_with_few_inputs_at_a_time(rng: np.random.Generator) -> None:
    layer = OutputLayer.of(rng.normal(size=(200_000, 2)))
    inputs = rng.normal(size=(200, 2))
    members = inputs[[150]] @ layer.weights.T > 0
    tracemalloc.start()
    match = match_inputs(layer, members, inputs)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert match.tolist() == [150]
    assert peak < 2**28


def test_sparse_weights_that_do_not_fit_when_dense_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    W = sparse.eye_array(4000, format="csr")
    monkeypatch.setenv("LONGTAIL_MEMORY", "100M")
    with pytest.raises(NotEnoughMemory, match="weights and their system 366"):
        audit(W, sparse.csr_array((1, 4000), dtype=np.int8))


def test_zero_rows_bar_their_own_label_and_no_other() -> None:
    W = np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]])
    found = audit(W, [[1, 0, 1], [1, 1, 1], [0, 0, 0]])
    assert found.verdicts.tolist() == [1, -1, 1]
    assert found.recheck(exact=True).all()
    certificate = found.certificates[1]
    assert certificate is not None
    assert certificate.labels.tolist() == [1]
    # With a bias the score of such a label is the same for every input.
    assert audit(W, [[1, 0, 1], [1, 1, 1]], [0.0, 2.0, 0.0]).verdicts.tolist() == [-1, 1]


def test_equal_rows_cannot_part() -> None:
    W = random_layer(30, 40)
    W[7] = 3 * W[3]
    sets = np.zeros((3, 30))
    sets[0, 3] = sets[1, 3] = sets[1, 7] = 1
    found = audit(W, sets)
    assert found.verdicts.tolist() == [-1, 1, 1]
    certificate = found.certificates[0]
    assert certificate is not None
    assert certificate.labels.tolist() == [3, 7]
    assert certificate.weights == pytest.approx([0.5, 0.5])
    assert audit(W, sets, rule="topk").verdicts[0] == ARGMAXABLE


def test_weights_of_any_magnitude_are_judged_alike() -> None:
    W, sets = random_layer(8, 3), every_set(8)
    expected = audit(W, sets).verdicts
    scale = 10.0 ** np.linspace(-200, 200, 8)[:, None]
    assert (audit(W * scale, sets).verdicts == expected).all()


def test_a_layer_of_low_rank_is_judged_by_its_rank(rng: np.random.Generator) -> None:
    W = random_layer(60, 4) @ rng.normal(size=(4, 25))
    inputs = rng.normal(size=(5, 25))
    found = audit(W, np.concatenate([inputs @ W.T > 0, rng.integers(0, 2, size=(5, 60))]).astype(int))
    assert found.verdicts.tolist() == [1] * 5 + [-1] * 5
    assert max(len(certificate.labels) for certificate in found.certificates if certificate is not None) <= 5


def test_sparse_and_dense_label_sets_threads_and_blocks_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    W, sets = random_layer(9, 4), every_set(9)
    whole = audit(W, sets, n_jobs=1)
    monkeypatch.setattr(LabelSets, "blocks", lambda sets: split(len(sets), 50))
    parts = audit(W, sparse.csr_matrix(sets), n_jobs=3)
    assert (whole.verdicts == parts.verdicts).all()
    assert holds(parts)
    assert len(audit(W, np.zeros((0, 9)))) == 0


def test_the_rule_of_alternations_gives_proofs_at_once_and_is_not_believed_blindly() -> None:
    nodes = np.arange(1, 9) / 4
    W = np.vander(nodes, 3, increasing=True)
    found = audit(W, every_set(8), alternating=True)
    turns = np.count_nonzero(np.diff(every_set(8), axis=1), axis=1)
    assert ((found.verdicts == ARGMAXABLE) == (turns <= 2)).all()
    assert (found.methods[turns > 2] == "alternation").all()
    assert found.recheck(exact=True).all()
    with pytest.raises(InvalidInput, match="do not all have one sign"):
        audit(W[[3, 1, 7, 0, 5, 2, 6, 4]], every_set(8), alternating=True)
    with pytest.raises(InvalidInput, match="without bias"):
        audit(W, every_set(8), 1.0, alternating=True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": [[1.0, np.nan]]}, "weights contains NaN"),
        ({"model": [1.0, 2.0]}, "weights has 1 dimensions"),
        ({"model": [["a", "b"]]}, "expected real numbers"),
        ({"model": np.zeros((0, 3))}, "at least one label"),
        ({"label_sets": [[1, 0]]}, "the label sets have 2 labels, the layer has 3"),
        ({"label_sets": np.array([[1, 2, 0]])}, "only 0 and 1"),
        ({"bias": [1.0, 2.0]}, "bias has shape"),
        ({"bias": np.inf}, "bias contains NaN or infinity"),
        ({"threshold": [[0.5]]}, "threshold has shape"),
        ({"rule": "argmax"}, "rule is 'argmax'"),
        ({"candidates": [[1.0]]}, "rows of 2 features"),
        ({"candidates": [[1.0, np.nan]]}, "candidates contains NaN"),
        ({"tolerance": -1.0}, "tolerance is -1.0"),
        ({"n_jobs": 0}, "n_jobs is 0"),
    ],
)
def test_input_that_makes_no_sense_is_turned_down(change: dict[str, object], message: str) -> None:
    arguments: dict[str, object] = {"model": np.eye(3, 2) + 1, "label_sets": [[1, 0, 0]]}
    with pytest.raises(InvalidInput, match=message):
        audit(**(arguments | change))  # type: ignore[arg-type]


def test_classes_that_do_not_exist_are_turned_down() -> None:
    for classes in ([3], [-1], [0.5], [[0]]):
        with pytest.raises(InvalidInput, match="class ids from 0 to 2"):
            audit_classes(np.eye(3), classes=classes)


def test_a_summary_counts_verdicts_and_steps() -> None:
    found = audit(random_layer(6, 2), every_set(6))
    facts = found.to_dict()
    assert (facts["argmaxable"], facts["unargmaxable"], facts["undetermined"]) == (12, 52, 0)
    assert sum(facts["methods"].values()) == len(found) == 64
    assert facts["smallest_radius"] == found.radii[found.verdicts == ARGMAXABLE].min()
    text = found.to_text()
    assert "64 label sets, 6 labels, 2 dimensions" in text
    assert "unargmaxable         52   81.2%" in text
    assert set(found.names) == {"argmaxable", "unargmaxable"}
