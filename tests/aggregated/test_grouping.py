"""Groups made for experiments."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from longtail.aggregated import aggregate_labels, clustered_groups, random_groups
from longtail.errors import InvalidInput
from tests.aggregated.examples import unit_rows


@pytest.mark.parametrize(("n_rows", "size", "sizes"), [(12, 4, [4, 4, 4]), (10, 4, [4, 4, 2]), (3, 5, [3]), (0, 2, [])])
def test_random_groups_share_out_all_rows(n_rows, size, sizes):
    groups = random_groups(n_rows, size)
    assert np.asarray(groups.sum(axis=0)).tolist() == sizes
    assert (np.asarray(groups.sum(axis=1)) == 1).all()


def test_random_groups_are_the_same_for_the_same_seed_only():
    one, same, other = (random_groups(50, 5, random_state=seed).indices for seed in (1, 1, 2))
    assert (one == same).all()
    assert (one != other).any()


@pytest.mark.parametrize(("n_rows", "depth"), [(64, 3), (61, 4), (16, 4), (5, 0)])
def test_clusters_are_as_many_as_asked_for_and_balanced(rng, n_rows, depth):
    sizes = np.asarray(clustered_groups(unit_rows(rng, n_rows, 20), depth).sum(axis=0))
    assert len(sizes) == 2**depth
    assert sizes.sum() == n_rows
    assert sizes.max() - sizes.min() <= 1


def test_clusters_hold_similar_rows(rng):
    centres = rng.permutation(np.repeat(np.arange(2), 16))
    X = np.eye(2)[centres] + 0.05 * rng.normal(size=(32, 2))
    owners = clustered_groups(X, 2).indices
    assert all(len(set(centres[owners == group])) == 1 for group in range(4))
    scattered = clustered_groups(X, 2, noise=50.0).indices
    assert any(len(set(centres[scattered == group])) > 1 for group in range(4))


def test_rows_of_zeros_are_spread_over_clusters(rng):
    X = sparse.vstack([unit_rows(rng, 12, 6, density=1), sparse.csr_array((4, 6), dtype=np.float32)], format="csr")
    sizes = np.asarray(clustered_groups(X, 2).sum(axis=0))
    assert sizes.sum() == 16
    assert sizes.max() - sizes.min() <= 2


@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_rows_without_features_are_spread_over_clusters(noise):
    sizes = clustered_groups(np.zeros((6, 0), dtype=np.float32), 1, noise=noise).sum(axis=0)
    assert np.asarray(sizes).tolist() == [3, 3]


def test_labels_of_groups_are_those_of_their_members():
    Y, groups = [[1, 0, 0], [1, 1, 0], [0, 0, 0]], [[1, 0, 0], [1, 1, 0], [0, 1, 0]]
    assert aggregate_labels(Y, groups).toarray().tolist() == [[2, 1, 0], [1, 1, 0], [0, 0, 0]]
    assert aggregate_labels(Y, groups, "set").toarray().tolist() == [[1, 1, 0], [1, 1, 0], [0, 0, 0]]


def test_impossible_groups_are_refused():
    with pytest.raises(InvalidInput, match="size is 0"):
        random_groups(5, 0)
    with pytest.raises(InvalidInput, match="5 rows cannot form 2\\^3 groups"):
        clustered_groups(np.eye(5), 3)
    with pytest.raises(InvalidInput, match="merge is 'bag'"):
        aggregate_labels([[1]], [[1]], "bag")
