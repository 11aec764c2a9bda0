"""Rankings of held-out rows for a learner that was given or has won a race, by training it again without these rows."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from longtail import progress
from longtail.arrays import Array
from longtail.choice import PLACES, HeldOut, folds, quietly
from longtail.errors import InvalidInput, NotEnoughMemory
from longtail.estimator import Estimator, fit_with
from longtail.printable import counted

_log = logging.getLogger(__name__)

_FEWEST_ROWS = 50  # fewer teach nothing
_ENOUGH_HELD_OUT = 400
_MOST_TRAINED = 50_000  # with more rows, a share of them suffices
_SHARE = 1 / 4
_ALIKE = 0.85  # share of the rows from which on a copy without a scaled penalty has scores like those of the learner


def rank_held_out(
    estimator: Estimator,
    X: Any,
    Y: Any,
    seed: int = 0,
    fitted: Sequence[Estimator] = (),
    weights: Array | None = None,
) -> HeldOut | None:
    """Rank held-out rows by copies of a learner that were trained without them; None if there are too few rows.

    One to four parts of the rows are held out in turn, until they have 400 rows. A copy learns from all other rows or,
    if there are more than 50,000, from at least that many and at least a quarter. Its penalty is smaller
    by the root of its share of the rows. With the same penalty, its scores would be smaller than those of the learner
    that was trained on all rows; with a share of it, they would be as large, but less often right.

    Parameters
    ----------
    estimator : Estimator
    X, Y : csr_array
        The features and labels of all rows.
    seed : int
        Of `folds`.
    fitted : sequence of Estimator
        Copies for the first parts that exist already; used if they learned from most of the rows.
    weights : float32 array of shape (n_rows,) or None
        Of the rows that the copies learn from; every held-out row counts as one.
    """
    if X.shape[0] < _FEWEST_ROWS:
        _log.info("how many tags: as the learner decides, as %s are too few to learn it", counted(X.shape[0], "row"))
        return None
    parts = folds(X.shape[0], seed)
    parts = parts[: -(-_ENOUGH_HELD_OUT // len(parts[0][0]))]
    most = max(_MOST_TRAINED, round(_SHARE * X.shape[0]))
    trained = min(most, len(parts[0][1]))
    if len(parts[0][1]) < _ALIKE * X.shape[0]:
        fitted = ()
    trainings = len(parts) - len(fitted)
    if trainings > 0:
        _log.info(
            "how many tags: training %s more on %s, to learn it on held-out rows (aim none saves that)",
            "once" if trainings == 1 else f"{trainings} times",
            counted(trained, "row"),
        )
    counts = np.ones(X.shape[0]) if weights is None else weights
    ranked = []
    try:
        with quietly(), progress.task("ranking held-out rows", total=len(parts)) as advance:
            for number, (held, rest) in enumerate(parts):
                if number < len(fitted):
                    model = fitted[number]
                else:
                    some = np.sort(np.random.default_rng(seed).permutation(rest)[:most])
                    share = float(counts[some].sum() / counts.sum())
                    copy = estimator.copy_for(f"part{number + 1}", penalty=math.sqrt(share))
                    model = fit_with(copy, X[some], Y[some], None if weights is None else weights[some])
                ranked.append(HeldOut.of(*model.predict_topk(X[held], PLACES), Y[held]))
                advance(1)
    except (InvalidInput, NotEnoughMemory) as error:
        _log.info("how many tags: as the learner decides, as it cannot be learned: %s", error)
        return None
    return HeldOut.join(ranked)
