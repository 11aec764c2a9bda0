"""A prepared corpus has the features and labels of its files, and an interrupted preparation goes on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from longtail import Tagger, load, memory
from longtail.data import Corpus, read_corpus, write_corpus
from longtail.errors import InvalidInput, ModelFormatError
from longtail.prepared import is_prepared, open_prepared, prepare, preparing
from longtail.text import FeatureOptions, TextFeatures, fit_features
from longtail.trees import LabelTree


def corpus_of(n_rows: int, seed: int = 0) -> Corpus:
    rng = np.random.default_rng(seed)
    texts = [" ".join(f"word{word % 300}" for word in rng.zipf(1.2, size=6)) for _ in range(n_rows)]
    labels = [[f"label {label}" for label in set(rng.integers(20, size=2).tolist())] for _ in range(n_rows)]
    return Corpus.from_lists(texts, labels, row_names=[f"row {row}" for row in range(n_rows)])


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    whole = corpus_of(500)
    paths = [tmp_path / name for name in ("a.jsonl", "b.csv")]
    write_corpus(whole.select(np.arange(300)), paths[0])
    write_corpus(whole.select(np.arange(300, 500)), paths[1])
    return paths


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preparing, "iter_batches", lambda *args, **options: preparing_batches(*args, **options))


def preparing_batches(*args, **options):
    from longtail.data import iter_batches

    return iter_batches(*args, n_rows=64, **options)


def assert_equal(found, expected) -> None:
    assert found.shape == expected.shape
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


def test_files_give_the_arrays_of_all_their_rows(files: list[Path], tmp_path: Path) -> None:
    found = prepare(files, tmp_path / "prepared")
    expected = corpus_of(500)
    features, X = fit_features(None, expected)
    assert_equal(found.features, X)
    assert_equal(found.labels, expected.labels)
    assert found.label_names == expected.label_names
    assert tuple(found.row_names) == tuple(expected.row_names)
    assert found.made_by.feature_names_ == features.feature_names_
    assert is_prepared(tmp_path / "prepared")
    assert not (tmp_path / "prepared.unfinished").exists()


def test_features_keep_the_numbers_of_their_labels(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    corpus = Corpus(
        (rng.random((150, 12)) < 0.2).astype(int), [f"l{i}" for i in range(12)], features=rng.random((150, 7))
    )
    for name in ("train.txt", "X.npz"):
        write_corpus(corpus, tmp_path / name)
        found = prepare([tmp_path / name], tmp_path / f"prepared-{name}")
        expected = read_corpus(tmp_path / name)
        assert_equal(found.features, fit_features(None, expected)[1])
        assert_equal(found.labels, expected.labels)
        assert found.label_names == expected.label_names


def test_a_model_of_a_prepared_corpus_is_that_of_its_files(files: list[Path], tmp_path: Path) -> None:
    prepared = prepare(files, tmp_path / "prepared")
    for name, corpus in (("one", corpus_of(500)), ("other", prepared)):
        Tagger(estimator=LabelTree()).fit_corpus(corpus).save(tmp_path / name)
    assert load(tmp_path / "one").fingerprint_ == load(tmp_path / "other").fingerprint_


def test_test_rows_are_prepared_like_training_rows(files: list[Path], tmp_path: Path) -> None:
    train = prepare(files, tmp_path / "train")
    test = prepare(files[1:], tmp_path / "test", like=train)
    tagger = Tagger(estimator=LabelTree()).fit_corpus(train)
    assert tagger.evaluate(test).to_text() == tagger.evaluate(read_corpus(files[1])).to_text()
    other = prepare(files[1:], tmp_path / "other")
    with pytest.raises(InvalidInput, match="prepared with other features"):
        tagger.evaluate(other)


def test_an_interrupted_preparation_goes_on(files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    transform, calls = TextFeatures.transform, []

    def failing(self, texts):
        calls.append(len(texts))
        if len(calls) == 4:
            raise KeyboardInterrupt
        return transform(self, texts)

    monkeypatch.setattr(TextFeatures, "transform", failing)
    with pytest.raises(KeyboardInterrupt):
        prepare(files, tmp_path / "prepared")
    assert not (tmp_path / "prepared").exists()
    # A damaged piece is made again.
    damaged = next((tmp_path / "prepared.unfinished" / "rows000001").glob("features-data-*.npy"))
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"x")
    calls[:] = [0] * 10
    found = prepare(files, tmp_path / "prepared")
    assert len(calls) == 10 + 9 - 3 + 1
    assert_equal(found.features, fit_features(None, corpus_of(500))[1])


def test_unfinished_work_of_another_job_is_refused(files: list[Path], tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(TextFeatures, "transform", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        prepare(files, tmp_path / "prepared")
    with pytest.raises(InvalidInput, match="unfinished work of another job"):
        prepare(files, tmp_path / "prepared", FeatureOptions(min_df=3))


def test_unfinished_work_with_other_fitted_features_is_refused(files: list[Path], tmp_path: Path, monkeypatch) -> None:
    one, other = (
        prepare(files, tmp_path / f"like{number}", TextFeatures(max_features=50, ngrams=(number, number)))
        for number in (1, 2)
    )
    assert one.features.shape == other.features.shape
    monkeypatch.setattr(TextFeatures, "transform", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        prepare(files, tmp_path / "prepared", like=one)
    with pytest.raises(InvalidInput, match="unfinished work of another job"):
        prepare(files, tmp_path / "prepared", like=other)


def test_little_memory_gives_the_same_arrays(files: list[Path], tmp_path: Path) -> None:
    whole = prepare(files, tmp_path / "whole")
    with memory.limit("64K"):
        bounded = prepare(files, tmp_path / "bounded")
    assert_equal(bounded.features, whole.features)


def test_what_is_no_prepared_corpus_is_refused(tmp_path: Path) -> None:
    assert not is_prepared(tmp_path)
    with pytest.raises(ModelFormatError, match="there is no model here"):
        open_prepared(tmp_path)
    Tagger().fit(["red apples", "red sky"], [["a"], ["b"]]).save(tmp_path / "model")
    with pytest.raises(InvalidInput, match="not a prepared corpus"):
        open_prepared(tmp_path / "model")
    with pytest.raises(InvalidInput, match="no file to prepare"):
        prepare([], tmp_path / "nothing")


def test_texts_and_features_do_not_mix(files: list[Path], tmp_path: Path) -> None:
    write_corpus(Corpus(np.eye(2), ["a", "b"], features=np.eye(2)), tmp_path / "x.txt")
    with pytest.raises(InvalidInput, match="some files have texts and others features"):
        prepare([files[0], tmp_path / "x.txt"], tmp_path / "prepared")
