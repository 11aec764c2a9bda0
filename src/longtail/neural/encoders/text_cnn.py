"""`TextCNN`: features of texts by filters over neighbouring words, each kept where it answers most."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from longtail.errors import InvalidInput
from longtail.neural.batches import TokenBatch
from longtail.neural.token_ids import PADDING


class TextCNN(nn.Module):
    """Word vectors, filters over windows of words, ReLU, and the largest answer of each filter.

    A window begins at every token; one that reaches beyond the end of a text sees zeros there. What a text gets does
    not depend on how far it was padded, and a text without tokens gets zeros.

    Parameters
    ----------
    n_tokens : int
        Token ids; 0 pads.
    maps : int
        Filters, which is the width of the features.
    width : int
        Words of a window.
    embedding_width : int
        Width of a word's vector.
    dropout : float
        Share of the entries of word vectors, and of the features, left out in training.
    sparse_gradients : bool
        Give the word vectors a gradient for the words of the batch only.

    Examples
    --------
    >>> from longtail.neural.token_ids import TokenIds
    >>> tokens = TokenIds.learn(["a red apple", "the red sky"])
    >>> TextCNN(len(tokens), maps=16)(tokens.rows(["red sky", ""]).batch([0, 1])).shape
    torch.Size([2, 16])
    """

    def __init__(
        self,
        n_tokens: int,
        maps: int = 500,
        width: int = 4,
        embedding_width: int = 100,
        dropout: float = 0.2,
        sparse_gradients: bool = False,
    ) -> None:
        super().__init__()
        if min(n_tokens, maps, width, embedding_width) < 1:
            raise InvalidInput(
                f"{maps} maps of width {width} over {n_tokens} tokens of width {embedding_width}; "
                f"expected at least one of each"
            )
        self.n_tokens = n_tokens
        self.n_features = maps
        self.width = width
        self.embedding = nn.Embedding(n_tokens, embedding_width, padding_idx=PADDING, sparse=sparse_gradients)
        self.convolution = nn.Conv1d(embedding_width, maps, width)
        self.dropout = nn.Dropout(dropout)

    def sparse_parameters(self) -> list[nn.Parameter]:
        """Those whose gradients are sparse."""
        return list(self.embedding.parameters()) if self.embedding.sparse else []

    def forward(self, batch: TokenBatch) -> Tensor:
        """Features of padded token ids."""
        words = self.dropout(self.embedding(batch.ids)).transpose(1, 2)
        answers = self.convolution(functional.pad(words, (0, self.width - 1)))
        # ReLU is never below 0, so 0 in place of what was padded can neither win nor spoil.
        largest = torch.where(batch.mask[:, None], functional.relu(answers), 0).amax(2)
        features: Tensor = self.dropout(largest)
        return features
