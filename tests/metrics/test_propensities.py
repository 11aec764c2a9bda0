from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtail.errors import InvalidInput
from longtail.metrics import PROPENSITY_CONSTANTS, inverse_propensity, propensity, propensity_constants

constants = st.sampled_from(sorted(set(PROPENSITY_CONSTANTS.values())))


@given(st.integers(3, 10**7), constants)
def test_a_more_frequent_label_is_more_likely_recorded(n_rows: int, ab: tuple[float, float]) -> None:
    counts = np.unique(np.linspace(0, n_rows, 50).astype(int))
    chances = propensity(counts, n_rows, *ab)
    assert (np.diff(chances) > 0).all()
    assert (chances > 0).all()
    assert (chances < 1).all()
    assert (np.diff(inverse_propensity(counts, n_rows, *ab)) < 0).all()


@given(st.integers(1, 10**7), constants)
def test_the_two_are_inverse_to_each_other(n_rows: int, ab: tuple[float, float]) -> None:
    counts = [0, 1, n_rows]
    assert propensity(counts, n_rows, *ab) * inverse_propensity(counts, n_rows, *ab) == pytest.approx(1)


def test_formula_worked_out_by_hand() -> None:
    # With a = 1 and b = 1: C = 2 (ln N - 1), so a label of one row weighs 1 + C / 2 = ln N.
    assert inverse_propensity([1], 1000, a=1, b=1)[0] == pytest.approx(math.log(1000))


@pytest.mark.parametrize("n_rows", [1, 2])
def test_with_fewer_than_3_rows_every_propensity_is_1(n_rows: int) -> None:
    assert propensity([0, 1], n_rows).tolist() == [1.0, 1.0]
    assert inverse_propensity([0, 1], n_rows).tolist() == [1.0, 1.0]


def test_with_3_rows_the_formula_holds() -> None:
    assert (inverse_propensity([0, 1, 3], 3) > 1).all()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("WikiLSHTC-325K", (0.5, 0.4)),
        ("wikipedia 500k", (0.5, 0.4)),
        ("amazon_670k", (0.6, 2.6)),
        ("AMAZON-3M", (0.6, 2.6)),
        ("AmazonCat-13K", (0.55, 1.5)),
        ("eurlex-4k", (0.55, 1.5)),
        ("something else", (0.55, 1.5)),
    ],
)
def test_constants_are_found_by_name(name: str, expected: tuple[float, float]) -> None:
    assert propensity_constants(name) == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([-1], 10), "go from -1"),
        (([11], 10), "expected 0 to n_rows = 10"),
        (([float("nan")], 10), "go from nan"),
        (([[1]], 10), "2 dimensions"),
        (([1], 0), "n_rows is 0"),
        (([1], 2.5), "n_rows is 2.5"),
        (([1], 10, 0.55, 0), "b=0"),
        (([1], 10, -1, 1.5), "a=-1"),
    ],
)
def test_impossible_arguments_are_refused(arguments: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        inverse_propensity(*arguments)
