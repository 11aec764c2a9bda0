"""`JoinedFeatures`: several kinds of features of the same texts, side by side in one row."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from itertools import chain
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from longtail.errors import ModelFormatError
from longtail.store import State, put_together
from longtail.text.output import SparseOutput
from longtail.validation import own

_MOST_PARTS = 8


class JoinedFeatures(SparseOutput, BaseEstimator):
    """Rows of several fitted `TextFeatures`, one after the other.

    Parameters
    ----------
    parts : tuple of TextFeatures
        Fitted. The last one may be a `longtail.neural.SentenceFeatures` instead.

    Examples
    --------
    >>> from longtail.text import TextFeatures
    >>> words = TextFeatures(min_df=1).fit(["a red apple"])
    >>> names = TextFeatures(min_df=1).fit(["an apple"])
    >>> JoinedFeatures((words, names)).transform(["red apple"]).toarray().round(2).tolist()
    [[0.709..., 0.709..., 0.0, 1.0]]
    """

    takes_texts = True

    def __init__(self, parts: tuple[Any, ...]) -> None:
        self.parts = parts

    @property
    def words(self) -> Any:
        """The part whose features are words: the first."""
        return self.parts[0]

    @property
    def n_features_out_(self) -> int:
        """The width of a row."""
        return sum(part.n_features_out_ for part in self.parts)

    @cached_property
    def feature_names_(self) -> tuple[str, ...]:
        """The features of all parts, in the order of the columns."""
        return tuple(chain.from_iterable(part.feature_names_ for part in self.parts))

    @property
    def min_length(self) -> int:
        """The shortest token of the first part."""
        return int(self.parts[0].min_length)

    def fit(self, texts: Iterable[str], y: Any = None) -> Self:
        """Fit all parts again."""
        texts = list(texts)
        self.__dict__.pop("feature_names_", None)
        for part in self.parts:
            part.fit(texts)
        return self

    def transform(self, texts: Iterable[str]) -> sparse.csr_array[Any]:
        """The rows of `texts` as float32 CSR."""
        texts = list(texts)
        return join_columns([part.transform(texts) for part in self.parts])

    def to_state(self) -> State:
        parts = {f"part{number}": part.to_state() for number, part in enumerate(self.parts)}
        return State("JoinedFeatures", facts={"n_parts": len(self.parts)}, parts=parts)

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Rebuild the features, or raise `ModelFormatError`."""
        n_parts = state.size("n_parts", least=1, most=_MOST_PARTS)
        if n_parts != len(state.parts):
            raise ModelFormatError(f"{state.kind}: {n_parts} parts, but {len(state.parts)} are there")
        parts = []
        for number in range(n_parts):
            # Sentence vectors are at the end of a row, and never alone.
            kinds = ("TextFeatures", "SentenceFeatures") if number == n_parts - 1 > 0 else ("TextFeatures",)
            parts.append(put_together(state.part(f"part{number}", *kinds)))
        return cls(tuple(parts))


def join_columns(matrices: list[Any]) -> sparse.csr_array[Any]:
    """Matrices side by side; the result is read-only.

    >>> join_columns([sparse.csr_array([[1.0], [0.0]]), sparse.csr_array([[0.0], [2.0]])]).toarray().tolist()
    [[1.0, 0.0], [0.0, 2.0]]
    """
    joined = sparse.csr_array(sparse.hstack(matrices, format="csr"))
    joined.sort_indices()
    return own(joined.astype(np.float32, copy=False))
