"""`Network`: an encoder that makes features of a row, and a head that makes labels of features."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from longtail.neural.heads.head import Head
from longtail.neural.targets import LabelRows


class Network(nn.Module):
    """An encoder and a head, trained together.

    Parameters
    ----------
    encoder : nn.Module
        From a batch of inputs to a float tensor (n_rows x n_features). What a batch is is the encoder's own matter.
    head : Head
    """

    def __init__(self, encoder: nn.Module, head: Head) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = head

    def loss(self, inputs: Any, targets: LabelRows) -> Tensor:
        """The mean loss of a batch."""
        return self.head.loss(self.encoder(inputs), targets)

    def predict_topk(self, inputs: Any, k: int, allowed: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """The k best labels of each row, as the head gives them."""
        return self.head.predict_topk(self.encoder(inputs), k, allowed)
