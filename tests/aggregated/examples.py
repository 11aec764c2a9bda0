"""Small problems with labels of groups, for the tests."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from longtail.aggregated import aggregate_labels, random_groups


def unit_rows(rng, n_rows, n_features, density=0.3):
    X = sparse.random_array((n_rows, n_features), density=density, rng=rng, format="csr", dtype=np.float32)
    lengths = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    return sparse.csr_array(sparse.diags_array(1 / np.where(lengths > 0, lengths, 1)) @ X).astype(np.float32)


def grouped_problem(rng, n_rows=60, n_features=25, n_labels=8, size=4, merge="list"):
    """Rows of length 1, sparse labels, groups of `size` at random and the labels of the groups."""
    X = unit_rows(rng, n_rows, n_features)
    Y = sparse.csr_array((rng.random((n_rows, n_labels)) < 0.2).astype(np.float32))
    groups = random_groups(n_rows, size, random_state=int(rng.integers(1000)))
    return X, Y, groups, aggregate_labels(Y, groups, merge)


def overlapping_groups(rng, n_rows, n_groups, share=0.15):
    """Memberships at random: rows in no group, in several, groups of all sizes and some empty."""
    groups = rng.random((n_rows, n_groups)) < share
    groups[:, rng.integers(n_groups)] = False
    groups[rng.integers(n_rows)] = False
    return sparse.csr_array(groups.astype(np.float32))


def planted_problem(rng, n_labels=6, size=3, n_groups=80, noise=0.0):
    """Every row is the vector of one label, plus noise; each group has members of different labels."""
    centres = np.eye(n_labels, dtype=np.float32)
    members = np.concatenate([rng.permutation(n_labels)[:size] for _ in range(n_groups)])
    X = centres[members] + noise * rng.normal(size=(len(members), n_labels))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    Y = sparse.csr_array(np.eye(n_labels, dtype=np.float32)[members])
    groups = sparse.csr_array(np.kron(np.eye(n_groups), np.ones((size, 1))).astype(np.float32))
    return X.astype(np.float32), Y, groups, aggregate_labels(Y, groups)
