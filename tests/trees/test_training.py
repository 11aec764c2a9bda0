"""The rows and costs that each node learns from; the order of work changes nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from longtail import native
from longtail.errors import InvalidInput
from longtail.estimator.checks import planted
from longtail.labels import LabelHierarchy
from longtail.native.siblings import block_widths
from longtail.trees.training import Examples, Negatives, Objective, Rows, Task, tasks_of, train
from longtail.trees.weights import TreeWeights
from tests.labels.trees import hierarchies

OBJECTIVE = Objective("squared_hinge", 1.0, 0.01, 20, 0.0, 0, 0)
TREE = LabelHierarchy([0, 3, 6, 10, 12], [1, 2, ~0, 3, ~1, ~2, ~3, ~4, ~5, ~6, ~7, ~8], n_labels=12)


@pytest.fixture
def seed():
    """One seed is enough here; hypothesis tries others where they matter."""
    return 0


def below(hierarchy, child):
    """The labels at or below a child."""
    if child < 0:
        return {~child}
    children = hierarchy.children[hierarchy.pointers[child] : hierarchy.pointers[child + 1]]
    return set().union(*(below(hierarchy, each) for each in children.tolist()))


@given(hierarchies(), st.integers(1, 10), st.integers(0, 10**6))
def test_a_node_learns_from_the_rows_with_a_label_below_it(hierarchy, n_rows, seed):
    rng = np.random.default_rng(seed)
    dense = rng.random((n_rows, hierarchy.n_labels)) < 0.2
    costs = rng.uniform(0.5, 3, size=hierarchy.n_labels).astype(np.float32)
    examples = Examples.of(hierarchy, sparse.csr_array(dense.astype(np.float32)), costs)
    for node in range(hierarchy.n_nodes):
        children = hierarchy.children[hierarchy.pointers[node] : hierarchy.pointers[node + 1]].tolist()
        labels = [sorted(below(hierarchy, child)) for child in children]
        rows, pointers, slots, found_costs = examples.of_node(node)
        expected = [row for row in range(n_rows) if any(dense[row, each].any() for each in labels)]
        assert rows.tolist() == expected
        for i, row in enumerate(expected):
            part = slice(pointers[i], pointers[i + 1])
            mine = [slot for slot, each in enumerate(labels) if dense[row, each].any()]
            assert slots[part].tolist() == mine
            dearest = [max(costs[label] for label in labels[slot] if dense[row, label]) for slot in mine]
            assert found_costs[part].tolist() == dearest
        assert pointers[-1] == len(slots)


def test_tasks_are_blocks_of_at_most_256_children():
    hierarchy = LabelHierarchy([0, 301, 303], [1, *~np.arange(300), ~300, ~301], n_labels=302)
    assert tasks_of(hierarchy) == [Task(0, 0, 256), Task(0, 256, 45), Task(1, 0, 2)]


def trained(X, Y, hierarchy, n_jobs=1, objective=OBJECTIVE, **options):
    examples = Examples.of(hierarchy, Y, np.ones(Y.shape[1], np.float32))
    return train(Rows.of(X), examples, tasks_of(hierarchy), objective, n_jobs, **options)


def same_blocks(one, other):
    return all(
        a.tobytes() == b.tobytes()
        for x, y in zip(one, other, strict=True)
        for a, b in zip(x.block, y.block, strict=True)
    )


def test_threads_do_not_change_what_is_learned(rng):
    X, Y = planted(rng)
    one = trained(X, Y, TREE)
    assert all(same_blocks(one, trained(X, Y, TREE, n_jobs)) for n_jobs in (2, 3))
    assert not same_blocks(one, trained(X, Y, TREE, objective=replace(OBJECTIVE, seed=1)))


@pytest.mark.parametrize("seed", [0, 2**30, 2**31 + 1000])
def test_any_seed_can_be_learned_with(seed, rng):
    X, Y = planted(rng)
    objective = Objective("squared_hinge", 1.0, 0.01, 20, 0.0, 0, seed)
    assert len(trained(X, Y, TREE, objective=objective)) == 4


def test_dual_variables_are_kept_where_asked_for(rng):
    X, Y = planted(rng)
    kept = trained(X, Y, TREE, keep_duals=True)
    for task, each in zip(tasks_of(TREE), kept, strict=True):
        assert len(each.duals) == len(each.rows) * sum(block_widths(task.n_children))
    assert all(each.duals is None and each.rows is None for each in trained(X, Y, TREE))


def test_training_that_goes_on_without_other_rows_is_done_at_once(rng):
    X, Y = planted(rng)
    kept = trained(X, Y, TREE, keep_duals=True)
    again = trained(X, Y, TREE, before=kept)
    assert max(each.sweeps for each in again) == 0
    for one, other in zip(kept, again, strict=True):
        np.testing.assert_allclose(one.block.intercepts, other.block.intercepts, atol=1e-5)


def mistaken(hierarchy, X, Y, beam):
    """Negatives by the twin, and the pairs of rows and nodes they come from."""
    rows = Rows.of(X)
    examples = Examples.of(hierarchy, Y, np.ones(Y.shape[1], np.float32))
    first = train(rows, examples, tasks_of(hierarchy), OBJECTIVE, 1)
    weights = TreeWeights.pack(hierarchy, rows.n_features, (each.block for each in first), 32)
    search = native.twins.TreeSearch(rows.n_features, hierarchy.n_labels, False, 1.0, [weights.for_search()])
    visits = search.visited(0, rows.indptr, rows.indices, rows.data, 0, X.shape[0], beam)
    return Negatives.of(iter([visits]), examples), visits, examples


@pytest.mark.parametrize("beam", [1, 2, 10])
def test_negatives_are_exactly_the_rows_that_the_beam_sends_and_that_lack_labels_there(rng, beam):
    X, Y = planted(rng)
    negatives, visits, examples = mistaken(TREE, X, Y, beam)
    sent = set(zip(visits[0].tolist(), visits[1].tolist(), strict=True))
    added = 0
    for node in range(TREE.n_nodes):
        labels = sorted(below(TREE, node))
        expected = [row for row in range(80) if (row, node) in sent and not Y[[row]][:, labels].nnz]
        own, pointers, _, _ = examples.of_node(node)
        rows, extended = negatives.appended(node, own, pointers)
        assert rows.tolist() == own.tolist() + expected
        assert negatives.count(node) == len(expected)
        assert extended.tolist() == pointers.tolist() + [pointers[-1]] * len(expected)
        added += len(expected)
    assert added > 0
    assert negatives.count(0) == 0


def test_training_with_negatives_from_the_start_or_later_comes_to_the_same(rng):
    X, Y = planted(rng)
    negatives, _, _ = mistaken(TREE, X, Y, 2)
    objective = Objective("squared_hinge", 1.0, 1e-7, 1000, 0.0, 0, 0)
    before = trained(X, Y, TREE, objective=objective, keep_duals=True)
    later = trained(X, Y, TREE, objective=objective, negatives=negatives, before=before)
    scratch = trained(X, Y, TREE, objective=objective, negatives=negatives)
    for one, other in zip(later, scratch, strict=True):
        np.testing.assert_allclose(one.block.intercepts, other.block.intercepts, atol=5e-3)
        np.testing.assert_allclose(one.block.weights, other.block.weights, atol=5e-3)


def test_no_visits_are_no_negatives(rng):
    _, Y = planted(rng)
    examples = Examples.of(TREE, Y, np.ones(12, np.float32))
    negatives = Negatives.of(iter([]), examples)
    assert [negatives.count(node) for node in range(4)] == [0, 0, 0, 0]


def test_more_features_than_32_bits_number_are_refused():
    X = sparse.csr_array((np.ones(1, np.float32), np.array([2**31 + 5]), np.array([0, 1])), shape=(1, 2**31 + 6))
    with pytest.raises(InvalidInput, match=r"2147483654 features; expected fewer than 2\^31"):
        Rows.of(X)
