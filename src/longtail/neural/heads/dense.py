"""`DenseHead`: what output layers have in common that give every label of every row a logit."""

from __future__ import annotations

from abc import abstractmethod

import torch
from torch import Tensor

from longtail.neural.heads.head import Head, best_labels
from longtail.neural.heads.losses import binary_loss, softmax_loss
from longtail.neural.targets import LabelRows

# Scores that are held at once in prediction.
_AT_ONCE = 2**24


class DenseHead(Head):
    """An output layer that is all in its `logits`, of shape (n_rows, n_labels)."""

    @abstractmethod
    def logits(self, features: Tensor) -> Tensor:
        """A number for every label: the larger, the more likely."""

    def loss(self, features: Tensor, targets: LabelRows) -> Tensor:
        """Mean binary cross-entropy of all labels (multi-label), or mean cross-entropy of the rows (single-label)."""
        self.check_batch(features, targets)
        weights = self.weights_of(targets.labels)
        if self.task == "single-label":
            return softmax_loss(self.logits(features), targets.single(), weights)
        return binary_loss(self.logits(features), targets.rows, targets.labels, weights)

    def probabilities(self, features: Tensor) -> Tensor:
        """Of every label (n_rows x n_labels): each by itself (multi-label), or adding up to 1 (single-label)."""
        self.check_batch(features)
        logits = self.logits(features).float()
        return torch.softmax(logits, dim=1) if self.task == "single-label" else torch.sigmoid(logits)

    @torch.no_grad()
    def predict_topk(self, features: Tensor, k: int, allowed: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """The k best labels of each row; a label's probability does not depend on which others are allowed."""
        self.check_batch(features)
        self.check_request(k, allowed)
        blocks = [
            best_labels(self.probabilities(block), k, allowed)
            for block in torch.split(features, max(1, _AT_ONCE // self.n_labels))
        ]
        return torch.cat([labels for labels, _ in blocks]), torch.cat([scores for _, scores in blocks])
