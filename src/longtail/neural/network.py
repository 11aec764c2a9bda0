"""`Network`: an encoder, which maps inputs to features, and a head, which maps features to labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from longtail.arrays import Array
from longtail.neural.batches import as_rows, blocks
from longtail.neural.heads.head import Head
from longtail.progress import task


class Network(nn.Module):
    """An encoder and a head, trained together.

    Parameters
    ----------
    encoder : nn.Module
        Maps a batch of inputs, in a form of its choice, to a float tensor (n_rows x n_features).
    head : Head
    """

    def __init__(self, encoder: nn.Module, head: Head) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = head

    def forward(self, inputs: Any, targets: Any = None) -> Any:
        """The loss of a batch, or without targets its logits; see `Head.forward`."""
        return self.head(self.encoder(inputs), targets)

    def loss(self, inputs: Any, targets: Any) -> Tensor:
        """The mean loss of a batch."""
        return self.head.loss(self.encoder(inputs), targets)

    def log_prob(self, inputs: Any) -> Tensor:
        """The logarithms of the probabilities of all labels; see `Head.log_prob`."""
        return self.head.log_prob(self.encoder(inputs))

    def predict(self, inputs: Any) -> Tensor:
        """The class of each row, or which labels it has; see `Head.predict`."""
        with torch.no_grad():
            return self.head.predict(self.encoder(inputs))

    def predict_topk(self, inputs: Any, k: int, allowed: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """The k best labels of each row; see `Head.predict_topk`."""
        return self.head.predict_topk(self.encoder(inputs), k, allowed)


def predict_rows(
    network: nn.Module,
    inputs: Any,
    k: int,
    *,
    rows: Array | None = None,
    allowed: Array | None = None,
    batch_size: int = 512,
) -> tuple[Array, Array]:
    """The k best labels of many rows, batch by batch, without dropout and gradients.

    Parameters
    ----------
    network : Network or Ensemble
    inputs : Rows, sparse matrix or array
    k : int
    rows : int array or None
        Row ids; None means all.
    allowed : bool array of n_labels or None
        Labels that may be predicted.
    batch_size : int

    Returns
    -------
    labels : int64 array of shape (n_rows, k)
        Best first, -1 where there are fewer than k.
    scores : float32 array of shape (n_rows, k)
        Probabilities, -inf where there is no label.
    """
    source = as_rows(inputs)
    chosen = np.arange(len(source)) if rows is None else rows
    labels = np.full((len(chosen), k), -1, dtype=np.int64)
    scores = np.full((len(chosen), k), -np.inf, dtype=np.float32)
    mask = None if allowed is None else torch.from_numpy(np.asarray(allowed, dtype=bool))
    training = network.training
    network.eval()
    done = 0
    try:
        with torch.inference_mode(), task("predicting", total=len(chosen)) as advance:
            for block in blocks(chosen, batch_size):
                best, values = network.predict_topk(source.batch(block), k, mask)  # type: ignore[operator]
                labels[done : done + len(block)] = best.numpy()
                scores[done : done + len(block)] = values.float().numpy()
                done += len(block)
                advance(len(block))
    finally:
        network.train(training)
    return labels, scores
