"""Rule joint within one group: an assignment problem that maximises the sum of similarities.

If each label goes to one member, SciPy solves it with one column per place of a member. If labels go to several
members, which must be distinct, or if the group is large (SciPy takes cubic time), labels are moved along shortest
paths from full members to others. Both find the maximum.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment

from longtail.arrays import Array
from longtail.memory import MemoryPlan

LARGE = 4_000_000  # labels x places above which SciPy takes seconds
_MANY_PLACES = 16  # places per member above which moving labels is faster than a column per place
_RISES = 50  # price increases per member before labels are moved one by one
_CELL_BYTES = 32  # peak memory per label and place


def shared_out(values: Array, counts: Array) -> Array:
    """A mask of cells of a labels x members matrix with the maximum sum: `counts` cells of each label.

    No member gets more than its share: the number of labels by the number of members, rounded up.
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
    """A member for each label with the minimum sum of costs, within the room of each member.

    Parameters
    ----------
    costs : float64 array of shape (n_labels, n_members)
    room : int64 array of shape (n_members,)
        At least `n_labels` in total.
    """
    n_labels, n_members = costs.shape
    n_places = int(room.sum())
    if n_labels * n_places > LARGE and n_places > _MANY_PLACES * n_members:
        return by_moving(costs, room, np.ones(n_labels, dtype=np.int64)).argmax(axis=1)
    if n_labels * n_places > LARGE:
        MemoryPlan(
            "assigning the labels of a group",
            {f"{n_labels:,} labels x {n_places:,} places": _CELL_BYTES * n_labels * n_places},
            "Use rule 'count', or split the group.",
        ).check()
    places = np.repeat(np.arange(n_members), room)
    return places[linear_sum_assignment(costs[:, places])[1]]


def by_moving(costs: Array, room: Array, counts: Array) -> Array:
    """A mask of cells with the minimum sum of costs, `counts` cells of each label, by successive shortest paths.

    Labels with equal costs form a kind and move together, unless they go to several members. Prices of members that too
    many labels want are raised first, and every label starts at its cheapest members. While a member has more labels
    than room, labels move along the cheapest chain of moves to a member with room. Prices keep the costs of moves
    non-negative, so Dijkstra's algorithm finds the chain. The assignment is optimal for the loads before and after each
    chain.
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
        """Find the cheapest kind of label to move from a member to each other member."""
        mine = np.flatnonzero(amounts[:, member])
        if not len(mine):
            moves[member] = np.inf
            return
        differences = costs[mine] - costs[mine, member][:, None]
        differences[amounts[mine] == copies[mine][:, None]] = np.inf  # no member may have a label twice
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
            # Besides the chain, members to which the moved labels can no longer, or can again, be moved.
            for member in {*chain, *np.flatnonzero(amounts[moved].any(axis=0)).tolist()}:
                compare(member)
    taken, order = np.zeros((n_labels, n_members), dtype=bool), np.argsort(kinds, kind="stable")
    owners = np.repeat(np.tile(np.arange(n_members), len(costs)), amounts.ravel())
    taken[np.repeat(order, counts[order]), owners] = True
    return taken


def _priced(costs: Array, room: Array, counts: Array, copies: Array) -> tuple[Array, Array]:
    """Numbers of labels of each kind by member, and prices of members, such that few members exceed their room.

    Each label is at the `counts` members with the lowest cost plus price. The price of a member rises just until the
    labels beyond its room are equally well off elsewhere, so only full members have a price, and none too high a one.
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
