"""Rule joint within one group: its labels are shared out among its members, so that similarities add up to the most.

One assignment problem. Where each label goes to one member it is solved with a column for each place of a member;
where labels go to several, which must differ, and in large groups, where columns take the cube of the number of labels,
by moving labels along the cheapest ways from full members to others. Both find the largest sum.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment

from longtail.arrays import Array
from longtail.memory import MemoryPlan

# Labels x places; from there on the cube is seconds.
LARGE = 4_000_000
# Places of a member from which on moving labels is quicker than a column for each place.
_MANY_PLACES = 16
_RISES = 50  # of the price of each member, before labels are moved one by one
_CELL_BYTES = 32  # the costs, and once more on the way to them


def shared_out(values: Array, counts: Array) -> Array:
    """A mask of cells of a labels x members matrix with the largest sum: `counts` of each label, each member its share.

    The share of a member is the number of labels by the number of members, rounded up.
    """
    n_labels, n_members = values.shape
    if n_members == 1:
        return np.ones(values.shape, dtype=bool)
    room = np.full(n_members, -(-int(counts.sum()) // n_members))
    if counts.max(initial=1) > 1:
        return by_moving(-values, room, counts)
    taken = np.zeros(values.shape, dtype=bool)
    taken[np.arange(n_labels), cheapest_members(-values, room)] = True
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
        return by_moving(costs, room, np.ones(n_labels, dtype=np.int64)).argmax(axis=1)
    if n_labels * n_places > LARGE:
        MemoryPlan(
            "sharing out the labels of a group",
            {f"{n_labels:,} labels x {n_places:,} places": _CELL_BYTES * n_labels * n_places},
            "Take rule 'count', or divide the group.",
        ).check()
    places = np.repeat(np.arange(n_members), room)
    return places[linear_sum_assignment(costs[:, places])[1]]


def by_moving(costs: Array, room: Array, counts: Array) -> Array:
    """A mask of the cells with the least sum of costs, `counts` of each label, by successive shortest paths.

    Labels with the same costs are of one kind and move together, unless they go to several members. Every label starts
    at its cheapest members, once those that too many labels want have become dearer. While a member still has more than
    it has room for, labels move on along the cheapest chain of moves that ends at a member with room left; prices keep
    the costs of moves from being negative, so that Dijkstra's algorithm finds the chain. What costs least for the loads
    that members have before a chain does so after it.
    """
    n_labels, n_members = costs.shape
    own = np.where(counts > 1, np.arange(1, n_labels + 1), 0)
    _, firsts, kinds, copies = np.unique(
        np.column_stack([costs, own]), axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    costs = costs[firsts]
    amounts, prices = _priced(costs, room, counts[firsts], copies)
    loads = amounts.sum(axis=0)
    moves, movers = np.full((n_members, n_members), np.inf), np.zeros((n_members, n_members), dtype=np.int64)

    def compare(member: int) -> None:
        """The cheapest kind of label to move from a member to each other."""
        mine = np.flatnonzero(amounts[:, member])
        if not len(mine):
            moves[member] = np.inf
            return
        differences = costs[mine] - costs[mine, member][:, None]
        differences[amounts[mine] == copies[mine][:, None]] = np.inf  # no member gets a label twice
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
            # Beside those on the chain, those that the labels cannot move to any more, or can again.
            for member in {*chain, *np.flatnonzero(amounts[moved].any(axis=0)).tolist()}:
                compare(member)
    taken, order = np.zeros((n_labels, n_members), dtype=bool), np.argsort(kinds, kind="stable")
    owners = np.repeat(np.tile(np.arange(n_members), len(costs)), amounts.ravel())
    taken[np.repeat(order, counts[order]), owners] = True
    return taken


def _priced(costs: Array, room: Array, counts: Array, copies: Array) -> tuple[Array, Array]:
    """How many labels of each kind every member has, and prices of members, few of which have more than there is room.

    Each label is where cost and price are least together, at `counts` members. The price of a member rises just so far
    that the labels it has no room for are as well off elsewhere; so only members that are full have a price, and none
    has too high a one.
    """
    prices = np.zeros(costs.shape[1])
    ranks = np.argsort(np.argsort(costs, axis=1, kind="stable"), axis=1)
    amounts = np.where(ranks < counts[:, None], copies[:, None], 0)
    for _ in range(_RISES * costs.shape[1]):
        surplus = amounts.sum(axis=0) - room
        member = int(np.argmax(surplus))
        excess = int(surplus[member])
        if excess <= 1:
            break
        mine = np.flatnonzero(amounts[:, member])
        elsewhere = costs[mine] + prices
        here = elsewhere[:, member].copy()
        elsewhere[amounts[mine] == copies[mine][:, None]] = np.inf
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
