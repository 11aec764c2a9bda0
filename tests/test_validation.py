"""The boundary: every form of matrix becomes the one the kernels trust, or an error says why not."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from longtail import LabelTree, OneVsRest, Ridge, RidgeCV, Tagger, TextFeatures, native, validation
from longtail.cli.program import run
from longtail.data import Corpus, read_repository, write_jsonl
from longtail.errors import InvalidInput, LongtailError, WrongType
from longtail.validation import as_features, as_label_mask, as_labels


def test_features_come_out_sorted_unique_and_single_precision():
    X = sparse.csr_array((np.array([1.0, 2.0, 4.0]), np.array([2, 0, 2]), np.array([0, 3])), shape=(1, 3))
    checked = as_features(X)
    assert checked.dtype == np.float32
    assert checked.indices.tolist() == [0, 2]
    assert checked.data.tolist() == [2, 5]
    assert X.indices.tolist() == [2, 0, 2], "the caller's matrix is left alone"


def test_labels_lose_stored_zeros_and_keep_the_callers_matrix():
    Y = sparse.csr_array((np.array([1, 0, 1]), np.array([0, 1, 2]), np.array([0, 3])), shape=(1, 3))
    checked = as_labels(Y)
    assert checked.indices.tolist() == [0, 2]
    assert Y.nnz == 3


def test_a_label_stored_twice_counts_once():
    Y = sparse.csr_array((np.array([1, 1]), np.array([1, 1]), np.array([0, 2])), shape=(1, 3))
    assert as_labels(Y).toarray().tolist() == [[0, 1, 0]]


@pytest.mark.parametrize(
    ("matrix", "error", "match"),
    [
        (np.zeros(3), InvalidInput, "2D array"),
        (np.zeros((2, 2, 2)), InvalidInput, "3 dimensions"),
        (np.array([[1 + 2j]]), InvalidInput, "Complex"),
        (np.array([["a"]]), WrongType, "cannot be read as numbers"),
        (np.array([[np.nan]]), InvalidInput, "NaN"),
        (np.array([[-np.inf]]), InvalidInput, "NaN or infinity"),
        (np.array([[1e39]]), InvalidInput, "too large"),
    ],
)
def test_what_is_not_a_matrix_of_numbers_is_refused(matrix, error, match):
    with pytest.raises(error, match=match):
        as_features(matrix)


def broken(indptr, indices, shape=(2, 3)):
    matrix = sparse.csr_array(shape, dtype=np.float32)
    matrix.indptr, matrix.indices = np.array(indptr, dtype=np.int32), np.array(indices, dtype=np.int32)
    matrix.data = np.ones(len(indices), dtype=np.float32)
    return matrix


@pytest.mark.parametrize(
    "matrix",
    [
        broken([0, 2, 1], [0]),
        broken([0, 1, 5], [0, 1]),
        broken([1, 1, 2], [0, 1]),
        broken([0, 1], [0]),
        broken([0, 1, 2], [0, 3]),
        broken([0, 1, 2], [0, -1]),
    ],
)
def test_a_sparse_matrix_that_lies_about_itself_is_refused(matrix):
    with pytest.raises(InvalidInput, match=r"row pointers|outside|contradicts itself"):
        as_features(matrix)


def test_allowed_and_denied_labels_become_one_mask():
    assert as_label_mask(None, None, 4) is None
    assert as_label_mask([1, 2], None, 4).tolist() == [False, True, True, False]
    assert as_label_mask(None, [0], 4).tolist() == [False, True, True, True]
    assert as_label_mask([], None, 4).tolist() == [False] * 4
    mask = np.array([True, False, True, False])
    assert as_label_mask(mask, [0], 4).tolist() == [False, False, True, False]
    assert mask.tolist() == [True, False, True, False]


@pytest.mark.parametrize("chosen", [[4], [-1], [0.5], np.ones(3, dtype=bool), [[1]]])
def test_labels_that_do_not_exist_cannot_be_chosen(chosen):
    with pytest.raises(InvalidInput, match="allow"):
        as_label_mask(chosen, None, 4)


def result(matrix):
    """Everything a caller can see of checked features, or the error."""
    before = [part.copy() for part in (matrix.indptr, matrix.indices, matrix.data)]
    try:
        checked = as_features(matrix, n_features=4)
    except LongtailError as error:
        return type(error), str(error)
    finally:
        for part, copy in zip((matrix.indptr, matrix.indices, matrix.data), before, strict=True):
            assert part.tobytes() == copy.tobytes(), "the caller's matrix is left alone"
    parts = (checked.indptr, checked.indices, checked.data)
    assert checked.has_sorted_indices
    assert checked.has_canonical_format
    return type(checked), checked.shape, [(part.dtype, part.tolist(), part.flags.writeable) for part in parts]


VALUES = [0.0, 1.0, -2.5, 1e-40, 3e38, 1e39, np.inf, -np.inf, np.nan]


@given(
    form=st.sampled_from([sparse.csr_array, sparse.csr_matrix]),
    index=st.sampled_from([np.int32, np.int64, np.int16]),
    other_index=st.sampled_from([np.int32, np.int64]),
    dtype=st.sampled_from([np.float32, np.float64, np.int64, bool]),
    lengths=st.lists(st.integers(0, 4), max_size=4),
    ordered=st.booleans(),
    plain=st.booleans(),
    width=st.sampled_from([4, 4, 4, 3, 2**31]),
    data=st.data(),
)
def test_a_matrix_with_nothing_to_mend_comes_out_as_by_the_long_way(
    form, index, other_index, dtype, lengths, ordered, plain, width, data
):
    rows = [data.draw(st.lists(st.integers(-1 + plain, 4 - plain), min_size=n, max_size=n)) for n in lengths]
    rows = [sorted(set(row)) if ordered else row for row in rows]
    entries = sum(map(len, rows))
    chosen = st.sampled_from(VALUES[:3] if plain else VALUES)
    values = data.draw(st.lists(chosen, min_size=entries, max_size=entries))
    matrix = form((len(rows), width), dtype=np.float32)
    with np.errstate(all="ignore"):
        matrix.data = np.array(values, dtype=np.float64).astype(dtype)
    matrix.indices = np.array([column for row in rows for column in row], dtype=np.int64).astype(index)
    matrix.indptr = np.cumsum([0, *map(len, rows)]).astype(index if plain else other_index)
    found = result(matrix)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(validation, "_as_is", lambda X: None)
        assert found == result(matrix)


def test_a_row_with_nothing_to_mend_is_not_copied_and_keeps_no_tie_to_the_callers_object():
    for form in (sparse.csr_array, sparse.csr_matrix):
        row = form((np.ones(2, np.float32), np.array([0, 2], np.int32), np.array([0, 2], np.int32)), shape=(1, 3))
        checked = as_features(row)
        assert isinstance(checked, sparse.csr_array)
        assert np.shares_memory(checked.data, row.data)
        assert (checked @ np.eye(3)).tolist() == [[1, 0, 1]]
        assert (checked * checked).toarray().tolist() == [[1, 0, 1]]
        checked.data = checked.data * 2
        assert row.data.tolist() == [1, 1]


@pytest.mark.skipif(not native.is_native(), reason="the NumPy twins make sparse matrices")
def test_a_row_with_nothing_to_mend_is_ranked_without_making_another_sparse_matrix(monkeypatch):
    model = Ridge().fit(np.eye(2, 3), np.eye(2, 4))
    row = sparse.csr_array((np.ones(2), np.array([0, 2]), np.array([0, 2])), shape=(1, 3))
    expected = model.predict_topk(row.toarray(), k=2)

    def refuse(*arguments, **options):
        raise AssertionError("a sparse matrix was made, which takes longer than to rank a row")

    monkeypatch.setattr(sparse.csr_array, "__init__", refuse)
    found = model.predict_topk(row, k=2)
    assert found[0].tolist() == expected[0].tolist()
    assert found[1].tolist() == expected[1].tolist()


def count_checks(monkeypatch) -> list[str]:
    """Names of the matrices that are looked through from now on."""
    looked_through: list[str] = []
    for what in ("_checked_labels", "_checked_features"):
        check = getattr(validation, what)

        def counting(matrix, name, check=check, what=what):
            looked_through.append(what.removeprefix("_checked_"))
            return check(matrix, name)

        monkeypatch.setattr(validation, what, counting)
    return looked_through


TEXTS = ["a red apple", "a green apple", "grey sky", "a blue sky", "red wine", "blue sea"]
LABELS = [["fruit", "red"], ["fruit"], ["weather"], ["weather"], ["red"], ["sea"]]


@pytest.mark.parametrize(
    ("estimator", "others"),
    [
        (Ridge(), []),
        (OneVsRest(), []),
        (LabelTree(leaf_size=2, branching=2), []),
        # The rows that alpha is chosen by.
        (RidgeCV(), ["labels"]),
        (None, ["labels"]),
    ],
)
def test_a_tagger_looks_through_labels_and_features_once(monkeypatch, estimator, others):
    looked_through = count_checks(monkeypatch)
    corpus = Corpus.from_lists(TEXTS, LABELS)
    Tagger(features=TextFeatures(min_df=1), estimator=estimator).fit_corpus(corpus)
    assert sorted(looked_through) == sorted(["labels", "features", *others])


@pytest.mark.parametrize("learner", ["ridge", "one-vs-rest", "tree"])
def test_the_train_command_looks_through_labels_and_features_once(monkeypatch, tmp_path, learner):
    path = tmp_path / "notes.jsonl"
    write_jsonl(Corpus.from_lists(TEXTS, LABELS), path)
    looked_through = count_checks(monkeypatch)
    options = ["--learner", learner, "--min-df", "1", *(["--alpha", "1"] if learner == "ridge" else [])]
    assert run(["--quiet", "train", str(path), "--out", str(tmp_path / "model"), *options]) == 0
    # A tree also clusters vectors of the labels, which are features too.
    assert sorted(looked_through) == ["features", "labels"]


def test_a_corpus_is_looked_through_when_it_is_made_and_never_again(monkeypatch, tmp_path):
    path = tmp_path / "rows.txt"
    path.write_text("2 3 2\n0 0:1 2:0.5\n1 1:2\n", encoding="utf-8")
    looked_through = count_checks(monkeypatch)
    corpus = read_repository(path)
    assert sorted(looked_through) == ["features", "labels"]
    looked_through.clear()
    assert as_labels(corpus.labels) is corpus.labels
    assert as_features(corpus.features) is corpus.features
    assert as_features(corpus.labels) is corpus.labels, "labels are features too"
    replace(corpus, row_names=["a", "b"])
    assert not looked_through


def test_labels_are_copies_that_the_caller_cannot_change():
    Y = sparse.csr_array(np.eye(3))
    checked = as_labels(Y)
    assert as_labels(checked) is checked
    Y.indices[0] = 99
    assert checked.indices.tolist() == [0, 1, 2]
    for array in (checked.indptr, checked.indices, checked.data):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    changed = checked.copy()
    changed.indices[0] = 99
    with pytest.raises(InvalidInput, match="index outside"):
        as_labels(changed)


def test_features_of_the_caller_are_checked_each_time():
    X = sparse.csr_array(np.eye(3, dtype=np.float32))
    corpus = Corpus(labels=np.eye(3), label_names="abc", features=X)
    X.indices[0] = 99
    with pytest.raises(InvalidInput, match="index outside"):
        as_features(corpus.features)
    assert X.indices.flags.writeable


def exchange_indices(matrix):
    matrix.indices = np.array([0, 1, 99], dtype=np.int32)


def exchange_pointers(matrix):
    matrix.indptr = np.array([0, 1, 2, 99], dtype=np.int32)


def exchange_values(matrix):
    matrix.data = np.array([1, np.nan, 1], dtype=np.float32)


def make_writable(matrix):
    matrix.indices.flags.writeable = True
    matrix.indices[0] = 99


def narrow(matrix):
    matrix._shape = (3, 2)


@pytest.mark.parametrize("change", [exchange_indices, exchange_pointers, exchange_values, make_writable, narrow])
@pytest.mark.parametrize("check", [as_labels, as_features])
def test_a_sealed_matrix_that_was_changed_is_checked_again(change, check):
    matrix = as_labels(np.eye(3))
    change(matrix)
    with pytest.raises(InvalidInput):
        check(matrix)


def test_a_matrix_from_another_process_is_checked_again():
    matrix = pickle.loads(pickle.dumps(as_labels(np.eye(3))))
    matrix.indices[0] = 99
    with pytest.raises(InvalidInput, match="index outside"):
        as_labels(matrix)


def test_rows_of_a_sealed_matrix_are_another_matrix():
    part = as_features(np.eye(3))[1:]
    part.indices[0] = 99
    with pytest.raises(InvalidInput, match="index outside"):
        as_features(part)
