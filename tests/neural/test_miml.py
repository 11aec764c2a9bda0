"""Fact E9, and the network over bags."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from torch import nn

import longtail
from longtail.errors import InvalidInput
from longtail.neural import DeepMIML
from longtail.neural.batches import BagRows, Bags, DenseRows, SparseRows
from longtail.neural.encoders import BagOfWords, Dense
from longtail.neural.miml import BagLabels, BagScores, ConceptScores, masked, products, soft_assignment
from longtail.neural.targets import LabelRows


@st.composite
def padded_similarities(draw):
    sizes = draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
    seed = draw(st.integers(0, 2**16))
    similarities = torch.randn(len(sizes), max(sizes), 3, generator=torch.Generator().manual_seed(seed))
    present = torch.arange(max(sizes)) < torch.tensor(sizes)[:, None]
    return similarities, present


@given(padded_similarities(), st.floats(0, 20))
def test_columns_of_the_mask_sum_to_the_size_of_the_bag(padded, tau: float) -> None:
    similarities, present = padded
    mask = soft_assignment(similarities, present, tau)
    expected = present.sum(dim=1)[:, None].expand(-1, 3).float()
    torch.testing.assert_close(mask.sum(dim=1), expected, rtol=1e-5, atol=1e-5)
    assert (mask[~present] == 0).all()
    assert (mask >= 0).all()


@given(padded_similarities())
def test_without_hardness_and_alone_in_a_bag_everyone_counts_alike(padded) -> None:
    similarities, present = padded
    assert torch.allclose(soft_assignment(similarities, present, 0.0)[present], torch.ones(()))
    alone = present & (present.sum(dim=1, keepdim=True) == 1)
    assert torch.allclose(soft_assignment(similarities, present, 7.0)[alone], torch.ones(()))


@given(padded_similarities())
def test_a_very_hard_mask_gives_all_to_the_most_similar(padded) -> None:
    similarities, present = padded
    mask = soft_assignment(similarities, present, 1e7)
    best = torch.where(present.unsqueeze(2), similarities, -torch.inf).argmax(dim=1, keepdim=True)
    sizes = present.sum(dim=1)[:, None].expand(-1, 3).float()
    torch.testing.assert_close(mask.gather(1, best)[:, 0], sizes)


def bag_scores(encoder, **options) -> BagScores:
    torch.manual_seed(0)
    return BagScores(encoder, ConceptScores(8, 3, concepts=4), **options)


def test_padding_changes_nothing() -> None:
    torch.manual_seed(1)
    model = bag_scores(Dense(5, [8]), label_vectors=torch.randn(3, 5), tau=2.0)
    instances = torch.randn(6, 5)
    together = model(Bags(instances, torch.tensor([0, 1, 4, 6])))
    for i, (first, last) in enumerate([(0, 1), (1, 4), (4, 6)]):
        alone = model(Bags(instances[first:last], torch.tensor([0, last - first])))
        torch.testing.assert_close(together[[i]], alone)


def test_the_order_of_instances_changes_nothing() -> None:
    torch.manual_seed(1)
    model = bag_scores(Dense(5, [8]), label_vectors=torch.randn(3, 5), tau=2.0)
    instances = torch.randn(4, 5)
    offsets = torch.tensor([0, 4])
    torch.testing.assert_close(model(Bags(instances, offsets)), model(Bags(instances[[2, 0, 3, 1]], offsets)))


def test_a_single_instance_does_not_see_the_mask() -> None:
    torch.manual_seed(1)
    vectors, instances = torch.randn(3, 5), torch.randn(4, 5)
    offsets = torch.arange(5)
    masked = bag_scores(Dense(5, [8]), label_vectors=vectors, tau=5.0)
    plain = bag_scores(Dense(5, [8]))
    plain.load_state_dict(masked.state_dict())
    torch.testing.assert_close(masked(Bags(instances, offsets)), plain(Bags(instances, offsets)))


@pytest.mark.parametrize("rectified", [True, False])
def test_the_mask_raises_the_instance_that_is_most_similar_whatever_the_sign_of_scores(rectified: bool) -> None:
    similarities = torch.tensor([[[1.0], [0.0], [-1.0]]])
    mask = soft_assignment(similarities, torch.ones(1, 3, dtype=torch.bool), tau=2.0)
    for score in (0.0, 0.5, 3.0) if rectified else (-4.0, -0.1, 0.0, 0.5, 3.0):
        found = masked(torch.full((1, 3, 1), score), mask, rectified).flatten()
        assert (found.diff() < 0).all() or score == 0
        assert found[0] >= score >= found[2]
    assert torch.equal(masked(torch.tensor([-1.0, 2.0]), torch.ones(2), rectified), torch.tensor([-1.0, 2.0]))


def test_negative_scores_under_a_hard_mask_keep_finite_gradients() -> None:
    torch.manual_seed(1)
    scores = ConceptScores(8, 3, concepts=2, rectified=False)
    nn.init.constant_(scores.linear.bias, -5.0)
    model = BagScores(Dense(5, [8]), scores, torch.randn(3, 5), tau=1e4)
    found = model(Bags(torch.randn(6, 5), torch.tensor([0, 1, 4, 6])))
    found.sum().backward()
    assert found.isfinite().all()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())


def test_a_bag_without_instances_scores_zero() -> None:
    model = bag_scores(Dense(5, [8]))
    assert model(Bags(torch.randn(1, 5), torch.tensor([0, 0, 1])))[0].tolist() == [0, 0, 0]


def test_sparse_and_dense_instances_have_the_same_similarities(rng) -> None:
    X = sparse.random(6, 5, 0.5, format="csr", random_state=rng, dtype=np.float32)
    vectors = torch.randn(5, 3)
    rows = np.arange(6)
    dense = products(DenseRows(X.toarray()).batch(rows), vectors)
    torch.testing.assert_close(products(SparseRows(X).batch(rows), vectors), dense)


def test_the_losses_are_those_of_torch() -> None:
    torch.manual_seed(0)
    logits = torch.randn(2, 3)
    targets = LabelRows(torch.tensor([0, 2, 1]), torch.tensor([0, 2, 3]), 3, torch.tensor([0.5, 0.25, 1.0]))
    wanted = torch.tensor([[0.5, 0, 0.25], [0, 1, 0]])
    binary = torch.nn.functional.binary_cross_entropy_with_logits(logits, wanted)
    torch.testing.assert_close(BagLabels(3).loss(logits, targets), binary)
    shares = wanted / wanted.sum(dim=1, keepdim=True)
    torch.testing.assert_close(
        BagLabels(3, "softmax").loss(logits, targets), torch.nn.functional.cross_entropy(logits, shares)
    )


def bags_of_two(rng, n_bags=120):
    """Six kinds of rows, two different kinds in each bag; the label of a row is its kind."""
    kinds = np.array([rng.choice(6, size=2, replace=False) for _ in range(n_bags)])
    X = np.eye(6, dtype=np.float32)[kinds.ravel()] + 0.05 * rng.random((2 * n_bags, 6)).astype(np.float32)
    groups = np.kron(np.eye(n_bags), np.ones((2, 1)))
    labels = np.zeros((n_bags, 6))
    np.put_along_axis(labels, kinds, 1, axis=1)
    return X, sparse.csr_array(groups), labels, kinds


@pytest.mark.parametrize(("tau", "targets"), [(0.0, "set"), (3.0, "set"), (0.0, "proportion"), (3.0, "proportion")])
def test_instances_are_told_apart_that_only_bags_had_labels_for(rng, tau: float, targets: str, tmp_path) -> None:
    X, groups, labels, kinds = bags_of_two(rng)
    # All rectified scores of a label can start at 0 and stay there; ten concepts make that unlikely.
    network = {"hidden": 64, "concepts": 10, "batch_size": 8, "learning_rate": 0.01, "n_jobs": 1}
    model = DeepMIML(tau=tau, targets=targets, epochs=40, **network).fit(X, groups, labels)
    assert (model.predict_topk(X, k=1)[0].ravel() == kinds.ravel()).mean() > 0.95
    found = model.predict_bags(X, groups, k=2)[0]
    assert (np.sort(found, axis=1) == np.sort(kinds, axis=1)).mean() > 0.95
    model.save(tmp_path / "model")
    again = longtail.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_topk(X, k=2)[1], model.predict_topk(X, k=2)[1])
    np.testing.assert_array_equal(again.predict_bags(X, groups, k=2)[1], model.predict_bags(X, groups, k=2)[1])


def test_soft_assignments_point_at_the_instance_a_label_is_of(rng) -> None:
    X, groups, labels, kinds = bags_of_two(rng)
    model = DeepMIML(hidden=8, tau=10.0, epochs=1, n_jobs=1).fit(X, groups, labels)
    shares = model.soft_assignments(X, groups)
    assert len(shares) == len(kinds)
    for bag, (first, second) in zip(shares, kinds.tolist(), strict=True):
        assert bag.shape == (2, 6)
        np.testing.assert_allclose(bag.sum(axis=0), 2, rtol=1e-5)
        assert bag[0, first] > 1.5
        assert bag[1, second] > 1.5


def test_sparse_bags_learn_too(rng) -> None:
    X, groups, labels, kinds = bags_of_two(rng)
    X = sparse.csr_array(np.where(X > 0.5, X, 0).astype(np.float32))
    model = DeepMIML(hidden=32, epochs=30, batch_size=8, learning_rate=0.01, n_jobs=1).fit(X, groups, labels)
    assert model.encoder_ == "bag-of-words"
    assert isinstance(model.networks_[0].encoder.encoder, BagOfWords)
    assert (model.predict_topk(X, k=1)[0].ravel() == kinds.ravel()).mean() > 0.95


def test_bags_that_overlap_differ_in_size_or_are_empty(rng) -> None:
    X = rng.random((5, 4)).astype(np.float32)
    groups = np.array([[1, 1, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1]])
    labels = np.array([[1, 0], [1, 1], [0, 1], [0, 0]])  # the third has no members, the last no labels
    model = DeepMIML(hidden=8, epochs=2, n_jobs=1).fit(X, groups, labels)
    found, scores = model.predict_bags(X, groups, k=2)
    assert found.shape == scores.shape == (4, 2)


def test_bags_without_anything_in_them_are_refused() -> None:
    with pytest.raises(InvalidInput, match="nothing to learn from"):
        DeepMIML().fit([[1.0]], [[1]], [[0]])


def test_bags_are_rows_of_a_batch() -> None:
    bags = BagRows(DenseRows(np.eye(3)), np.array([[1, 0, 1], [0, 0, 0], [0, 1, 0]]))
    batch = bags.batch(np.array([2, 1, 0]))
    assert batch.offsets.tolist() == [0, 1, 1, 3]
