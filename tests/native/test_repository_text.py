"""The parser of the repository text format: kernel and twin agree on any bytes, however the blocks are split."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from longtail import native

LIMIT = 2**28


def parse(kernels, data, cuts=(), header=True, line_limit=LIMIT):
    parser = kernels.RepositoryText(header, line_limit)
    edges = [0, *sorted({min(cut, len(data)) for cut in cuts}), len(data)]
    for start, stop in pairwise(edges):
        if not parser.feed(data[start:stop]):
            break
    arrays = parser.finish()
    return (None, parser.error, None) if arrays is None else (arrays, parser.error, parser.shape)


def assert_same(ours, theirs):
    assert ours[1:] == theirs[1:]
    assert (ours[0] is None) == (theirs[0] is None)
    if ours[0] is not None:
        for one, other in zip(ours[0], theirs[0], strict=True):
            assert one.dtype == other.dtype
            assert one.tobytes() == other.tobytes()


def by_row(arrays):
    indptr, indices, values, label_indptr, label_indices = arrays
    X = [dict(zip(indices[a:b].tolist(), values[a:b].tolist(), strict=True)) for a, b in pairwise(indptr)]
    Y = [label_indices[a:b].tolist() for a, b in pairwise(label_indptr)]
    return X, Y


def test_rows_labels_and_values_are_read(kernels):
    arrays, error, shape = parse(kernels, b"3 4 5\n4,0 3:0.5 0:-2\n 1:1e-2\n2\n")
    assert error is None
    assert shape == (3, 4, 5)
    features, labels = by_row(arrays)
    assert features == [{0: -2.0, 3: 0.5}, {1: float(np.float32(0.01))}, {}]
    assert labels == [[0, 4], [], [2]]
    assert [a.dtype for a in arrays] == [np.int32, np.int32, np.float32, np.int32, np.int32]


def test_columns_beyond_32_bits_make_64_bit_indices(kernels):
    arrays, _, shape = parse(kernels, b"1 3000000000 1\n0 7:1 2999999999:2\n")
    assert arrays[0].dtype == arrays[1].dtype == np.int64
    assert arrays[3].dtype == np.int32
    assert arrays[1].tolist() == [7, 2999999999]
    arrays, _, shape = parse(kernels, b"0 7:1 2999999999:2\n", header=False)
    assert shape == (1, 3000000000, 1)
    assert arrays[1].tolist() == [7, 2999999999]


@pytest.mark.parametrize(
    "data",
    [
        b"2 3 2\r\n0 1:1\r\n1 2:3\r\n",
        b"2 3 2 \n0 1:1 \n1\t2:3\t \n",
        b"2 3 2\n0 1:1\n1 2:3",
        b"2 3 2\n0 1:1\n1  \t 2:3\n\n \n\r\n\n",
        b"\t2  3\t2\n0 1:1\n1 2:+3.\n",
        b"2 3 2\n000 01:.1e1\n1 2:0000000000000000000000000000000000003\n",
    ],
)
def test_line_ends_and_blanks_do_not_matter(kernels, data):
    arrays, error, _ = parse(kernels, data)
    assert error is None
    assert by_row(arrays) == ([{1: 1.0}, {2: 3.0}], [[0], [1]])


FAULTS = [
    (b"", 1, "the file is empty"),
    (b"\n0 1:1\n", 1, "expected the header"),
    (b"0 1:1\n", 1, "read it with header=False"),
    (b"1 2\n0 1:1\n", 1, "found '1 2'"),
    (b"1 2 3 4\n", 1, "expected the header"),
    (b"-1 2 3\n", 1, "expected the header"),
    (b"1 2 99999999999999999999\n", 1, "expected the header"),
    (b"\xef\xbb\xbf1 2 3\n0 1:1\n", 1, r"\xef\xbb\xbf1 2 3"),
    (b"3 3 3\n0 1:1\n", 2, "promises 3 rows, but the file ends after 1"),
    (b"3 3 3\n0 1:1\n\n\n", 4, "promises 3 rows, but the file ends after 1"),
    (b"1 3 3\n0 1:1\n0 1:1\n", 3, "promises 1 rows, but there are more"),
    (b"2 3 3\n0 1:1\n\n0 1:1\n", 3, "an empty line between rows"),
    (b"1 3 3\n3 1:1\n", 2, "label 3 is too large: the header promises 3 labels"),
    (b"1 3 3\n0 3:1\n", 2, "feature 3 is too large: the header promises 3 features"),
    (b"1 3 3\n-1 1:1\n", 2, "label '-1' is negative"),
    (b"1 3 3\n0 -1:1\n", 2, "feature '-1' is negative"),
    (b"1 3 3\n1.0 1:1\n", 2, "label '1.0' is not a whole number"),
    (b"1 3 3\n0,,1 1:1\n", 2, "label '' is not a whole number"),
    (b"1 3 3\n0, 1:1\n", 2, "label '' is not a whole number"),
    (b"1 3 3\n0 1:1 x:1\n", 2, "feature 'x' is not a whole number"),
    (b"1 3 3\n0 1:1 \xff:1\n", 2, r"feature '\xff' is not a whole number"),
    (b"1 3 3\n0:1\n", 2, "a row without labels starts with a blank"),
    (b"1 3 3\n0 1\n", 2, "feature '1' has no colon"),
    (b"1 3 3\n0 1:\n", 2, "value '' of feature 1 is not a finite number"),
    (b"1 3 3\n0 1:1:1\n", 2, "value '1:1' of feature 1 is not a finite number"),
    (b"1 3 3\n0 1:nan\n", 2, "value 'nan' of feature 1 is not a finite number"),
    (b"1 3 3\n0 1:-inf\n", 2, "value '-inf' of feature 1 is not a finite number"),
    (b"1 3 3\n0 1:0x1\n", 2, "value '0x1' of feature 1 is not a finite number"),
    (b"1 3 3\n0 1:1_0\n", 2, "value '1_0' of feature 1 is not a finite number"),
    (b"1 3 3\n0 1:1e\n", 2, "value '1e' of feature 1 is not a finite number"),
    (b"1 3 3\n0 1:1e39\n", 2, "value '1e39' of feature 1 is too large for 32-bit floats"),
    (b"1 3 3\n0 1:1e99999999999999999999\n", 2, "too large for 32-bit floats"),
    (b"1 3 3\n0 99999999999999999999:1\n", 2, "feature '99999999999999999999' is too large"),
    (b"1 3 3\n0 1:1 2:1 1:1\n", 2, "feature 1 is there twice"),
    (b"1 3 3\n2,0,2 1:1\n", 2, "label 2 is there twice"),
    (b"1 3 3\n0 1:1\x002:1\n", 2, r"value '1\x002:1' of feature 1"),
    (b"1 3 3\n" + b"7" * 60 + b" 1:1\n", 2, "label '" + "7" * 40 + "...' is too large"),
]


@pytest.mark.parametrize(("data", "line", "reason"), FAULTS, ids=[str(i) for i in range(len(FAULTS))])
def test_faults_name_the_line_and_the_reason(kernels, data, line, reason):
    arrays, error, _ = parse(kernels, data)
    assert arrays is None
    assert error[0] == line
    assert reason in error[1]


def test_a_line_may_not_outgrow_its_limit(kernels):
    data = b"1 3 3\n0 1:1\n"
    assert parse(kernels, data, line_limit=5)[1] is None
    for cuts in ([], [7, 9], range(20)):
        assert parse(kernels, data, cuts, line_limit=4)[1] == (1, "the line is longer than 4 bytes")


def test_without_a_header_the_sizes_are_those_of_what_is_found(kernels):
    arrays, error, shape = parse(kernels, b"0,7 3:1\n \n 9:1\n\n\n", header=False)
    assert error is None
    assert shape == (3, 10, 8)
    assert arrays[0].tolist() == [0, 1, 1, 2]


@given(st.floats(width=32, allow_nan=False, allow_infinity=False) | st.floats(-1e38, 1e38), st.integers(1, 25))
@example(1e-45, 17)
@example(3.4028235677973366e38, 17)
@example(9007199254740993.0, 17)
def test_values_round_as_the_interpreter_rounds_them(value, digits):
    for written in (repr(value), f"{value:.{digits}g}", f"{value:.{digits}f}"):
        results = [parse(k, f"0:1 0:{written}\n".encode()[3:], header=False) for k in both_forms()]
        with np.errstate(over="ignore"):
            expected = np.float32(float(written))
        for arrays, error, _ in results:
            if np.isfinite(expected):
                assert arrays[2].tobytes() == expected.tobytes(), written
            else:
                assert "too large for 32-bit floats" in error[1]


def both_forms():
    return [native.twins, native.kernels] if native.is_native() else [native.twins]


@st.composite
def repository_files(draw):
    """A valid file, usually with a few bytes replaced, dropped or added."""
    D, L = draw(st.integers(1, 12)), draw(st.integers(1, 12))
    numbers = st.sampled_from(["0", "1", "-2.5", "1e-3", ".5", "7.", "0.1234567890123456789", "1e38", "123456789.25"])
    lines = []
    for _ in range(draw(st.integers(0, 5))):
        labels = draw(st.lists(st.integers(0, L - 1), unique=True, max_size=4))
        features = draw(st.lists(st.integers(0, D - 1), unique=True, max_size=6))
        fields = [",".join(map(str, labels)), *(f"{index}:{draw(numbers)}" for index in features)]
        lines.append(" ".join(fields) if labels or features else " ")
    text = bytearray("\n".join([f"{len(lines)} {D} {L}", *lines, ""]).encode())
    for _ in range(draw(st.integers(0, 4))):
        place = draw(st.integers(0, len(text)))
        text[place : place + draw(st.integers(0, 2))] = draw(
            st.sampled_from([b"", b" ", b"\t", b"\n", b"\r\n", b":", b",", b"-", b".", b"e", b"9", b"\x00", b"\xff"])
        )
    return bytes(text)


@pytest.mark.skipif(not native.is_native(), reason="the native kernels are not built here")
@given(repository_files(), st.lists(st.integers(0, 200), max_size=5), st.booleans(), st.sampled_from([LIMIT, 20]))
def test_both_forms_agree_on_nearly_sound_files_whatever_the_cuts(data, cuts, header, line_limit):
    whole = parse(native.twins, data, (), header, line_limit)
    assert_same(parse(native.kernels, data, (), header, line_limit), whole)
    assert_same(parse(native.kernels, data, cuts, header, line_limit), whole)
    assert_same(parse(native.twins, data, cuts, header, line_limit), whole)


@pytest.mark.skipif(not native.is_native(), reason="the native kernels are not built here")
@given(st.binary(max_size=60), st.lists(st.integers(0, 60), max_size=4), st.booleans())
def test_both_forms_agree_on_any_bytes(noise, cuts, header):
    for data in (noise, b"1 9 9\n" + noise, b"1 9 9\n1 " + noise):
        whole = parse(native.twins, data, (), header)
        assert_same(parse(native.kernels, data, cuts, header), whole)
