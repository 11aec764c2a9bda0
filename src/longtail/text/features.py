"""`TextFeatures`: texts to tf-idf rows, in one pass over the texts.

What is kept while reading is counts in flat arrays, never the texts, so memory is linear in the non-zeros.
"""

from __future__ import annotations

import math
import operator
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import islice, pairwise
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from longtail.errors import InvalidInput, ModelFormatError
from longtail.progress import task
from longtail.store import State
from longtail.text.tokens import tokenize, word_ngrams

_TOLD_EVERY = 256
_PARAMETERS = ("ngrams", "min_length", "sublinear", "min_df", "max_df", "max_features")


class TextFeatures(TransformerMixin, BaseEstimator):
    """Turn texts into rows of tf-idf weights of unit length.

    The weight of a token is ``1 + ln(tf)`` times ``ln((1 + n) / (1 + df)) + 1``, for ``tf`` occurrences in the text and
    ``df`` of ``n`` texts with the token; each row is then divided by its Euclidean length.

    Parameters
    ----------
    ngrams : (int, int)
        Shortest and longest run of words that makes a feature; (1, 2) adds pairs of neighbours.
    min_length : int
        Shorter tokens are dropped, except characters of scripts written without blanks.
    sublinear : bool
        ``1 + ln(tf)`` rather than ``tf``.
    min_df, max_df : int or float
        Features in fewer or in more texts are dropped. A whole number counts texts; a float is a fraction of them.
    max_features : int or None
        Keep the features of the largest df; among equals the first in code-point order.

    Attributes
    ----------
    feature_names_ : tuple of str
        The features in code-point order, which is the order of the columns.
    idf_ : ndarray of float32
        The inverse document frequency of each.

    Examples
    --------
    >>> features = TextFeatures(min_df=1)
    >>> X = features.fit_transform(["a red apple", "a red sky"])
    >>> features.feature_names_
    ('apple', 'red', 'sky')
    >>> X.toarray().round(3)
    array([[0.815, 0.58 , 0.   ],
           [0.   , 0.58 , 0.815]], dtype=float32)
    """

    feature_names_: tuple[str, ...]
    idf_: np.ndarray[Any, np.dtype[np.float32]]

    def __init__(
        self,
        ngrams: tuple[int, int] = (1, 1),
        min_length: int = 2,
        sublinear: bool = True,
        min_df: int | float = 2,
        max_df: int | float = 1.0,
        max_features: int | None = None,
    ) -> None:
        self.ngrams = ngrams
        self.min_length = min_length
        self.sublinear = sublinear
        self.min_df = min_df
        self.max_df = max_df
        self.max_features = max_features

    def fit(self, texts: Iterable[str], y: Any = None) -> Self:
        """Learn the vocabulary and idf of `texts`, read once; only the frequencies are held.

        Parameters
        ----------
        texts : iterable of str
            A generator will do.
        y : ignored
        """
        self._check_parameters()
        frequencies: Counter[str] = Counter()
        n_texts = 0
        for text in _checked_texts(texts):
            frequencies.update(set(self._features_of(text)))
            n_texts += 1
        names = np.array(list(frequencies), dtype=object)
        counts = np.fromiter(frequencies.values(), dtype=np.int64, count=len(frequencies))
        self._choose(names, counts, n_texts)
        return self

    def fit_transform(self, texts: Iterable[str], y: Any = None) -> sparse.csr_array[Any]:
        """The same as `fit` then `transform`, with the texts read once."""
        self._check_parameters()
        positions: defaultdict[str, int] = defaultdict()
        positions.default_factory = positions.__len__
        seen = _Counts()
        for text in _checked_texts(texts):
            seen.add(Counter(map(positions.__getitem__, self._features_of(text))))
        names = np.array(list(positions), dtype=object)
        chosen = self._choose(names, np.bincount(seen.columns(), minlength=len(names)), seen.n_rows)
        renumbered = np.full(len(names), -1, dtype=np.int32)
        renumbered[chosen] = np.arange(len(chosen), dtype=np.int32)
        return self._weigh(seen.matrix(len(chosen), renumbered))

    def transform(self, texts: Iterable[str]) -> sparse.csr_array[Any]:
        """The rows of `texts`: float32 CSR with sorted indices; a text without known tokens is an empty row."""
        check_is_fitted(self)
        return self._transform(_checked_texts(texts))

    def transform_batches(self, texts: Iterable[str], batch_rows: int = 4096) -> Iterator[sparse.csr_array[Any]]:
        """`transform` in blocks of `batch_rows` rows, for texts that need not fit in memory together.

        Examples
        --------
        >>> features = TextFeatures(min_df=1).fit(["a red apple"])
        >>> [X.shape for X in features.transform_batches((f"apple {i}" for i in range(5)), batch_rows=2)]
        [(2, 2), (2, 2), (1, 2)]
        """
        check_is_fitted(self)
        _check_whole("batch_rows", batch_rows, 1)
        checked = _checked_texts(texts)
        while (block := self._transform(islice(checked, batch_rows))).shape[0]:
            yield block

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray[Any, np.dtype[np.object_]]:
        """The features as an array, for scikit-learn's tools."""
        check_is_fitted(self)
        return np.array(self.feature_names_, dtype=object)

    def to_state(self) -> State:
        """The fitted model as parameters and arrays."""
        check_is_fitted(self)
        params = {name: getattr(self, name) for name in _PARAMETERS}
        params["ngrams"] = [int(length) for length in self.ngrams]
        for name in ("min_length", "min_df", "max_df", "max_features"):
            if params[name] is not None:
                params[name] = int(params[name]) if _is_whole(params[name]) else float(params[name])
        return State(
            kind="TextFeatures",
            params=params | {"sublinear": bool(self.sublinear)},
            arrays={"tokens": self.feature_names_, "idf": self.idf_},
        )

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Build the model from `to_state`'s parts, or raise `ModelFormatError` where they contradict each other."""
        if state.kind != "TextFeatures" or set(state.params) != set(_PARAMETERS):
            raise ModelFormatError(
                f"TextFeatures: found kind {state.kind!r} with parameters {sorted(state.params)}; "
                f"expected {sorted(_PARAMETERS)}"
            )
        params = dict(state.params)
        if isinstance(params["ngrams"], list):
            params["ngrams"] = tuple(params["ngrams"])
        model = cls(**params)
        try:
            model._check_parameters()
        except InvalidInput as error:
            raise ModelFormatError(f"TextFeatures: {error}") from None
        tokens = state.strings("tokens")
        if not tokens:
            raise ModelFormatError("TextFeatures: 'tokens' must be a table of at least one string")
        if not tokens[0] or any(first >= second for first, second in pairwise(tokens)):
            raise ModelFormatError("TextFeatures: 'tokens' must be distinct, not empty, and in code-point order")
        idf = state.array("idf", np.float32, (len(tokens),))
        if not (np.isfinite(idf).all() and (idf > 0).all()):
            raise ModelFormatError("TextFeatures: 'idf' must be finite and positive")
        model._set_vocabulary(tokens, idf)
        return model

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags

    def _check_parameters(self) -> None:
        if not isinstance(self.ngrams, tuple) or len(self.ngrams) != 2:
            raise InvalidInput(f"ngrams is {self.ngrams!r}; expected a pair such as (1, 2)")
        for length in self.ngrams:
            _check_whole("ngrams", length, 1)
        if self.ngrams[0] > self.ngrams[1]:
            raise InvalidInput(f"ngrams is {self.ngrams!r}; the first number must not be larger than the second")
        _check_whole("min_length", self.min_length, 1)
        if not isinstance(self.sublinear, bool | np.bool_):
            raise InvalidInput(f"sublinear is {self.sublinear!r}; expected True or False")
        _check_frequency("min_df", self.min_df)
        _check_frequency("max_df", self.max_df)
        if self.max_features is not None:
            _check_whole("max_features", self.max_features, 1)

    def _features_of(self, text: str) -> Iterable[str]:
        tokens = tokenize(text, self.min_length)
        return tokens if self.ngrams == (1, 1) else word_ngrams(tokens, *self.ngrams)

    def _choose(self, names: np.ndarray[Any, Any], frequencies: np.ndarray[Any, Any], n_texts: int) -> Any:
        """Set the vocabulary; return the ids of the kept features in its order."""
        if n_texts == 0:
            raise InvalidInput("no texts to learn from; texts must hold at least one")
        if len(names) == 0:
            raise InvalidInput(
                f"the {n_texts} texts hold no token of at least {self.min_length} letters or digits; "
                f"check the texts or lower min_length or ngrams"
            )
        lowest = self.min_df if _is_whole(self.min_df) else self.min_df * n_texts
        highest = self.max_df if _is_whole(self.max_df) else self.max_df * n_texts
        if lowest > highest:
            raise InvalidInput(
                f"min_df={self.min_df} asks for at least {lowest:g} of {n_texts} texts and max_df={self.max_df} for "
                f"at most {highest:g}; no feature can have both. Lower min_df or raise max_df"
            )
        kept = np.flatnonzero((frequencies >= lowest) & (frequencies <= highest))
        if len(kept) == 0:
            setting = (
                f"lower min_df={self.min_df}"
                if frequencies.max() < lowest
                else f"lower min_df={self.min_df} or raise max_df={self.max_df}"
            )
            raise InvalidInput(
                f"none of the {len(names)} features of {n_texts} texts is left: they occur in {frequencies.min()} to "
                f"{frequencies.max()} texts, and {lowest:g} to {highest:g} are asked for; {setting}"
            )
        kept = kept[np.argsort(names[kept], kind="stable")]
        if self.max_features is not None and len(kept) > self.max_features:
            most_frequent = np.argsort(-frequencies[kept], kind="stable")[: self.max_features]
            kept = kept[np.sort(most_frequent)]
        idf = np.log((1 + n_texts) / (1 + frequencies[kept])) + 1
        self._set_vocabulary(tuple(names[kept]), idf.astype(np.float32))
        return kept

    def _set_vocabulary(self, names: tuple[str, ...], idf: np.ndarray[Any, np.dtype[np.float32]]) -> None:
        self.feature_names_ = names
        self.idf_ = idf
        self._positions = {name: position for position, name in enumerate(names)}

    def _transform(self, texts: Iterable[str]) -> sparse.csr_array[Any]:
        known = self._positions
        seen = _Counts()
        for text in texts:
            counts = Counter(map(known.get, self._features_of(text)))
            counts.pop(None, None)
            seen.add(counts)
        return self._weigh(seen.matrix(len(known)))

    def _weigh(self, counts: sparse.csr_array[Any]) -> sparse.csr_array[Any]:
        values = counts.data
        if self.sublinear:
            np.log(values, out=values)
            values += 1
        values *= self.idf_[counts.indices]
        rows = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
        lengths = np.sqrt(np.bincount(rows, weights=np.square(values, dtype=np.float64), minlength=counts.shape[0]))
        values /= lengths[rows]
        return counts


