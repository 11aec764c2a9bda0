"""The scores of boosted trees: the kernel, its twin and a plain walk give the same sums."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtail import native
from longtail.ranking.paths import Paths
from tests.ranking.forests import random_forest, walk


def scores_of(kernels, forest, features):
    paths = Paths.of(forest.features)
    scores = np.full(len(features), np.nan)
    kernels.boosted_scores(
        *(features, paths.features, forest.thresholds, paths.masks, paths.first_splits),
        *(forest.values, forest.baseline, scores),
    )
    return scores


@given(st.integers(0, 2**32 - 1), st.integers(0, 40), st.integers(0, 6), st.integers(1, 32))
def test_kernel_and_twin_find_the_leaves_of_a_walk(seed, n_pairs, n_trees, most_leaves):
    if not native.is_native():
        pytest.skip("the native kernels are not built here")
    rng = np.random.default_rng(seed)
    forest = random_forest(rng, n_trees, most_leaves, n_features=5)
    # Few different values, so that many are equal to a threshold.
    features = rng.choice(np.array([-np.inf, -1, -0.0, 0, 1e-40, 1, 2, 3e38, np.inf], np.float32), (n_pairs, 5))
    expected = [walk(forest, pair) for pair in features]
    np.testing.assert_array_equal(scores_of(native.kernels, forest, features), expected)
    np.testing.assert_array_equal(scores_of(native.twins, forest, features), expected)


def test_a_value_at_the_threshold_goes_to_the_left(kernels):
    forest = random_forest(np.random.default_rng(0), 1, 2, n_features=1)
    threshold = forest.thresholds[0]
    above = np.nextafter(threshold, np.float32(np.inf))
    scores = scores_of(kernels, forest, np.array([[threshold], [above]], dtype=np.float32))
    np.testing.assert_array_equal(scores, forest.baseline + forest.values)


def test_without_trees_every_pair_gets_the_baseline(kernels):
    forest = random_forest(np.random.default_rng(0), 0, 2, n_features=3)
    assert scores_of(kernels, forest, np.zeros((2, 3), np.float32)).tolist() == [forest.baseline] * 2
