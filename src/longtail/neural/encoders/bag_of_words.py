"""`BagOfWords`: features of sparse rows, from a table with a vector for each input."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from longtail.errors import InvalidInput
from longtail.neural.batches import SparseBatch
from longtail.neural.encoders.dense import fully_connected


class BagOfWords(nn.Module):
    """A linear layer over sparse rows, then further layers; only the vectors of inputs that occur are read.

    Parameters
    ----------
    n_inputs : int
        Columns of the sparse rows.
    width : int
        Width of every layer, and of the features.
    layers : int
        How many, the first over the sparse rows among them.
    dropout : float
        Share of a layer's outputs left out in training.
    input_dropout : float
        Share of a row's entries left out in training.
    normalise : bool
        Bring the first layer's outputs to mean 0 and variance 1 in each row (`nn.LayerNorm`), before ReLU.
    sparse_gradients : bool
        Give the table a gradient for the inputs of the batch only, which pays where there are very many inputs.

    Examples
    --------
    >>> from longtail.neural.batches import SparseRows
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
        # Rows of unit length are the rule, so that outputs of the size of a table entry are too: as wide as a dense
        # layer would start them, they would begin near 0, and so would the gradients of what follows.
        self.table = nn.Parameter(torch.empty(n_inputs, width).normal_(std=1 / math.sqrt(width)))
        self.bias = nn.Parameter(torch.zeros(width))
        self.norm = nn.LayerNorm(width) if normalise else nn.Identity()
        self.dropout = nn.Dropout(dropout)
        self.layers = fully_connected([width] * layers, dropout)

    def sparse_parameters(self) -> list[nn.Parameter]:
        """Those whose gradients are sparse."""
        return [self.table] if self.sparse_gradients else []

    def forward(self, batch: SparseBatch) -> Tensor:
        """Features of sparse rows."""
        ids = batch.ids
        table: Tensor = self.table
        if self.sparse_gradients:
            # An entry for each input of the batch, where embedding_bag would make one for each mention of it.
            met, ids = torch.unique(batch.ids, return_inverse=True)
            table = functional.embedding(met, self.table, sparse=True)
        sums = functional.embedding_bag(
            ids,
            table,
            batch.offsets,
            mode="sum",
            per_sample_weights=self.input_dropout(batch.values),
            include_last_offset=True,
        )
        features: Tensor = self.layers(self.dropout(functional.relu(self.norm(sums + self.bias))))
        return features
