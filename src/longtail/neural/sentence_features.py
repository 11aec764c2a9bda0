"""`SentenceFeatures`: sentence vectors as features of texts, which a saved model can compute again.

A model keeps the place and the fingerprint of the encoder, not its weights. The encoder is loaded with the first text.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from longtail.errors import ModelFormatError
from longtail.files import PathName
from longtail.neural.sentences import Precision, SentenceEncoder
from longtail.store import State
from longtail.text import EncoderPlace, SparseOutput
from longtail.validation import own

_WIDEST = 2**16
_MOST_TOKENS = 2**20
_loading = threading.Lock()


class SentenceFeatures(SparseOutput, BaseEstimator):
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

    takes_texts = True
    min_length = 1  # of a token; none is dropped

    folder_: str
    fingerprint_: str
    n_features_out_: int
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

    @property
    def feature_names_(self) -> tuple[str, ...]:
        """A name for each component of a vector."""
        check_is_fitted(self, "fingerprint_")
        return tuple(f"sentence vector {number}" for number in range(self.n_features_out_))

    def fit(self, texts: Iterable[str] = (), y: Any = None) -> Self:
        """Load the encoder; the texts do not matter."""
        place = EncoderPlace.of(self.folder)
        self.__dict__.pop("_encoder", None)
        encoder = SentenceEncoder(
            place.folder, max_tokens=self.max_tokens, cache=self.cache, n_jobs=self.n_jobs, precision=self.precision
        )
        self.folder_, self.fingerprint_ = place.folder, place.fingerprint
        self.n_features_out_, self.max_tokens_ = encoder.width, encoder.max_tokens
        self.precision_ = encoder.precision
        self._encoder = encoder
        return self

    def transform(self, texts: Iterable[str]) -> sparse.csr_array[Any]:
        """The vectors of texts as float32 CSR with every component stored.

        A text without a token has a row of zeros.
        """
        check_is_fitted(self, "fingerprint_")
        with _loading:
            if "_encoder" not in self.__dict__:
                self._encoder = self._load()
        vectors = self._encoder.encode(texts)
        n_rows, width = vectors.shape
        columns = np.tile(np.arange(width, dtype=np.int32), n_rows)
        ends = np.arange(n_rows + 1, dtype=np.int32 if n_rows * width < 2**31 else np.int64) * width
        return own(sparse.csr_array((vectors.ravel(), columns, ends), shape=(n_rows, width)))

    def _load(self) -> SentenceEncoder:
        """The encoder with the fingerprint of these features, or `ModelFormatError` that says where to put it."""
        found = SentenceEncoder(
            EncoderPlace(self.folder_, self.fingerprint_).find(),
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
        check_is_fitted(self, "fingerprint_")
        facts = {
            **EncoderPlace(self.folder_, self.fingerprint_).facts(),
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
        max_tokens = state.size("max_tokens", least=1, most=_MOST_TOKENS)
        features = cls(place.folder, max_tokens=max_tokens, precision=precision)
        features.folder_, features.fingerprint_ = place.folder, place.fingerprint
        features.n_features_out_ = state.size("width", least=1, most=_WIDEST)
        features.max_tokens_, features.precision_ = max_tokens, precision
        return features

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_encoder"}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags
