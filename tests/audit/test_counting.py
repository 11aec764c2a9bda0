"""Counts of predictable label sets, against enumeration and the identities they must satisfy."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtail.audit.counting import count_argmaxable, dimensions_needed, share_argmaxable
from longtail.audit.structure import alternations
from longtail.errors import InvalidInput


@pytest.mark.parametrize(("n", "d", "count"), [(6, 2, 12), (7, 3, 44), (8, 3, 58), (9, 4, 186), (8, 5, 198)])
def test_counts_are_those_of_general_position(n: int, d: int, count: int) -> None:
    assert count_argmaxable(n, d) == count


@given(st.integers(1, 60), st.integers(0, 70))
def test_a_layer_and_its_orthogonal_complement_share_all_sets_between_them(n: int, d: int) -> None:
    d = min(d, n)
    assert count_argmaxable(n, d) + count_argmaxable(n, n - d) == 2**n


@given(st.integers(1, 60), st.integers(0, 70))
def test_a_bias_is_a_coordinate_that_must_be_positive(n: int, d: int) -> None:
    """Of the regions of one more dimension and one more hyperplane, x_0 = 0, half have x_0 > 0."""
    assert 2 * count_argmaxable(n, d, bias=True) == count_argmaxable(n + 1, d + 1)


@given(st.integers(1, 40), st.integers(0, 40))
def test_more_features_never_predict_fewer_sets(n: int, d: int) -> None:
    for bias in (False, True):
        assert count_argmaxable(n, d, bias) <= count_argmaxable(n, d + 1, bias) <= 2**n
    assert count_argmaxable(n, d) <= count_argmaxable(n, d, bias=True)
    assert count_argmaxable(n, n) == 2**n


@pytest.mark.parametrize(("n", "d"), [(5, 1), (6, 3), (9, 4), (10, 7)])
def test_as_many_sets_change_fewer_than_d_times(n: int, d: int) -> None:
    sets = np.array(list(product((0, 1), repeat=n)))
    assert np.count_nonzero(alternations(sets) <= d - 1) == count_argmaxable(n, d)


def test_a_large_count_is_exact() -> None:
    assert count_argmaxable(1000, 300) == 2 * sum(math.comb(999, i) for i in range(300))
    assert share_argmaxable(1000, 500) == 0.5


@given(st.integers(1, 900), st.integers(1, 900), st.booleans())
def test_the_logarithm_is_that_of_the_share(n: int, d: int, bias: bool) -> None:
    share = share_argmaxable(n, d, bias)
    assert 10 ** share_argmaxable(n, d, bias, log10=True) == pytest.approx(share, rel=1e-9)


def test_a_share_too_small_for_a_float_has_a_logarithm() -> None:
    assert share_argmaxable(5000, 1) == 0
    assert share_argmaxable(5000, 1, log10=True) == pytest.approx(-4999 * math.log10(2))
    assert share_argmaxable(7, 0, log10=True) == -math.inf


def test_two_dimensions_per_active_label_and_one_more() -> None:
    assert [dimensions_needed(k) for k in (0, 1, 80)] == [1, 3, 161]


@pytest.mark.parametrize("arguments", [(0, 1), (3, -1), (2.5, 1), (3, True)])
def test_sizes_that_are_none_are_refused(arguments: tuple[int, int]) -> None:
    with pytest.raises(InvalidInput, match="expected a whole number of at least"):
        count_argmaxable(*arguments)
