"""`TextFeatures`: tf-idf rows of texts, in one pass over the texts.

Only counts in flat arrays are kept, never the texts, so memory is linear in the number of non-zeros. Kernels count a
block of texts at a time on each thread; this module combines their counts.
"""

from __future__ import annotations

import math
import operator
import tempfile
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from longtail.arrays import Array
from longtail.errors import InvalidInput, ModelFormatError
from longtail.memory import available_memory
from longtail.native import Text, kernels
from longtail.parallel import check_stop, map_blocks, resolve_jobs
from longtail.progress import Advance, task
from longtail.store import State, rises
from longtail.text.blocks import RowArrays, blocks_of, stack_rows
from longtail.text.output import SparseOutput
from longtail.text.selection import check_frequency, fewest_texts, select_features
from longtail.text.spilling import Spill
from longtail.text.tokens import page_of_code_points
from longtail.validation import check_whole, checked_texts, is_whole, own

_SAVED = ("ngrams", "min_length", "sublinear", "min_df", "max_df", "max_features", "subwords")
# Models saved before the parameter existed lack it.
_ADDED: dict[str, Any] = {"subwords": None}
# Derived from the rest on first use; not pickled, and dropped by the next fit.
_DERIVED = ("_names", "_vocabulary")
# Longer than any text, and within the integers of the kernels.
_LONGEST = 1 << 30
# A text of n words has about n features for each length.
_LONGEST_NGRAM = 20
# Vocabularies that take more than this part of the memory go to disk while texts are counted.
_SHARE_OF_VOCABULARIES = 8
_SHORTEST_SUBWORD, _LONGEST_SUBWORD = 3, 20
_code_points = kernels.CodePoints(page_of_code_points)


