"""The boundary: every form of matrix becomes the one the kernels trust, or an error says why not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from longtail import Ridge, native, validation
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
