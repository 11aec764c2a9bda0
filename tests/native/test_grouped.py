"""The kernels for labels of groups compared with their twins."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from longtail import native
from longtail.aggregated.aggregation import Aggregation
from tests.aggregated.examples import overlapping_groups, unit_rows


def both():
    if not native.is_native():
        pytest.skip("the native kernels are not built here")
    return native.kernels, native.twins


def problem(seed, signed):
    rng = np.random.default_rng(seed)
    X = unit_rows(rng, 30, 12)
    if signed:
        X.data *= rng.choice([-1, 1], len(X.data)).astype(np.float32)
    return X, Aggregation.of(overlapping_groups(rng, 30, 9), rng.random((9, 7)) < 0.4), rng


def searched(kernels, X, aggregation, n_iter, step, index=np.int64):
    """Weights, products and objectives, as `find_members` writes them."""
    norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64))
    lengths = aggregation.n_members, aggregation.n_members, aggregation.n_labels
    found = [np.full(length, np.nan) for length in lengths]
    kernels.find_members(
        *(aggregation.label_indptr, aggregation.label_groups, aggregation.group_indptr, aggregation.group_rows),
        *(X.indptr.astype(index), X.indices.astype(index), X.data, norms, X.shape[1]),
        *(0, n_iter, step, *found),
    )
    return found


def unsettled(X, aggregation, n_iter, step):
    """A mask of the labels whose result depends on rounding, from the steps of the twin in 64 bits.

    That is the case if two members of a group are equally good up to rounding, or if members almost cancel out, so that
    their sum is mostly rounding error.
    """
    rows, labels = X.toarray().astype(np.float64)[aggregation.members(slice(None))], aggregation.pair_labels
    starts, sizes = aggregation.pair_indptr[:-1], aggregation.pair_sizes
    member_labels = np.repeat(labels, sizes)
    found = np.zeros(aggregation.n_labels, dtype=bool)

    def lengths_of(chosen):
        sums = np.zeros((aggregation.n_labels, X.shape[1]))
        np.add.at(sums, member_labels[chosen], rows[chosen])
        counts = np.bincount(member_labels[chosen], minlength=aggregation.n_labels)
        return np.linalg.norm(sums, axis=1) < 0.1 * counts

    if len(starts):
        found |= lengths_of(np.arange(len(rows)))
    for sweep in range(n_iter if len(starts) else 0):
        products = searched(native.twins, X, aggregation, sweep, step)[1]
        highest = np.maximum.reduceat(products, starts)
        near = products > np.repeat(highest, sizes) - 1e-4
        found[labels[np.add.reduceat(near, starts, dtype=int) > 1]] = True
        found |= lengths_of(near)
    return found


STEPS = st.floats(0, 0.5) | st.floats(2, 3)  # others may take a vector to next to nothing


@pytest.mark.parametrize("index", [np.int32, np.int64])
@given(seed=st.integers(0, 2**32 - 1), n_iter=st.integers(0, 6), step=STEPS, signed=st.booleans())
def test_the_vectors_of_labels_are_those_of_the_twin(index, seed, n_iter, step, signed):
    X, aggregation, _ = problem(seed, signed)
    results = [searched(kernels, X, aggregation, n_iter, step, index) for kernels in both()]
    rows = X.toarray()[aggregation.members(slice(None))]
    labels = np.repeat(aggregation.pair_labels, aggregation.pair_sizes)
    for weights, products, _ in results:
        vectors = np.zeros((7, 12))
        np.add.at(vectors, labels, weights[:, None] * rows)
        np.testing.assert_allclose(products, (rows * vectors[labels]).sum(axis=1), atol=1e-5)
        lengths = np.linalg.norm(vectors, axis=1)
        assert np.all((np.abs(lengths - 1) < 1e-4) | (lengths == 0))
    settled = ~unsettled(X, aggregation, n_iter, step)
    for one, other, kept in zip(*results, (settled[labels], settled[labels], settled), strict=True):
        np.testing.assert_allclose(one[kept], other[kept], atol=1e-5)


@pytest.mark.parametrize("index", [np.int32, np.int64])
@given(seed=st.integers(0, 2**32 - 1), n_iter=st.integers(0, 6), step=st.floats(0, 3), signed=st.booleans())
def test_products_are_those_of_the_vectors_whatever_the_step(index, seed, n_iter, step, signed):
    X, aggregation, _ = problem(seed, signed)
    rows = X.toarray()[aggregation.members(slice(None))]
    labels = np.repeat(aggregation.pair_labels, aggregation.pair_sizes)
    best = []
    for kernels in both():
        weights, products, objectives = searched(kernels, X, aggregation, n_iter, step, index)
        vectors = np.zeros((7, 12))
        np.add.at(vectors, labels, weights[:, None] * rows)
        np.testing.assert_allclose(products, (rows * vectors[labels]).sum(axis=1), atol=1e-5)
        lengths = np.linalg.norm(vectors, axis=1)
        assert np.all((np.abs(lengths - 1) < 1e-4) | (lengths == 0))
        best.append(objectives)
    # If two members are equally good up to rounding, kernel and twin may take different paths to about the same result.
    np.testing.assert_allclose(best[0], best[1], atol=1e-3, rtol=0.05)


def test_most_labels_do_not_hang_on_rounding():
    both()
    cases = [unsettled(*problem(seed, signed)[:2], 6, 0.3) for seed in range(20) for signed in (True, False)]
    assert np.concatenate(cases).mean() < 0.4


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_of_equal_members_the_first_is_taken(index):
    X = sparse.csr_array(np.array([[0.6, 0.8], [0.6, 0.8], [0.8, 0.6], [0.8, 0.6], [1, 0]], dtype=np.float32))
    groups = np.array([[1, 0], [1, 0], [0, 1], [0, 1], [0, 1]])
    for kernels in both():
        weights, _, _ = searched(kernels, X, Aggregation.of(groups, [[1], [1]]), 3, 0.5, index)
        assert weights[0] > weights[1] + 0.1
        assert weights[2] > weights[3] + 0.1
        assert weights[1] == weights[3] == weights[4]


@pytest.mark.parametrize("index", [np.int32, np.int64])
@given(seed=st.integers(0, 2**32 - 1), n_iter=st.integers(0, 6), step=STEPS)
def test_where_rounding_decides_either_way_is_as_good(index, seed, n_iter, step):
    # Two members of equal length in the same group are equally close to their sum.
    X = unit_rows(np.random.default_rng(seed), 2, 12, density=0.8)
    aggregation = Aggregation.of([[1], [1]], [[1]])
    one, other = (searched(kernels, X, aggregation, n_iter, step, index) for kernels in both())
    assert one[2] == pytest.approx(other[2], abs=1e-5)
    np.testing.assert_allclose(np.sort(one[0]), np.sort(other[0]), atol=1e-5)


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("part", [slice(0, 7), slice(2, 5), slice(3, 3)])
def test_products_with_given_vectors_are_those_of_the_twin(index, part):
    X, aggregation, rng = problem(3, True)
    vectors = unit_rows(rng, 7, 12)
    first, last = aggregation.pair_indptr[aggregation.label_indptr[[part.start, part.stop]]]
    results = []
    for kernels in both():
        products = np.full(last - first, np.nan)
        kernels.score_members(
            aggregation.label_indptr[part.start : part.stop + 1],
            *(aggregation.label_groups, aggregation.group_indptr, aggregation.group_rows),
            *(X.indptr.astype(index), X.indices.astype(index), X.data),
            *(vectors.indptr[part.start : part.stop + 1].astype(np.int64), vectors.indices.astype(np.int64)),
            *(vectors.data, 12, products),
        )
        results.append(products)
    assert np.isfinite(results[0]).all()
    np.testing.assert_allclose(results[0], results[1], atol=1e-6)