class TextFeatures(SparseOutput, BaseEstimator):
    """Turn texts into rows of tf-idf weights of unit length.

    The weight of a token is ``1 + ln(tf)`` times ``ln((1 + n) / (1 + df)) + 1``, for ``tf`` occurrences in the text and
    ``df`` of ``n`` texts with the token; each row is then divided by its Euclidean length.

    Parameters
    ----------
    ngrams : (int, int)
        Shortest and longest run of words that is a feature, at most 20; (1, 2) adds pairs of neighbours.
    min_length : int
        Shorter tokens are dropped, except characters of scripts written without blanks.
    sublinear : bool
        Use ``1 + ln(tf)`` instead of ``tf``.
    min_df, max_df : int or float
        Drop features that occur in fewer or in more texts. A whole number counts texts; a float is a fraction of them.
    max_features : int or None
        Keep only the features with the largest df; ties go to the first in code-point order.
    subwords : int or None
        Length of subwords, 3 to 20: the runs of this many characters of each token with ``<`` in front are features
        too, so that compounds and inflected forms resemble each other. A run inside the token is named with ``~`` in
        front. All other parameters treat subwords as words. None: no subwords.
    n_jobs : int or None
        Number of threads; None uses every core. The result does not depend on it, and it is not saved.

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
    >>> TextFeatures(min_df=1, subwords=5).fit(["kultur"]).feature_names_
    ('<kult', 'kultur', '~kultu', '~ultur')
    """

    takes_texts = True
    idf_: Array

    def __init__(
        self,
        ngrams: tuple[int, int] = (1, 1),
        min_length: int = 2,
        sublinear: bool = True,
        min_df: int | float = 2,
        max_df: int | float = 1.0,
        max_features: int | None = None,
        subwords: int | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.ngrams = ngrams
        self.min_length = min_length
        self.sublinear = sublinear
        self.min_df = min_df
        self.max_df = max_df
        self.max_features = max_features
        self.subwords = subwords
        self.n_jobs = n_jobs

    @property
    def words(self) -> Self:
        """The features that are words: all of these."""
        return self

    @property
    def n_features_out_(self) -> int:
        """The width of a row."""
        return len(self.idf_)

    @property
    def feature_names_(self) -> tuple[str, ...]:
        """The features in code-point order, which is the order of the columns."""
        if "_names" not in vars(self):
            self._names: tuple[str, ...] = kernels.strings(*self._tokens)
        return self._names

    def fit(
        self,
        texts: Iterable[str],
        y: Any = None,
        *,
        also: Iterable[str] | None = None,
        only: Iterable[str] | None = None,
    ) -> Self:
        """Learn the vocabulary and idf of `texts` in one pass, keeping only the frequencies.

        Frequencies are always those in `texts`: `also` and `only` change which features are kept, not how often they
        count. A feature that does not occur in `texts` has df 0 and so the largest idf.

        Parameters
        ----------
        texts : iterable of str
            Can be a generator.
        y : ignored
        also : iterable of str or None
            Further texts, such as label names. Their features are kept even if they are too rare for `min_df`.
            `max_df` applies to them; `max_features` keeps them before all others.
        only : iterable of str or None
            As `also`, and every feature that does not occur in these texts is dropped. Give `also` or `only`, not both.

        Examples
        --------
        >>> texts = ["red apple", "red sky"]
        >>> TextFeatures().fit(texts).feature_names_
        ('red',)
        >>> TextFeatures().fit(texts, also=["apple", "pear"]).feature_names_
        ('apple', 'pear', 'red')
        >>> TextFeatures().fit(texts, only=["apple", "pear"]).feature_names_
        ('apple', 'pear')
        """
        self._learn(texts, False, also, only)
        return self

    def fit_transform(
        self,
        texts: Iterable[str],
        y: Any = None,
        *,
        also: Iterable[str] | None = None,
        only: Iterable[str] | None = None,
    ) -> sparse.csr_array[Any]:
        """`fit` and `transform` in one pass over the texts; the matrix is read-only.

        `also` and `only` are those of `fit`; they have no rows.
        """
        counts, numbers = self._learn(texts, True, also, only)

        def weigh(one: tuple[int, RowArrays]) -> RowArrays:
            vocabulary, rows = one
            return self._weigh(*kernels.renumber(*rows, numbers[vocabulary], len(self.idf_)))

        return own(stack_rows(list(map_blocks(weigh, counts, self.n_jobs)), len(self.idf_)))

    def transform(self, texts: Iterable[str]) -> sparse.csr_array[Any]:
        """The rows of `texts` as float32 CSR with sorted indices; a text without known tokens is an empty row."""
        self._check_fitted()
        checked = checked_texts(texts)
        with task("reading texts", total=operator.length_hint(texts, 0) or None) as advance:
            return self._transform(checked, advance)

    def transform_batches(self, texts: Iterable[str], batch_rows: int = 4096) -> Iterator[sparse.csr_array[Any]]:
        """`transform` in blocks of `batch_rows` rows, for texts that do not fit into memory.

        Examples
        --------
        >>> features = TextFeatures(min_df=1).fit(["a red apple"])
        >>> [X.shape for X in features.transform_batches((f"apple {i}" for i in range(5)), batch_rows=2)]
        [(2, 2), (2, 2), (1, 2)]
        """
        self._check_fitted()
        check_whole("batch_rows", batch_rows, 1)
        checked = checked_texts(texts)
        with task("reading texts", total=operator.length_hint(texts, 0) or None) as advance:
            while (block := self._transform(islice(checked, batch_rows), advance)).shape[0]:
                yield block

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """The features as an array, for scikit-learn's tools."""
        self._check_fitted()
        return np.array(self.feature_names_, dtype=object)

    def to_state(self) -> State:
        """The fitted model as parameters and arrays."""
        self._check_fitted()
        params = {name: getattr(self, name) for name in _SAVED}
        params["ngrams"] = [int(length) for length in self.ngrams]
        for name in ("min_length", "min_df", "max_df", "max_features", "subwords"):
            if params[name] is not None:
                params[name] = int(params[name]) if is_whole(params[name]) else float(params[name])
        text, offsets = self._tokens
        return State(
            kind="TextFeatures",
            params=params | {"sublinear": bool(self.sublinear)},
            arrays={"token_bytes": text, "token_offsets": offsets, "idf": self.idf_},
        )

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Rebuild the model from the result of `to_state`, or raise `ModelFormatError` if it contradicts itself."""
        params = _ADDED | dict(state.params)
        if state.kind != "TextFeatures" or set(params) != set(_SAVED):
            raise ModelFormatError(
                f"TextFeatures: found kind {state.kind!r} with parameters {sorted(state.params)}; "
                f"expected {sorted(_SAVED)}"
            )
        if isinstance(params["ngrams"], list):
            params["ngrams"] = tuple(params["ngrams"])
        model = cls(**params)
        try:
            model._check_parameters()
        except InvalidInput as error:
            raise ModelFormatError(f"TextFeatures: {error}") from None
        tokens = _checked_tokens(state)
        idf = state.array("idf", np.float32, (len(tokens[1]) - 1,))
        if not (np.isfinite(idf).all() and (idf > 0).all()):
            raise ModelFormatError("TextFeatures: 'idf' must be finite and positive")
        model._set_vocabulary(tokens, idf)
        return model

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name not in _DERIVED}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags

    def _check_parameters(self) -> None:
        if not isinstance(self.ngrams, tuple) or len(self.ngrams) != 2:
            raise InvalidInput(f"ngrams is {self.ngrams!r}; expected a pair such as (1, 2)")
        for length in self.ngrams:
            check_whole("ngrams", length, 1, _LONGEST_NGRAM)
        if self.ngrams[0] > self.ngrams[1]:
            raise InvalidInput(f"ngrams is {self.ngrams!r}; the first number must not be larger than the second")
        check_whole("min_length", self.min_length, 1)
        if not isinstance(self.sublinear, bool | np.bool_):
            raise InvalidInput(f"sublinear is {self.sublinear!r}; expected True or False")
        check_frequency("min_df", self.min_df)
        check_frequency("max_df", self.max_df)
        if self.max_features is not None:
            check_whole("max_features", self.max_features, 1)
        if self.subwords is not None:
            check_whole("subwords", self.subwords, _SHORTEST_SUBWORD, _LONGEST_SUBWORD)
        if self.n_jobs is not None and (not is_whole(self.n_jobs) or self.n_jobs == 0):
            raise InvalidInput(f"n_jobs is {self.n_jobs!r}; expected a number of threads, or None for every core")

    def _check_fitted(self) -> None:
        # check_is_fitted alone takes longer than a short text.
        if "idf_" not in vars(self):
            check_is_fitted(self)

    def _rule(self) -> tuple[Any, ...]:
        return _code_points, int(min(self.min_length, _LONGEST)), *map(int, self.ngrams), int(self.subwords or 0)

    def _learn(
        self, texts: Iterable[str], keep: bool, also: Iterable[str] | None, only: Iterable[str] | None
    ) -> tuple[list[tuple[int, RowArrays]], list[Array]]:
        """Set the vocabulary; return rows of counts, and the final id of each thread's feature ids (-1: dropped).

        Each thread has its own vocabulary. Which texts it sees is random; the merged result is not.
        """
        self._check_parameters()
        if also is not None and only is not None:
            raise InvalidInput("also and only are both given; only includes what also does")
        named = checked_texts(also, "also") if also is not None else None
        named = checked_texts(only, "only") if only is not None else named
        rule = self._rule()
        vocabularies = [kernels.GrowingVocabulary() for _ in range(resolve_jobs(self.n_jobs))]
        idle = deque(range(len(vocabularies)))
        # Rows and the features of `named` refer to a vocabulary, so only frequencies alone can be spilled.
        most = math.inf if keep or named is not None else available_memory() // _SHARE_OF_VOCABULARIES
        with tempfile.TemporaryDirectory(prefix="longtail-") as folder:
            spill = Spill(Path(folder), most)

            def count(block: list[Text]) -> tuple[int, RowArrays]:
                mine = idle.pop()
                counts = vocabularies[mine].count(block, *rule, keep)
                if len(vocabularies) * vocabularies[mine].n_bytes() > most:
                    spill.add(vocabularies[mine])
                    vocabularies[mine] = kernels.GrowingVocabulary()
                idle.append(mine)
                return mine, counts

            found = []
            n_texts = 0
            checked = checked_texts(texts)
            with task("reading texts", total=operator.length_hint(texts, 0) or None) as advance:
                for mine, counts in map_blocks(count, blocks_of(checked), self.n_jobs):
                    n_texts += len(counts[0]) - 1
                    advance(len(counts[0]) - 1)
                    if keep:
                        found.append((mine, counts))
            if spill:
                for vocabulary in vocabularies:
                    spill.add(vocabulary)
                vocabularies = [spill.merged(fewest_texts(self.min_df, n_texts))]
        whole, *others = vocabularies
        merged = [whole.merge(other) for other in others]
        frequencies = whole.frequencies()
        wanted = None
        if named is not None:
            wanted = _add_features(whole, named, rule)
            frequencies = np.pad(frequencies, (0, len(wanted) - len(frequencies)))
        chosen = self._choose(whole, frequencies, n_texts, wanted, only is not None)
        numbers = np.full(len(frequencies), -1, dtype=np.int32)
        numbers[chosen] = np.arange(len(chosen), dtype=np.int32)
        return found, [numbers, *(numbers[ids] for ids in merged)]

    def _choose(self, vocabulary: Any, frequencies: Array, n_texts: int, wanted: Array | None, only: bool) -> Array:
        """Set the vocabulary; return the ids of the kept features in its order."""
        if n_texts == 0:
            raise InvalidInput("no texts to learn from; texts is empty")
        if only and wanted is not None and not wanted.any():
            raise InvalidInput(f"the texts of only contain no token of at least {self.min_length} letters or digits")
        if len(frequencies) == 0:
            raise InvalidInput(
                f"the {n_texts} texts contain no token of at least {self.min_length} letters or digits; "
                f"check the texts or lower min_length or ngrams"
            )
        kept = select_features(frequencies, n_texts, self.min_df, self.max_df, wanted, only)
        kept = vocabulary.sorted(kept)
        if self.max_features is not None and len(kept) > self.max_features:
            first = -frequencies[kept] if wanted is None else -frequencies[kept] - (n_texts + 1) * wanted[kept]
            kept = kept[np.sort(np.argsort(first, kind="stable")[: self.max_features])]
        idf = np.log((1 + n_texts) / (1 + frequencies[kept])) + 1
        self._set_vocabulary(vocabulary.tokens(kept), idf.astype(np.float32))
        return kept

    def _set_vocabulary(self, tokens: tuple[Array, Array], idf: Array) -> None:
        for derived in _DERIVED:
            self.__dict__.pop(derived, None)
        self._tokens = tokens
        self.idf_ = idf

    def _transform(self, texts: Iterable[str], advance: Advance) -> sparse.csr_array[Any]:
        if "_vocabulary" not in vars(self):
            self._vocabulary = kernels.Vocabulary(*self._tokens)
        vocabulary, rule = self._vocabulary, self._rule()

        def weigh(block: list[Text]) -> RowArrays:
            return self._weigh(*vocabulary.count(block, *rule))

        parts = []
        for part in map_blocks(weigh, blocks_of(texts), self.n_jobs):
            advance(len(part[0]) - 1)
            parts.append(part)
        return stack_rows(parts, len(self.idf_))

    def _weigh(self, ends: Array, columns: Array, values: Array) -> RowArrays:
        if self.sublinear:
            np.log(values, out=values)
            values += 1
        kernels.scale_rows(ends, columns, values, self.idf_)
        return ends, columns, values


def _add_features(vocabulary: Any, texts: Iterable[str], rule: tuple[Any, ...]) -> Array:
    """Add the features of `texts` to a vocabulary; return whether each feature of the vocabulary is one of them."""

    def ids_of(block: list[Text]) -> Array:
        _, ids, _ = vocabulary.count(block, *rule, True)
        return np.unique(ids)

    found = []
    for block in blocks_of(texts):  # in one thread, as they add to one vocabulary
        check_stop()
        found.append(ids_of(block))
    wanted = np.zeros(len(vocabulary.frequencies()), dtype=bool)
    for ids in found:
        wanted[ids] = True
    return wanted


def _checked_tokens(state: State) -> tuple[Array, Array]:
    text = state.array("token_bytes", np.uint8, (None,))
    offsets = state.array("token_offsets", np.int64, (None,))
    if len(offsets) < 2 or offsets[0] != 0 or offsets[-1] != len(text) or not rises(offsets):
        raise ModelFormatError("TextFeatures: 'token_offsets' must rise from 0 to the length of 'token_bytes'")
    try:
        str(text.data, "utf-8")
    except UnicodeDecodeError as undecodable:
        raise ModelFormatError(f"TextFeatures: 'token_bytes' is not UTF-8: {undecodable.reason}") from None
    if (text[offsets[:-1]] & 0xC0 == 0x80).any():
        raise ModelFormatError("TextFeatures: 'token_offsets' splits a character")
    if not kernels.ascending(text, offsets):
        raise ModelFormatError("TextFeatures: 'token_bytes' must contain distinct tokens in code-point order")
    return text, offsets
