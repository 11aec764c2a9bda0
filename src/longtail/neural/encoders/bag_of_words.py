"""`BagOfWords`: encodes sparse rows with a table that has a vector for each input."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from longtail.errors import InvalidInput
from longtail.neural.batches import SparseBatch
from longtail.neural.encoders.dense import fully_connected


class BagOfWords(nn.Module):
    """A linear layer over sparse rows, followed by further layers; it reads only the vectors of inputs that occur.

    Parameters
    ----------
    n_inputs : int
        Number of columns of the sparse rows.
    width : int
        Width of every layer, and of the features.
    layers : int
        Number of layers, including the first one over the sparse rows.
    dropout : float
        Dropout of the outputs of each layer.
    input_dropout : float
        Dropout of the entries of a row.
    normalise : bool
        Apply `nn.LayerNorm` to the outputs of the first layer, before ReLU.
    sparse_gradients : bool
        Give the table sparse gradients, for the inputs of the batch only; faster if there are very many inputs.

    Examples
    --------
    >>> from longtail.neural import SparseRows
    >>> rows = SparseRows([[0.0, 2.0, 3.0], [4.0, 0.0, 0.0]])
    >>> BagOfWords(3, 8)(rows.batch([0, 1])).shape
    torch.Size([2, 8])
    """

    def __init__(
        self,
        n_inputs: int,
        width: int,
        layers: int = 1,
        dropout: float = 0.0,
        input_dropout: float = 0.0,
        normalise: bool = False,
        sparse_gradients: bool = False,
    ) -> None:
        super().__init__()
        if min(n_inputs, width, layers) < 1:
            raise InvalidInput(f"{layers} layers of {n_inputs} inputs and width {width}; expected at least one of each")
        self.n_inputs = n_inputs
        self.n_features = width
        self.sparse_gradients = sparse_gradients
        self.input_dropout = nn.Dropout(input_dropout)
        # Rows usually have length 1, so outputs are as small as the table entries. With the initial values of a dense
        # layer they would be near 0, and so would the gradients of later layers.
        self.table = nn.Parameter(torch.empty(n_inputs, width).normal_(std=1 / math.sqrt(width)))
        self.bias = nn.Parameter(torch.zeros(width))
        self.norm = nn.LayerNorm(width) if normalise else nn.Identity()
        self.dropout = nn.Dropout(dropout)
        self.layers = fully_connected([width] * layers, dropout)

    def sparse_parameters(self) -> list[nn.Parameter]:
        """Parameters with sparse gradients."""
        return [self.table] if self.sparse_gradients else []

    def forward(self, batch: SparseBatch) -> Tensor:
        """The features of sparse rows."""
        ids = batch.ids
        table: Tensor = self.table
        if self.sparse_gradients:
            # One entry per distinct input of the batch; embedding_bag would make one per occurrence.
            met, ids = torch.unique(batch.ids, return_inverse=True)
            table = functional.embedding(met, self.table, sparse=True)
        sums = SparseBatch(ids, batch.offsets, self.input_dropout(batch.values)).times(table)
        features: Tensor = self.layers(self.dropout(functional.relu(self.norm(sums + self.bias))))
        return features
