"""`TokenFeatures`: texts as the token ids of a pretrained encoder, for networks that train the encoder.

A model keeps the place and the fingerprint of the encoder. Its tokenizer is loaded with the first text.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

import numpy as np
from scipy import sparse

from longtail.files import PathName
from longtail.neural.encoder_features import MOST_TOKENS, EncoderFeatures
from longtail.neural.encoders.pretrained import load_tokenizer, load_transformer
from longtail.neural.sentences import longest_text, one_at_a_time, token_ids
from longtail.store import State
from longtail.text import EncoderPlace, EncoderSettings, read_encoder_settings
from longtail.validation import checked_texts, own


class TokenFeatures(EncoderFeatures):
    """Turn texts into rows of token ids, for ``MultiHeadClassifier(encoder="pretrained")``.

    Column i of a row is the id of token i plus 1, so that a row has no entries after its last token.

    Parameters
    ----------
    folder : str, path-like or None
        The encoder, see `SentenceEncoder`. None uses the one that `longtail.text.find_installed_encoder` finds.
    max_tokens : int
        Further tokens of a text are dropped. The time to train an encoder grows with it.

    Attributes
    ----------
    folder_ : str
        Where the encoder was when the features were fitted.
    fingerprint_ : str
        The digest of the encoder, see `SentenceEncoder`.
    n_features_out_ : int
        The number of columns: `max_tokens`, or the limit of the encoder if that is lower.

    Notes
    -----
    A loaded model looks for the encoder as one with `SentenceFeatures` does. It reads only the tokenizer.
    """

    _column = "token"

    def __init__(self, folder: PathName | None = None, *, max_tokens: int = 64) -> None:
        self.folder = folder
        self.max_tokens = max_tokens

    def fit(self, texts: Iterable[str] = (), y: Any = None) -> Self:
        """Load the tokenizer; the texts do not matter."""
        place = EncoderPlace.of(self.folder)
        model, tokenizer = load_transformer(Path(place.folder))
        settings = read_encoder_settings(place.folder)
        self._place, self._loaded = place, (tokenizer, settings)
        self.n_features_out_ = longest_text(model, tokenizer, settings, self.max_tokens)
        return self

    def transform(self, texts: Iterable[str]) -> sparse.csr_array[Any]:
        """The token ids of texts as float32 CSR; whole numbers up to 2^24 are exact."""
        tokenizer, settings = self._reader()
        rows = list(checked_texts(texts))
        with one_at_a_time:
            ids = token_ids(rows, tokenizer, settings, self.n_features_out_)
        lengths = np.array([len(known) for known in ids], dtype=np.int64)
        ends = np.concatenate([[0], np.cumsum(lengths)])
        values = np.fromiter((token + 1 for known in ids for token in known), np.float32, int(ends[-1]))
        columns = np.arange(ends[-1]) - np.repeat(ends[:-1], lengths)
        return own(sparse.csr_array((values, columns.astype(np.int32), ends), shape=(len(rows), self.n_features_out_)))

    def _load(self) -> tuple[Any, EncoderSettings]:
        folder = self._place.find()
        return load_tokenizer(folder), read_encoder_settings(folder)

    def to_state(self) -> State:
        return State("TokenFeatures", facts={**self._place.facts(), "max_tokens": self.n_features_out_})

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Rebuild the features, or raise `ModelFormatError`; the tokenizer is looked for with the first text."""
        place = EncoderPlace.from_state(state)
        max_tokens = state.size("max_tokens", least=1, most=MOST_TOKENS)
        features = cls(place.folder, max_tokens=max_tokens)
        features._place = place
        features.n_features_out_ = max_tokens
        return features
