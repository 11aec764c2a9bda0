"""Rows that lie in several pieces, and ranges of about equal cost."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from longtail.work import Results, Stacked, even_ranges


@given(st.integers(0, 10**6), st.lists(st.integers(0, 4), min_size=1, max_size=5), st.booleans())
def test_taken_rows_are_those_of_the_whole_matrix(seed: int, sizes: list[int], has_data: bool) -> None:
    rng = np.random.default_rng(seed)
    whole = sparse.csr_array(rng.random((sum(sizes), 6)) * (rng.random((sum(sizes), 6)) < 0.4))
    ends = np.cumsum(sizes).tolist()
    ranges = [(end - size, end) for size, end in zip(sizes, ends, strict=True)]
    pieces = []
    for start, stop in ranges:
        part = whole[start:stop]
        piece = {"indptr": part.indptr, "indices": part.indices}
        pieces.append({**piece, "data": part.data} if has_data else piece)
    chosen = rng.integers(0, sum(sizes), size=7) if sum(sizes) else np.zeros(0, np.int64)
    stacked = Stacked(Results(ranges, pieces))
    indptr, indices, data = stacked.take(chosen)
    expected = whole[chosen]
    assert indptr.tolist() == expected.indptr.tolist()
    assert indices.tolist() == expected.indices.tolist()
    if has_data and len(chosen):
        assert data is not None
        assert data.tolist() == expected.data.tolist()
    assert stacked.lengths().tolist() == np.diff(whole.indptr).tolist()


@given(st.lists(st.floats(0.1, 10), max_size=30), st.floats(0.1, 40))
def test_ranges_cover_all_items_and_only_single_items_cost_more(costs: list[float], most: float) -> None:
    ranges = even_ranges(np.array(costs), most)
    assert [item for start, stop in ranges for item in range(start, stop)] == list(range(len(costs)))
    for start, stop in ranges:
        assert stop > start
        assert stop - start == 1 or sum(costs[start:stop]) <= most * (1 + 1e-9)
