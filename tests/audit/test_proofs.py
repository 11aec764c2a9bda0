"""Proofs are judged from the weights alone, in float64 and exactly."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtail.audit import Audit, Certificate, OutputLayer, System, audit
from longtail.audit.proofs import (
    certificate_exactly,
    certificate_is_sure,
    certificate_residual,
    check_witness_exactly,
    check_witnesses,
)
from longtail.estimator import Rule

TRIANGLE = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
WITHOUT_SUM = np.array([True, True, False])


def altered(audit: Audit, **changes: object) -> Audit:
    fields = {name: getattr(audit, name) for name in audit.__dataclass_fields__}
    return Audit(**(fields | changes))


def test_a_certificate_cancels_and_its_exact_weights_too() -> None:
    layer = OutputLayer.of(TRIANGLE)
    # Rows of length 1: the sum's row is sqrt(2) long, so it weighs sqrt(2) times as much.
    weights = np.array([1.0, 1.0, np.sqrt(2.0)]) / (2 + np.sqrt(2.0))
    labels = np.arange(3)
    assert certificate_residual(layer, WITHOUT_SUM, labels, weights) < 1e-15
    assert certificate_is_sure(layer, WITHOUT_SUM, labels, weights)
    exact = certificate_exactly(layer, WITHOUT_SUM, labels, weights)
    assert exact is not None
    assert exact[0] == exact[1] == exact[2] > 0


def test_no_certificate_passes_for_a_set_that_can_be_had() -> None:
    layer = OutputLayer.of(TRIANGLE)
    members = np.array([True, True, True])
    weights = np.array([1.0, 1.0, np.sqrt(2.0)])
    assert certificate_residual(layer, members, np.arange(3), weights) > 0.5
    assert not certificate_is_sure(layer, members, np.arange(3), weights)
    assert certificate_exactly(layer, members, np.arange(3), weights) is None


@pytest.mark.parametrize(
    ("labels", "weights"),
    [
        ([], []),
        ([0, 1], [1.0, -1.0]),
        ([0, 5], [1.0, 1.0]),
        ([0, 0], [1.0, 1.0]),
        ([0], [np.nan]),
        ([0, 1], [0.0, 0.0]),
    ],
)
def test_weights_that_are_no_certificate_leave_everything(labels: list[int], weights: list[float]) -> None:
    proof = (OutputLayer.of(TRIANGLE), WITHOUT_SUM, np.array(labels, dtype=int), np.array(weights, dtype=float))
    assert certificate_residual(*proof) == float("inf")
    assert not certificate_is_sure(*proof)
    assert certificate_exactly(*proof) is None


def test_exact_proofs_see_what_float64_cannot() -> None:
    # The third row is the sum of the others but for a hair, by which the set can be had after all.
    W = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 1.0, 2.0**-60]])
    in_floats = audit(W, [WITHOUT_SUM.astype(int)])
    [certificate] = in_floats.certificates
    assert certificate is not None
    assert not in_floats.recheck(exact=True).any()
    assert audit(W, [WITHOUT_SUM.astype(int)], exact=True).verdicts.tolist() == [0]
    witness = np.array([2.0**-61, 2.0**-61, -1.5])
    assert check_witness_exactly(OutputLayer.of(W), WITHOUT_SUM, witness)
    W[2, 2] = 0
    assert audit(W, [WITHOUT_SUM.astype(int)], exact=True).verdicts.tolist() == [-1]


@pytest.mark.parametrize(("n_labels", "frequencies", "span"), [(400, 12, 120), (3_000, 4, 100)])
def test_a_thin_region_is_not_taken_for_none(n_labels: int, frequencies: int, span: int) -> None:
    # Every set of so few labels can be had, but neighbours on a slow curve nearly depend on each other: radii sink
    # below what float64 resolves.
    angles = 2 * np.pi * np.outer(np.arange(n_labels), np.arange(1, frequencies + 1)) / n_labels
    W = np.concatenate([np.ones((n_labels, 1)), np.cos(angles), np.sin(angles)], axis=1)
    rng = np.random.default_rng(0)
    sets = np.zeros((40, n_labels), dtype=int)
    for row in sets:
        row[rng.choice(span, frequencies, replace=False)] = 1
    found = audit(W, sets)
    assert (found.verdicts >= 0).all()
    assert (found.verdicts == 0).any()


def test_signs_within_rounding_are_left_to_exact_arithmetic() -> None:
    # In float64 the sum is 0; exactly it is positive.
    W = np.array([[1.0, 1.0, -1.0]])
    x = np.array([1.0, 2.0**-80, 1.0])
    layer = OutputLayer.of(W)
    wanted = np.array([True])
    assert not check_witnesses(layer, wanted[None, :], x[None, :])[0]
    assert check_witness_exactly(layer, wanted, x)
    assert not check_witness_exactly(layer, ~wanted, x)
    assert not check_witness_exactly(layer, wanted, np.full(3, np.nan))


def test_ties_do_not_make_a_top_set() -> None:
    layer = OutputLayer.of(np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), rule="topk")
    x = np.array([1.0, 0.0])
    assert not check_witness_exactly(layer, np.array([True, False, False]), x)
    assert check_witness_exactly(layer, np.array([True, True, False]), x)


@given(st.integers(2, 6), st.integers(1, 4), st.booleans(), st.sampled_from(["predict", "topk"]), st.integers(0, 2**20))
def test_what_float64_accepts_exact_arithmetic_accepts(
    n_labels: int, d: int, with_bias: bool, rule: Rule, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    # Small whole numbers make layers in special position: parallel rows, sums of rows, rows of zeros.
    W = rng.integers(-2, 3, size=(n_labels, d))
    bias = rng.integers(-2, 3, size=n_labels) if with_bias else None
    sets = rng.integers(0, 2, size=(6, n_labels))
    found = audit(W, sets, bias, rule=rule)
    assert (found.verdicts != 0).all()
    assert found.recheck().all()
    assert found.recheck(exact=True).all()
    assert (audit(W, sets, bias, rule=rule, exact=True).verdicts == found.verdicts).all()


def test_exact_weights_cancel_the_rows_exactly(rng: np.random.Generator) -> None:
    W = rng.normal(size=(30, 8))
    members = rng.integers(0, 2, size=30)
    [certificate] = audit(W, [members]).certificates
    assert certificate is not None
    layer = OutputLayer.of(W)
    exact = certificate_exactly(layer, members > 0, certificate.labels, certificate.weights)
    assert exact is not None
    assert min(exact) > 0
    for column in range(8):
        signed = [Fraction(W[label, column]) * (1 if members[label] else -1) for label in certificate.labels.tolist()]
        assert sum(weight * value for weight, value in zip(exact, signed, strict=True)) == 0
    given = certificate.weights / System.of(layer).lengths[certificate.labels]
    assert np.array([float(weight) for weight in exact]) / float(sum(exact)) == pytest.approx(given / given.sum())


@pytest.mark.parametrize("exact", [False, True])
def test_forged_proofs_do_not_stand(exact: bool, rng: np.random.Generator) -> None:
    W = rng.normal(size=(20, 3))
    sets = np.concatenate([rng.normal(size=(4, 3)) @ W.T > 0, rng.integers(0, 2, size=(4, 20))]).astype(int)
    found = audit(W, sets)
    assert found.verdicts.tolist() == [1] * 4 + [-1] * 4
    assert found.recheck(exact=exact).all()
    assert not altered(found, verdicts=-found.verdicts).recheck(exact=exact).any()
    assert not altered(found, witnesses=-found.witnesses).recheck(exact=exact)[:4].any()
    assert not altered(found, certificates=found.certificates[::-1]).recheck(exact=exact)[4:].any()
    weighed = [
        certificate and Certificate(certificate.labels, certificate.weights[::-1], certificate.residual)
        for certificate in found.certificates
    ]
    assert not altered(found, certificates=tuple(weighed)).recheck(exact=exact)[4:].any()
    other = OutputLayer.of(rng.normal(size=(20, 3)))
    assert not altered(found, layer=other).recheck(exact=exact).any()
    assert not altered(found, verdicts=np.zeros(8, dtype=np.int8)).recheck(exact=exact).any()
