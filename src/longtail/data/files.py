"""Read and write data files of any format; the name of the file chooses the format."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from longtail.data.corpus import Corpus
from longtail.data.formats.arff import read_arff
from longtail.data.formats.delimited import read_delimited, write_delimited
from longtail.data.formats.jsonl import read_jsonl, write_jsonl
from longtail.data.formats.repository import read_repository, write_repository
from longtail.data.formats.scipy_files import read_scipy, write_scipy
from longtail.data.streams import suffix_of
from longtail.errors import DataFormatError, InvalidInput
from longtail.files import PathName

Result = TypeVar("Result")

_EXTENSIONS = {
    ".txt": "repository",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "delimited",
    ".tsv": "delimited",
    ".tab": "delimited",
    ".npz": "scipy",
    ".arff": "arff",
}
# How the names of the file of features and the file of labels start.
_PARTNERS = (("X", "Y"), ("features", "labels"))


def read_corpus(path: PathName, format: str | None = None, **options: Any) -> Corpus:
    """Read a corpus from a file of any known format.

    Parameters
    ----------
    path : str or path-like
        For a SciPy pair, the file of the features.
    format : {"repository", "jsonl", "delimited", "scipy", "arff"} or None
        By default the extension decides: ``.txt``, ``.jsonl``, ``.csv`` or ``.tsv``, ``.npz``, ``.arff``; all but
        ``.npz`` also with ``.gz``.
    **options
        Passed to the reader of the format.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "notes.jsonl"
    >>> _ = path.write_text('{"text": "a red apple", "labels": ["fruit"]}')
    >>> read_corpus(path).label_names
    ('fruit',)
    """
    readers: dict[str, Callable[..., Corpus]] = {
        "repository": read_repository,
        "jsonl": read_jsonl,
        "delimited": read_delimited,
        "scipy": _read_pair,
        "arff": read_arff,
    }
    return _choose(readers, path, format)(path, **options)


def write_corpus(corpus: Corpus, path: PathName, format: str | None = None, **options: Any) -> None:
    """Write a corpus to a file; a failed write leaves no partial file.

    Parameters
    ----------
    corpus : Corpus
        With texts for ``.jsonl``, ``.csv`` and ``.tsv``, with features for ``.txt`` and ``.npz``.
    path : str or path-like
        Gzipped if it ends in ``.gz``. For a SciPy pair, the file of the features.
    format : {"repository", "jsonl", "delimited", "scipy"} or None
        By default the extension decides.
    **options
        Passed to the writer of the format.
    """
    writers: dict[str, Callable[..., None]] = {
        "repository": write_repository,
        "jsonl": write_jsonl,
        "delimited": write_delimited,
        "scipy": _write_pair,
    }
    _choose(writers, path, format)(corpus, path, **options)


def format_of(path: PathName) -> str | None:
    """The format that belongs to the extension of a file, or None.

    >>> format_of("notes.jsonl.gz")
    'jsonl'
    """
    return _EXTENSIONS.get(suffix_of(path))


def _choose(known: dict[str, Callable[..., Result]], path: PathName, format: str | None) -> Callable[..., Result]:
    chosen = format_of(path) if format is None else format
    if chosen is None or chosen not in known:
        extensions = ", ".join(f"{end} ({name})" for end, name in _EXTENSIONS.items() if name in known)
        what = f"the extension {suffix_of(path)!r} of {path}" if format is None else f"the format {format!r}"
        raise InvalidInput(
            f"{what} is unknown; the known extensions are {extensions}. Or set format= (--format on the command line)"
        )
    return known[chosen]


def _read_pair(path: PathName, labels_path: PathName | None = None, **options: Any) -> Corpus:
    partner = _partner(path) if labels_path is None else Path(labels_path)
    if labels_path is None and not partner.is_file():
        raise DataFormatError(
            path, None, f"the labels file {partner.name} is missing; put it beside this file, or give labels_path"
        )
    return read_scipy(path, partner, **options)


def _write_pair(corpus: Corpus, path: PathName, labels_path: PathName | None = None) -> None:
    write_scipy(corpus, path, _partner(path) if labels_path is None else labels_path)


def _partner(path: PathName) -> Path:
    name = Path(path).name
    for features, labels in _PARTNERS:
        if name.startswith(features):
            return Path(path).with_name(labels + name.removeprefix(features))
    raise InvalidInput(
        f"the name of {path} does not start with X or features, so its labels file is unknown; rename both files "
        f"(X... and Y..., or features... and labels...), or give labels_path"
    )