class _Counts:
    """Rows of counts as they are read, in flat arrays."""

    def __init__(self) -> None:
        self._columns = array("i")
        self._values = array("f")
        self._ends = array("q", [0])

    def add(self, counts: Counter[Any]) -> None:
        self._columns.extend(counts.keys())
        self._values.extend(counts.values())
        self._ends.append(len(self._columns))

    @property
    def n_rows(self) -> int:
        return len(self._ends) - 1

    def columns(self) -> np.ndarray[Any, np.dtype[np.int32]]:
        return np.frombuffer(self._columns, dtype=np.int32) if self._columns else np.zeros(0, dtype=np.int32)

    def matrix(
        self, n_columns: int, renumbered: np.ndarray[Any, np.dtype[np.int32]] | None = None
    ) -> sparse.csr_array[Any]:
        """The counts as CSR with sorted indices; columns renumbered where asked, those numbered -1 left out."""
        columns, ends = self.columns(), np.frombuffer(self._ends, dtype=np.int64)
        values = np.frombuffer(self._values, dtype=np.float32) if self._values else np.zeros(0, dtype=np.float32)
        if renumbered is not None:
            columns = renumbered[columns]
            kept = columns >= 0
            ends = np.concatenate([[0], np.cumsum(kept, dtype=np.int64)])[ends]
            columns, values = columns[kept], values[kept]
        index = np.int32 if ends[-1] <= np.iinfo(np.int32).max else np.int64
        matrix = sparse.csr_array(
            (values.copy(), columns.astype(index), ends.astype(index)), shape=(self.n_rows, n_columns)
        )
        matrix.sort_indices()
        return matrix


