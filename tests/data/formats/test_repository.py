"""The repository text format as files: names, gzip, errors with their place, and the round trip."""

from __future__ import annotations

import gzip
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from longtail.data import Corpus, read_repository, write_repository
from longtail.errors import DataFormatError, InvalidInput, NotEnoughMemory
from tests.data.corpora import assert_same_corpus, feature_corpora

TINY = b"3 4 2\n0,1 0:1 3:0.25\n 1:-2\n1\n"


def test_plain_and_gzipped_files_give_the_same_corpus(tmp_path):
    (tmp_path / "plain.txt").write_bytes(TINY)
    (tmp_path / "zipped.txt.gz").write_bytes(gzip.compress(TINY))
    plain = read_repository(tmp_path / "plain.txt")
    assert_same_corpus(plain, read_repository(tmp_path / "zipped.txt.gz"))
    assert plain.features.toarray().tolist() == [[1, 0, 0, 0.25], [0, -2, 0, 0], [0, 0, 0, 0]]
    assert plain.labels.toarray().tolist() == [[1, 1], [0, 0], [0, 1]]
    assert plain.label_names == ("0", "1")


def test_names_come_from_the_file_beside_it_or_as_given(tmp_path):
    path = tmp_path / "train.txt"
    path.write_bytes(TINY)
    assert read_repository(path, label_names=["x", "y"]).label_names == ("x", "y")
    (tmp_path / "labels.txt").write_text("rot\nblau\n", encoding="utf-8")
    assert read_repository(path).label_names == ("rot", "blau")
    (tmp_path / "other.txt").write_text("red\nblue", encoding="utf-8")
    assert read_repository(path, label_names=tmp_path / "other.txt").label_names == ("red", "blue")
    assert read_repository(path, label_names=str(tmp_path / "other.txt")).label_names == ("red", "blue")


def test_a_wrong_number_of_names_is_an_error(tmp_path):
    path = tmp_path / "train.txt"
    path.write_bytes(TINY)
    (tmp_path / "labels.txt").write_text("one\n", encoding="utf-8")
    with pytest.raises(DataFormatError, match=r"2 labels, but .*labels\.txt has 1 names"):
        read_repository(path)
    with pytest.raises(DataFormatError, match="2 labels, but label_names has 3 names"):
        read_repository(path, label_names=["a", "b", "c"])


def test_without_a_header_sizes_are_inferred_and_names_may_be_more(tmp_path):
    path = tmp_path / "train.txt"
    path.write_bytes(TINY.split(b"\n", 1)[1])
    corpus = read_repository(path, header=False)
    assert corpus.features.shape == (3, 4)
    assert corpus.labels.shape == (3, 2)
    assert read_repository(path, header=False, label_names=["a", "b", "c"]).n_labels == 3
    with pytest.raises(DataFormatError, match=r"train\.txt:1: expected the header.*header=False"):
        read_repository(path)


def test_an_error_names_file_line_and_reason(tmp_path):
    path = tmp_path / "bad.txt"
    path.write_bytes(TINY.replace(b"-2", b"nan"))
    with pytest.raises(DataFormatError) as caught:
        read_repository(path)
    assert (caught.value.path, caught.value.line) == (str(path), 3)
    assert caught.value.problem == f"{path}:3: value 'nan' of feature 1 is not a finite number"


def test_a_cut_file_is_an_error(tmp_path):
    path = tmp_path / "cut.txt"
    for length in range(len(TINY) - 2):
        path.write_bytes(TINY[:length])
        with pytest.raises(DataFormatError):
            read_repository(path)
    path.write_bytes(gzip.compress(TINY)[:-9])
    with pytest.raises(DataFormatError, match=r"ends early"):
        read_repository(path)


def test_a_header_cannot_ask_for_more_names_than_fit(tmp_path, monkeypatch):
    path = tmp_path / "lie.txt"
    path.write_bytes(b"1 1 100000000000\n0 0:1\n")
    monkeypatch.setenv("LONGTAIL_MEMORY", "1G")
    with pytest.raises(NotEnoughMemory, match="naming the 100000000000 labels"):
        read_repository(path)


