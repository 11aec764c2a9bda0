"""`SentenceFeatures`: sentence vectors as features of texts, which a saved model can compute again.

A model keeps the place and the fingerprint of the encoder, not its weights. The encoder is loaded with the first text.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from scipy import sparse

from longtail.errors import ModelFormatError
from longtail.files import PathName
from longtail.neural.encoder_features import MOST_TOKENS, EncoderFeatures
from longtail.neural.sentences import Precision, SentenceEncoder
from longtail.store import State
from longtail.text import EncoderPlace
from longtail.validation import own

_WIDEST = 2**16


class SentenceFeatures(EncoderFeatures):
    """Turn texts into sentence vectors of unit length, with a pretrained encoder in a folder.

    Parameters
    ----------
    folder : str, path-like or None
        The encoder, see `SentenceEncoder`. None uses the one that `longtail.text.find_installed_encoder` finds.
    max_tokens : int
        Further tokens of a text are dropped.
    cache : str, path-like or None
        A folder where vectors are kept, so that no text is encoded twice.
    n_jobs : int or None
        Number of threads; None uses every core.
    precision : {"auto", "float32", "bfloat16"}

    Attributes
    ----------
    folder_ : str
        Where the encoder was when the features were fitted.
    fingerprint_ : str
        The digest of the encoder, see `SentenceEncoder`.
    n_features_out_ : int
        The width of a vector.
    max_tokens_, precision_
        The values in use, see `SentenceEncoder`.

    Notes
    -----
    A loaded model looks for the encoder in `$LONGTAIL_ENCODER`, in `folder_`, and among installed packages. It takes
    only an encoder with the same fingerprint.
    """

    _column = "sentence vector"

    max_tokens_: int
    precision_: Precision

    def __init__(
        self,
        folder: PathName | None = None,
        *,
        max_tokens: int = 128,
        cache: PathName | None = None,
        n_jobs: int | None = None,
        precision: Precision = "auto",
    ) -> None:
        self.folder = folder
        self.max_tokens = max_tokens
        self.cache = cache
        self.n_jobs = n_jobs
        self.precision = precision

    def fit(self, texts: Iterable[str] = (), y: Any = None) -> Self:
        """Load the encoder; the texts do not matter."""
        place = EncoderPlace.of(self.folder)
        self.__dict__.pop("_loaded", None)
        encoder = SentenceEncoder(
            place.folder, max_tokens=self.max_tokens, cache=self.cache, n_jobs=self.n_jobs, precision=self.precision
        )
        self._place, self._loaded = place, encoder
        self.n_features_out_, self.max_tokens_ = encoder.width, encoder.max_tokens
        self.precision_ = encoder.precision
        return self

    def transform(self, texts: Iterable[str]) -> sparse.csr_array[Any]:
        """The vectors of texts as float32 CSR with every component stored.

        A text without a token has a row of zeros.
        """
        vectors = self._reader().encode(texts)
        n_rows, width = vectors.shape
        columns = np.tile(np.arange(width, dtype=np.int32), n_rows)
        ends = np.arange(n_rows + 1, dtype=np.int32 if n_rows * width < 2**31 else np.int64) * width
        return own(sparse.csr_array((vectors.ravel(), columns, ends), shape=(n_rows, width)))

    def _load(self) -> SentenceEncoder:
        found = SentenceEncoder(
            self._place.find(),
            max_tokens=self.max_tokens_,
            cache=self.cache,
            n_jobs=self.n_jobs,
            precision=self.precision_,
        )
        if (found.width, found.max_tokens) != (self.n_features_out_, self.max_tokens_):
            raise ModelFormatError(
                f"{found.folder}: the encoder has vectors of width {found.width} for up to {found.max_tokens} tokens; "
                f"the model says {self.n_features_out_} and {self.max_tokens_}",
                path=found.folder,
            )
        return found

    def to_state(self) -> State:
        facts = {
            **self._place.facts(),
            "width": self.n_features_out_,
            "max_tokens": self.max_tokens_,
            "precision": self.precision_,
        }
        return State("SentenceFeatures", facts=facts)

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Rebuild the features, or raise `ModelFormatError`; the encoder is looked for with the first text."""
        place = EncoderPlace.from_state(state)
        precision = state.fact("precision", str)
        if precision not in ("float32", "bfloat16"):
            raise ModelFormatError(f"{state.kind}: the precision is {precision!r:.100}")
        max_tokens = state.size("max_tokens", least=1, most=MOST_TOKENS)
        features = cls(place.folder, max_tokens=max_tokens, precision=precision)
        features._place = place
        features.n_features_out_ = state.size("width", least=1, most=_WIDEST)
        features.max_tokens_, features.precision_ = max_tokens, precision
        return features
