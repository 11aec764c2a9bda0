"""Alternations and matrices with minors of one sign."""

from __future__ import annotations

from itertools import combinations, pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import sparse
from scipy.linalg import null_space

from longtail.audit import audit
from longtail.audit.dft import dft_matrix
from longtail.audit.structure import add_slack, alternations, has_one_sign_minors, vandermonde_matrix
from longtail.errors import InvalidInput

SETS = arrays.arrays(np.int8, st.tuples(st.integers(0, 6), st.integers(1, 12)), elements=st.integers(0, 1))


@given(SETS)
def test_alternations_do_not_depend_on_how_a_set_is_written(sets: np.ndarray) -> None:
    expected = [sum(a != b for a, b in pairwise(row)) for row in sets.tolist()]
    assert alternations(sets).tolist() == expected
    assert alternations(sets.astype(bool)).tolist() == expected
    assert alternations(2 * sets - 1).tolist() == expected
    assert alternations(sparse.csr_array(sets)).tolist() == expected
    assert [alternations(row) for row in sets] == expected


@given(SETS)
def test_a_set_and_its_complement_alternate_alike_and_k_labels_at_most_2k_times(sets: np.ndarray) -> None:
    assert alternations(1 - sets).tolist() == alternations(sets).tolist()
    assert (alternations(sets) <= 2 * sets.sum(axis=1)).all()


def test_minors_in_exact_arithmetic_are_those_of_linear_algebra(rng: np.random.Generator) -> None:
    for _ in range(30):
        n, d = rng.integers(2, 6), rng.integers(1, 3)
        W = rng.normal(size=(max(n, d), d))
        minors = np.array([np.linalg.det(W[list(rows)]) for rows in combinations(range(len(W)), d)])
        assert has_one_sign_minors(W) == bool((minors > 0).all() or (minors < 0).all())


def test_a_minor_that_is_zero_is_found_where_rounding_would_hide_it() -> None:
    assert not has_one_sign_minors([[0.1, 0.1], [0.3, 0.3], [0.1, 0.7]])
    assert not has_one_sign_minors(np.zeros((3, 2)))


def test_increasing_nodes_give_minors_of_one_sign(rng: np.random.Generator) -> None:
    for d in (1, 2, 3, 4):
        assert has_one_sign_minors(vandermonde_matrix(np.sort(rng.normal(size=7)), d))


@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_minors_of_one_sign_let_exactly_the_sets_through_that_alternate_little_enough(d: int) -> None:
    sets = np.array(list(product((0, 1), repeat=7)))
    found = audit(vandermonde_matrix([-2, -1.2, -0.5, 0.1, 0.6, 1.3, 2.1], d), sets)
    assert (found.verdicts == np.where(alternations(sets) <= d - 1, 1, -1)).all()


@pytest.mark.parametrize("d", [1, 2, 4])
def test_a_layer_and_its_orthogonal_complement_share_out_all_sets(d: int, rng: np.random.Generator) -> None:
    """Read a certificate backwards: its signed weights are a vector of the complement."""
    W = rng.normal(size=(7, d))
    sets = np.array(list(product((0, 1), repeat=7)))
    complement = null_space(W.T)
    assert (audit(W, sets).verdicts == -audit(complement, sets).verdicts).all()


def test_sines_and_cosines_give_minors_of_one_sign() -> None:
    for n, k in ((7, 1), (8, 2), (9, 2), (10, 3)):
        assert has_one_sign_minors(dft_matrix(n, k))
    assert not has_one_sign_minors(dft_matrix(7, 1)[[1, 0, *range(2, 7)]])


def test_slack_is_symmetric_and_keeps_the_weights() -> None:
    W = np.arange(6000.0).reshape(3000, 2)
    wider = add_slack(W, 5, random_state=1)
    assert (wider[:, :2] == W).all()
    drawn = wider[:, 2:] / np.sqrt(np.mean(W**2))
    assert np.abs(drawn.mean()) < 0.02
    assert -1 <= drawn.min() < -0.99
    assert 0.99 < drawn.max() <= 1
    assert (wider == add_slack(W, 5, random_state=1)).all()
    assert np.ptp(add_slack(np.zeros((50, 1)), 3)) > 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: vandermonde_matrix([1, 1, 2], 2), "strictly increasing"),
        (lambda: vandermonde_matrix([1.0], 2), "1 nodes for 2 columns"),
        (lambda: has_one_sign_minors(np.ones((2, 3))), "at least as many rows"),
        (lambda: has_one_sign_minors(np.ones((60, 30))), "minors; the maximum is 200,000"),
        (lambda: has_one_sign_minors([[np.nan]]), "finite"),
        (lambda: alternations([0, 2]), "0 and 1"),
        (lambda: alternations([0, -1]), "mixes"),
        (lambda: add_slack([1.0], 1), "1 dimensions"),
    ],
)
def test_what_means_nothing_is_refused(call: object, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        call()  # type: ignore[operator]
