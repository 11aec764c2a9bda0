"""`EncoderFeatures`: the base of text features that read texts with a pretrained encoder in a folder.

A model keeps the place and the fingerprint of the encoder. What reads texts is loaded with the first of them.
"""

from __future__ import annotations

import threading
from abc import abstractmethod
from typing import Any, ClassVar

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from longtail.text import EncoderPlace, SparseOutput

MOST_TOKENS = 2**20
_loading = threading.Lock()


class EncoderFeatures(SparseOutput, BaseEstimator):
    """Features of texts that need an encoder.

    Attributes
    ----------
    folder_ : str
        Where the encoder was when the features were fitted.
    fingerprint_ : str
        The digest of the encoder, see `SentenceEncoder`.
    n_features_out_ : int
        The number of columns.
    """

    takes_texts = True
    min_length = 1  # of a token; none is dropped
    _column: ClassVar[str]  # what a column is called, before its number

    folder_: str
    fingerprint_: str
    n_features_out_: int

    @property
    def feature_names_(self) -> tuple[str, ...]:
        """A name for each column."""
        check_is_fitted(self, "fingerprint_")
        return tuple(f"{self._column} {number}" for number in range(self.n_features_out_))

    @property
    def _place(self) -> EncoderPlace:
        check_is_fitted(self, "fingerprint_")
        return EncoderPlace(self.folder_, self.fingerprint_)

    @_place.setter
    def _place(self, place: EncoderPlace) -> None:
        self.folder_, self.fingerprint_ = place.folder, place.fingerprint

    @abstractmethod
    def _load(self) -> Any:
        """What reads texts, or `ModelFormatError` that says where to put the encoder."""

    def _reader(self) -> Any:
        """What reads texts, loaded once."""
        check_is_fitted(self, "fingerprint_")
        with _loading:
            if "_loaded" not in self.__dict__:
                self._loaded = self._load()
        return self._loaded

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_loaded"}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags
