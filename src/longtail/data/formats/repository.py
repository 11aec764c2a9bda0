"""The repository text format: a header ``rows features labels``, then a line ``l1,l2 f:v f:v ...`` per row.

Numbers start at 0. A row without labels starts with a blank. A file ``labels.txt`` beside it names the labels.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from longtail.arrays import Array
from longtail.data.corpus import Corpus
from longtail.data.formats.grouped_file import looks_like_groups
from longtail.data.formats.label_names import LabelNames, resolve_label_names, write_label_names
from longtail.data.formats.rows import check_width
from longtail.data.streams import read_blocks, shown
from longtail.errors import DataFormatError, InvalidInput
from longtail.files import PathName, writing
from longtail.native import kernels
from longtail.parallel import split
from longtail.progress import task
from longtail.validation import own

_HEADER = re.compile(rb"[ \t]*[0-9]{1,18}[ \t]+[0-9]{1,18}[ \t]+[0-9]{1,18}[ \t]*\r?")
# A row can have a million features.
_LINE_LIMIT = 2**28
_ROWS_WRITTEN_AT_ONCE = 2000
_PART_BYTES = 2**25  # of a file that is read in parts


def read_repository(path: PathName, *, label_names: LabelNames = None, header: bool = True) -> Corpus:
    """Read a file in the repository text format, plain or gzipped.

    Parameters
    ----------
    path : str or path-like
    label_names : sequence of str, path-like or None
        Names of the labels, or a file with one name per line. The default is ``labels.txt`` beside the file if it
        exists, else the ids of the labels.
    header : bool
        Whether the file starts with ``rows features labels``; without it, the sizes follow from the largest ids.

    Returns
    -------
    corpus : Corpus
        With features; the indices are sorted, the values are 32-bit floats.

    Raises
    ------
    DataFormatError
        If the file contradicts the format or its header.

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
    first_line = b""
    with closing(read_blocks(path)) as blocks:
        for block in blocks:
            first_line = first_line or block.partition(b"\n")[0]
            if not parser.feed(block):
                break
    arrays = parser.finish()
    if arrays is None:
        line, reason = parser.error
        raise _fault(path, line, reason, first_line if header else b"")
    rows, n_features, n_labels = parser.shape
    indptr, indices, values, label_indptr, label_indices = arrays
    check_width(path, n_features)
    names = resolve_label_names(label_names, path, n_labels, at_least=not header)
    features = own(sparse.csr_array((values, indices, indptr), shape=(rows, n_features)))
    ones = np.ones(len(label_indices), dtype=np.float32)
    labels = own(sparse.csr_array((ones, label_indices, label_indptr), shape=(rows, len(names))))
    return Corpus(labels=labels, label_names=names, features=features)


def iter_repository(
    path: PathName, *, label_names: LabelNames = None, header: bool = True
) -> Iterator[tuple[Any, Any, Sequence[str]]]:
    """Yield the features, the labels and the names of all labels of some rows after another; see `read_repository`.

    The file must have a header, since the sizes must be known from the start.
    """
    if not header:
        raise InvalidInput(f"{path}: a file without a header cannot be read in parts; write one, rows features labels")
    with closing(read_blocks(path)) as blocks:
        carry = b""
        while b"\n" not in carry and (block := next(blocks, b"")):
            carry += block
        first, _, carry = carry.partition(b"\n")
        if not _HEADER.fullmatch(first):
            raise _fault(path, 1, "", first or b" ")
        promised, n_features, n_labels = map(int, first.split())
        check_width(path, n_features)
        names = resolve_label_names(label_names, path, n_labels)
        line, n_rows, ended = 1, 0, False
        while not ended:
            pieces, size = [carry], len(carry)
            while size < _PART_BYTES and (block := next(blocks, b"")):
                pieces.append(block)
                size += len(block)
            ended = size < _PART_BYTES
            content, _, carry = b"".join(pieces).rpartition(b"\n") if not ended else (b"".join(pieces), b"", b"")
            if not content:
                break
            if not ended and content.endswith(b"\n"):
                raise DataFormatError(path, line + content.count(b"\n") + 1, "an empty line between rows")
            features, labels = _parse(path, content, line, (n_features, n_labels))
            line += content.count(b"\n") + 1
            n_rows += features.shape[0]
            if n_rows > promised:
                raise DataFormatError(path, line, f"the header promises {promised} rows, but the file has more")
            yield features, labels, names
    if n_rows < promised:
        raise DataFormatError(path, line, f"the header promises {promised} rows, but the file ends after {n_rows}")


def _parse(path: PathName, content: bytes, line: int, widths: tuple[int, int]) -> tuple[Any, Any]:
    """The features and labels of some whole lines; `line` is the number of the line before them."""
    parser = kernels.RepositoryText(False, _LINE_LIMIT)
    parser.feed(content)
    arrays = parser.finish()
    if arrays is None:
        at, reason = parser.error
        raise DataFormatError(path, line + at, reason)
    n_rows, *found = parser.shape
    for what, width, seen in zip(("feature", "label"), widths, found, strict=True):
        if seen > width:
            raise DataFormatError(path, None, f"{what} {seen - 1}, but the header promises {width} {what}s")
    indptr, indices, values, label_indptr, label_indices = arrays
    ones = np.ones(len(label_indices), dtype=np.float32)
    return (
        own(sparse.csr_array((values, indices, indptr), shape=(n_rows, widths[0]))),
        own(sparse.csr_array((ones, label_indices, label_indptr), shape=(n_rows, widths[1]))),
    )


def _fault(path: PathName, line: int | None, reason: str, header: bytes) -> DataFormatError:
    if line == 1 and header and not _HEADER.fullmatch(header):
        return DataFormatError(
            path,
            line,
            f"expected the header, three whole numbers 'rows features labels', but found {shown(header)}",
            code="no_header",
            advice="if the file has no header, read it with header=False",
        )
    is_groups = Path(path).is_file() and looks_like_groups(path)
    return DataFormatError(path, line, reason, code="groups_file" if is_groups else None)


def write_repository(corpus: Corpus, path: PathName) -> None:
    """Write features and labels in the repository text format, gzipped if the name ends in ``.gz``.

    Label names that are not just the ids go to ``labels.txt`` beside it; if a different ``labels.txt`` exists, nothing
    is written. The format has no place for texts, groups and row names.
    """
    if corpus.features is None:
        raise InvalidInput("the repository text format needs features, but the corpus has only texts; vectorise it")
    write_label_names(corpus.label_names, path)
    rows = corpus.n_rows
    with writing(path) as stream, task(f"writing {Path(path).name}", total=rows) as advance:
        stream.write(f"{rows} {corpus.features.shape[1]} {corpus.n_labels}\n".encode())
        for chosen in split(rows, _ROWS_WRITTEN_AT_ONCE):
            stream.write(_format_rows(corpus.labels[chosen], corpus.features[chosen]))
            advance(chosen.stop - chosen.start)


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
    """The shortest decimals that give the same numbers again; each distinct number is formatted once."""
    bits = numbers.view(f"u{numbers.itemsize}")  # as numbers, 0 and -0 are equal
    distinct, place = np.unique(bits, return_inverse=True)
    texts = [text.removesuffix(b".0") for text in distinct.view(numbers.dtype).astype("S").tolist()]
    return np.array(texts, dtype="S")[place].tolist() if texts else []
