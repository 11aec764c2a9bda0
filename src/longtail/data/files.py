"""Read and write data files of any format; the name of the file chooses the format."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from longtail.data.corpus import Corpus
from longtail.data.formats.arff import read_arff
from longtail.data.formats.arrow import read_arrow
from longtail.data.formats.delimited import doubt_separator, read_delimited, write_delimited
from longtail.data.formats.excel import read_excel
from longtail.data.formats.jsonl import read_jsonl, write_jsonl
from longtail.data.formats.repository import read_repository, write_repository
from longtail.data.formats.rows import RowCollector
from longtail.data.formats.scipy_files import read_scipy, write_scipy
from longtail.data.merging import check_merge_by, merge_records
from longtail.data.sources import Data, known_format, records_of, sources_of
from longtail.errors import DataFormatError, InvalidInput
from longtail.files import PathName

# How the names of the file of features and the file of labels start.
_PARTNERS = (("X", "Y"), ("features", "labels"))


def read_corpus(data: Data, format: str | None = None, *, merge_by: str | None = None, **options: Any) -> Corpus:
    """Read a corpus from a file of any known format, or from several files of texts.

    Parameters
    ----------
    data : str, path-like, Source, or a sequence of them
        For a SciPy pair, the file of the features. Several files can have different formats. Their rows keep their ids
        if all rows have one and no id is in two files.
    format : {"repository", "jsonl", "delimited", "parquet", "arrow", "excel", "scipy", "arff"} or None
        By default the extension decides, for example ``.txt``, ``.jsonl``, ``.csv``, ``.parquet`` or ``.npz``; text
        formats also with ``.gz``.
    merge_by : "id" or None
        Make one row of the rows with the same id: their labels are united, and their texts must agree.
    **options
        Passed to the reader of the format. ``text``, ``labels`` and ``id`` name columns, and also keys of JSON lines.
        Of several files, each takes the options that its reader knows.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "notes.jsonl"
    >>> _ = path.write_text('{"text": "a red apple", "labels": ["fruit"]}')
    >>> read_corpus(path).label_names
    ('fruit',)
    """
    check_merge_by(merge_by)
    sources = sources_of(data, format, options)
    if len(sources) == 1 and merge_by is None:
        [source] = sources
        return _READERS[known_format(source.path, source.format, _READERS)](source.path, **source.options)
    rows = RowCollector(sources[0].path)
    if merge_by is None:
        for source in sources:
            rows.begin(source.path)
            for record in records_of(source):
                rows.add(*record)
    else:
        for record in merge_records((str(source.path), record) for source in sources for record in records_of(source)):
            rows.add(*record)
    corpus = rows.corpus()
    for source in sources:
        separator = source.options.get("label_separator", ";")
        if known_format(source.path, source.format, _READERS) in ("delimited", "excel"):
            doubt_separator(source.path, corpus.labels, corpus.label_names, separator)
            break
    return corpus


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
    writers[known_format(path, format, writers)](corpus, path, **options)


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


_READERS: dict[str, Callable[..., Corpus]] = {
    "repository": read_repository,
    "jsonl": read_jsonl,
    "delimited": read_delimited,
    "parquet": read_arrow,
    "arrow": read_arrow,
    "excel": read_excel,
    "scipy": _read_pair,
    "arff": read_arff,
}
