"""Shares of label sets by size, and the size up to which all have an input."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from longtail.audit import UNARGMAXABLE, audit, audit_sizes, dft_matrix, find_safe_size
from longtail.errors import InvalidInput


def test_few_sets_are_audited_one_and_all(rng: np.random.Generator) -> None:
    W = rng.normal(size=(9, 3))
    found = audit_sizes(W, 3)
    sets = [each for size in (1, 2, 3) for each in itertools.combinations(range(9), size)]
    assert found.is_complete
    assert found.n_sets == len(found.found) == len(sets) == 9 + 36 + 84
    assert (found.found.verdicts == audit(W, sets).verdicts).all()
    assert found.interval == (found.share, found.share)


def test_the_interval_of_a_sample_holds_the_share_of_all() -> None:
    W = np.random.default_rng(1).normal(size=(14, 5))
    share = audit_sizes(W, 4, limit=10_000).share
    held = 0
    for seed in range(40):
        sample = audit_sizes(W, 4, limit=60, random_state=seed)
        low, high = sample.interval
        assert not sample.is_complete
        assert low <= sample.share <= high
        held += low <= share <= high
    assert held >= 36  # 38 expected
    assert 0.1 < share < 0.9


def test_a_sample_draws_sizes_as_often_as_there_are_sets() -> None:
    found = audit_sizes(np.eye(12), 2, limit=70)
    sizes = np.bincount(np.asarray(found.found.sets.members.sum(axis=1)).astype(int).ravel())
    assert found.n_sets == 78
    assert sizes[0] == 0
    assert 2 <= sizes[1] <= 20  # 12 of 78 sets have one label


@pytest.mark.parametrize("k", [1, 2, 3])
def test_sines_and_cosines_are_safe_up_to_their_k(k: int) -> None:
    safe = find_safe_size(dft_matrix(4 * k + 3, k), limit=2000)
    assert (safe.k, safe.is_proved) == (k, True)
    assert safe.sizes[-1].found.count(UNARGMAXABLE) > 0
    assert f"There are sets of {k + 1} labels without an input." in safe.says()
    assert "as proofs for all of them show" in safe.says()


def test_a_sampled_safe_size_is_no_proof() -> None:
    safe = find_safe_size(dft_matrix(40, 3), 3, limit=50)
    assert (safe.k, safe.is_proved) == (3, False)
    assert safe.says() == "Every set of up to 3 labels has an input, as far as random samples of them show."
    assert safe.sizes[-1].interval[1] == 1.0


def test_labels_that_come_together_are_not_safe() -> None:
    assert find_safe_size(np.array([[1.0], [2.0], [1.5]])).k == 0
    assert find_safe_size(np.array([[1.0], [0.0]])).k == 0
    assert "Not every single label has an input." in find_safe_size(np.array([[1.0], [0.0]])).says()


def test_counts_of_any_size_are_told() -> None:
    found = audit_sizes(np.random.default_rng(0).normal(size=(3000, 4)), 1500, limit=5)
    assert found.n_sets > 2**2999
    assert "10^90" in found.says()
    with pytest.raises(InvalidInput, match="most"):
        audit_sizes(np.eye(2), 0)


def test_sizes_that_no_set_has_are_refused() -> None:
    with pytest.raises(InvalidInput, match="least is 4, but the layer has only 3 labels"):
        audit_sizes(np.eye(3), 5, least=4)
    with pytest.raises(InvalidInput, match="most"):
        find_safe_size(np.eye(3), 0)
