"""`DenseHead`, a logit for every label of every row, and the two plain heads of this kind: `OneHot`, `Bottleneck`.

A bottleneck is cheap, but a layer narrower than the number of labels cannot predict most label sets (Grivas et al.,
AAAI 2024). `longtail.audit` finds out which; `DFT` is a layer of the same width that can predict all small sets.
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
import torch
from torch import Tensor, nn

from longtail.arrays import Array
from longtail.errors import InvalidInput
from longtail.neural.heads.head import Head, Task, best_labels, label_shares, search_blocks, starting_offsets
from longtail.neural.heads.losses import binary_loss, softmax_loss
from longtail.neural.heads.precision import log_sigmoid, wide
from longtail.neural.targets import LabelRows


class DenseHead(Head):
    """An output layer that is defined by its `logits`, of shape (n_rows, n_labels)."""

    @abstractmethod
    def logits(self, features: Tensor) -> Tensor:
        """A number for every label: the larger, the more likely."""

    def _loss(self, features: Tensor, targets: LabelRows) -> Tensor:
        """Mean binary cross-entropy of all labels (multi-label), or mean cross-entropy of the rows (single-label)."""
        weights = self.weights_of(targets.labels)
        if self.task == "single-label":
            return softmax_loss(self.logits(features), targets.single(), weights)
        return binary_loss(self.logits(features), targets.rows, targets.labels, weights)

    def _log_prob(self, features: Tensor) -> Tensor:
        """Of independent labels (multi-label), or of labels whose probabilities sum to 1 (single-label)."""
        logits = wide(self.logits(features))
        return torch.log_softmax(logits, dim=1) if self.task == "single-label" else log_sigmoid(logits)

    def _probabilities(self, features: Tensor) -> Tensor:
        logits = wide(self.logits(features))
        return torch.softmax(logits, dim=1) if self.task == "single-label" else torch.sigmoid(logits)

    def _predict_topk(self, features: Tensor, k: int, allowed: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """The k best labels of each row; a label's probability does not depend on which others are allowed."""
        return search_blocks(
            lambda rows: best_labels(self._probabilities(rows), k, allowed), features, values_per_row=self.n_labels
        )


class OneHot(DenseHead):
    """One weight vector per label: the plain linear layer that the other heads are compared with.

    Parameters
    ----------
    n_features, n_labels, task, label_weights
        As for `Head`.
    bias : bool
        Whether every label has an offset.

    Examples
    --------
    >>> head = OneHot(n_features=4, n_labels=3)
    >>> targets = LabelRows(labels=torch.tensor([0, 2]), offsets=torch.tensor([0, 2, 2]), n_labels=3)
    >>> head(torch.zeros(2, 4), targets).loss.shape
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
                shares = label_shares(label_counts.to(self.output.bias.device), n_rows)
                self.output.bias.copy_(starting_offsets(shares, self.task))

    def multiply_adds(self, n_rows: int, training: bool = True) -> int:
        return (3 if training else 1) * n_rows * self.n_features * self.n_labels

    def output_layer(self) -> tuple[Array, Array]:
        return _linear_layer(self.output)


class Bottleneck(DenseHead):
    """Logits ``W x`` of a narrow projection ``x = P e + b`` of the features e.

    Parameters
    ----------
    n_features, n_labels, task, label_weights
        As for `Head`.
    width : int
        Width of x.
    bias : bool
        Whether every label also has an offset.

    Examples
    --------
    >>> head = Bottleneck(n_features=768, n_labels=20_000, width=200)
    >>> head.n_parameters()
    4153800
    """

    def __init__(
        self,
        n_features: int,
        n_labels: int,
        width: int,
        task: Task = "multi-label",
        label_weights: Tensor | None = None,
        bias: bool = False,
    ) -> None:
        super().__init__(n_features, n_labels, task, label_weights)
        if width < 1:
            raise InvalidInput(f"width is {width}; expected at least 1")
        self.width = width
        self.projection = nn.Linear(n_features, width)
        self.output = nn.Linear(width, n_labels, bias=bias)

    def logits(self, features: Tensor) -> Tensor:
        found: Tensor = self.output(self.projection(features))
        return found

    def multiply_adds(self, n_rows: int, training: bool = True) -> int:
        return (3 if training else 1) * n_rows * self.width * (self.n_features + self.n_labels)

    def output_layer(self) -> tuple[Array, Array]:
        return _linear_layer(self.output)


def _linear_layer(layer: nn.Linear) -> tuple[Array, Array]:
    """Weights and offsets of a linear layer as arrays; the offsets are 0 if it has none."""
    weights = layer.weight.detach().cpu().numpy()
    has_offsets = isinstance(layer.bias, Tensor)
    return weights, layer.bias.detach().cpu().numpy() if has_offsets else np.zeros(len(weights), weights.dtype)
