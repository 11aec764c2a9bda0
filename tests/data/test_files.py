"""Any data file by its name."""

from __future__ import annotations

import numpy as np
import pytest

from longtail.data import Corpus, read_corpus, write_corpus
from longtail.errors import DataFormatError, InvalidInput
from tests.data.corpora import assert_same_corpus

TEXTS = Corpus.from_lists(["a", "b"], [["x"], ["y", "x"]])
FEATURES = Corpus(labels=np.eye(2), label_names=["x", "y"], features=np.array([[0.5, 0], [1, 2]]))


@pytest.mark.parametrize(
    ("corpus", "name"),
    [(TEXTS, name) for name in ("a.jsonl", "a.JSONL.gz", "a.ndjson", "a.csv", "a.tsv.gz", "a.tab")]
    + [(FEATURES, name) for name in ("a.txt", "a.txt.gz", "X.trn.npz", "features.npz")],
)
def test_the_extension_picks_the_format(tmp_path, corpus, name):
    write_corpus(corpus, tmp_path / name)
    assert_same_corpus(corpus, read_corpus(tmp_path / name))


def test_the_format_may_be_said(tmp_path):
    write_corpus(TEXTS, tmp_path / "a.data", format="jsonl")
    assert_same_corpus(TEXTS, read_corpus(tmp_path / "a.data", format="jsonl", unknown="error"))


def test_arff_is_read(tmp_path):
    (tmp_path / "a.xml").write_text("<labels><label name='x'/></labels>", encoding="utf-8")
    (tmp_path / "a.arff").write_text(
        "@relation a\n@attribute f numeric\n@attribute x {0,1}\n@data\n2,1\n", encoding="utf-8"
    )
    assert read_corpus(tmp_path / "a.arff").features.toarray().tolist() == [[2]]
    with pytest.raises(InvalidInput, match=r"'\.arff' .* is unknown"):
        write_corpus(FEATURES, tmp_path / "b.arff")


@pytest.mark.parametrize(("name", "format"), [("a.data", None), ("a", None), ("a.gz", None), ("a.txt", "word")])
def test_an_unknown_format_lists_the_known_ones(tmp_path, name, format):
    with pytest.raises(InvalidInput, match=r"the known extensions are \.txt \(repository\), \.jsonl \(jsonl\)"):
        read_corpus(tmp_path / name, format)


def test_the_labels_of_a_pair_may_be_elsewhere(tmp_path):
    write_corpus(FEATURES, tmp_path / "words.npz", labels_path=tmp_path / "tags.npz")
    assert_same_corpus(FEATURES, read_corpus(tmp_path / "words.npz", labels_path=tmp_path / "tags.npz"))
    with pytest.raises(InvalidInput, match="give labels_path"):
        read_corpus(tmp_path / "words.npz")
    (tmp_path / "words.npz").rename(tmp_path / "X.npz")
    with pytest.raises(DataFormatError, match=r"Y\.npz is missing; put it beside this file, or give labels_path"):
        read_corpus(tmp_path / "X.npz")


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv", "a.txt", "X.npz"])
def test_a_write_that_fails_leaves_nothing(tmp_path, name):
    surrogate = "\ud800"
    corpus = Corpus(labels=[[1]], label_names=[surrogate], texts=[surrogate], features=[[1.0]])
    with pytest.raises(InvalidInput, match="surrogate"):
        write_corpus(corpus, tmp_path / name)
    assert list(tmp_path.iterdir()) == []
