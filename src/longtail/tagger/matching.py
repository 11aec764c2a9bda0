"""Label texts as features, so that rows can be compared with the names of labels."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from longtail.data import Corpus
from longtail.text import JoinedFeatures, TextFeatures, join_columns, tokenize
from longtail.validation import own

_log = logging.getLogger(__name__)

SUBWORDS = 5  # characters of a subword; shorter ones match by chance, longer ones miss other endings of a word
_WORD = re.compile(r"[^\W\d_]{3,}")
_ENOUGH = 0.1  # share of labels whose names must have words of the texts; the second stage learns what they are worth


def texts_of_labels(corpus: Corpus, words: TextFeatures) -> list[str] | None:
    """One text for each label: those of the corpus or, if label names are words, the names; else None.

    Parameters
    ----------
    corpus : Corpus
    words : TextFeatures
        Fitted to the texts of the corpus.
    """
    if corpus.label_texts is not None:
        texts = [" \n ".join(texts) for texts in corpus.label_texts]
        return texts if any(len(token) >= words.min_length for text in texts for token in tokenize(text)) else None
    names = [" ".join(_WORD.findall(name)) for name in corpus.label_names]
    share = float(np.mean(np.diff(words.transform(names).indptr) > 0))
    told = f"{100 * share:.0f} % of the label names have words of the texts"
    if share < _ENOUGH:
        _log.info("%s: names are not compared with texts; label texts would help", told)
        return None
    _log.info("%s: names are compared with texts", told)
    return list(corpus.label_names)


def label_readings(features: TextFeatures | JoinedFeatures, texts: Sequence[str]) -> list[Any]:
    """The features of label texts, read in three ways: all features, whole words, and beginnings of words."""
    Z = features.transform(texts)
    names = features.feature_names_
    first = np.array([name[:1] for name in names])
    whole, beginning = ~np.isin(first, ("<", "~")), first == "<"
    return [Z, *(_keep_columns(Z, kept) for kept in (whole, beginning))]


def _keep_columns(Z: Any, kept: Any) -> Any:
    """The same rows with only some columns, of unit length again."""
    there = kept[Z.indices]
    rows = np.repeat(np.arange(Z.shape[0]), np.diff(Z.indptr))[there]
    data, indices = Z.data[there], Z.indices[there]
    lengths = np.sqrt(np.bincount(rows, weights=data.astype(np.float64) ** 2, minlength=Z.shape[0]))
    ends = np.concatenate([[0], np.cumsum(there)])[Z.indptr].astype(Z.indptr.dtype)
    return own(sparse.csr_array(((data / lengths[rows]).astype(np.float32), indices, ends), shape=Z.shape))


def with_matcher(words: TextFeatures, X: Any, corpus: Corpus, texts: Sequence[str]) -> tuple[JoinedFeatures, Any]:
    """Add the features of label texts, with subwords, to features of whole words and to their matrix."""
    matcher = TextFeatures(min_df=1, subwords=SUBWORDS, n_jobs=words.n_jobs)
    matched = matcher.fit_transform(corpus.texts or (), only=texts)
    _log.info("features of label texts: %s", f"{matched.shape[1]:,}")
    return JoinedFeatures((words, matcher)), join_columns([X, matched])
