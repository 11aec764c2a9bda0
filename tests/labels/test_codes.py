"""Labels as digits: there and back for any radices, the Kronecker product behind it, and what is refused."""

from __future__ import annotations

import math
from functools import reduce

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from longtail.errors import InvalidInput, LongtailError, WrongType
from longtail.labels import BitChunks, MixedRadix

small_radices = st.lists(st.integers(1, 7), min_size=1, max_size=4)
any_radices = st.lists(st.integers(1, 2**20) | st.integers(1, 2**63), min_size=1, max_size=6)


@given(any_radices, st.data())
def test_decoding_gives_back_every_label_that_was_encoded(radices, data):
    codes = MixedRadix(tuple(radices))
    labels = data.draw(st.lists(st.integers(0, codes.size - 1), max_size=8))
    digits = codes.encode(labels)
    assert digits.dtype == np.int64
    assert digits.shape == (len(labels), len(radices))
    assert (digits >= 0).all()
    assert all(digit < radix for row in digits.tolist() for digit, radix in zip(row, radices, strict=True))
    assert codes.decode(digits).tolist() == labels


@given(small_radices)
def test_the_digits_of_all_labels_are_all_rows_of_digits_in_order(radices):
    codes = MixedRadix(tuple(radices))
    digits = codes.encode(np.arange(codes.size))
    assert digits.tolist() == np.indices(radices).reshape(len(radices), -1).T.tolist()


@given(small_radices, st.data())
def test_a_one_hot_label_is_the_kronecker_product_of_its_one_hot_digits(radices, data):
    codes = MixedRadix(tuple(radices))
    label = data.draw(st.integers(0, codes.size - 1))
    heads = [np.eye(radix)[digit] for radix, digit in zip(radices, codes.encode([label])[0], strict=True)]
    one_hot = np.zeros(codes.size)
    one_hot[label] = 1
    assert reduce(np.kron, heads).tolist() == one_hot.tolist()


@given(any_radices, st.data())
def test_a_label_is_the_sum_of_its_digits_times_the_strides(radices, data):
    codes = MixedRadix(tuple(radices))
    label = data.draw(st.integers(0, codes.size - 1))
    digits = codes.encode([label])[0].tolist()
    assert sum(digit * stride for digit, stride in zip(digits, codes.strides, strict=True)) == label
    assert digits == [label // stride % radix for stride, radix in zip(codes.strides, radices, strict=True)]


@pytest.mark.parametrize("size", [2**63 - 1, 2**63, 2**63 + 1])
def test_the_largest_label_survives_on_both_sides_of_the_machine_word(size):
    shortest = min(factor for factor in (7, 2, 3) if size % factor == 0)
    codes = MixedRadix((shortest, size // shortest))
    labels = [0, 1, size - 1]
    found = codes.decode(codes.encode(labels))
    assert found.tolist() == labels
    assert (found.dtype == np.int64) == (size < 2**63)
    with pytest.raises(InvalidInput, match=f"row 1: the label is {size}; expected a whole number from 0 to {size - 1}"):
        codes.encode([0, size])


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint64, object])
def test_integers_of_any_type_have_the_same_digits(dtype):
    codes = MixedRadix((5, 4))
    labels = np.array([0, 7, 19], dtype=dtype)
    assert codes.encode(labels).tolist() == [[0, 0], [1, 3], [4, 3]]
    assert codes.decode(codes.encode(labels).astype(dtype)).tolist() == [0, 7, 19]


def test_nothing_is_encoded_as_no_rows():
    codes = MixedRadix((5, 4))
    for empty in ([], (), np.zeros(0), np.zeros(0, np.int64)):
        assert codes.encode(empty).shape == (0, 2)
    for empty in ([], np.zeros((0, 2))):
        assert codes.decode(empty).shape == (0,)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([3, -1], r"row 1: the label is -1; expected a whole number from 0 to 19"),
        (np.array([0, 0, 20]), r"row 2: the label is 20"),
        (np.array([2**63], dtype=np.uint64), r"row 0: the label is 9223372036854775808"),
        ([2**70], r"row 0: the label is 1180591620717411303424"),
        ([1.0], r"labels contains 1.0, a float; expected whole numbers"),
        ([1, True], r"labels contains True, a bool"),
        ([None], r"labels contains None"),
        (["1"], r"labels contains '1', a str"),
        (np.array([1.0]), r"labels has dtype float64"),
        (np.array([True]), r"labels has dtype bool"),
        ([[1, 2]], r"labels has shape \(1, 2\)"),
        (3, r"labels has shape \(\)"),
    ],
)
def test_labels_that_have_no_digits_are_refused(labels, message):
    with pytest.raises(InvalidInput, match=message):
        MixedRadix((5, 4)).encode(labels)


