"""General position, which makes the number of label sets that of Cover."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

from longtail.audit import (
    ARGMAXABLE,
    OutputLayer,
    audit,
    count_argmaxable,
    dft_matrix,
    general_position,
    vandermonde_matrix,
)
from longtail.audit.exact import eliminate, whole_numbers
from longtail.audit.modular import PRIME, are_regular, remainders
from longtail.errors import InvalidInput


def every_set(n: int) -> np.ndarray:
    return np.array(list(product([0, 1], repeat=n)))


def special_layers(rng: np.random.Generator) -> dict[str, np.ndarray]:
    plain = np.round(1024 * rng.normal(size=(6, 3))) / 1024  # so that sums of rows are not rounded
    parallel, planar = plain.copy(), plain.copy()
    parallel[4] = -2 * parallel[1]
    planar[5] = planar[0] / 2 + planar[3]
    return {"plain": plain, "whole": rng.integers(-2, 3, size=(6, 3)) * 1.0, "parallel": parallel, "planar": planar}


@pytest.mark.parametrize("name", ["plain", "whole", "parallel", "planar"])
@pytest.mark.parametrize("with_bias", [False, True])
def test_layers_in_general_position_have_covers_count_of_label_sets_and_others_fewer(
    name: str, with_bias: bool, rng: np.random.Generator
) -> None:
    weights = special_layers(rng)[name]
    bias = rng.normal(size=6) if with_bias else None
    found = general_position(weights, bias)
    assert found.holds is not None
    assert found.label_sets == count_argmaxable(6, 3, bias=with_bias)
    reached = audit(weights, every_set(6), bias, n_jobs=1)
    if found.holds:
        assert reached.count(ARGMAXABLE) == found.label_sets
    else:
        assert reached.count(ARGMAXABLE) < found.label_sets
        rows = np.hstack([weights, bias[:, None]]) if bias is not None else weights
        rows = np.vstack([rows, np.eye(1, rows.shape[1], rows.shape[1] - 1)]) if with_bias else rows
        chosen = rows[found.dependent]
        assert np.linalg.matrix_rank(chosen) < len(chosen)


@pytest.mark.parametrize("weights", [dft_matrix(9, 2), vandermonde_matrix(range(8), 4), np.eye(4), np.eye(3, 5)])
def test_layers_that_are_known_to_be_in_general_position_are_proved_to_be(weights: np.ndarray) -> None:
    found = general_position(weights)
    assert found.holds
    assert found.checked == found.choices
    assert "all" in found.to_text()


def test_the_dependent_rows_are_named(rng: np.random.Generator) -> None:
    layers = special_layers(rng)
    assert general_position(layers["parallel"]).dependent.tolist() == [1, 4]
    found = general_position(layers["planar"])
    assert sorted(found.dependent.tolist()) == [0, 3, 5]
    assert "labels 0, 3, 5 are linearly dependent" in found.to_text()
    # A rounded sum is not a sum any more.
    rounded = layers["planar"].copy()
    rounded[5] += 2.0**-40
    assert general_position(rounded).holds
    zero = np.vstack([layers["plain"], np.zeros(3)])
    assert general_position(zero).dependent.tolist() == [6]
    assert general_position(np.hstack([layers["plain"], np.zeros((6, 1))])).holds is False
    assert "the bias" in general_position([[1.0], [0.0]], [1.0, 1.0]).to_text()


def test_a_large_layer_is_checked_at_random_and_nothing_more_is_claimed(rng: np.random.Generator) -> None:
    found = general_position(rng.normal(size=(300, 40)), checks=200)
    assert found.holds is None
    assert found.checked == 200
    assert 0.014 < found.most_dependent < 0.016
    assert "At 95 % confidence, at most 1.5 %" in found.to_text()


def test_parallel_rows_and_low_rank_of_a_large_layer_are_found(rng: np.random.Generator) -> None:
    weights = rng.normal(size=(300, 40))
    weights[200] = 4 * weights[7]
    assert general_position(weights, checks=1).dependent.tolist() == [7, 200]
    whole = rng.integers(-3, 4, size=(300, 5)) @ rng.integers(-3, 4, size=(5, 8)) * 1.0
    found = general_position(whole, checks=10)
    assert found.holds is False
    assert np.linalg.matrix_rank(whole[found.dependent]) < len(found.dependent)


def test_remainders_tell_regular_matrices_as_exact_elimination_does(rng: np.random.Generator) -> None:
    matrices = rng.integers(-2, 3, size=(400, 4, 4)) * np.exp2(rng.integers(-60, 60, size=(400, 1, 1)))
    expected = [len(eliminate([whole_numbers(row) for row in matrix.tolist()])[0]) == 4 for matrix in matrices]
    assert 50 < sum(expected) < 390
    np.testing.assert_array_equal(are_regular(remainders(matrices)), expected)


def test_remainders_of_floats_are_those_of_their_fractions() -> None:
    values = np.array([1.0, -1.0, 0.1, -3.7e-200, 5e-324, 1e300, 0.0])
    for value, found in zip(values.tolist(), remainders(values).tolist(), strict=True):
        top, bottom = value.as_integer_ratio()
        assert found == top * pow(bottom, -1, PRIME) % PRIME


def test_all_choices_are_really_checked() -> None:
    """One dependent choice among all of them, the last, and no parallel rows."""
    weights = np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [1, 2, 3], [3, 1, 5], [4, 3, 8]])
    dependent = [c for c in combinations(range(6), 3) if abs(np.linalg.det(weights[list(c)])) < 1e-9]
    assert dependent == [(3, 4, 5)]
    assert general_position(weights).dependent.tolist() == [3, 4, 5]


def test_rankings_and_a_second_bias_are_refused() -> None:
    with pytest.raises(InvalidInput, match="the rule 'predict'"):
        general_position(OutputLayer.of(np.eye(2), rule="topk"))
    with pytest.raises(InvalidInput, match="bias goes with bare weights"):
        general_position(OutputLayer.of(np.eye(2)), [1.0, 2.0])
