"""The kernels for label vectors and balanced 2-means compared with their twins."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from longtail import native
from longtail.native.cluster import largest


def unit_rows(rng, n, d, density=0.2):
    matrix = sparse.random_array((n, d), density=density, rng=rng, format="csr", dtype=np.float32)
    lengths = np.sqrt(np.asarray(matrix.multiply(matrix).sum(axis=1)).ravel())
    scaled = sparse.csr_array(sparse.diags_array(1 / np.where(lengths > 0, lengths, 1)) @ matrix)
    return scaled.indptr.astype(np.int64), scaled.indices.astype(np.int32), scaled.data.astype(np.float32)


def both():
    if not native.is_native():
        pytest.skip("the native kernels are not built here")
    return native.kernels, native.twins


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("top", [1, 3, 1000])
@pytest.mark.parametrize("density", [0.02, 0.5])
@pytest.mark.parametrize("weighted", [False, True])
def test_sums_of_label_rows_equal_those_of_the_twin(rng, index, top, density, weighted):
    X = sparse.random_array((40, 60), density=density, rng=rng, format="csr", dtype=np.float32)
    X.data = np.round(X.data * 4) - 2  # ties, zeros and sums that cancel
    labels = sparse.csr_array(rng.random((15, 40)) < 0.1)
    starts, rows = labels.indptr.astype(np.int64), labels.indices.astype(np.int64)
    weights = rng.integers(0, 3, len(rows)).astype(np.float32) if weighted else None
    results = []
    for kernels in both():
        counts, indices, data = np.zeros(10, np.int64), np.zeros(2000, np.int32), np.zeros(2000, np.float32)
        written = kernels.sum_label_rows(
            *(
                starts[3:14],
                rows,
                weights,
                X.indptr.astype(index),
                X.indices.astype(index),
                X.data.astype(np.float32),
                60,
                top,
            ),
            *(counts, indices, data),
        )
        assert written == counts.sum()
        results.append((counts, indices, data))
    np.testing.assert_array_equal(results[0][0], results[1][0])
    np.testing.assert_array_equal(results[0][1], results[1][1])
    np.testing.assert_allclose(results[0][2], results[1][2], rtol=1e-6)


def test_projections_and_sums_of_rows_equal_those_of_the_twin(rng):
    csr = unit_rows(rng, 50, 30)
    rows = rng.permutation(50)[:20]
    direction, weights = rng.normal(size=30).astype(np.float32), rng.normal(size=20).astype(np.float32)
    results = []
    for kernels in both():
        projected, summed = np.zeros(20, np.float32), np.ones(30)
        kernels.project_rows(*csr, rows, direction, projected)
        kernels.add_rows(*csr, rows, weights, summed)
        results.append((projected, summed))
    for one, other in zip(*results, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@given(st.integers(2, 60), st.integers(0, 10**6), st.floats(0, 1))
def test_a_division_equals_that_of_the_twin(n, seed, share):
    rng = np.random.default_rng(seed)
    csr = unit_rows(rng, 2 * n, 40)
    n_first = min(n - 1, 1 + int(share * (n - 1)))
    bounds = np.array([[0, n_first, n], [n, n + n_first, 2 * n]])
    centres = np.stack([rng.permutation(n)[:2] for _ in range(2)])
    results = []
    for kernels in both():
        members, similarities = np.arange(2 * n), np.zeros(2)
        kernels.bisect_nodes(*csr, 40, members, bounds, centres, 20, 1e-4, similarities)
        assert sorted(members[:n]) == list(range(n))
        for start, middle, stop in bounds:
            assert np.all(np.diff(members[start:middle]) > 0)
            assert np.all(np.diff(members[middle:stop]) > 0)
        results.append((members, similarities))
    np.testing.assert_allclose(results[0][1], results[1][1], atol=1e-6)
    np.testing.assert_array_equal(results[0][0], results[1][0])


def test_more_rounds_never_make_the_parts_less_alike(kernels, rng):
    csr = unit_rows(rng, 80, 40)
    bounds, centres = np.array([[0, 30, 80]]), np.array([[5, 6]])
    reached = []
    for rounds in range(1, 15):
        similarity = np.zeros(1)
        kernels.bisect_nodes(*csr, 40, np.arange(80), bounds, centres, rounds, -1.0, similarity)
        reached.append(similarity[0])
    assert np.all(np.diff(reached) > -1e-6)
    assert reached[-1] > reached[0]


def test_the_similarity_told_is_the_mean_similarity_to_the_centre_of_the_part(kernels, rng):
    csr = unit_rows(rng, 30, 20)
    members, similarity = np.arange(30), np.zeros(1)
    kernels.bisect_nodes(*csr, 20, members, np.array([[0, 15, 30]]), np.array([[0, 1]]), 20, 1e-4, similarity)
    dense = sparse.csr_array((csr[2], csr[1], csr[0]), shape=(30, 20)).toarray().astype(np.float64)
    by_hand = 0.0
    for part in (members[:15], members[15:]):
        centre = dense[part].sum(axis=0)
        by_hand += (dense[part] @ (centre / np.linalg.norm(centre))).sum()
    assert similarity[0] == pytest.approx(by_hand / 30, abs=1e-6)


def test_vectors_that_are_all_the_same_or_empty_are_divided_by_their_number(kernels):
    same = np.arange(6), np.zeros(5, np.int32), np.ones(5, np.float32)
    empty = np.zeros(6, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32)
    for indptr, indices, data in (same, empty):
        members = np.arange(5)
        kernels.bisect_nodes(
            indptr, indices, data, 3, members, np.array([[0, 2, 5]]), np.array([[3, 1]]), 20, 1e-4, np.zeros(1)
        )
        assert members.tolist() == [0, 1, 2, 3, 4]


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=30), st.data())
def test_the_largest_are_as_many_as_asked_for_and_ties_go_to_the_first(scores, data):
    count = data.draw(st.integers(1, len(scores)))
    expected = sorted(range(len(scores)), key=lambda i: (-scores[i], i))[:count]
    assert np.flatnonzero(largest(np.array(scores, dtype=np.float32), count)).tolist() == sorted(expected)
