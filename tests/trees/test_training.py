"""The rows and costs that each block of siblings learns from; the order of work changes nothing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from longtail import native
from longtail.errors import InvalidInput
from longtail.estimator.checks import planted
from longtail.labels import LabelHierarchy, members_by_label
from longtail.native.siblings import block_widths
from longtail.trees import examples as examples_module
from longtail.trees.examples import Block, block_of, examples_of, layout_of, visits_by_node
from longtail.trees.training import Objective, grow, train_block
from longtail.trees.weights import TreeWeights
from longtail.work import InMemory, Rows
from tests.labels.trees import hierarchies
from tests.trees.packed_trees import blocks_of, members_of

OBJECTIVE = Objective("squared_hinge", 1.0, 0.01, 20, 0.0, 0, 0, 32)
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


@pytest.mark.parametrize("share", [0, 10**9])
@given(hierarchy=hierarchies(), n_rows=st.integers(1, 10), seed=st.integers(0, 10**6), equal=st.booleans())
def test_a_block_learns_from_the_rows_with_a_label_below_its_node(hierarchy, n_rows, seed, equal, share):
    rng = np.random.default_rng(seed)
    dense = rng.random((n_rows, hierarchy.n_labels)) < 0.2
    costs = np.ones(hierarchy.n_labels) if equal else rng.uniform(0.5, 3, size=hierarchy.n_labels)
    costs = costs.astype(np.float32)
    layout, members = layout_of(hierarchy, costs), members_of(sparse.csr_array(dense.astype(np.float32)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(examples_module, "_MASKED_SHARE", share)  # rows are marked, or sorted
        for block in blocks_of(hierarchy):
            start = hierarchy.pointers[block.node] + block.first
            children = hierarchy.children[start : start + block.n_children].tolist()
            labels = [sorted(below(hierarchy, child)) for child in children]
            rows, pointers, slots, found_costs = examples_of(layout, members, (), block, n_rows)
            assert rows.tolist() == [
                row for row in range(n_rows) if dense[row, sorted(below(hierarchy, block.node))].any()
            ]
            for i, row in enumerate(rows.tolist()):
                part = slice(pointers[i], pointers[i + 1])
                mine = [slot for slot, each in enumerate(labels) if dense[row, each].any()]
                assert slots[part].tolist() == mine
                dearest = [max(costs[label] for label in labels[slot] if dense[row, label]) for slot in mine]
                assert found_costs[part].tolist() == dearest
            assert pointers[-1] == len(slots)


def test_blocks_have_at_most_256_children():
    hierarchy = LabelHierarchy([0, 301, 303], [1, *~np.arange(300), ~300, ~301], n_labels=302)
    assert blocks_of(hierarchy) == [Block(0, 0, 256), Block(0, 256, 45), Block(1, 0, 2)]


def test_each_block_of_a_wide_node_learns_from_all_its_rows():
    hierarchy = LabelHierarchy([0, 300], ~np.arange(300), n_labels=300)
    Y = sparse.csr_array((np.ones(3, np.float32), [10, 280, 299], [0, 1, 2, 3]), shape=(3, 300))
    layout, members = layout_of(hierarchy, np.ones(300, np.float32)), members_of(Y)
    first, second = (examples_of(layout, members, (), block_of(layout, number), 3) for number in (0, 1))
    assert first.rows.tolist() == second.rows.tolist() == [0, 1, 2]
    assert (first.slots.tolist(), first.pointers.tolist()) == ([10], [0, 1, 1, 1])
    assert (second.slots.tolist(), second.pointers.tolist()) == ([280 - 256, 299 - 256], [0, 0, 1, 2])


def grown(X, Y, n_jobs=1, objective=OBJECTIVE, beam=0, hierarchy=TREE):
    work = InMemory(n_jobs, {"features": X, "labels": Y})
    counts = np.bincount(Y.indices, minlength=Y.shape[1])
    members = members_by_label(work, counts)
    return grow(work, "", members, counts, hierarchy, np.ones(Y.shape[1], np.float32), objective, beam=beam)


def bytes_of(tree):
    return b"".join(array.tobytes() for array in tree.for_search().values())


@pytest.mark.parametrize("beam", [0, 2])
def test_threads_do_not_change_what_is_learned(rng, beam):
    X, Y = planted(rng)
    one = bytes_of(grown(X, Y, beam=beam).weights)
    assert all(bytes_of(grown(X, Y, n_jobs, beam=beam).weights) == one for n_jobs in (2, 3))
    assert bytes_of(grown(X, Y, objective=OBJECTIVE._replace(seed=1), beam=beam).weights) != one


@pytest.mark.parametrize("seed", [0, 2**30, 2**31 + 1000])
def test_any_seed_can_be_learned_with(seed, rng):
    X, Y = planted(rng)
    assert len(grown(X, Y, objective=OBJECTIVE._replace(seed=seed)).weights.shifts) == 4


def trained(X, Y, negatives=(), before=None, objective=OBJECTIVE):
    """Every block of the tree, with its rows and dual variables; `before` is an earlier result to continue from."""
    layout, members = layout_of(TREE, np.ones(Y.shape[1], np.float32)), members_of(Y)
    found = []
    for number, block in enumerate(blocks_of(TREE)):
        examples = examples_of(layout, members, negatives, block, X.shape[0])
        duals = np.zeros(len(examples.rows) * sum(block_widths(block.n_children)), np.float32)
        if before is not None:  # one block of lanes: the rows that were added come last
            duals[: len(before[number][1])] = before[number][1]
        result = train_block(Rows.of(X), examples, block, objective, duals)
        found.append((result, duals, examples))
    return found


def test_training_that_goes_on_without_other_rows_is_done_at_once(rng):
    X, Y = planted(rng)
    once = trained(X, Y)
    again = trained(X, Y, before=once)
    assert max(sweeps for (_, _, sweeps), _, _ in again) == 0
    for ((one, _, _), _, _), ((other, _, _), _, _) in zip(once, again, strict=True):
        np.testing.assert_allclose(one.intercepts, other.intercepts, atol=1e-5)


def visits_of_beam(X, Y, beam):
    """The pairs of rows and nodes that the beam of the twin visits."""
    weights = TreeWeights.pack(TREE, X.shape[1], (result[0] for result, _, _ in trained(X, Y)), 32)
    rows = Rows.of(X)
    search = native.twins.TreeSearch(rows.n_columns, TREE.n_labels, False, 1.0, [weights.for_search()])
    return search.visited(0, rows.indptr, rows.indices, rows.data, 0, X.shape[0], beam)


@pytest.mark.parametrize("beam", [1, 2, 10])
def test_negatives_are_exactly_the_rows_that_the_beam_sends_and_that_lack_labels_there(rng, beam):
    X, Y = planted(rng)
    visits = visits_of_beam(X, Y, beam)
    sent = set(zip(visits[0].tolist(), visits[1].tolist(), strict=True))
    layout, members = layout_of(TREE, np.ones(12, np.float32)), members_of(Y)
    added = 0
    for block in blocks_of(TREE):
        labels = sorted(below(TREE, block.node))
        expected = [row for row in range(80) if (row, block.node) in sent and not Y[[row]][:, labels].nnz]
        plain = examples_of(layout, members, (), block, 80)
        found = examples_of(layout, members, (visits_by_node(*visits),), block, 80)
        assert found.rows.tolist() == plain.rows.tolist() + expected
        assert found.pointers.tolist() == plain.pointers.tolist() + [plain.pointers[-1]] * len(expected)
        added += len(expected)
    assert added > 0


def test_visits_may_come_in_several_pieces(rng):
    X, Y = planted(rng)
    rows, nodes = visits_of_beam(X, Y, 2)
    layout, members, first = layout_of(TREE, np.ones(12, np.float32)), members_of(Y), rows < 40
    parts = visits_by_node(rows[first], nodes[first]), visits_by_node(rows[~first], nodes[~first])
    for block in blocks_of(TREE):
        whole = examples_of(layout, members, (visits_by_node(rows, nodes),), block, 80)
        divided = examples_of(layout, members, parts, block, 80)
        assert all(one.tolist() == other.tolist() for one, other in zip(whole, divided, strict=True))


def test_training_with_negatives_from_the_start_or_later_comes_to_the_same(rng):
    X, Y = planted(rng)
    negatives = (visits_by_node(*visits_of_beam(X, Y, 2)),)
    objective = OBJECTIVE._replace(tolerance=1e-7, max_sweeps=1000)
    before = trained(X, Y, objective=objective)
    later = trained(X, Y, negatives, before, objective)
    scratch = trained(X, Y, negatives, objective=objective)
    for ((one, _, _), _, _), ((other, _, _), _, _) in zip(later, scratch, strict=True):
        np.testing.assert_allclose(one.intercepts, other.intercepts, atol=5e-3)
        np.testing.assert_allclose(one.weights, other.weights, atol=5e-3)


def test_more_features_than_32_bits_number_are_refused():
    X = sparse.csr_array((np.ones(1, np.float32), np.array([2**31 + 5]), np.array([0, 1])), shape=(1, 2**31 + 6))
    with pytest.raises(InvalidInput, match=r"2147483654 columns; expected fewer than 2\^31"):
        Rows.of(X)
