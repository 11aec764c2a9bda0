from __future__ import annotations

import doctest
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from benchmarks import arrays, data, growth, samples, synthetic, timing
from benchmarks.adapters import annif_files
from benchmarks.arrays import read_matrix, top_labels, write_matrix


def test_a_matrix_comes_back_as_it_was_written(tmp_path: Path, rng: np.random.Generator) -> None:
    matrix = sparse.random_array((7, 5), density=0.4, rng=rng, format="csr", dtype=np.float32)
    write_matrix(tmp_path / "matrix", matrix)
    again = read_matrix(tmp_path / "matrix")
    assert again.shape == (7, 5)
    assert again.dtype == np.float32
    assert np.array_equal(again.toarray(), matrix.toarray())


def test_top_labels_are_best_first_with_ties_to_the_lowest(rng: np.random.Generator) -> None:
    scores = rng.integers(1, 4, size=(20, 9)).astype(np.float32)
    expected = np.argsort(-scores, axis=1, kind="stable")[:, :5]
    assert np.array_equal(top_labels(sparse.csr_matrix(scores), 5), expected)


@pytest.mark.parametrize(
    "module", [arrays, growth, samples, synthetic, timing, annif_files], ids=lambda module: module.__name__
)
def test_examples_in_docstrings_hold(module: object) -> None:
    failed, tried = doctest.testmod(module)  # type: ignore[arg-type]
    assert tried
    assert not failed


def test_a_corpus_is_prepared_once_and_the_same_for_all(
    tmp_path: Path, benchmark_data: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    benchmark_data("bibtex")  # type: ignore[operator]
    first = data.prepare("bibtex", tmp_path)
    monkeypatch.setattr(data, "load_sample", None)
    again = data.prepare("bibtex", tmp_path)
    assert again == first
    X = read_matrix(first.folder / "train_features")
    assert X.shape == (4_880, 1_836)
    assert np.allclose(X.power(2).sum(axis=1), 1, atol=1e-5)
    assert (first.folder / "train.txt").read_text(encoding="utf-8").startswith("4880 1836 159\n")
