"""Pairs of SciPy files: sound ones come back, hostile ones are refused before anything is allocated."""

from __future__ import annotations

import io
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from scipy import sparse

from longtail.data import Corpus, read_scipy, write_scipy
from longtail.data.formats.scipy_files import read_matrix
from longtail.errors import DataFormatError, InvalidInput, NotEnoughMemory
from tests.data.corpora import assert_same_corpus, feature_corpora

MATRIX = sparse.csr_array(np.array([[0.5, 0, 2], [0, 0, 0]], dtype=np.float32))


def npy(array):
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.asarray(array), allow_pickle=True)
    return buffer.getvalue()


@pytest.mark.parametrize("kind", ["csr", "csc"])
def test_a_small_file_that_claims_a_huge_matrix_is_refused(store, kind):
    """Such a width takes no bytes in the file; counting its columns, or turning it around, would take terabytes."""
    shape = (2, 2**40) if kind == "csr" else (2**40, 2)
    path = store(
        format=np.array(kind.encode()), shape=shape, indptr=np.array([0, 1, 2]), indices=np.array([0, 1]), data=[1.0, 2]
    )
    assert path.stat().st_size < 2000
    with pytest.raises(NotEnoughMemory, match=r"counting 1099511627776 columns of .*npz needs 8\.0 TiB"):
        read_matrix(path)


@pytest.fixture
def store(tmp_path):
    """Writes a file as SciPy would, with some arrays replaced (bytes go in as they are) or left out (None)."""

    def write(**replaced):
        arrays = {"format": b"csr", "shape": MATRIX.shape, "indptr": MATRIX.indptr, "indices": MATRIX.indices}
        members = {name: npy(array) for name, array in {**arrays, "data": MATRIX.data}.items()}
        for name, content in replaced.items():
            members[name] = content if isinstance(content, bytes | None) else npy(content)
        path = tmp_path / "X.npz"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in members.items():
                if content is not None:
                    archive.writestr(f"{name}.npy", content)
        return path

    return write


def test_what_the_fixture_writes_is_sound(store):
    assert (read_matrix(store()) != MATRIX).nnz == 0


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_array, sparse.csr_matrix, sparse.csc_matrix])
@pytest.mark.parametrize("compressed", [True, False])
def test_what_scipy_saves_is_read(tmp_path, kind, compressed):
    sparse.save_npz(tmp_path / "X.npz", kind(MATRIX), compressed=compressed)
    assert read_matrix(tmp_path / "X.npz").toarray().tolist() == MATRIX.toarray().tolist()


def header_only(declared):
    """An array that declares a shape and stores nothing."""
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {"descr": "<f4", "fortran_order": False, "shape": declared})
    return buffer.getvalue()


_DECLARED = "{{'descr': {}, 'fortran_order': False, 'shape': {}}}"


def with_header(text):
    """An array with any text for its header."""
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode("latin1")


FAULTS = {
    "objects": ({"data": np.array([print, None], dtype=object)}, "'data' contains Python objects"),
    "missing": ({"indptr": None}, "no array 'indptr'; the arrays are data, format, indices, shape"),
    "coo": ({"format": npy(b"coo")}, "format 'coo'; save it as CSR"),
    "format is a list": ({"format": [1, 2]}, "format 'None'"),
    "negative shape": ({"shape": [-2, 3]}, "expected two whole numbers"),
    "three sizes": ({"shape": [2, 3, 4]}, "expected two whole numbers"),
    "more rows": ({"shape": [3, 3]}, "the row pointers of the sparse matrix do not fit"),
    "fewer columns": ({"shape": [2, 2]}, r"has an index outside 0\.\.1"),
    "negative index": ({"indices": np.array([0, -1])}, "has an index outside"),
    "pointers fall": ({"indptr": np.array([0, 3, 2])}, "the row pointers of the sparse matrix do not fit"),
    "pointers overrun": ({"indptr": np.array([0, 2, 9])}, "the row pointers of the sparse matrix do not fit"),
    "empty pointers": ({"indptr": np.zeros(0, dtype=np.int32)}, "the row pointers of the sparse matrix do not fit"),
    "pointers are floats": ({"indptr": np.array([0.0, 2, 2])}, "'indptr' has shape"),
    "complex": ({"data": np.array([1j, 2])}, "'data' has shape"),
    "dense data": ({"data": np.ones((1, 2))}, "'data' has shape"),
    "declares too much": ({"data": header_only((10**15,))}, "declares 4000000000000000 bytes, but 0 are stored"),
    "overflow": ({"data": header_only((2**62, 2**62))}, "but 0 are stored"),
    "no header": ({"data": b"nonsense"}, "'data' has no valid header"),
    "header is open": ({"data": with_header("(((")}, "'data' has no valid header"),
    "header is indented": ({"data": with_header("  1\n 2")}, "'data' has no valid header"),
    "header has a list for a key": ({"data": with_header("{[]: 1}")}, "'data' has no valid header"),
    "header is nested": ({"data": with_header("-" * 900 + "1")}, "'data' has no valid header"),
    "header is long": ({"data": with_header("-" * 5000 + "1")}, "'data' has no valid header"),
    "half a kind": ({"data": with_header(_DECLARED.format("('<f8',)", "(2,)"))}, "'data' has no valid header"),
    "truth for a length": ({"data": with_header(_DECLARED.format("'<f8'", "(True,)"))}, "the shape is"),
    "huge length": ({"data": with_header(_DECLARED.format("'<f8'", f"(0, {10**30})"))}, "the shape is"),
    "long shape": ({"shape": np.zeros(10_000, dtype=np.int64)}, "'shape' has 80128 bytes; expected a few"),
    "infinite": ({"data": np.array([np.inf, 1.0])}, None),
}


