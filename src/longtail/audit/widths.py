"""How narrow could a layer be without losing label sets that it gives now?"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from longtail.audit.auditing import audit
from longtail.audit.finding import ARGMAXABLE
from longtail.audit.label_sets import LabelSets
from longtail.audit.models.objects import bare_weights, output_layer
from longtail.estimator import OutputLayer


def find_sufficient_rank(layer: Any, label_sets: Any, **options: Any) -> tuple[int | None, dict[int, int]]:
    """Find a small rank at which a layer still gives all label sets that it gives now.

    The layer is cut down to its largest singular directions. The search halves the range of ranks, so the rank is the
    smallest only if no set is lost again at a higher rank.

    Parameters
    ----------
    layer, label_sets, **options
        As for `audit`; options that concern radii have no use here.

    Returns
    -------
    rank : int or None
        None if only the whole layer gives all of them.
    given : dict of int to int
        The number of these sets that some input gets, by each rank that was tried.

    Examples
    --------
    >>> find_sufficient_rank(np.diag([3.0, 2.0, 1.0]), [[0], [0, 1], []])
    (2, {1: 2, 2: 3})
    """
    weights = bare_weights(layer)
    whole = output_layer(layer) if weights is None else OutputLayer.of(weights)
    found = audit(whole, label_sets, **options)
    needed = LabelSets.each(found.sets.members[np.flatnonzero(found.verdicts == ARGMAXABLE)])
    low, high = 0, min(whole.n_labels, whole.n_features)
    truncations, given = whole.truncations(high), {}
    while high - low > 1:
        middle = (low + high) // 2
        cut = audit(replace(whole, weights=truncations(middle)), needed, **options)
        given[middle] = cut.count(ARGMAXABLE)
        low, high = (low, middle) if given[middle] == len(needed) else (middle, high)
    return (high if high in given else None), dict(sorted(given.items()))