@pytest.mark.parametrize(
    ("codes", "message"),
    [
        ([[0, 0], [1, 4]], r"row 1, column 1: the digit is 4; expected a whole number from 0 to 3"),
        (np.array([[-1, 0]]), r"row 0, column 0: the digit is -1"),
        ([[0, 0, 0]], r"codes has 3 columns; expected 2, one for each head"),
        ([0, 1], r"codes has shape \(2,\)"),
        ([[0, 1], [0]], r"codes has shape \(2,\)"),
        ([[0, 1.5]], r"codes contains 1.5"),
    ],
)
def test_digits_that_are_no_code_are_refused(codes, message):
    with pytest.raises(InvalidInput, match=message):
        MixedRadix((5, 4)).decode(codes)


@pytest.mark.parametrize("radices", [(), (3, 0), (-1,), (2.0,), (True, 2), ("2",), "23", 5, (2**63 + 1,), None])
def test_lengths_that_no_head_has_are_refused(radices):
    with pytest.raises(InvalidInput, match="radices"):
        MixedRadix(radices)


def test_equal_lengths_make_equal_codes_however_they_were_given():
    assert MixedRadix([np.int64(5), 4]) == MixedRadix((5, 4))
    assert hash(MixedRadix([5, 4])) == hash(MixedRadix((5, 4)))
    assert type(MixedRadix(np.array([2**40, 2**40])).size) is int
    assert MixedRadix(np.array([2**40, 2**40])).size == 2**80


def random_sets(seed, n, n_labels, density=0.3):
    return sparse.csr_array(np.random.default_rng(seed).random((n, n_labels)) < density)


@given(st.integers(1, 130), st.integers(1, 63), st.integers(0, 6), st.integers(0, 5))
def test_decoding_gives_back_every_label_set(n_labels, bits, n, seed):
    chunks = BitChunks(n_labels, bits)
    Y = random_sets(seed, n, n_labels)
    digits = chunks.encode(Y)
    assert digits.dtype == np.int64
    assert digits.shape == (n, -(-n_labels // bits)) == (n, len(chunks.radices))
    found = chunks.decode(digits)
    assert isinstance(found, sparse.csr_array)
    assert found.has_canonical_format
    assert (found.data == 1).all()
    assert found.toarray().tolist() == Y.toarray().tolist()


@given(st.integers(1, 130), st.integers(1, 63), st.integers(0, 5))
def test_the_number_of_a_set_is_its_row_read_in_binary(n_labels, bits, seed):
    chunks = BitChunks(n_labels, bits)
    Y = random_sets(seed, 3, n_labels)
    numbers = chunks.to_integers(Y)
    assert numbers == [int("".join(str(int(bit)) for bit in row), 2) for row in Y.toarray()]
    assert chunks.from_integers(numbers).toarray().tolist() == Y.toarray().tolist()
    assert MixedRadix(chunks.radices).encode(numbers).tolist() == chunks.encode(Y).tolist()


def test_the_largest_of_all_label_sets_has_the_largest_digits():
    chunks = BitChunks(101, 63)
    Y = np.ones((1, 101))
    assert chunks.radices == (2**63, 2**38)
    assert chunks.encode(Y).tolist() == [[2**63 - 1, 2**38 - 1]]
    assert chunks.to_integers(Y) == [2**101 - 1]
    assert chunks.decode(chunks.encode(Y)).nnz == 101


def test_chunks_have_the_sizes_of_the_published_powersets():
    assert BitChunks(20, 4).radices == (16,) * 5
    assert BitChunks(80, 5).radices == (32,) * 16
    assert math.prod(BitChunks(80, 5).radices) == 2**80


@pytest.mark.parametrize(("n_labels", "bits"), [(0, 4), (5, 0), (5, 64), (5, 2.0), (True, 4), (5, True), ("5", 4)])
def test_chunks_that_cannot_be_are_refused(n_labels, bits):
    with pytest.raises(InvalidInput, match="expected a whole number"):
        BitChunks(n_labels, bits)


def test_sets_and_digits_that_do_not_fit_the_chunks_are_refused():
    chunks = BitChunks(5, 2)
    with pytest.raises(InvalidInput, match="Y has 4 labels; expected 5"):
        chunks.encode(np.zeros((1, 4)))
    with pytest.raises(InvalidInput, match="row 0, column 2: the digit is 2; expected a whole number from 0 to 1"):
        chunks.decode([[0, 0, 2]])
    with pytest.raises(InvalidInput, match="from 0 to 31"):
        chunks.from_integers([32])


def test_a_wrong_type_is_also_a_type_error_and_an_error_of_the_toolkit():
    with pytest.raises(WrongType) as caught:
        MixedRadix((2,)).encode([0.5])
    assert isinstance(caught.value, TypeError)
    assert isinstance(caught.value, LongtailError)
