"""`OneHot`: one weight vector per label, the plain linear layer that the other heads are measured against."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from longtail.arrays import Array
from longtail.neural.heads.dense import DenseHead
from longtail.neural.heads.head import Task, label_shares, starting_offsets


class OneHot(DenseHead):
    """A linear layer with an output for every label.

    Parameters
    ----------
    n_features, n_labels, task, label_weights
        As for `Head`.
    bias : bool
        Whether every label has an offset.

    Examples
    --------
    >>> import torch
    >>> from longtail.neural.targets import LabelRows
    >>> head = OneHot(n_features=4, n_labels=3)
    >>> targets = LabelRows(labels=torch.tensor([0, 2]), offsets=torch.tensor([0, 2, 2]), n_labels=3)
    >>> head.loss(torch.zeros(2, 4), targets).shape
    torch.Size([])
    >>> labels, scores = head.predict_topk(torch.zeros(2, 4), k=2)
    >>> labels.shape
    torch.Size([2, 2])
    """

    def __init__(
        self,
        n_features: int,
        n_labels: int,
        task: Task = "multi-label",
        label_weights: Tensor | None = None,
        bias: bool = True,
    ) -> None:
        super().__init__(n_features, n_labels, task, label_weights)
        self.output = nn.Linear(n_features, n_labels, bias=bias)

    def logits(self, features: Tensor) -> Tensor:
        found: Tensor = self.output(features)
        return found

    def start_from(self, label_counts: Tensor, n_rows: int) -> None:
        if isinstance(self.output.bias, Tensor):
            with torch.no_grad():
                self.output.bias.copy_(starting_offsets(label_shares(label_counts, n_rows), self.task))

    def multiply_adds(self, n_rows: int, training: bool = True) -> int:
        return (3 if training else 1) * n_rows * self.n_features * self.n_labels

    def output_layer(self) -> tuple[Array, Array]:
        return linear_layer(self.output)


def linear_layer(layer: nn.Linear) -> tuple[Array, Array]:
    """Weights and offsets of a linear layer as arrays; offsets are 0 where it has none."""
    weights = layer.weight.detach().cpu().numpy()
    has_offsets = isinstance(layer.bias, Tensor)
    return weights, layer.bias.detach().cpu().numpy() if has_offsets else np.zeros(len(weights), weights.dtype)
