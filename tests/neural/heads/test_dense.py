from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional

from longtail.audit import audit
from longtail.errors import InvalidInput
from longtail.neural.heads import Bottleneck, Head, OneHot
from longtail.neural.heads import head as head_module
from longtail.neural.heads.head import Task, best_labels
from longtail.neural.heads.losses import binary_loss
from tests.neural.heads.head_contract import HeadContract, brute_force, toy


class TestOneHot(HeadContract):
    def make(self, n_features: int, n_labels: int, task: Task, label_weights: Tensor | None = None) -> Head:
        return OneHot(n_features, n_labels, task, label_weights)

    def label_scores(self, head: Head, features: Tensor) -> Tensor:
        weights, offsets = head.output_layer()
        logits = features @ torch.from_numpy(weights).T + torch.from_numpy(offsets)
        return logits.sigmoid() if head.task == "multi-label" else logits.softmax(1)

    def count_parameters(self, n_features: int, n_labels: int) -> int:
        return (n_features + 1) * n_labels

    def count_multiply_adds(self, n_features: int, n_labels: int, n_rows: int, training: bool) -> int:
        return (3 if training else 1) * n_rows * n_features * n_labels


class TestOneHotWithoutBias(TestOneHot):
    def make(self, n_features: int, n_labels: int, task: Task, label_weights: Tensor | None = None) -> Head:
        return OneHot(n_features, n_labels, task, label_weights, bias=False)

    def count_parameters(self, n_features: int, n_labels: int) -> int:
        return n_features * n_labels


@pytest.mark.parametrize("weighted", [False, True])
def test_the_binary_loss_and_its_gradient_are_those_of_a_dense_target_matrix(weighted: bool) -> None:
    torch.manual_seed(0)
    _, targets = toy("multi-label")
    label_weights = 2 * torch.rand(targets.n_labels)
    truth = targets.dense()
    logits = 30 * torch.randn(truth.shape)
    ours, dense = logits.clone().requires_grad_(), logits.clone().requires_grad_()
    weights = label_weights[targets.labels] if weighted else None
    found = binary_loss(ours, targets.rows, targets.labels, weights)
    expected = functional.binary_cross_entropy_with_logits(dense, truth, pos_weight=label_weights if weighted else None)
    (7 * found).backward()
    (7 * expected).backward()
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(ours.grad, dense.grad)


def test_the_binary_loss_of_no_rows_is_zero() -> None:
    nothing = torch.zeros(0, dtype=torch.int64)
    assert float(binary_loss(torch.zeros(0, 5), nothing, nothing)) == 0


@given(
    scores=st.lists(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=6, max_size=6), min_size=1, max_size=4),
    allowed=st.none() | st.lists(st.booleans(), min_size=6, max_size=6),
    k=st.integers(1, 8),
)
def test_ties_go_to_the_lowest_label(scores: list[list[float]], allowed: list[bool] | None, k: int) -> None:
    mask = None if allowed is None else torch.tensor(allowed)
    labels, found = best_labels(torch.tensor(scores), k, mask)
    expected_labels, expected = brute_force(torch.tensor(scores), k, mask)
    assert torch.equal(labels, expected_labels)
    assert torch.equal(found, expected)


def test_prediction_in_blocks_of_rows_is_that_of_all_rows_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    head, features = OneHot(16, 12), toy("multi-label")[0]
    labels, scores = head.predict_topk(features, 3)
    monkeypatch.setattr(head_module, "SCORES_AT_ONCE", 5 * 12)
    in_blocks = head.predict_topk(features, 3)
    assert torch.equal(labels, in_blocks[0])
    torch.testing.assert_close(scores, in_blocks[1])


def test_the_output_layer_gives_the_logits() -> None:
    torch.manual_seed(0)
    head, features = OneHot(16, 12), toy("multi-label")[0]
    weights, offsets = head.output_layer()
    logits = features.numpy() @ weights.T + offsets
    np.testing.assert_allclose(logits, head.logits(features).detach().numpy(), rtol=1e-4, atol=1e-5)


class TestBottleneck(HeadContract):
    bias = False

    def make(self, n_features: int, n_labels: int, task: Task, label_weights: Tensor | None = None) -> Head:
        return Bottleneck(n_features, n_labels, 6, task, label_weights, bias=self.bias)

    def label_scores(self, head: Head, features: Tensor) -> Tensor:
        assert isinstance(head, Bottleneck)
        weights, offsets = head.output_layer()
        logits = head.projection(features) @ torch.from_numpy(weights).T + torch.from_numpy(offsets)
        return logits.sigmoid() if head.task == "multi-label" else logits.softmax(1)

    def count_parameters(self, n_features: int, n_labels: int) -> int:
        return (n_features + 1) * 6 + n_labels * (6 + self.bias)

    def count_multiply_adds(self, n_features: int, n_labels: int, n_rows: int, training: bool) -> int:
        return (3 if training else 1) * n_rows * (n_features * 6 + 6 * n_labels)


class TestBottleneckWithBias(TestBottleneck):
    bias = True


def test_a_narrow_layer_leaves_label_sets_out_of_reach() -> None:
    torch.manual_seed(0)
    weights, offsets = Bottleneck(5, 9, width=2).output_layer()
    assert weights.shape == (9, 2)
    assert not offsets.any()
    found = audit(weights, np.eye(9, dtype=np.int8), offsets)
    assert "unargmaxable" in found.names


def test_a_width_of_zero_is_refused() -> None:
    with pytest.raises(InvalidInput, match="width is 0"):
        Bottleneck(4, 3, width=0)
