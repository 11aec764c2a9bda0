"""How many dimensions label sets need: bounds for any layer, and for the truncations of one layer."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest
from scipy import sparse

from longtail import memory
from longtail.audit import (
    ARGMAXABLE,
    UNARGMAXABLE,
    LabelSets,
    OutputLayer,
    audit,
    count_argmaxable,
    crowd,
    dft_matrix,
    truncation_needed,
    width_needed,
)
from longtail.audit.fitting import fit_layer
from longtail.audit.shattering import count_patterns, narrowest
from longtail.errors import InvalidInput, NotEnoughMemory


def all_sets(n: int, k: int) -> np.ndarray:
    return np.array([np.isin(range(n), chosen) for size in range(k + 1) for chosen in combinations(range(n), size)])


@pytest.mark.parametrize(("n", "k"), [(3, 1), (6, 1), (7, 2), (9, 2), (8, 3), (5, 5)])
def test_all_sets_of_up_to_k_labels_need_two_k_plus_one_dimensions_and_no_more(n: int, k: int) -> None:
    sets = all_sets(n, k)
    found = width_needed(sets)
    assert found.lower == found.upper == min(n, 2 * k + 1)
    assert found.recheck(sets)
    assert f"No layer of width {found.lower - 1}" in found.to_text()


def test_the_lower_bound_holds_for_every_layer_that_is_drawn(rng: np.random.Generator) -> None:
    """All sets that a layer of width d gives have a bound of at most d."""
    for d in (1, 2, 3, 4):
        weights = rng.normal(size=(9, d))
        sets = np.unique(rng.normal(size=(3000, d)) @ weights.T > 0, axis=0)
        found = width_needed(sets)
        assert found.lower <= d
        assert found.upper <= 9
        assert found.recheck(sets)
        if d <= 2:
            assert found.lower == found.upper == d


def test_the_upper_bound_comes_with_weights_that_reach_every_set(rng: np.random.Generator) -> None:
    sets = rng.random((60, 30)) < 0.1
    found = width_needed(sets)
    assert found.how == "found"
    assert found.lower <= found.upper < 2 * sets.sum(axis=1).max() + 1
    assert (audit(found.weights, sets, n_jobs=1).verdicts == ARGMAXABLE).all()
    assert found.recheck(sets)
    assert not found.recheck(~sets[:, ::-1])


def test_without_a_search_sines_and_cosines_in_a_good_order_are_the_upper_bound() -> None:
    # Blocks of labels that occur together, mixed up: in the order of blocks every set changes twice.
    places = np.random.default_rng(3).permutation(24)
    sets = (places // 6)[None, :] == np.arange(4)[:, None]
    found = width_needed(sets, search=False)
    assert (found.upper, found.how) == (3, "sines and cosines")
    assert found.recheck(sets)
    assert "frequency 1" in found.to_text()
    assert (audit(found.weights, sets).verdicts == ARGMAXABLE).all()
    np.testing.assert_array_equal(found.weights, dft_matrix(24, 1)[found.order])


def test_labels_that_always_occur_together_share_their_weights(rng: np.random.Generator) -> None:
    sets = rng.random((40, 12)) < 0.2
    twice = np.hstack([sets, sets])
    assert width_needed(twice).upper <= width_needed(sets).upper + 1
    assert width_needed(twice).recheck(twice)


def test_a_crowd_is_a_fact_that_can_be_counted(rng: np.random.Generator) -> None:
    sets = rng.random((200, 40)) < 0.3
    found = crowd(sparse.csr_array(sets.astype(float)))
    part = sets[:, found.labels]
    assert len({tuple(row ^ row[0]) for row in part}) == found.patterns == count_patterns(sets, found.labels)
    # With the complements there are twice as many, and Cover's count is smaller one dimension below.
    assert count_argmaxable(len(found.labels), found.width - 1) < 2 * found.patterns
    assert 2 * found.patterns <= count_argmaxable(len(found.labels), found.width)
    assert found.width > 5


def test_the_narrowest_width_is_that_of_covers_count() -> None:
    for n, patterns in product(range(1, 7), range(1, 33)):
        if patterns <= 2 ** (n - 1):
            d = narrowest(n, patterns)
            assert count_argmaxable(n, d) >= 2 * patterns
            assert d == 1 or count_argmaxable(n, d - 1) < 2 * patterns


def test_weights_are_found_only_where_there_are_some() -> None:
    assert fit_layer(all_sets(5, 1), 2) is None
    found = fit_layer(all_sets(5, 1), 3)
    assert found is not None
    np.testing.assert_array_equal(found[1] @ found[0].T > 0, all_sets(5, 1))


def test_the_smallest_truncation_is_that_of_a_search_through_all_ranks(rng: np.random.Generator) -> None:
    layer = OutputLayer.of(rng.normal(size=(14, 12)), rng.normal(size=14))
    for k in (1, 3):
        sets = all_sets(14, 3)[rng.choice(400, size=25, replace=False)]
        sets[:, k * 4 :] = False
        truncate = layer.truncations(12)
        audits = [audit(replace(layer, weights=truncate(rank)), sets) for rank in range(1, 13)]
        failing = [rank for rank, each in enumerate(audits, start=1) if each.count(UNARGMAXABLE)]
        found = truncation_needed(layer, sets)
        assert failing == list(range(1, found.fails + 1))
        assert found.reaches == (None if found.fails == 12 else found.fails + 1)
        assert found.proof is None or found.proof.recheck()[found.proof.verdicts == UNARGMAXABLE].all()


def test_a_layer_that_fails_as_a_whole_has_no_rank_that_is_enough() -> None:
    found = truncation_needed(OutputLayer.of([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), [[1, 1, 0]])
    assert (found.reaches, found.fails) == (None, 2)
    assert found.proof is not None
    assert found.proof.example(0, "ABC")["says"] == "no input can have A and B without C"
    assert "whatever rank" in found.to_text()


def test_a_layer_that_never_fails_can_be_cut_to_rank_one() -> None:
    found = truncation_needed(OutputLayer.of([[1.0, 0.5], [1.0, -0.5]]), LabelSets.of([[1, 1], [0, 0], [1, 1]]))
    assert (found.reaches, found.fails, found.proof) == (1, 0, None)
    assert found.to_text() == "No rank fails; at rank 1 it does."


def test_no_label_sets_are_refused() -> None:
    with pytest.raises(InvalidInput, match="no label sets"):
        width_needed(np.zeros((0, 4)))


def test_many_labels_need_no_square_matrix() -> None:
    """An identity for 200,000 labels would take 300 GB."""
    sets = sparse.csr_array((np.ones(2), [3, 150_000], [0, 1, 2]), shape=(2, 200_000))
    found = width_needed(sets, search=False)
    assert (found.upper, found.weights.shape) == (3, (200_000, 3))
    assert found.recheck(sets)


def test_sets_that_do_not_fit_are_refused_before_they_are_made_dense() -> None:
    with memory.limit(100), pytest.raises(NotEnoughMemory, match="label sets, made dense"):
        width_needed(np.eye(20))


def test_proofs_are_rechecked_for_as_many_labels_only() -> None:
    with pytest.raises(InvalidInput, match="have 4 labels; expected 3"):
        width_needed(np.eye(3)).recheck(np.eye(4))
