"""Corpora by name: data sets of the catalogue, and samples of them with fewer rows or shorter texts.

``yso-sv-30k`` has 30,000 of the training rows of ``yso-sv``, chosen with a seed. ``eurlex57k-15-words`` has the first
15 words of each text, and ``eurlex57k-15-words-10k`` has them for 10,000 training rows. All test rows stay.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from longtail.data import (
    CATALOGUE,
    Corpus,
    LabelTexts,
    data_set,
    find_data_set,
    load_data_set,
    read_label_texts,
)
from longtail.errors import InvalidInput

SEED = 0
VOCABULARIES = ("vocabulary.tsv.gz", "label_info.json.gz")
_LANGUAGES = {"yso-sv": "sv", "yso-fi": "fi"}
_NAME = re.compile(r"(?P<base>.+?)(?:-(?P<words>\d+)-words)?(?:-(?P<thousands>\d+)k)?")


@dataclass(frozen=True)
class Sample:
    """A data set of the catalogue, or a part of it.

    Parameters
    ----------
    name : str
        Of the sample.
    base : str
        Name of the data set.
    words : int or None
        Number of words that are left of each text.
    rows : int or None
        Number of training rows.

    Examples
    --------
    >>> Sample.named("yso-sv-30k").rows, Sample.named("eurlex-4k").rows
    (30000, None)
    >>> Sample.named("eurlex57k-15-words-10k").title
    'EURLEX57K, 15 words, 10,000 rows'
    """

    name: str
    base: str
    words: int | None = None
    rows: int | None = None

    @classmethod
    def named(cls, name: str) -> Sample:
        """The sample with this name, or `InvalidInput`."""
        if name in CATALOGUE:
            return cls(name, name)
        parts = _NAME.fullmatch(name)
        if parts is None or parts["base"] not in CATALOGUE:
            raise InvalidInput(f"no sample is called {name!r}; expected a data set, such as yso-sv, or yso-sv-30k")
        words, thousands = parts["words"], parts["thousands"]
        return cls(name, parts["base"], int(words) if words else None, 1000 * int(thousands) if thousands else None)

    @property
    def title(self) -> str:
        told = [data_set(self.base).title]
        told += [f"{self.words} words"] if self.words else []
        return ", ".join([*told, f"{self.rows:,} rows"] if self.rows else told)

    @property
    def language(self) -> str:
        return _LANGUAGES.get(self.base, "en")


class Split(NamedTuple):
    """Training and test rows with the same columns of labels.

    Labels with training rows have the first columns. Labels that only test rows have, or only the vocabulary, have the
    others: nobody can learn them from rows, so they count as missed, unless a learner knows their texts.
    """

    train: Corpus
    test: Corpus
    n_learnable: int


def load_sample(name: str) -> Split:
    """Load a sample by name, with label texts if a vocabulary lies beside the data.

    Raises
    ------
    Unavailable
        If the data set is not installed; the message says how to get it.
    """
    sample = Sample.named(name)
    train, test = load_data_set(sample.base, "train"), load_data_set(sample.base, "test")
    if sample.rows is not None and sample.rows < train.n_rows:
        train = train.select(np.sort(np.random.default_rng(SEED).permutation(train.n_rows)[: sample.rows]))
    if sample.words is not None:
        train, test = shorten(train, sample.words), shorten(test, sample.words)
    return align(train, test, vocabulary_of(sample.base))


def shorten(corpus: Corpus, n_words: int) -> Corpus:
    """The corpus with only the first words of each text."""
    if corpus.texts is None:
        raise InvalidInput("only texts have words")
    return replace(corpus, texts=[" ".join(text.split(None, n_words)[:n_words]) for text in corpus.texts])


def align(train: Corpus, test: Corpus, vocabulary: LabelTexts | None = None) -> Split:
    """Give both corpora the same columns, and the training rows the label texts."""
    learnable = [name for name, count in zip(train.label_names, train.label_counts, strict=True) if count]
    known = set(learnable)
    unseen = [name for name, count in zip(test.label_names, test.label_counts, strict=True) if count]
    names = [*learnable, *(name for name in unseen if name not in known)]
    train = train.with_label_names(names)
    if vocabulary is not None:
        train = train.with_label_texts(vocabulary)
    return Split(train, test.with_label_names(train.label_names), len(learnable))


def vocabulary_of(base: str) -> LabelTexts | None:
    """The label texts that lie beside the files of a data set, or None."""
    if base == "python-api":
        return None
    folder = find_data_set(base)
    found = [folder / name for name in VOCABULARIES if (folder / name).is_file()]
    return read_label_texts(found[0]) if found else None
