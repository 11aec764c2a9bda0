"""Which features of a corpus are kept: by the number of texts they occur in, and by the texts of `also` and `only`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from longtail.arrays import Array
from longtail.errors import InvalidInput
from longtail.validation import is_whole


def check_frequency(name: str, value: Any) -> None:
    """Raise `InvalidInput` unless `value` is a number of texts or a fraction of them."""
    if is_whole(value) and value >= 1:
        return
    if isinstance(value, float | np.floating) and math.isfinite(value) and 0 <= value <= 1:
        return
    raise InvalidInput(
        f"{name} is {value!r}; expected a number of texts (1, 2, ...) or a fraction of them (0.0 to 1.0)"
    )


def fewest_texts(min_df: int | float, n_texts: int) -> float:
    """The number of texts that a feature must occur in."""
    return min_df if is_whole(min_df) else min_df * n_texts


def select_features(
    frequencies: Array,
    n_texts: int,
    min_df: int | float,
    max_df: int | float,
    wanted: Array | None = None,
    only: bool = False,
) -> Array:
    """The ids of the features to keep, or `InvalidInput` if none is left.

    Parameters
    ----------
    frequencies : array
        The number of texts with each feature.
    n_texts : int
        Number of texts.
    min_df, max_df : int or float
        Of `TextFeatures`.
    wanted : array of bool or None
        Features that need not satisfy `min_df`.
    only : bool
        Drop all features that are not wanted.

    Examples
    --------
    >>> select_features(np.array([3, 2, 1, 0]), 3, 2, 0.9).tolist()
    [1]
    >>> select_features(np.array([3, 2, 1, 0]), 3, 2, 0.9, np.array([True, False, False, True])).tolist()
    [1, 3]
    """
    limited = only and wanted is not None
    lowest = 0 if limited else fewest_texts(min_df, n_texts)
    highest = max_df if is_whole(max_df) else max_df * n_texts
    if lowest > highest:
        raise InvalidInput(
            f"min_df={min_df} asks for at least {lowest:g} of {n_texts} texts and max_df={max_df} for "
            f"at most {highest:g}; no feature can satisfy both",
            code="words_too_rare",
            advice="lower min_df or raise max_df",
        )
    keep = frequencies >= lowest
    if wanted is not None:
        keep = wanted if only else keep | wanted
    kept = np.flatnonzero(keep & (frequencies <= highest))
    if len(kept) == 0:
        found = frequencies[wanted] if limited else frequencies
        where = "of only" if limited else f"of {n_texts} texts"
        advice = [] if limited else [f"lower min_df={min_df}"]
        if found.max() >= lowest:
            advice.append(f"raise max_df={max_df}")
        raise InvalidInput(
            f"none of the {len(found)} features {where} is left: they occur in "
            f"{found.min()} to {found.max()} texts, but must occur in {lowest:g} to {highest:g}",
            code="words_too_rare",
            advice=" or ".join(advice),
        )
    return kept
