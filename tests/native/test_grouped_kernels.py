"""The kernels for labels of groups against their twins, which write out every vector."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

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


@pytest.mark.parametrize("index", [np.int32, np.int64])
@given(seed=st.integers(0, 2**32 - 1), n_iter=st.integers(0, 6), step=st.floats(0, 3), signed=st.booleans())
def test_the_vectors_of_labels_are_those_of_the_twin(index, seed, n_iter, step, signed):
    X, aggregation, _ = problem(seed, signed)
    norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64))
    results = []
    for kernels in both():
        weights, products, objectives = (np.full(n, np.nan) for n in (aggregation.n_members,) * 2 + (7,))
        kernels.find_members(
            *(aggregation.label_indptr, aggregation.label_groups, aggregation.group_indptr, aggregation.group_rows),
            *(X.indptr.astype(index), X.indices.astype(index), X.data, norms, 12),
            *(0, n_iter, step, weights, products, objectives),
        )
        results.append(objectives)
        rows = aggregation.members(slice(None))
        vectors = np.zeros((7, 12))
        labels = np.repeat(aggregation.pair_labels, aggregation.pair_sizes)
        np.add.at(vectors, labels, weights[:, None] * X.toarray()[rows])
        np.testing.assert_allclose(products, (X.toarray()[rows] * vectors[labels]).sum(axis=1), atol=1e-5)
        lengths = np.linalg.norm(vectors, axis=1)
        assert np.all((np.abs(lengths - 1) < 1e-4) | (lengths == 0))
    # Where two members are equally good but for rounding, the two may go different ways to about the same place.
    np.testing.assert_allclose(results[0], results[1], atol=1e-3, rtol=0.05)


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
