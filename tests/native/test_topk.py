"""The running top-k: order, ties, masks and blocks."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtail import native


def best_of(kernels, scores, k, blocks=1, mask=None):
    labels = np.full((len(scores), k), -1, dtype=np.int64)
    best = np.full((len(scores), k), -np.inf, dtype=np.float32)
    edges = np.linspace(0, scores.shape[1], blocks + 1).astype(int)
    for start, stop in itertools.pairwise(edges):
        part = None if mask is None else mask[start:stop]
        kernels.update_topk(np.ascontiguousarray(scores[:, start:stop]), int(start), part, labels, best)
    return labels, best


def test_ties_go_to_the_lowest_label(kernels):
    scores = np.array([[1, 3, 3, 0, 3]], dtype=np.float32)
    labels, best = best_of(kernels, scores, 4, blocks=2)
    assert labels.tolist() == [[1, 2, 4, 0]]
    assert best.tolist() == [[3, 3, 3, 1]]


def test_fewer_labels_than_k_leave_minus_one(kernels):
    scores = np.array([[-2, -np.inf, -1]], dtype=np.float32)
    labels, best = best_of(kernels, scores, 4)
    assert labels.tolist() == [[2, 0, -1, -1]]
    assert best.tolist() == [[-1, -2, -np.inf, -np.inf]]


def test_a_mask_keeps_labels_out_before_they_compete(kernels):
    scores = np.arange(100, dtype=np.float32)[None]
    mask = np.zeros(100, dtype=bool)
    mask[[3, 50]] = True
    labels, _ = best_of(kernels, scores, 3, blocks=3, mask=mask)
    assert labels.tolist() == [[50, 3, -1]]


@given(st.integers(0, 2**32 - 1), st.integers(1, 7), st.integers(1, 5))
def test_twin_and_kernel_agree(seed, k, blocks):
    if not native.is_native():
        pytest.skip("the native kernels are not built here")
    rng = np.random.default_rng(seed)
    scores = rng.integers(-3, 4, size=(5, 90)).astype(np.float32)
    mask = rng.random(90) < 0.7
    for chosen in (None, mask):
        one = best_of(native.kernels, scores, k, blocks, chosen)
        other = best_of(native.twins, scores, k, blocks, chosen)
        np.testing.assert_array_equal(one[0], other[0])
        np.testing.assert_array_equal(one[1], other[1])
