"""How many outliers are worth learning: what a user may ask for, and what rows held out say."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from longtail.arrays import Array
from longtail.metrics import ndcg_at_k
from longtail.parameters import Number
from longtail.subset.model import SubsetModel

# Shares of the labels outside the subset that `outliers="auto"` tries, and how much ranking quality it gives away.
_SHARES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
_LOSS = 0.002
FEWEST_ROWS = 50  # with labels, from which on a part of them says something about budgets
PLACES = 5


@dataclass(frozen=True)
class Budget:
    """How many outliers: "auto", "all", a whole number of labels, or a share of them as a float."""

    def accepts(self, value: Any) -> bool:
        if isinstance(value, str):
            return value in ("auto", "all")
        return Number(low=0, whole=True).accepts(value) or (
            isinstance(value, float | np.floating) and Number(low=0, high=1).accepts(value)
        )

    def describe(self) -> str:
        return "'auto', 'all', a whole number of labels of at least 0, or a share between 0.0 and 1.0"

    def bad_values(self) -> list[Any]:
        return ["many", -1, 1.5, float("nan"), None, True, [1]]


def try_budgets(model: SubsetModel, norms: Array, X: Any, Y: Any, others: int) -> dict[int, float]:
    """nDCG of the rows of `X` by number of outliers, from one model with an outlier for each of the `others`."""
    order, found = worst(norms), {}
    for share in _SHARES:
        budget = round(share * others)
        limited = None if model.outliers is None else model.outliers.limited_to(order[:budget])
        top, _ = replace(model, outliers=limited).best(X, PLACES, None)
        found[budget] = ndcg_at_k(Y, top, PLACES)
    return found


def smallest_enough(qualities: dict[int, float]) -> int:
    """The smallest budget that gives away next to nothing."""
    enough = max(qualities.values()) - _LOSS
    return min(budget for budget, quality in qualities.items() if quality >= enough)


def worst(norms: Array) -> Array:
    """Labels of which something is left over, the most first, ties to the lowest id."""
    order = np.argsort(-norms, kind="stable")
    return order[norms[order] > 0]
