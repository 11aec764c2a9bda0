"""Plans of heads: they cover the labels, are narrow, leave little over, and include those that were published."""

from __future__ import annotations

import math
from itertools import combinations_with_replacement, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtail.errors import InvalidInput
from longtail.labels import HeadPlan, confusion_degree, plan_heads

any_labels = st.integers(1, 3000) | st.integers(1, 2**40)
orders = st.sampled_from(["descending", "equal"])


@given(any_labels, st.integers(1, 8), orders)
def test_a_plan_covers_the_labels_and_its_longest_head_comes_first(n_labels, n_heads, order):
    plan = plan_heads(n_labels, n_heads, order=order)
    assert len(plan.radices) == n_heads
    assert plan.padding == math.prod(plan.radices) - n_labels >= 0
    assert list(plan.radices) == sorted(plan.radices, reverse=True)
    assert plan.width == sum(plan.radices)
    assert plan.width >= n_heads * n_labels ** (1 / n_heads) * (1 - 1e-12)  # the means: arithmetic and geometric
    assert plan == plan_heads(n_labels, n_heads, order=order)


@given(any_labels, st.integers(1, 8), orders)
def test_no_head_can_be_shorter(n_labels, n_heads, order):
    plan = plan_heads(n_labels, n_heads, order=order)
    assert all(plan.padding < math.prod(plan.radices) // length for length in plan.radices)


@given(any_labels, st.integers(2, 8), orders)
def test_a_head_of_length_one_stands_only_where_labels_are_too_few(n_labels, n_heads, order):
    plan = plan_heads(n_labels, n_heads, order=order)
    assert (1 in plan.radices) == (n_labels <= 2 ** (n_heads - 1))


@given(any_labels, orders, st.data())
def test_with_two_heads_a_requested_first_head_leaves_less_padding_than_the_second_is_long(n_labels, order, data):
    first = data.draw(st.integers(1, n_labels))
    plan = plan_heads(n_labels, first=first, order=order)
    assert plan.radices[0] <= first
    assert plan.radices[1] == -(-n_labels // first)
    assert 0 <= plan.padding < plan.radices[1]


@given(st.integers(1, 10**6), st.integers(1, 10**6), orders)
def test_a_requested_first_head_that_divides_the_labels_leaves_no_padding(first, second, order):
    plan = plan_heads(first * second, first=first, order=order)
    assert plan.radices == (first, second)
    assert plan.padding == 0


@given(any_labels, st.integers(2, 8), orders, st.data())
def test_a_requested_first_head_only_shrinks_and_the_labels_stay_covered(n_labels, n_heads, order, data):
    first = data.draw(st.integers(1, n_labels))
    plan = plan_heads(n_labels, n_heads, first, order)
    assert len(plan.radices) == n_heads
    assert plan.radices[0] <= first
    assert 0 <= plan.padding < math.prod(plan.radices[1:])


def all_covers(n_labels, n_heads):
    """Every plan without a head that could be shorter, in descending order of lengths of at least 2."""
    for lengths in combinations_with_replacement(range(n_labels, 1, -1), n_heads):
        product = math.prod(lengths)
        if product >= n_labels and all(product - product // length < n_labels for length in lengths):
            yield lengths


@pytest.mark.parametrize(("order", "factor", "ranking"), [("descending", 4, "given"), ("equal", 1.25, "worst")])
@pytest.mark.parametrize("n_heads", [2, 3])
def test_the_plan_is_the_best_of_all_by_the_written_rule(order, factor, ranking, n_heads):
    for n_labels in range(2 ** (n_heads - 1) + 1, 70 if n_heads == 2 else 40):
        covers = list(all_covers(n_labels, n_heads))
        narrowest = min(sum(lengths) for lengths in covers)
        exact = [lengths for lengths in covers if math.prod(lengths) == n_labels]
        exact = [lengths for lengths in exact if sum(lengths) <= factor * narrowest]
        choices = exact or [lengths for lengths in covers if sum(lengths) == narrowest]
        best = min((sum(lengths), confusion_degree(lengths, ranking)) for lengths in choices)
        plan = plan_heads(n_labels, n_heads, order=order)
        assert (plan.width, plan.confusion) == best, n_labels
        assert (plan.padding == 0) == bool(exact)


@pytest.mark.parametrize(
    ("n_labels", "radices", "first"),
    [
        (10, (5, 2), None),
        (100, (10, 10), None),
        (100, (20, 5), 20),
        (1000, (40, 25), None),
        (3956, (86, 46), None),
        (3956, (172, 23), 172),
        (13_330, (155, 86), None),
        (13_330, (310, 43), 310),
        (30_938, (499, 62), None),
        (501_070, (5630, 89), 5630),
        (670_091, (8377, 80), 8400),
        (2_812_281, (8761, 321), None),
        (10_572, (881, 12), 881),
        (85_742, (1994, 43), 1994),
        (93_431, (7187, 13), 7187),
        (159, (53, 3), None),
        (983, (197, 5), 197),
    ],
)
def test_plans_that_were_published_can_be_had(n_labels, radices, first):
    plan = plan_heads(n_labels, first=first)
    assert plan.radices == radices
    assert plan.padding == {670_091: 69, 983: 2}.get(n_labels, 0)


def test_plans_of_more_heads_that_were_published_can_be_had():
    assert plan_heads(100, 3, first=4).radices == (4, 5, 5)
    assert plan_heads(1_728_000, 3).radices == (120, 120, 120)
    assert plan_heads(2**20, 5).radices == (16,) * 5


def test_four_heads_of_36_are_too_few_for_the_labels_of_which_the_paper_says_so():
    assert 36**4 < 1_728_000
    plan = plan_heads(1_728_000, 4)
    assert (plan.width, plan.padding) == (37 + 37 + 36 + 36, 0)


def test_a_prime_number_of_labels_gets_narrow_heads_with_padding():
    plan = plan_heads(983)
    assert plan.radices == (34, 29)
    assert plan.padding == 3
    assert plan_heads(983, order="equal").radices == (32, 31)


def test_heads_side_by_side_are_about_as_long_as_each_other():
    assert plan_heads(159).radices == (53, 3)
    assert plan_heads(159, order="equal").radices == (13, 13)
    assert plan_heads(1000, order="equal").radices == (40, 25)


@pytest.mark.parametrize("order", ["descending", "equal"])
@pytest.mark.parametrize(
    "n_labels", [963_761_198_400, 999_999_999_989, 2 * 499_999_999_979, 10**12, 720_720 * 1_299_709, 735_134_400 * 1361]
)
def test_large_numbers_of_labels_have_plans_whatever_their_divisors(n_labels, order):
    for n_heads in range(1, 9):
        plan = plan_heads(n_labels, n_heads, order=order)
        assert 0 <= plan.padding < n_labels
        assert plan.width <= 4.001 * n_heads * (n_labels ** (1 / n_heads) + 1)


@given(st.lists(st.integers(1, 9), min_size=2, max_size=5))
def test_the_worst_confusion_is_the_largest_over_all_orders(radices):
    found = [confusion_degree(lengths) for lengths in permutations(radices)]
    assert confusion_degree(radices, "worst") == max(found)
    assert confusion_degree(sorted(radices, reverse=True)) == min(found)


@given(st.lists(st.integers(1, 50), min_size=2, max_size=6))
def test_the_confusion_degree_is_the_product_in_the_paper(radices):
    product = 1.0
    for head in range(1, len(radices)):
        product *= math.prod(radices[head:]) / radices[head - 1]
    assert confusion_degree(radices) == pytest.approx(product, rel=1e-12)


def test_confusion_at_its_ends():
    assert confusion_degree((7,)) == 0
    assert confusion_degree((2**60,) * 16) == math.inf
    assert confusion_degree((172, 23)) < confusion_degree((86, 46))


def test_a_plan_counts_the_weights_of_its_heads():
    plan = plan_heads(3956, first=172)
    assert plan.parameters(300) == 195 * 301
    assert plan.parameters(300, bias=False) == 195 * 300


def test_a_plan_describes_itself_in_one_line():
    assert (
        plan_heads(670_091, first=8400).describe()
        == "670,091 labels in 2 heads of 8,377 x 80: 8,457 outputs, 69 codes of padding, confusion 0.00955"
    )
    assert plan_heads(7, 1).describe() == "7 labels in 1 head of 7: 7 outputs, no padding, confusion 0"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_labels": 0}, "n_labels is 0; expected a whole number from 1"),
        ({"n_labels": 2**40 + 1}, "n_labels is"),
        ({"n_labels": 10.0}, "n_labels is 10.0"),
        ({"n_labels": True}, "n_labels is True"),
        ({"n_labels": 10, "n_heads": 0}, "n_heads is 0; expected a whole number from 1 to 64"),
        ({"n_labels": 10, "first": 0}, "first is 0; expected a whole number from 1 to 10"),
        ({"n_labels": 10, "first": 11}, "first is 11"),
        ({"n_labels": 10, "n_heads": 1, "first": 5}, "first is given, but a single head"),
        ({"n_labels": 10, "order": "ascending"}, "order is 'ascending'; expected 'descending' or 'equal'"),
    ],
)
def test_what_cannot_be_planned_is_refused(arguments, message):
    with pytest.raises(InvalidInput, match=message):
        plan_heads(**arguments)


def test_a_plan_that_does_not_cover_its_labels_cannot_be_made():
    with pytest.raises(InvalidInput, match=r"heads of lengths \(5, 2\) have 10 codes, fewer than the 11 labels"):
        HeadPlan(11, (5, 2))
    with pytest.raises(InvalidInput, match="order is 'best'; expected 'given' or 'worst'"):
        confusion_degree((5, 2), "best")
