from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks import samples
from benchmarks.arrays import read_matrix
from benchmarks.data import judge, write_split
from benchmarks.samples import Sample, align, load_sample, shorten
from longtail.data import Corpus, LabelTexts
from longtail.errors import InvalidInput


@pytest.mark.parametrize(
    ("name", "base", "words", "rows"),
    [
        ("eurlex-4k", "eurlex-4k", None, None),
        ("yso-sv-30k", "yso-sv", None, 30_000),
        ("yso-fi-200k", "yso-fi", None, 200_000),
        ("eurlex57k-15-words", "eurlex57k", 15, None),
        ("eurlex57k-15-words-10k", "eurlex57k", 15, 10_000),
    ],
)
def test_a_name_tells_the_data_set_the_words_and_the_rows(
    name: str, base: str, words: int | None, rows: int | None
) -> None:
    assert Sample.named(name) == Sample(name, base, words, rows)


@pytest.mark.parametrize("name", ["yso", "yso-sv-many", "-30k", ""])
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="no sample is called"):
        Sample.named(name)


def test_a_text_keeps_its_first_words() -> None:
    corpus = Corpus.from_lists(["one  two\nthree four", "five"], [["a"], ["b"]])
    assert shorten(corpus, 3).texts == ["one two three", "five"]


@pytest.fixture
def rows() -> tuple[Corpus, Corpus]:
    train = Corpus.from_lists(["red", "blue", "red sky"], [["b"], ["c"], ["b"]])
    return train, Corpus.from_lists(["red", "green"], [["b", "z"], ["a", "c"]])


def test_labels_without_training_rows_come_last_and_count_as_missed(rows: tuple[Corpus, Corpus]) -> None:
    split = align(*rows)
    assert split.train.label_names == split.test.label_names == ("b", "c", "a", "z")
    assert split.n_learnable == 2
    perfect = np.array([[0, -1, -1, -1, -1], [1, -1, -1, -1, -1]])
    figures = judge("yso-sv", split.test.labels, split.train.labels, perfect)
    assert figures["P@1"] == 100
    assert figures["nDCG@5"] < 100


def test_a_vocabulary_adds_texts_and_labels_at_the_end(rows: tuple[Corpus, Corpus]) -> None:
    split = align(*rows, LabelTexts(("1", "2", "3"), (("b",), ("z", "zett"), ("new",))))
    assert split.train.label_names == split.test.label_names == ("b", "c", "a", "z", "new")
    assert split.train.label_texts == (("b",), (), (), ("z", "zett"), ("new",))
    assert split.train.label_counts.tolist() == [2, 1, 0, 0, 0]


def test_peers_get_only_labels_with_rows(rows: tuple[Corpus, Corpus], tmp_path: Path) -> None:
    facts = write_split(align(*rows), tmp_path)
    assert (facts["labels"], facts["unseen_labels"], facts["texts"], facts["label_texts"]) == (2, 2, True, False)
    assert read_matrix(tmp_path / "train_labels").shape == (3, 2)
    assert read_matrix(tmp_path / "test_labels").shape == (2, 4)
    assert not (tmp_path / "label_texts.json").exists()


def test_a_sample_has_the_same_rows_every_time(monkeypatch: pytest.MonkeyPatch, rows: tuple[Corpus, Corpus]) -> None:
    texts = [f"text {number}" for number in range(3000)]
    train = Corpus.from_lists(texts, [["b"]] * 3000)
    monkeypatch.setattr(samples, "load_data_set", lambda _, part: train if part == "train" else rows[1])
    monkeypatch.setattr(samples, "vocabulary_of", lambda _: None)
    first, again = load_sample("yso-sv-2k"), load_sample("yso-sv-2k")
    assert first.train.n_rows == 2000
    assert first.train.texts == again.train.texts
    assert first.test.n_rows == 2
