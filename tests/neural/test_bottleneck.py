from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from longtail.audit import audit
from longtail.errors import InvalidInput
from longtail.neural.heads import Bottleneck, Head
from longtail.neural.heads.head import Task
from tests.neural.head_contract import HeadContract


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
