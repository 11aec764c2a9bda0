"""The repository text format: a header ``rows features labels``, then a line ``l1,l2 f:v f:v ...`` per row.

Numbers start at 0. A row without labels starts with a blank. Names of labels stand beside it in ``labels.txt``.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from longtail.arrays import Array
from longtail.data.corpus import Corpus
from longtail.data.streams import PathName, read_blocks, read_names, writing
from longtail.errors import DataFormatError, InvalidInput
from longtail.memory import MemoryPlan
from longtail.native import kernels
from longtail.parallel import split
from longtail.progress import task

_NAMES_FILE = "labels.txt"
# A row may well have a million features.
_LINE_LIMIT = 2**28
_ROWS_WRITTEN_AT_ONCE = 2000
# A short string and its place in a tuple.
_NAME_BYTES = 64

LabelNames = Sequence[str] | PathName | None


def read_repository(path: PathName, *, label_names: LabelNames = None, header: bool = True) -> Corpus:
    """Read a file in the repository text format, plain or gzipped.

    Parameters
    ----------
    path : str or path-like
    label_names : sequence of str, path-like or None
        Names of the labels, or a file with one name per line. None means ``labels.txt`` beside the file where
        there is one, else the numbers of the labels.
    header : bool
        Whether the file starts with ``rows features labels``; without it the sizes are those of what is found.

    Returns
    -------
    corpus : Corpus
        With features; indices are sorted, values are 32-bit floats.

    Raises
    ------
    DataFormatError
        With the line and the reason, if anything contradicts the format or the header.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "train.txt"
    >>> _ = path.write_text("2 3 4\\n0,3 0:0.5 2:1\\n 1:2\\n")
    >>> corpus = read_repository(path)
    >>> corpus.features.toarray()
    array([[0.5, 0. , 1. ],
           [0. , 2. , 0. ]], dtype=float32)
    >>> corpus.labels.toarray().astype(int)
    array([[1, 0, 0, 1],
           [0, 0, 0, 0]])
    """
    parser = kernels.RepositoryText(header, _LINE_LIMIT)
    with closing(read_blocks(path)) as blocks:
        for block in blocks:
            if not parser.feed(block):
                break
    arrays = parser.finish()
    if arrays is None:
        raise DataFormatError(path, *parser.error)
    rows, n_features, n_labels = parser.shape
    indptr, indices, values, label_indptr, label_indices = arrays
    check_width(path, n_features)
    names = resolve_label_names(label_names, path, n_labels, at_least=not header)
    features = sparse.csr_array((values, indices, indptr), shape=(rows, n_features))
    ones = np.ones(len(label_indices), dtype=np.float32)
    labels = sparse.csr_array((ones, label_indices, label_indptr), shape=(rows, len(names)))
    return Corpus(labels=labels, label_names=names, features=features)


def check_width(path: PathName, width: int) -> None:
    """Raise `NotEnoughMemory` where a file claims so many columns, or rows, that they cannot even be counted.

    A sparse matrix takes no bytes for those that are empty, so that a small file can claim any number of them.
    """
    plan = {"counts": 8 * width}
    MemoryPlan(f"counting {width} columns of {path}", plan, "Is the file what you think it is?").check()


def resolve_label_names(label_names: LabelNames, path: PathName, count: int, at_least: bool = False) -> Sequence[str]:
    """Names for `count` labels (or more, where `at_least`) of a file: given, from a file, or the numbers."""
    origin = "label_names"
    if label_names is None:
        beside = Path(path).parent / _NAMES_FILE
        if not beside.is_file():
            plan = MemoryPlan(f"naming the {count} labels of {path}", {"names": count * _NAME_BYTES})
            plan.check()
            return [str(number) for number in range(count)]
        label_names = beside
    if isinstance(label_names, str) or not isinstance(label_names, Sequence):
        origin = str(label_names)
        label_names = read_names(label_names)
    if len(label_names) < count or (len(label_names) != count and not at_least):
        raise DataFormatError(
            path, None, f"{count} labels, but {origin} has {len(label_names)} names; give the right ones as label_names"
        )
    return label_names


def write_repository(corpus: Corpus, path: PathName) -> None:
    """Write features and labels in the repository text format, gzipped if the name ends in ``.gz``.

    Names of labels that are not just their numbers go to ``labels.txt`` beside it; if another ``labels.txt``
    is there already, nothing is written. Texts, groups and row names have no place in this format.
    """
    if corpus.features is None:
        raise InvalidInput("the repository text format holds features and the corpus has only texts; vectorise it")
    write_label_names(corpus.label_names, path)
    rows = corpus.n_rows
    with writing(path) as stream, task(f"writing {Path(path).name}", total=rows) as advance:
        stream.write(f"{rows} {corpus.features.shape[1]} {corpus.n_labels}\n".encode())
        for chosen in split(rows, _ROWS_WRITTEN_AT_ONCE):
            stream.write(_format_rows(corpus.labels[chosen], corpus.features[chosen]))
            advance(chosen.stop - chosen.start)


def write_label_names(label_names: Sequence[str], path: PathName) -> None:
    """Put names that are not just numbers into ``labels.txt`` beside `path`; refuse if it names other labels."""
    beside = Path(path).parent / _NAMES_FILE
    names = list(label_names)
    if beside.exists():
        if read_names(beside) != names:
            raise InvalidInput(f"{beside} names other labels than the corpus; write to another directory")
    elif names != [str(number) for number in range(len(names))]:
        for name in names:
            if "\n" in name or "\r" in name:
                raise InvalidInput(f"the label {name!r} holds a line end and cannot stand on a line of {_NAMES_FILE}")
        with writing(beside) as stream:
            stream.writelines(f"{name}\n".encode() for name in names)


def _format_rows(labels: Any, features: Any) -> bytes:
    label_texts = _as_texts(labels.indices)
    entries = list(map(b":".join, zip(_as_texts(features.indices), _as_texts(features.data), strict=True)))
    lines = [
        b",".join(label_texts[first:last]) + b" " + b" ".join(entries[start:stop])
        for first, last, start, stop in zip(
            labels.indptr[:-1], labels.indptr[1:], features.indptr[:-1], features.indptr[1:], strict=True
        )
    ]
    return b"\n".join([*lines, b""])


def _as_texts(numbers: Array) -> list[bytes]:
    """The shortest digits that give the same numbers again; each number that occurs is put into digits once."""
    bits = numbers.view(f"u{numbers.itemsize}")  # as numbers, 0 and -0 would be the same
    distinct, place = np.unique(bits, return_inverse=True)
    texts = [text.removesuffix(b".0") for text in distinct.view(numbers.dtype).astype("S").tolist()]
    return np.array(texts, dtype="S")[place].tolist() if texts else []
