"""`Dense`: encodes dense rows with fully connected layers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from torch import Tensor, nn

from longtail.errors import InvalidInput


class Dense(nn.Module):
    """Fully connected layers, each followed by ReLU and dropout.

    Parameters
    ----------
    n_inputs : int
        Number of values per row.
    widths : sequence of int
        Width of each layer; the last is the width of the features.
    dropout : float
        Dropout of the outputs of each layer.

    Examples
    --------
    >>> import torch
    >>> Dense(784, [256, 64])(torch.zeros(2, 28, 28)).shape
    torch.Size([2, 64])
    """

    def __init__(self, n_inputs: int, widths: Sequence[int], dropout: float = 0.0) -> None:
        super().__init__()
        if not widths or min(n_inputs, *widths) < 1:
            raise InvalidInput(f"layers of {n_inputs} inputs and widths {list(widths)}; expected at least one of each")
        self.n_inputs = n_inputs
        self.n_features = widths[-1]
        self.layers = fully_connected([n_inputs, *widths], dropout)

    def forward(self, rows: Tensor) -> Tensor:
        """The features of rows (n_rows x ...), flattened to two dimensions."""
        features: Tensor = self.layers(rows.flatten(1))
        return features


def fully_connected(widths: Sequence[int], dropout: float) -> nn.Sequential:
    """Linear layers between consecutive widths, each followed by ReLU and dropout."""
    layers: list[nn.Module] = []
    for before, after in pairwise(widths):
        layers += [nn.Linear(before, after), nn.ReLU(), nn.Dropout(dropout)]
    return nn.Sequential(*layers)
