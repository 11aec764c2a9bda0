"""How far texts have drifted from those that features were fitted to: the share of their words that are unknown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from longtail.text.tokens import tokenize


class WordCount(NamedTuple):
    """The words of some texts.

    Parameters
    ----------
    words : int
        All words, with repetitions.
    unknown : int
        Those that are no features.
    new_words : int
        Different unknown words that would be features if they were counted now.
    """

    words: int
    unknown: int
    new_words: int


def count_words(features: Any, texts: Iterable[str]) -> WordCount:
    """Count the words of new texts that fitted features do not know.

    Examples
    --------
    >>> from longtail.text import TextFeatures
    >>> features = TextFeatures(min_df=1).fit(["a red apple", "a red sky"])
    >>> count_words(features, ["red pears", "green pears"])
    WordCount(words=4, unknown=3, new_words=1)
    """
    known = set(features.words.feature_names_)
    return _count(features, texts, known)


def usual_unknown_share(features: Any, texts: Iterable[str], n_texts: int) -> float:
    """The share of unknown words to expect in new texts like the `n_texts` texts that features were fitted to.

    It is that of some of these texts, each with the words that would be features without it.
    """
    words = features.words
    frequencies = (1 + n_texts) / np.exp(words.idf_.astype(np.float64) - 1) - 1
    least = words.min_df if isinstance(words.min_df, int) else words.min_df * n_texts
    common = np.flatnonzero(np.rint(frequencies) - 1 >= least).tolist()
    names = words.feature_names_
    found = _count(features, texts, {names[place] for place in common})
    return found.unknown / max(1, found.words)


def _count(features: Any, texts: Iterable[str], known: set[str]) -> WordCount:
    n_words, n_unknown, n_texts = 0, 0, 0
    unknown: Counter[str] = Counter()
    for text in texts:
        tokens = tokenize(text, features.min_length)
        others = [token for token in tokens if token not in known]
        unknown.update(set(others))
        n_words, n_unknown, n_texts = n_words + len(tokens), n_unknown + len(others), n_texts + 1
    least = features.words.min_df
    least = max(2, least if isinstance(least, int) else least * n_texts)
    return WordCount(n_words, n_unknown, sum(count >= least for count in unknown.values()))