def test_a_header_cannot_ask_for_more_features_than_can_be_counted(tmp_path, monkeypatch):
    path = tmp_path / "lie.txt"
    path.write_bytes(b"1 1000000000 1\n0 0:1\n")
    monkeypatch.setenv("LONGTAIL_MEMORY", "1G")
    with pytest.raises(NotEnoughMemory, match="counting 1000000000 columns"):
        read_repository(path)


def test_no_rows_are_a_corpus_too(tmp_path):
    path = tmp_path / "none.txt"
    path.write_bytes(b"0 5 3\n")
    corpus = read_repository(path)
    assert corpus.features.shape == (0, 5)
    assert corpus.labels.shape == (0, 3)


@given(feature_corpora(), st.sampled_from(["train.txt", "train.txt.gz"]))
def test_a_corpus_comes_back_bit_for_bit(corpus, name):
    with tempfile.TemporaryDirectory() as folder:
        write_repository(corpus, Path(folder) / name)
        assert_same_corpus(corpus, read_repository(Path(folder) / name))


def test_the_values_written_are_the_shortest(tmp_path):
    corpus = Corpus(labels=np.array([[1]]), label_names=["0"], features=np.array([[0.1, 2.0, 1e-20]], dtype=np.float32))
    write_repository(corpus, tmp_path / "a.txt")
    assert (tmp_path / "a.txt").read_bytes() == b"1 3 1\n0 0:0.1 1:2 2:1e-20\n"


def test_a_negative_zero_stays_one(tmp_path):
    features = sparse.csr_array((np.array([-0.0, 0.0], dtype=np.float32), ([0, 0], [0, 1])), shape=(1, 2))
    corpus = Corpus(labels=np.array([[1]]), label_names=["0"], features=features)
    write_repository(corpus, tmp_path / "a.txt")
    assert np.signbit(read_repository(tmp_path / "a.txt").features.data).tolist() == [True, False]


def test_names_of_another_corpus_are_not_overwritten(tmp_path):
    corpus = Corpus(labels=np.array([[1]]), label_names=["red"], features=np.array([[1.0]]))
    write_repository(corpus, tmp_path / "train.txt")
    write_repository(corpus, tmp_path / "test.txt")
    other = Corpus(labels=np.array([[1]]), label_names=["blue"], features=np.array([[1.0]]))
    with pytest.raises(InvalidInput, match="have different label names"):
        write_repository(other, tmp_path / "more.txt")
    assert not (tmp_path / "more.txt").exists()
    broken = Corpus(labels=np.array([[1]]), label_names=["a\nb"], features=np.array([[1.0]]))
    (tmp_path / "sub").mkdir()
    with pytest.raises(InvalidInput, match="contains a line end"):
        write_repository(broken, tmp_path / "sub" / "a.txt")


def test_a_corpus_of_texts_has_no_place_in_the_format(tmp_path):
    with pytest.raises(InvalidInput, match="only texts"):
        write_repository(Corpus.from_lists(["a"], [["x"]]), tmp_path / "a.txt")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bibtex", "delicious", "mediamill", "eurlex-4k"])
@pytest.mark.parametrize("part", ["train", "test"])
def test_real_files_agree_with_scikit_learn(benchmark_data, tmp_path, name, part):
    from sklearn.datasets import load_svmlight_file

    path = benchmark_data(name) / f"{part}.txt.gz"
    corpus = read_repository(path)
    header, body = gzip.decompress(path.read_bytes()).split(b"\n", 1)
    rows, features, labels = map(int, header.split())
    assert (corpus.n_rows, corpus.features.shape[1], corpus.n_labels) == (rows, features, labels)
    (tmp_path / "body.txt").write_bytes(body)
    X, y = load_svmlight_file(str(tmp_path / "body.txt"), multilabel=True, n_features=features, zero_based=True)
    X.sort_indices()
    assert corpus.features.indptr.tolist() == X.indptr.tolist()
    assert np.array_equal(corpus.features.indices, X.indices)
    assert corpus.features.data.tobytes() == X.data.astype(np.float32).tobytes()
    bounds = zip(corpus.labels.indptr[:-1], corpus.labels.indptr[1:], strict=True)
    assert [corpus.labels.indices[a:b].tolist() for a, b in bounds] == [sorted(map(int, row)) for row in y]
