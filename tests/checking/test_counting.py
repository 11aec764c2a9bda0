"""Distributions of counts, and groups of equal digests."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from longtail.checking.counting import differing, distribution, distribution_of, equal_groups

NUMBERS = st.lists(st.integers(0, 3000), min_size=1, max_size=60)


@given(NUMBERS)
def test_a_distribution_of_counts_is_that_of_the_numbers(numbers: list[int]) -> None:
    found = distribution(Counter(numbers))
    assert found == distribution_of(np.array(numbers))
    spread = found.spread
    assert (spread.smallest, spread.largest) == (min(numbers), max(numbers))
    assert spread.median == np.median(numbers)
    assert np.isclose(spread.mean, np.mean(numbers))


@given(NUMBERS)
def test_every_number_is_in_one_bin(numbers: list[int]) -> None:
    bins = distribution(Counter(numbers)).bins
    assert [each.count for each in bins] == [sum(each.low <= n <= each.high for n in numbers) for each in bins]
    assert sum(each.count for each in bins) == len(numbers)
    assert all(one.high + 1 == other.low for one, other in pairwise(bins))


def test_numbers_that_never_occur_do_not_count() -> None:
    assert distribution({0: 0, 3: 2}).spread.smallest == 3
    assert distribution({}).spread is None
    assert distribution_of(np.zeros(0, np.int64)).bins == ()


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 2)), max_size=40))
def test_groups_are_the_values_that_occur_more_than_once(pairs: list[tuple[int, int]]) -> None:
    digests = np.array([digest for digest, _ in pairs], dtype=np.int64)
    values = np.array([value for _, value in pairs], dtype=np.int64)
    groups = equal_groups(digests)
    members = [groups.members[start:stop].tolist() for start, stop in zip(groups.starts, groups.stops, strict=True)]
    expected = [np.flatnonzero(digests == each).tolist() for each in np.unique(digests)]
    assert members == [each for each in expected if len(each) > 1]
    assert differing(groups, values).tolist() == [len(set(values[each].tolist())) > 1 for each in members]
    assert [len(each) for each in groups.largest(3)] == sorted(map(len, members), reverse=True)[:3]
