"""The smallest rank that keeps label sets."""

from __future__ import annotations

import numpy as np
import pytest

from longtail import Ridge
from longtail.audit import ARGMAXABLE, audit, dft_matrix, find_sufficient_rank


def test_the_rank_found_keeps_every_set_and_the_one_below_does_not(rng: np.random.Generator) -> None:
    X = rng.normal(size=(80, 12))
    Y = (X @ rng.normal(size=(12, 10)) > 1).astype(np.int8)
    layer = Ridge(1.0).fit(X, Y).output_layer()
    sets = np.unique(Y, axis=0)
    rank, given = find_sufficient_rank(layer, sets)
    assert rank is not None
    reached = audit(layer, sets).count(ARGMAXABLE)
    assert given[rank] == reached
    assert rank == 1 or given[rank - 1] < reached
    assert all(count < reached for tried, count in given.items() if tried < rank)


@pytest.mark.parametrize("k", [1, 2])
def test_sines_and_cosines_need_all_their_columns(k: int) -> None:
    W = dft_matrix(9, k)
    sets = [[first, (first + 4) % 9][:k] for first in range(9)]
    rank, given = find_sufficient_rank(W, sets)
    assert rank is None
    assert all(count < len(sets) for count in given.values())
