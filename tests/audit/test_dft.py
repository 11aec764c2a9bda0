"""The layer of sines and cosines: its product, its start, and which sets it can predict."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtail.audit import ARGMAXABLE, UNARGMAXABLE, audit
from longtail.audit.counting import count_argmaxable
from longtail.audit.dft import dft_matrix, dft_product, dft_witness, initial_bias
from longtail.audit.structure import alternations
from longtail.errors import InvalidInput

SIZES = st.integers(0, 20).flatmap(lambda k: st.tuples(st.integers(2 * k + 1, 200), st.just(k)))


@given(SIZES, st.integers(0, 2**32 - 1))
def test_the_fast_product_is_that_of_the_matrix(sizes: tuple[int, int], seed: int) -> None:
    n, k = sizes
    x = np.random.default_rng(seed).normal(size=(3, 2 * k + 1))
    W = dft_matrix(n, k)
    assert np.allclose(W.T @ W, np.eye(2 * k + 1), atol=1e-12)
    assert np.allclose(dft_product(x, n), x @ W.T, atol=1e-12)
    assert np.allclose(dft_product(x[0], n), W @ x[0], atol=1e-12)


@given(SIZES.filter(lambda sizes: sizes[1] > 0))
def test_training_starts_at_the_share_of_active_labels(sizes: tuple[int, int]) -> None:
    n, k = sizes
    for mean in (None, 0.5):
        probabilities = 1 / (1 + np.exp(-dft_product(initial_bias(n, k, mean), n)))
        assert np.allclose(probabilities, (mean or k) / n, rtol=1e-12)


@pytest.mark.parametrize(("n", "k", "count"), [(7, 1, 44), (8, 2, 198), (9, 2, 326), (10, 3, 932)])
def test_the_witness_is_there_for_exactly_the_sets_that_alternate_little_enough(n: int, k: int, count: int) -> None:
    W = dft_matrix(n, k)
    found = 0
    for y in product((0, 1), repeat=n):
        if alternations(y) <= 2 * k:
            x = dft_witness(y, k)
            assert x is not None
            assert ((W @ x > 0) == np.array(y)).all()
            found += 1
        else:
            with pytest.raises(InvalidInput, match="no input gets it"):
                dft_witness(y, k)
    assert found == count == count_argmaxable(n, 2 * k + 1)


@pytest.mark.parametrize(("n", "k", "count"), [(7, 1, 44), (8, 2, 198), (9, 2, 326), (10, 3, 932)])
def test_exactly_the_sets_that_alternate_little_enough_are_proved_argmaxable(n: int, k: int, count: int) -> None:
    sets = np.array(list(product((0, 1), repeat=n)))
    found = audit(dft_matrix(n, k), sets)
    assert (found.verdicts == np.where(alternations(sets) <= 2 * k, ARGMAXABLE, UNARGMAXABLE)).all()
    assert found.count(ARGMAXABLE) == count
    assert found.recheck().all()


@given(st.integers(12, 1000), st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_sets_of_at_most_k_labels_have_a_witness(n: int, k: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    y = np.zeros(n, dtype=np.int8)
    y[rng.choice(n, size=rng.integers(0, k + 1), replace=False)] = 1
    x = dft_witness(y, k)
    assert x is not None
    assert ((dft_product(x, n) > 0) == y).all()


def test_a_margin_below_rounding_is_owned_up_to() -> None:
    y = np.zeros(4000, dtype=np.int8)
    y[:60:2] = 1
    assert dft_witness(y, 30) is None


def test_unused_frequencies_make_the_smallest_score_larger() -> None:
    y = np.zeros(1000, dtype=np.int8)
    y[[100, 103, 107]] = 1
    margins = []
    for k in (3, 10, 30):
        x = dft_witness(y, k)
        assert x is not None
        scores = np.abs(dft_product(x, 1000))
        margins.append(scores.min() / scores.max())
    assert 100 * margins[0] < margins[1] < margins[2]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: dft_matrix(6, 3), "more than 2k labels"),
        (lambda: dft_product(np.ones(4), 9), "2k \\+ 1 values"),
        (lambda: dft_witness([[0, 1, 0]], 1), "one label set"),
        (lambda: initial_bias(9, 0), "active labels"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(call: object, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        call()  # type: ignore[operator]
