"""`TokenIds`: texts to runs of token ids, for encoders that read words in their order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import chain
from typing import Self

import numpy as np

from longtail.errors import InvalidInput
from longtail.neural.batches import TokenRows
from longtail.text import tokenize

PADDING = 0
UNKNOWN = 1
_FIRST = 2


class TokenIds:
    """A vocabulary by frequency, and the ids of texts by it: 0 pads, 1 is any token that is not in it.

    Parameters
    ----------
    vocabulary : iterable of str
        Tokens, the most frequent first; the first has id 2.
    longest : int
        Tokens of a text beyond this many are left out.

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
        """The tokens that occur most often, at least `min_count` times; among equals the first in code-point order.

        Parameters
        ----------
        texts : iterable of str
        size : int
            Ids to give at most, those for padding and for unknown tokens among them.
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
        """How many ids there are, as an encoder's `n_tokens` wants it."""
        return len(self.vocabulary) + _FIRST

    def rows(self, texts: Iterable[str]) -> TokenRows:
        """The ids of `texts`."""
        ids = [[self._ids.get(token, UNKNOWN) for token in tokenize(text)[: self.longest]] for text in texts]
        offsets = np.concatenate([[0], np.cumsum([len(text) for text in ids], dtype=np.int64)])
        return TokenRows(np.fromiter(chain.from_iterable(ids), dtype=np.int32, count=int(offsets[-1])), offsets)
