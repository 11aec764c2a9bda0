from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional

from longtail.errors import InvalidInput
from longtail.neural.heads import Head, OneHot, Sampling
from longtail.neural.heads.head import TASKS, Task
from longtail.neural.heads.sampling import cosines, draw_distinct, with_margin
from tests.neural.heads.head_contract import N_FEATURES, N_LABELS, HeadContract, label_rows, toy


class TestSampling(HeadContract):
    options: dict[str, Any] = {}  # noqa: RUF012
    touched = N_LABELS

    def make(self, n_features: int, n_labels: int, task: Task, label_weights: Tensor | None = None) -> Head:
        n_heads = min(4, n_labels)
        options = {**self.options, "sampled": min(n_heads, self.options.get("sampled", 1))}
        return Sampling(n_features, n_labels, n_heads, task, label_weights, **options)

    def label_scores(self, head: Head, features: Tensor) -> Tensor:
        assert isinstance(head, Sampling)
        weights, offsets = (torch.from_numpy(part) for part in head.output_layer())
        logits = (features if head.margin is None else functional.normalize(features, dim=1)) @ weights.T + offsets
        return logits.sigmoid() if head.task == "multi-label" else logits.softmax(1)

    def count_parameters(self, n_features: int, n_labels: int) -> int:
        return (n_features + ("margin" not in self.options)) * n_labels

    def count_multiply_adds(self, n_features: int, n_labels: int, n_rows: int, training: bool) -> int:
        return n_rows * n_features * (3 * self.touched if training else n_labels)


class TestWithOthers(TestSampling):
    options = {"sampled": 3}  # noqa: RUF012


class TestWithSparseGradients(TestSampling):
    options = {"sampled": 2, "sparse_gradients": True}  # noqa: RUF012


class TestEachRowItsOwn(TestSampling):
    tasks = ("single-label",)
    options = {"sampled": 2, "fast": False}  # noqa: RUF012
    touched = 6


class TestEachRowItsOwnWithSparseGradients(TestEachRowItsOwn):
    options = {"sampled": 2, "fast": False, "sparse_gradients": True}  # noqa: RUF012


class TestWithMargin(TestSampling):
    tasks = ("single-label",)
    options = {"margin": 0.3, "scale": 8.0}  # noqa: RUF012


class TestEachRowItsOwnWithMargin(TestEachRowItsOwn):
    options = {"sampled": 2, "fast": False, "margin": 0.3, "scale": 8.0}  # noqa: RUF012


def as_one_hot(head: Sampling) -> OneHot:
    other = OneHot(head.n_features, head.n_labels, head.task, head.label_weights)
    with torch.no_grad():
        other.output.weight.copy_(head.weight)
        other.output.bias.copy_(torch.from_numpy(head.output_layer()[1]))
    return other


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("sparse_gradients", [False, True])
@pytest.mark.parametrize("n_heads", [1, 3, 6, 11])
def test_with_all_heads_loss_and_gradient_are_those_of_the_whole_layer(
    task: Task, sparse_gradients: bool, n_heads: int
) -> None:
    torch.manual_seed(0)
    weights = torch.rand(11)
    head = Sampling(16, 11, n_heads, task, weights, sampled=n_heads, sparse_gradients=sparse_gradients)
    whole = as_one_hot(head)
    features, targets = toy(task, n_labels=11)
    losses = [each.loss(features, targets) for each in (head, whole)]
    for loss in losses:
        loss.backward()
    torch.testing.assert_close(losses[0], losses[1])
    assert head.weight.grad is not None
    torch.testing.assert_close(head.weight.grad.to_dense(), whole.output.weight.grad)


def test_each_row_with_all_heads_has_the_loss_of_the_whole_layer() -> None:
    torch.manual_seed(0)
    head = Sampling(16, 11, 4, "single-label", sampled=4, fast=False)
    features, targets = toy("single-label", n_labels=11)
    torch.testing.assert_close(head.loss(features, targets), as_one_hot(head).loss(features, targets))


