"""Pairs of SciPy files: ``X.trn.npz`` with features and ``Y.trn.npz`` with labels.

Such a file is a zip archive of arrays. The reader adds up their sizes before it allocates anything, refuses Python
objects, and checks the index arrays before SciPy sees them.
"""

from __future__ import annotations

import math
import zipfile
import zlib
from pathlib import Path
from typing import Any, cast

import numpy as np
from scipy import sparse

from longtail.arrays import Array
from longtail.data.corpus import Corpus
from longtail.data.formats.label_names import LabelNames, resolve_label_names, write_label_names
from longtail.data.formats.npy_headers import read_header
from longtail.data.formats.rows import check_width, corpus_from_file
from longtail.errors import DataFormatError, InvalidInput
from longtail.files import PathName, writing
from longtail.memory import MemoryPlan
from longtail.progress import task
from longtail.validation import fault_of_indices, own

_MEMBERS = ("format", "shape", "indptr", "indices", "data")
# The format and the shape are a short word and two numbers.
_SMALL_MEMBER = 4096


def read_scipy(features_path: PathName, labels_path: PathName, *, label_names: LabelNames = None) -> Corpus:
    """Read features and labels saved with `scipy.sparse.save_npz`, as CSR or CSC.

    Parameters
    ----------
    features_path, labels_path : str or path-like
        Matrices with the same number of rows.
    label_names : sequence of str, path-like or None
        See `read_repository`.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> sparse.save_npz(folder / "X.trn.npz", sparse.csr_array([[0.5, 0.0], [0.0, 2.0]]))
    >>> sparse.save_npz(folder / "Y.trn.npz", sparse.csr_array([[1, 0, 1], [0, 0, 0]]))
    >>> corpus = read_scipy(folder / "X.trn.npz", folder / "Y.trn.npz")
    >>> corpus.n_rows, corpus.features.shape[1], corpus.n_labels
    (2, 2, 3)
    """
    features = read_matrix(features_path)
    labels = read_matrix(labels_path)
    if features.shape[0] != labels.shape[0]:
        raise DataFormatError(
            labels_path, None, f"{labels.shape[0]} rows of labels for {features.shape[0]} rows in {features_path}"
        )
    if labels.nnz and not np.isin(labels.data, (0, 1)).all():
        raise DataFormatError(
            labels_path, None, "labels must be 0 or 1, but there are other values; are the two files swapped?"
        )
    names = resolve_label_names(label_names, labels_path, labels.shape[1])
    return corpus_from_file(features_path, features=features, labels=labels, label_names=names)


def read_matrix(path: PathName) -> Any:
    """Read a sparse matrix saved with `scipy.sparse.save_npz`, without executing anything in the file."""
    try:
        with zipfile.ZipFile(path) as archive:
            arrays = _read_members(path, archive)
    except FileNotFoundError:
        raise DataFormatError(path, None, "cannot be opened: no such file") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError) as error:
        raise DataFormatError(path, None, f"not a valid .npz file ({error})") from None
    except (NotImplementedError, RuntimeError) as error:
        raise DataFormatError(path, None, f"not an .npz file as SciPy writes it ({error})") from None
    kind = _kind(path, arrays["format"])
    rows, columns = _shape(path, arrays["shape"])
    major, minor = (rows, columns) if kind == "csr" else (columns, rows)
    _check(path, arrays, major, minor)
    check_width(path, minor)
    build = sparse.csr_array if kind == "csr" else sparse.csc_array
    return own(sparse.csr_array(build((arrays["data"], arrays["indices"], arrays["indptr"]), shape=(rows, columns))))


def _read_members(path: PathName, archive: zipfile.ZipFile) -> dict[str, Array]:
    infos = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
    missing = [name for name in _MEMBERS if name not in infos]
    if missing:
        raise DataFormatError(
            path,
            None,
            f"no array {missing[0]!r}; the arrays are {', '.join(sorted(infos)) or 'none'}. "
            "Expected a CSR or CSC matrix saved with scipy.sparse.save_npz",
        )
    for name in ("format", "shape"):
        if infos[name].file_size > _SMALL_MEMBER:
            raise DataFormatError(path, None, f"the array {name!r} has {infos[name].file_size} bytes; expected a few")
    sizes = {name: _declared_bytes(path, archive, infos[name], name) for name in _MEMBERS}
    MemoryPlan(f"reading {path}", sizes, "The file declares these sizes; is it the right file?").check()
    arrays = {}
    with task(f"reading {Path(path).name}", total=sum(infos[name].compress_size for name in _MEMBERS)) as advance:
        for name in _MEMBERS:
            with archive.open(infos[name]) as stream:
                try:
                    arrays[name] = np.lib.format.read_array(stream, allow_pickle=False)
                except ValueError as error:
                    raise DataFormatError(path, None, f"the array {name!r} is damaged: {error}") from None
            advance(infos[name].compress_size)
    return arrays


def _declared_bytes(path: PathName, archive: zipfile.ZipFile, info: zipfile.ZipInfo, name: str) -> int:
    """The size of an array by its header, which must agree with the archive."""
    with archive.open(info) as stream:
        header = read_header(stream, path, f"the array {name!r} has no valid header")
    if header.dtype.hasobject:
        raise DataFormatError(path, None, f"the array {name!r} contains Python objects, which are never loaded")
    size = math.prod(header.shape, start=header.dtype.itemsize)
    stored = info.file_size - header.n_bytes
    if size != stored:
        raise DataFormatError(path, None, f"the array {name!r} declares {size} bytes, but {stored} are stored")
    return size


def _kind(path: PathName, array: Array) -> str:
    kind = array.item() if array.ndim == 0 else None
    kind = kind.decode("ascii", "replace") if isinstance(kind, bytes) else str(kind)
    if kind not in ("csr", "csc"):
        raise DataFormatError(path, None, f"the matrix is in format {kind!r}; save it as CSR: matrix.tocsr()")
    return kind


def _shape(path: PathName, array: Array) -> tuple[int, int]:
    if array.shape != (2,) or array.dtype.kind not in "iu" or array.min() < 0:
        raise DataFormatError(path, None, f"the array 'shape' is {array!r}; expected two whole numbers")
    return int(array[0]), int(array[1])


def _check(path: PathName, arrays: dict[str, Array], major: int, minor: int) -> None:
    """Check the invariants of a compressed sparse matrix."""
    indptr, indices, data = arrays["indptr"], arrays["indices"], arrays["data"]
    for name, array, kinds in (("indptr", indptr, "iu"), ("indices", indices, "iu"), ("data", data, "biuf")):
        if array.ndim != 1 or array.dtype.kind not in kinds:
            raise DataFormatError(path, None, f"the array {name!r} has shape {array.shape} and dtype {array.dtype}")
    if fault := fault_of_indices(indptr, indices, len(data), major, minor):
        raise DataFormatError(path, None, fault)


def write_scipy(corpus: Corpus, features_path: PathName, labels_path: PathName) -> None:
    """Write features and labels as a pair of CSR files that SciPy can load.

    Label names that are not just the ids go to ``labels.txt`` beside the labels.
    """
    if corpus.features is None:
        raise InvalidInput("SciPy files need features, but the corpus has only texts; vectorise it")
    write_label_names(corpus.label_names, labels_path)
    for matrix, path in ((corpus.features, features_path), (corpus.labels, labels_path)):
        with writing(path) as stream:
            sparse.save_npz(cast(Any, stream), matrix)
