"""Label vectors: normalised sums of rows, whatever the threads and the memory."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest
from scipy import sparse

from longtail.errors import InvalidInput, NotEnoughMemory
from longtail.labels import label_vectors, members_by_label, vectors
from longtail.work import InMemory, begin, in_pieces


@pytest.fixture
def problem(rng):
    X = sparse.random_array((60, 50), density=0.1, rng=rng, format="csr", dtype=np.float32)
    Y = rng.random((60, 30)) < 0.1
    Y[:, 4] = False
    return X, sparse.csr_array(Y.astype(np.float32))


def normalised(sums):
    lengths = np.linalg.norm(sums, axis=1, keepdims=True)
    return sums / np.where(lengths > 0, lengths, 1)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_vectors_are_the_normalised_columns_of_the_cross_product(problem, n_jobs, monkeypatch):
    monkeypatch.setattr(vectors, "_BLOCK_ENTRIES", 50)
    X, Y = problem
    found = label_vectors(X, Y, n_jobs=n_jobs)
    assert found.dtype == np.float32
    assert found.indices.dtype == np.int32
    np.testing.assert_allclose(found.toarray(), normalised((Y.T @ X).toarray()), atol=1e-6)


def test_a_label_without_positives_or_with_empty_rows_has_an_empty_vector(problem):
    X, Y = problem
    X, Y = X.toarray(), Y.toarray()
    X[7] = 0
    Y[:, 5] = 0
    Y[7, 5] = 1
    found = label_vectors(X, Y)
    assert np.diff(found.indptr)[[4, 5]].tolist() == [0, 0]


def test_top_keeps_the_largest_entries_and_length_1(problem):
    X, Y = problem
    found = label_vectors(X, Y, top=3)
    full = normalised((Y.T @ X).toarray())
    kept = np.where(full >= np.sort(full, axis=1)[:, [-3]], full, 0)
    np.testing.assert_allclose(found.toarray(), normalised(kept), atol=1e-6)


def test_what_does_not_fit_into_memory_is_cut_to_the_largest_entries(problem, monkeypatch):
    X, Y = problem
    monkeypatch.setenv("LONGTAIL_MEMORY", "2K")
    found = label_vectors(X, Y)
    assert np.diff(found.indptr).max() == 4
    assert found.nnz * 8 <= 1024
    np.testing.assert_array_equal(found.toarray(), label_vectors(X, Y, top=4).toarray())


def test_labels_that_cannot_fit_are_refused(problem, monkeypatch):
    monkeypatch.setenv("LONGTAIL_MEMORY", "100")
    with pytest.raises(NotEnoughMemory, match="label vectors needs"):
        label_vectors(*problem)


def test_sums_beyond_32_bits_are_refused():
    X = np.full((2, 1), 3e38, dtype=np.float32)
    with pytest.raises(InvalidInput, match="a label has 2 rows: their sum overflows 32-bit floats"):
        label_vectors(X, np.ones((2, 1)))


@pytest.mark.parametrize("top", [0, -1, 1.5, True])
def test_a_top_that_is_no_count_is_refused(problem, top):
    with pytest.raises(InvalidInput, match="top is"):
        label_vectors(*problem, top=top)


@pytest.mark.parametrize("shape", [(3, 0, 2), (3, 2, 0), (0, 2, 3)])
def test_nothing_in_nothing_out(shape):
    rows, features, labels = shape
    found = label_vectors(sparse.csr_array((rows, features)), sparse.csr_array((rows, labels)))
    assert found.shape == (labels, features)
    assert found.nnz == 0


@pytest.mark.parametrize("is_stored", [False, True], ids=["memory", "pieces"])
@pytest.mark.parametrize(("entries", "between"), [(1, 1), (7, 3), (50, 2), (10**6, 4)])
@pytest.mark.parametrize(("shape", "density"), [((60, 25), 0.2), ((9, 200), 0.02), ((5, 3), 0.0), ((1, 1), 1.0)])
def test_rows_of_labels_do_not_depend_on_the_tasks(
    shape, density, entries, between, is_stored, rng, tmp_path, monkeypatch
):
    monkeypatch.setattr(vectors, "_BLOCK_ENTRIES", entries)
    monkeypatch.setattr(vectors, "_BETWEEN_MARKS", between)
    Y = sparse.csr_array(rng.random(shape) < density).astype(np.float32)
    counts = np.bincount(Y.indices, minlength=shape[1])
    expected = Y.tocsc()
    with in_pieces(tmp_path / "unfinished") if is_stored else nullcontext():
        found = members_by_label(begin({}, 1, labels=Y), counts)
        assert [bound for pair in found.ranges for bound in pair][:: len(found) * 2 - 1] == [0, shape[1]]
        assert np.concatenate([piece["indices"] for piece in found]).tobytes() == expected.indices.tobytes()
        lengths = np.concatenate([np.diff(piece["indptr"]) for piece in found])
        assert lengths.tobytes() == np.diff(expected.indptr.astype(np.int64)).tobytes()


def test_tasks_read_the_labels_of_all_rows_only_once(rng, monkeypatch):
    monkeypatch.setattr(vectors, "_BLOCK_ENTRIES", 50)
    monkeypatch.setattr(vectors, "_BETWEEN_MARKS", 4)
    Y = sparse.csr_array(rng.random((300, 100)) < 0.2).astype(np.float32)
    read = []

    class Counted(np.ndarray):
        def __getitem__(self, place):
            found = self.view(np.ndarray)[place]
            read.append(len(found))
            return found

    def counted(*arguments):
        piece = sorted_pairs(*arguments)
        return {**piece, "pairs": piece["pairs"].view(Counted)}

    sorted_pairs = vectors._sorted_pairs
    monkeypatch.setattr(vectors, "_sorted_pairs", counted)
    found = members_by_label(InMemory(1, {"labels": Y}), np.bincount(Y.indices, minlength=100))
    assert len(read) > len(found) > 1
    assert Y.nnz <= sum(read) <= Y.nnz + 2 * 4 * len(read)