@pytest.mark.parametrize("name", [name for name, (_, reason) in FAULTS.items() if reason])
def test_hostile_files_are_refused(store, name):
    replaced, reason = FAULTS[name]
    with pytest.raises(DataFormatError, match=reason):
        read_matrix(store(**replaced))


def test_a_bomb_is_refused_before_it_unfolds(store, monkeypatch):
    path = store(data=np.ones(5_000_000, dtype=np.float32))
    assert path.stat().st_size < 100_000
    monkeypatch.setenv("LONGTAIL_MEMORY", "10M")
    with pytest.raises(NotEnoughMemory, match=r"reading .*npz needs 19\.1 MiB"):
        read_matrix(path)


@pytest.mark.parametrize("content", [b"", b"PK", b"not a zip", b"PK\x03\x04" + bytes(100)])
def test_what_is_no_zip_is_refused(tmp_path, content):
    (tmp_path / "X.npz").write_bytes(content)
    with pytest.raises(DataFormatError, match=r"not a valid \.npz file"):
        read_matrix(tmp_path / "X.npz")


def test_every_damaged_byte_is_noticed_or_harmless(store):
    path = store()
    sound = path.read_bytes()
    for place in range(len(sound)):
        path.write_bytes(sound[:place] + bytes([sound[place] ^ 0x15]) + sound[place + 1 :])
        try:
            matrix = read_matrix(path)
        except DataFormatError:
            continue
        assert matrix.toarray().tolist() == MATRIX.toarray().tolist()


def test_a_missing_file_is_an_error(tmp_path):
    with pytest.raises(DataFormatError, match="no such file"):
        read_matrix(tmp_path / "absent.npz")


def test_the_pair_must_fit_and_labels_be_zero_or_one(tmp_path):
    sparse.save_npz(tmp_path / "X.npz", MATRIX)
    sparse.save_npz(tmp_path / "Y.npz", sparse.csr_array(np.ones((3, 2))))
    with pytest.raises(DataFormatError, match=r"3 rows of labels for 2 rows in .*X\.npz"):
        read_scipy(tmp_path / "X.npz", tmp_path / "Y.npz")
    with pytest.raises(DataFormatError, match="labels must be 0 or 1"):
        read_scipy(tmp_path / "X.npz", tmp_path / "X.npz")


def test_values_that_are_not_finite_are_the_fault_of_the_file(store, tmp_path):
    sparse.save_npz(tmp_path / "Y.npz", sparse.csr_array(np.ones((2, 1))))
    with pytest.raises(DataFormatError, match=r"X\.npz: features contains NaN or infinity"):
        read_scipy(store(**FAULTS["infinite"][0]), tmp_path / "Y.npz")


@given(feature_corpora())
def test_a_corpus_comes_back_bit_for_bit(corpus):
    with tempfile.TemporaryDirectory() as folder:
        pair = Path(folder) / "X.trn.npz", Path(folder) / "Y.trn.npz"
        write_scipy(corpus, *pair)
        assert_same_corpus(corpus, read_scipy(*pair))
        assert (sparse.load_npz(pair[0]) != corpus.features).nnz == 0


def test_a_corpus_of_texts_has_no_place_in_the_format(tmp_path):
    with pytest.raises(InvalidInput, match="only texts"):
        write_scipy(Corpus.from_lists(["a"], [["x"]]), tmp_path / "X.npz", tmp_path / "Y.npz")