def _checked_texts(texts: Any) -> Iterator[str]:
    if isinstance(texts, str | bytes):
        raise InvalidInput("texts is one single text; expected a list of texts: [text]")
    if getattr(texts, "ndim", 1) != 1:
        raise InvalidInput(f"texts has {texts.ndim} dimensions; expected one text per row: pass a single column")
    try:
        items = iter(texts)
    except TypeError:
        raise InvalidInput(f"texts is {texts!r}; expected a list or another iterable of str") from None
    return _told(_checked_rows(items), operator.length_hint(texts, 0) or None)


def _told(texts: Iterator[str], total: int | None) -> Iterator[str]:
    """The texts as they are, with progress told now and then."""
    with task("reading texts", total=total) as advance:
        for number, text in enumerate(texts, start=1):
            yield text
            if number % _TOLD_EVERY == 0:
                advance(_TOLD_EVERY)


def _checked_rows(items: Iterator[Any]) -> Iterator[str]:
    for row, text in enumerate(items):
        if not isinstance(text, str):
            hint = "decode it first" if isinstance(text, bytes) else "leave the row out or give ''"
            raise InvalidInput(
                f"row {row} of texts is {text!r:.40} of type {type(text).__name__}; expected str: {hint}"
            )
        yield text


def _is_whole(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _check_whole(name: str, value: Any, least: int) -> None:
    if not _is_whole(value) or value < least:
        raise InvalidInput(f"{name} is {value!r}; expected a whole number of at least {least}")


def _check_frequency(name: str, value: Any) -> None:
    if _is_whole(value) and value >= 1:
        return
    if isinstance(value, float | np.floating) and math.isfinite(value) and 0 <= value <= 1:
        return
    raise InvalidInput(
        f"{name} is {value!r}; expected a number of texts (1, 2, ...) or a fraction of them (0.0 to 1.0)"
    )
