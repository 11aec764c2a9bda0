"""The room of label sets in layers of sines and cosines, and what floats make of it."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from longtail import memory
from longtail.audit import (
    SLACK,
    audit,
    closed_form_inputs,
    dft_margins,
    dft_matrix,
    random_members,
    slack_needed,
)
from longtail.audit import margins as margins_module
from longtail.errors import InvalidInput, NotEnoughMemory


def as_sets(members: np.ndarray, n: int) -> np.ndarray:
    sets = np.zeros((len(members), n), dtype=bool)
    np.put_along_axis(sets, members, True, axis=1)
    return sets


@pytest.mark.parametrize(("n", "k"), [(5, 2), (9, 2), (9, 4), (12, 3)])
def test_inputs_in_closed_form_get_every_set_of_up_to_k_labels(n: int, k: int) -> None:
    for size in range(1, k + 1):
        members = np.array(list(combinations(range(n), size)))
        found = closed_form_inputs(members, n, k)
        scores = found.x @ dft_matrix(n, k).T
        np.testing.assert_array_equal(scores > 0, as_sets(members, n))
        # The distance is from the nearest plane, of all labels.
        lengths = np.linalg.norm(dft_matrix(n, k), axis=1)
        np.testing.assert_allclose(found.lowest, (np.abs(scores) / lengths).min(axis=1), rtol=1e-9)


def test_their_radii_are_lower_bounds_of_the_exact_ones() -> None:
    pytest.importorskip("highspy")
    members = random_members(60, 3, 20)
    found = closed_form_inputs(members, 60, 3)
    exact = audit(dft_matrix(60, 3), as_sets(members, 60), exact_radii=True, n_jobs=1)
    assert (found.radii <= exact.radii * (1 + 1e-9)).all()
    assert (found.radii > exact.radii / 100).all()


@pytest.mark.parametrize(("n", "k"), [(60, 2), (159, 10), (983, 3), (983, 25)])
def test_sets_that_count_as_resolved_survive_rounding_to_32_bits(n: int, k: int) -> None:
    members = random_members(n, k, 100)
    found = closed_form_inputs(members, n, k)
    x = (found.x / np.abs(found.x).max(axis=1, keepdims=True)).astype(np.float32)
    right = ((x @ dft_matrix(n, k).astype(np.float32).T > 0) == as_sets(members, n)).all(axis=1)
    resolved = found.margins > np.finfo(np.float32).eps * np.sqrt(2 * k + 1)
    assert right[resolved].all()
    # No slack is chosen only if none is lost.
    assert slack_needed(n, k) == SLACK or right.all()


def test_slack_is_needed_where_regions_are_smaller_than_rounding_errors() -> None:
    assert slack_needed(20, 3) == 0
    assert slack_needed(983, 25) == SLACK
    assert slack_needed(159, 3) == SLACK
    assert slack_needed(159, 3, np.float64) == 0
    assert slack_needed(10, 0) == 0


def test_margins_shrink_with_labels_and_with_k() -> None:
    medians = [[np.median(dft_margins(n, k)) for n in (50, 500, 5000)] for k in (1, 3, 5)]
    assert (np.diff(medians, axis=1) < 0).all()
    assert (np.diff(medians, axis=0) < 0).all()


@pytest.mark.parametrize(("n", "k"), [(7, 3), (500, 4)])
def test_random_sets_have_different_labels_in_order(n: int, k: int) -> None:
    members = random_members(n, k, 200)
    assert members.shape == (200, k)
    assert (np.diff(members, axis=1) > 0).all()
    assert 0 <= members.min() <= members.max() < n


def test_sizes_that_have_no_layer_are_refused() -> None:
    with pytest.raises(InvalidInput, match="more than 2k labels"):
        dft_margins(6, 3)
    with pytest.raises(InvalidInput, match="rows of 1 to 2 labels"):
        closed_form_inputs([[1, 2, 3]], 9, 2)


def test_slack_for_large_sets_is_decided_by_the_first_one(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    original = margins_module.closed_form_inputs
    monkeypatch.setattr(
        margins_module, "closed_form_inputs", lambda *given: asked.append(len(given[0])) or original(*given)
    )
    assert slack_needed(10_000, 200) == 16
    assert asked == [1]
    with memory.limit(1000), pytest.raises(NotEnoughMemory):
        slack_needed(10_000, 200)
    with pytest.raises(InvalidInput, match="more than 2k labels"):
        slack_needed(10, 5)


@pytest.mark.parametrize("labels", [[[1, 9]], [[-1, 2]], [[2, 2]], [[5, 1]], [[1.0, 2.0]], [[1, 2, 3]], [[]]])
def test_labels_that_are_no_sets_have_no_closed_form(labels: list[list[float]]) -> None:
    with pytest.raises(InvalidInput, match="labels"):
        closed_form_inputs(labels, 9, 2)
    with pytest.raises(InvalidInput, match="more than 2k labels"):
        closed_form_inputs([[0, 1]], 4, 2)