@given(labels=st.lists(st.integers(0, 19), min_size=1, max_size=6), n_heads=st.sampled_from([1, 2, 3, 4, 5, 7, 10, 20]))
def test_heads_without_a_label_of_the_batch_have_no_gradient(labels: list[int], n_heads: int) -> None:
    torch.manual_seed(0)
    length = -(-20 // n_heads)
    touched = {label for label in range(20) if label // length in {each // length for each in labels}}
    for task in TASKS:
        head = Sampling(4, 20, n_heads, task)
        features = torch.randn(len(labels), 4)
        head.loss(features, label_rows([[label] for label in labels], 20)).backward()
        assert head.weight.grad is not None
        moved = head.weight.grad.abs().sum(1)
        assert set(torch.nonzero(moved)[:, 0].tolist()) <= touched
        assert len(touched) == 1 or (moved[list(touched)] > 0).all()


def test_the_loss_is_over_the_blocks_of_the_batch() -> None:
    torch.manual_seed(0)
    head = Sampling(4, 11, 4, "single-label")  # blocks of 3, 3, 3 and 2 labels
    features = torch.randn(3, 4)
    found = head.loss(features, label_rows([[10], [3], [4]], 11))
    candidates = torch.tensor([3, 4, 5, 9, 10])
    logits = head.logits(features)[:, candidates]
    torch.testing.assert_close(found, functional.cross_entropy(logits, torch.tensor([4, 0, 1])))


def test_a_gradient_of_many_labels_holds_the_touched_rows_only() -> None:
    torch.manual_seed(0)
    head = Sampling(4, 100_000, 1_000, "single-label", sparse_gradients=True, sampled=2)
    head.loss(torch.randn(3, 4), label_rows([[5], [7], [99_999]], 100_000)).backward()
    assert head.weight.grad is not None
    assert head.weight.grad.is_sparse
    rows = head.weight.grad.coalesce().indices()[0]
    assert len(rows) == 300
    assert {0, 999} < set((rows // 100).tolist())


@pytest.mark.parametrize("sampled", [1, 4])
def test_others_are_drawn_evenly_and_never_twice(sampled: int) -> None:
    torch.manual_seed(0)
    head = Sampling(4, 20, 10, sampled=sampled)
    seen: Counter[int] = Counter()
    for _ in range(600):
        heads = head._with_others(torch.tensor([2, 7])).tolist()
        assert heads == sorted(set(heads))
        assert len(heads) == 2 + sampled - 1
        seen.update(heads)
    assert seen[2] == seen[7] == 600
    expected = 600 * (sampled - 1) / 8
    assert all(abs(seen[head] - expected) <= 5 * math.sqrt(expected) for head in {0, 1, 3, 4, 5, 6, 8, 9})


@given(n=st.integers(1, 12), data=st.data())
def test_drawn_numbers_are_distinct_and_below_the_bound(n: int, data: st.DataObject) -> None:
    n_drawn = data.draw(st.integers(0, n))
    for row in draw_distinct(5, n_drawn, n).tolist():
        assert len(set(row)) == n_drawn
        assert all(0 <= number < n for number in row)


def test_every_choice_of_distinct_numbers_is_as_likely() -> None:
    torch.manual_seed(0)
    drawn = draw_distinct(10_000, 2, 5).sort(dim=1).values
    counts = Counter(map(tuple, drawn.tolist()))
    assert len(counts) == 10
    assert all(abs(count - 1000) < 150 for count in counts.values())


def test_no_margin_is_a_scaled_softmax_of_cosines() -> None:
    torch.manual_seed(0)
    head = Sampling(N_FEATURES, N_LABELS, 3, "single-label", sampled=3, margin=0.0, scale=10.0)
    features, targets = toy("single-label")
    logits = 10 * functional.normalize(features, dim=1) @ functional.normalize(head.weight, dim=1).T
    torch.testing.assert_close(head.loss(features, targets), functional.cross_entropy(logits, targets.labels))


@pytest.mark.parametrize("margin", [0.1, 0.5, 1.5])
def test_the_logit_falls_with_the_angle_and_jumps_down_once(margin: float) -> None:
    angles = torch.linspace(0, math.pi, 2001, dtype=torch.float64)
    found = with_margin(angles.cos(), margin)
    steps = found.diff()
    assert (steps < 0).all()
    below = angles < math.pi - margin
    torch.testing.assert_close(found[below], (angles + margin).cos()[below], rtol=1e-6, atol=1e-6)
    jump = int(below.sum()) - 1
    smooth = torch.cat([steps[:jump], steps[jump + 1 :]])
    assert (smooth > -math.pi / 2000 * 1.01).all()
    assert steps[jump] < -2 * math.pi / 2000


def test_a_margin_makes_the_loss_larger_and_leaves_predictions_alone() -> None:
    features, targets = toy("single-label")
    heads = []
    for margin in (0.0, 0.5):
        torch.manual_seed(0)
        heads.append(Sampling(N_FEATURES, N_LABELS, 3, "single-label", margin=margin))
    assert heads[1].loss(features, targets) > heads[0].loss(features, targets)
    assert torch.equal(heads[0].predict_topk(features, 3)[0], heads[1].predict_topk(features, 3)[0])


def test_the_gradient_is_finite_where_row_and_weight_point_the_same_way_or_are_zero() -> None:
    head = Sampling(2, 3, 1, "single-label", margin=0.5)
    with torch.no_grad():
        head.weight.copy_(torch.tensor([[1.0, 0.0], [-1.0, 0.0], [0.0, 0.0]]))
    features = torch.tensor([[2.0, 0.0], [2.0, 0.0], [0.0, 0.0]], requires_grad=True)
    head.loss(features, label_rows([[0], [1], [2]], 3)).backward()
    assert features.grad is not None
    assert head.weight.grad is not None
    assert features.grad.isfinite().all()
    assert head.weight.grad.isfinite().all()


def test_cosines_need_no_normalised_weights() -> None:
    torch.manual_seed(0)
    features, weights = torch.randn(5, 7), torch.randn(9, 7)
    np.testing.assert_allclose(
        cosines(features, weights), functional.cosine_similarity(features[:, None], weights[None], dim=2), atol=1e-6
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_heads": 0}, "0 heads for 10 labels"),
        ({"n_heads": 11}, "11 heads for 10 labels"),
        ({"n_heads": 7}, "use 5"),
        ({"n_heads": 5, "sampled": 6}, "sampled is 6 of 5 heads"),
        ({"n_heads": 5, "sampled": 0}, "sampled is 0 of 5 heads"),
        ({"n_heads": 5, "fast": False, "task": "multi-label"}, "single-label"),
        ({"n_heads": 5, "margin": 0.5, "task": "multi-label"}, "single-label"),
        ({"n_heads": 5, "margin": 4.0}, "margin is 4.0"),
    ],
)
def test_what_cannot_be_sampled_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        Sampling(4, 10, **{"task": "single-label", **options})
