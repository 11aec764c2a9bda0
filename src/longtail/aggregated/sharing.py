"""Rule joint within one group: its labels are shared out among its members, so that similarities add up to the most.

One assignment problem for each turn. Small ones are solved with a column for each place of a member; large ones, where
that takes the cube of the number of labels, by moving labels along the cheapest ways from full members to others.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from longtail.memory import MemoryPlan

Array = np.ndarray[Any, np.dtype[Any]]

# Labels x places; from there on the cube is seconds.
LARGE = 4_000_000
# Places of a member from which on moving labels is quicker than a column for each place.
_MANY_PLACES = 16
_RISES = 50  # of the price of each member, before labels are moved one by one
_CELL_BYTES = 32  # the costs, and once more on the way to them


def shared_out(values: Array, counts: Array) -> Array:
    """A mask of cells of a labels x members matrix: `counts` of each label, about as many of each member."""
    n_members = values.shape[1]
    if n_members == 1:
        return np.ones(values.shape, dtype=bool)
    room = np.full(n_members, -(-int(counts.sum()) // n_members))
    taken = np.zeros(values.shape, dtype=bool)
    # In proportion to the values: beside a far larger number small ones would be lost to rounding.
    refused = 4 * (len(values) + 1) * (float(np.abs(values).max(initial=0)) or 1.0)
    for turn in range(int(counts.max(initial=0))):
        labels = np.flatnonzero(counts > turn)
        costs = np.where(taken[labels], refused, -values[labels])
        members = cheapest_members(costs, room)
        members[costs[np.arange(len(labels)), members] >= refused] = -1
        # Where all that have room have the label already, the best of the others takes it all the same.
        for i in np.flatnonzero(members < 0):
            members[i] = np.argmax(np.where(taken[labels[i]], -np.inf, values[labels[i]]))
        taken[labels, members] = True
        room = np.maximum(0, room - np.bincount(members, minlength=n_members))
    return taken


def cheapest_members(costs: Array, room: Array) -> Array:
    """A member for each label at the least sum of costs, none with more labels than it has room for.

    Parameters
    ----------
    costs : float64 array of shape (n_labels, n_members)
    room : int64 array of shape (n_members,)
        Not less than `n_labels` in all.
    """
    n_labels, n_members = costs.shape
    n_places = int(room.sum())
    if n_labels * n_places > LARGE and n_places > _MANY_PLACES * n_members:
        return by_moving(costs, room)
    if n_labels * n_places > LARGE:
        MemoryPlan(
            "sharing out the labels of a group",
            {f"{n_labels:,} labels x {n_places:,} places": _CELL_BYTES * n_labels * n_places},
            "Take rule 'count', or divide the group.",
        ).check()
    places = np.repeat(np.arange(n_members), room)
    return places[linear_sum_assignment(costs[:, places])[1]]


def by_moving(costs: Array, room: Array) -> Array:
    """As `cheapest_members`, by successive shortest paths.

    Labels with the same costs are of one kind and move together. Every label starts at its cheapest member, once those
    that too many labels want have become dearer. While a member still has more than it has room for, labels move on
    along the cheapest chain of moves that ends at a member with room left; prices keep the costs of moves from being
    negative, so that Dijkstra's algorithm finds the chain. What costs least for the loads that members have before a
    chain does so after it.
    """
    n_members = costs.shape[1]
    costs, kinds, copies = np.unique(costs, axis=0, return_inverse=True, return_counts=True)
    amounts, prices = _priced(costs, copies, room)
    loads = amounts.sum(axis=0)
    moves, movers = np.full((n_members, n_members), np.inf), np.zeros((n_members, n_members), dtype=np.int64)

    def compare(member: int) -> None:
        """The cheapest kind of label to move from a member to each other."""
        mine = np.flatnonzero(amounts[:, member])
        if not len(mine):
            moves[member] = np.inf
            return
        differences = costs[mine] - costs[mine, member][:, None]
        best = differences.argmin(axis=0)
        moves[member], movers[member] = differences[best, np.arange(n_members)], mine[best]
        moves[member, member] = np.inf

    for member in range(n_members):
        compare(member)
    for source in np.flatnonzero(loads > room).tolist():
        while loads[source] > room[source]:
            distances, before = np.full(n_members, np.inf), np.full(n_members, -1)
            distances[source] = 0.0
            left = distances.copy()
            while True:
                member = int(left.argmin())
                left[member] = np.inf
                if loads[member] < room[member]:
                    break
                found = distances[member] + np.maximum(0, moves[member] - prices[member] + prices)
                nearer = found < distances
                distances[nearer], left[nearer], before[nearer] = found[nearer], found[nearer], member
            prices -= np.minimum(distances, distances[member])
            chain = [member]
            while chain[-1] != source:
                chain.append(int(before[chain[-1]]))
            to, come_from = np.array(chain[:-1]), np.array(chain[1:])
            moved = movers[come_from, to]
            amount = min(
                *(int(loads[source] - room[source]), int(room[member] - loads[member])),
                int(amounts[moved, come_from].min()),
            )
            amounts[moved, come_from] -= amount
            amounts[moved, to] += amount
            loads[member] += amount
            loads[source] -= amount
            for member in chain:
                compare(member)
    owners = np.empty(len(kinds), dtype=np.int64)
    owners[np.argsort(kinds, kind="stable")] = np.repeat(np.tile(np.arange(n_members), len(costs)), amounts.ravel())
    return owners


def _priced(costs: Array, copies: Array, room: Array) -> tuple[Array, Array]:
    """How many labels of each kind every member has, and prices of members, few of which have more than there is room.

    Each label is where cost and price are least together. The price of a member rises just so far that the labels it
    has no room for are as well off elsewhere; so only members that are full have a price, and none has too high a one.
    """
    amounts, prices = np.zeros(costs.shape, dtype=np.int64), np.zeros(costs.shape[1])
    amounts[np.arange(len(costs)), costs.argmin(axis=1)] = copies
    for _ in range(_RISES * costs.shape[1]):
        surplus = amounts.sum(axis=0) - room
        member = int(np.argmax(surplus))
        excess = int(surplus[member])
        if excess <= 1:
            break
        mine = np.flatnonzero(amounts[:, member])
        elsewhere = costs[mine] + prices
        here = elsewhere[:, member].copy()
        elsewhere[:, member] = np.inf
        others = elsewhere.argmin(axis=1)
        losses = elsewhere[np.arange(len(mine)), others] - here
        order = np.argsort(losses, kind="stable")
        ends = np.cumsum(amounts[mine[order], member])
        order = order[: int(np.searchsorted(ends, excess)) + 1]
        leaving = amounts[mine[order], member]
        leaving[-1] -= int(ends[len(order) - 1]) - excess
        prices[member] += max(0.0, float(losses[order[-1]]))
        amounts[mine[order], member] -= leaving
        amounts[mine[order], others[order]] += leaving
    return amounts, prices
