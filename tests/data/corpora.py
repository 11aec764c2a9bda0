"""Random corpora for the round trips, and when two are the same."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
from hypothesis import strategies as st
from scipy import sparse

from longtail.data import Corpus, GroupedCorpus

_CHARACTERS = st.characters(exclude_categories=["Cs"])
TEXTS = st.text(_CHARACTERS, max_size=30)
NAMES = st.text(_CHARACTERS, min_size=1, max_size=8)


@st.composite
def text_corpora(draw, names=NAMES):
    vocabulary = draw(st.lists(names, unique=True, min_size=1, max_size=6))
    rows = draw(st.lists(st.tuples(TEXTS, st.sets(st.sampled_from(vocabulary))), max_size=6))
    row_names = draw(st.none() | st.just([f"row {i}" for i in range(len(rows))]))
    return Corpus.from_lists([text for text, _ in rows], [sorted(labels) for _, labels in rows], row_names=row_names)


@st.composite
def feature_corpora(draw):
    rows, n_features, n_labels = (draw(st.integers(0, 6)) for _ in range(3))
    value = st.floats(width=32, allow_nan=False, allow_infinity=False)

    def matrix(columns, values):
        cells = draw(st.dictionaries(st.tuples(st.integers(0, 5), st.integers(0, 5)), values, max_size=12))
        kept = {cell: v for cell, v in cells.items() if cell[0] < rows and cell[1] < columns}
        places = [np.array([cell[axis] for cell in kept], dtype=np.int32) for axis in (0, 1)]
        data = np.array(list(kept.values()), dtype=np.float32)
        return sparse.csr_array(sparse.coo_array((data, tuple(places)), shape=(rows, columns)))

    named = draw(st.booleans())
    names = [f"label {i}" if named else str(i) for i in range(n_labels)]
    return Corpus(labels=matrix(n_labels, st.just(1.0)), label_names=names, features=matrix(n_features, value))


def assert_same_matrix(one, other):
    assert one.shape == other.shape
    assert one.indptr.tolist() == other.indptr.tolist()
    assert one.indices.tolist() == other.indices.tolist()
    assert one.data.tobytes() == other.data.tobytes()


def assert_same_corpus(one, other):
    assert one.label_names == other.label_names
    assert_same_matrix(one.labels, other.labels)
    assert (one.texts is None, one.features is None) == (other.texts is None, other.features is None)
    if one.texts is not None:
        assert list(one.texts) == list(other.texts)
        assert list(one.row_names or []) == list(other.row_names or [])
    if one.features is not None:
        assert_same_matrix(one.features, other.features)


@st.composite
def grouped_corpora(draw, overlapping=False):
    """Groups of texts, some of them empty; with `overlapping`, texts may be in several groups or in none."""
    vocabulary = draw(st.lists(NAMES, unique=True, min_size=1, max_size=5))
    labels = st.lists(st.sampled_from(vocabulary), max_size=5)
    groups = draw(st.lists(st.tuples(st.lists(TEXTS, max_size=4), labels), max_size=5))
    names = draw(st.none() | st.just([f"group {i}" for i in range(len(groups))]))
    corpus = GroupedCorpus.from_lists([texts for texts, _ in groups], [held for _, held in groups], group_names=names)
    if not overlapping:
        return corpus
    cells = st.booleans()
    members = [[draw(cells) for _ in range(corpus.n_groups)] for _ in range(corpus.n_rows)]
    return replace(corpus, groups=np.array(members, dtype=float).reshape(corpus.n_rows, corpus.n_groups))


def assert_same_groups(one, other):
    assert one.label_names == other.label_names
    assert_same_matrix(one.groups, other.groups)
    assert_same_matrix(one.group_labels, other.group_labels)
    assert list(one.texts or []) == list(other.texts or [])


def rows_of(corpus):
    """The texts of a corpus, each with the names of its labels."""
    names, indptr = corpus.label_names, corpus.labels.indptr
    bounds = itertools.pairwise(indptr)
    return list(zip(corpus.texts, [[names[i] for i in corpus.labels.indices[a:b]] for a, b in bounds], strict=True))
