"""`TextCNN`: encodes texts with a convolution over word vectors; `TokenIds` maps texts to the token ids it takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import chain
from typing import Self

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from longtail.errors import InvalidInput
from longtail.neural.batches import TokenBatch, TokenRows
from longtail.text import tokenize

PADDING = 0
UNKNOWN = 1
_FIRST = 2


class TextCNN(nn.Module):
    """Word vectors, filters over windows of words, ReLU, and the maximum of each filter.

    A window starts at every token and sees zeros after the end of the text. The features of a text do not depend on its
    padding; a text without tokens has features 0.

    Parameters
    ----------
    n_tokens : int
        Number of token ids; 0 is padding.
    maps : int
        Number of filters, which is the width of the features.
    width : int
        Words per window.
    embedding_width : int
        Width of the word vectors.
    dropout : float
        Dropout of the word vectors and of the features.
    sparse_gradients : bool
        Give the word vectors sparse gradients, for the words of the batch only.

    Examples
    --------
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
        """Parameters with sparse gradients."""
        return list(self.embedding.parameters()) if self.embedding.sparse else []

    def forward(self, batch: TokenBatch) -> Tensor:
        """The features of padded token ids."""
        words = self.dropout(self.embedding(batch.ids)).transpose(1, 2)
        answers = self.convolution(functional.pad(words, (0, self.width - 1)))
        # ReLU is never negative, so 0 for padding cannot change the maximum.
        largest = torch.where(batch.mask[:, None], functional.relu(answers), 0).amax(2)
        features: Tensor = self.dropout(largest)
        return features


class TokenIds:
    """A vocabulary that maps texts to token ids: 0 is padding, 1 is any unknown token.

    Parameters
    ----------
    vocabulary : iterable of str
        Tokens, most frequent first; the first has id 2.
    longest : int
        Maximum number of tokens per text; further tokens are dropped.

    Examples
    --------
    >>> tokens = TokenIds.learn(["a red apple", "the red sky"], size=4)
    >>> tokens.vocabulary
    ('red', 'apple')
    >>> tokens.rows(["red sky"]).ids.tolist()
    [2, 1]
    """

    def __init__(self, vocabulary: Iterable[str], longest: int = 2500) -> None:
        self.vocabulary = tuple(vocabulary)
        if longest < 1:
            raise InvalidInput(f"longest is {longest}; expected at least one token")
        self.longest = longest
        self._ids = {token: number for number, token in enumerate(self.vocabulary, start=_FIRST)}

    @classmethod
    def learn(cls, texts: Iterable[str], size: int = 50_000, min_count: int = 1, longest: int = 2500) -> Self:
        """Learn the most frequent tokens, with at least `min_count` occurrences; ties go by code point.

        Parameters
        ----------
        texts : iterable of str
        size : int
            Maximum number of ids, including those for padding and unknown tokens.
        min_count : int
        longest : int
        """
        if size < _FIRST:
            raise InvalidInput(f"size is {size}; expected at least {_FIRST}: padding and the unknown token need an id")
        counts = Counter(chain.from_iterable(map(tokenize, texts)))
        frequent = sorted(
            (token for token, count in counts.items() if count >= min_count), key=lambda token: (-counts[token], token)
        )
        return cls(frequent[: size - _FIRST], longest)

    def __len__(self) -> int:
        """The number of ids, for `n_tokens` of an encoder."""
        return len(self.vocabulary) + _FIRST

    def rows(self, texts: Iterable[str]) -> TokenRows:
        """The token ids of `texts`."""
        ids = [[self._ids.get(token, UNKNOWN) for token in tokenize(text)[: self.longest]] for text in texts]
        offsets = np.concatenate([[0], np.cumsum([len(text) for text in ids], dtype=np.int64)])
        return TokenRows(np.fromiter(chain.from_iterable(ids), dtype=np.int32, count=int(offsets[-1])), offsets)
