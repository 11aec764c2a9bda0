"""Sharing out the labels of one group among its members."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from longtail.aggregated import sharing
from longtail.aggregated.sharing import by_moving, cheapest_members, shared_out
from longtail.errors import NotEnoughMemory


def problem(seed, n_labels, n_members, kind):
    """Costs and room: of any kind, with many ties, of a few labels copied, or such that all want the same members."""
    rng = np.random.default_rng(seed)
    costs = rng.normal(size=(n_labels, n_members))
    if kind == "ties":
        costs = np.round(costs)
    if kind == "copies":
        costs = costs[rng.integers(0, max(1, n_labels // 6), size=n_labels)]
    if kind == "crowded":
        costs -= 5 * np.arange(n_members)
    room = rng.multinomial(n_labels, rng.dirichlet(np.ones(n_members))) + rng.integers(0, 2, n_members)
    return costs, room


@given(
    seed=st.integers(0, 2**32 - 1),
    n_labels=st.integers(1, 25),
    n_members=st.integers(2, 7),
    kind=st.sampled_from(["any", "ties", "copies", "crowded"]),
)
def test_moving_labels_costs_as_little_as_a_column_for_each_place(seed, n_labels, n_members, kind):
    costs, room = problem(seed, n_labels, n_members, kind)
    rows, once = np.arange(n_labels), np.ones(n_labels, dtype=np.int64)
    moved, placed = by_moving(costs, room, once).argmax(axis=1), cheapest_members(costs, room)
    for members in (moved, placed):
        assert (np.bincount(members, minlength=n_members) <= room).all()
    assert costs[rows, moved].sum() == pytest.approx(costs[rows, placed].sum(), abs=1e-9)


def largest_sum(values, counts):
    """The most that similarities can add up to, by trying every way to share out."""
    n_labels, n_members = values.shape
    share = -(-int(counts.sum()) // n_members)

    def best(label, loads):
        if label == n_labels:
            return 0.0
        ways = (list(way) for way in combinations(range(n_members), counts[label]))
        return max(
            (
                values[label, way].sum() + best(label + 1, loads + np.isin(np.arange(n_members), way))
                for way in ways
                if (loads[way] < share).all()
            ),
            default=-np.inf,
        )

    return best(0, np.zeros(n_members, dtype=np.int64))


@pytest.mark.parametrize("n_members", [2, 3, 4])
@pytest.mark.parametrize("kind", ["any", "ties", "crowded"])
def test_repeated_labels_are_shared_out_in_the_best_of_all_ways(rng, n_members, kind):
    for _ in range(40):
        n_labels = int(rng.integers(1, 6 if n_members < 4 else 5))
        values = -problem(rng.integers(2**31), n_labels, n_members, kind)[0]
        counts = rng.integers(1, n_members + 1, size=n_labels)
        taken = shared_out(values, counts)
        np.testing.assert_array_equal(taken.sum(axis=1), counts)
        assert taken.sum(axis=0).max() <= -(-counts.sum() // n_members)
        assert values[taken].sum() == pytest.approx(largest_sum(values, counts), abs=1e-9)


@pytest.mark.parametrize("kind", ["any", "ties", "copies", "crowded"])
def test_repeated_labels_of_larger_groups_reach_the_optimum_of_the_linear_program(rng, kind):
    for n_labels, n_members in ((12, 5), (25, 7), (40, 3)):
        values = -problem(rng.integers(2**31), n_labels, n_members, kind)[0]
        counts = rng.integers(1, n_members + 1, size=n_labels)
        share = -(-int(counts.sum()) // n_members)
        best = linprog(
            -values.ravel(),
            A_ub=np.tile(np.eye(n_members), n_labels),
            b_ub=np.full(n_members, share),
            A_eq=np.kron(np.eye(n_labels), np.ones(n_members)),
            b_eq=counts,
            bounds=(0, 1),
        )
        assert values[shared_out(values, counts)].sum() == pytest.approx(-best.fun, abs=1e-6)


def test_a_large_group_is_shared_out_as_a_small_one_is(rng, monkeypatch):
    values = rng.normal(size=(90, 4))
    counts = np.ones(90, dtype=np.int64)
    usual = shared_out(values, counts)
    monkeypatch.setattr(sharing, "LARGE", 0)
    monkeypatch.setattr(sharing, "_MANY_PLACES", 0)
    monkeypatch.setattr(sharing, "linear_sum_assignment", None)
    assert len(np.unique(values)) == values.size  # so that there is one best way
    np.testing.assert_array_equal(shared_out(values, counts), usual)
    np.testing.assert_array_equal(usual.sum(axis=1), counts)


def test_thousands_of_labels_that_all_want_the_same_member_are_shared_out():
    rng = np.random.default_rng(0)
    values = rng.random((5000, 8))
    values[:, 3] += 1
    chosen = shared_out(values, np.ones(5000, dtype=np.int64))
    assert chosen.sum(axis=0).tolist() == [625] * 8
    # The prices that the labels pay: nobody would rather be elsewhere.
    owners = chosen.argmax(axis=1)
    gains = np.array(
        [[(values[owners == i, j] - values[owners == i, i]).max() if i != j else 0 for j in range(8)] for i in range(8)]
    )
    for middle in range(8):  # the best gain of any chain of moves
        gains = np.maximum(gains, gains[:, [middle]] + gains[[middle]])
    assert gains.diagonal().max() < 1e-9


def test_labels_with_the_same_similarities_move_together(monkeypatch):
    """Moved one by one, each would take a search of its own."""
    values = np.tile(np.array([9.0, 5.0, 2.0, 1.0]), (20_000, 1))
    values[:8000] -= np.array([0.0, 3.0, 0.0, 0.0])
    costs, room = -values, np.full(4, 5000)
    monkeypatch.setattr(sharing, "_RISES", 0)
    owners = by_moving(costs, room, np.ones(20_000, dtype=np.int64)).argmax(axis=1)
    assert np.bincount(owners).tolist() == [5000] * 4
    # The first kind loses more at the second member, so that the other kind has its places.
    assert (owners[:8000] != 1).all()


@pytest.mark.parametrize("size", [1e-24, 1e-300, 1e24])
def test_sharing_out_does_not_depend_on_the_size_of_similarities(rng, size):
    values = rng.normal(size=(12, 4))
    counts = rng.integers(1, 4, size=12)
    np.testing.assert_array_equal(shared_out(size * values, counts), shared_out(values, counts))


def test_places_that_do_not_fit_into_memory_are_refused(monkeypatch):
    monkeypatch.setattr(sharing, "LARGE", 100)
    monkeypatch.setenv("LONGTAIL_MEMORY", "1K")
    with pytest.raises(NotEnoughMemory, match=r"20 labels x 20 places .*Use rule 'count', or split the group"):
        shared_out(np.zeros((20, 20)), np.ones(20, dtype=np.int64))
