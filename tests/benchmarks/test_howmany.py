"""`benchmarks.howmany`."""

from __future__ import annotations

import numpy as np

from benchmarks.howmany import best_f1


def test_the_best_is_that_of_every_k_and_cut_off() -> None:
    rng = np.random.default_rng(0)
    scores = -np.sort(-rng.random((20, 4)).round(1), axis=1)
    hits = rng.random((20, 4)) < scores
    n_true = int(hits.sum()) + 3
    tried = []
    for k in range(1, 5):
        for cutoff in np.unique(scores):
            given = (scores >= cutoff) & (np.arange(4) < k)
            tried.append(2 * np.count_nonzero(hits & given) / (np.count_nonzero(given) + n_true))
    assert best_f1(scores, hits, n_true)[0] == max(tried)
