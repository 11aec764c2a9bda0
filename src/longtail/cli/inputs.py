"""Input of commands: corpora from files, data sets or standard input, rows to tag in batches, and models."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import click

from longtail.cli.advice import reading
from longtail.cli.options import option
from longtail.errors import InvalidInput
from longtail.files import is_url
from longtail.printable import counted

if TYPE_CHECKING:
    from longtail.data import Column, Corpus, GroupedCorpus, Originals
    from longtail.tagger import Tagger

STANDARD_INPUT = "-"
FORMATS = ("jsonl", "delimited", "repository", "scipy", "arff")
GROUPS = "groups in JSON lines"
_ROWS_AT_ONCE = 512
_DIGITS = 9
_NAMES_SCANNED = 10_000
_PLAIN = "for one text per line use --plain"


@dataclass(frozen=True)
class ReaderOptions:
    """How to read a file, where its name does not say enough."""

    section = "Data"

    format: str | None = option(type=click.Choice(FORMATS), help="Format of DATA.  [default: from the file extension]")
    text_column: str | None = option(
        metavar="NAME", help="Key or column of the text; columns also by number, counted from 0.  [default: text]"
    )
    label_column: str | None = option(metavar="NAME", help="Key or column of the labels.  [default: labels]")
    label_separator: str | None = option(help="Separator between labels in delimited files.  [default: ;]")

    def for_format(self, format: str | None, labelled: bool) -> dict[str, Any]:
        """The options for the reader of `format`; an option that the reader does not have is an error."""
        columns: dict[str, Any] = {}
        if format == "jsonl":
            columns = {"text_column": "text_key", "label_column": "labels_key"}
        elif format == GROUPS:
            columns = {"text_column": "texts_key", "label_column": "labels_key"}
        elif format == "delimited":
            columns = {"text_column": "text", "label_column": "labels", "label_separator": "label_separator"}
        options = {}
        for name in ("text_column", "label_column", "label_separator"):
            value = getattr(self, name)
            if value is None:
                continue
            if name not in columns:
                raise InvalidInput(f"--{name.replace('_', '-')} does not apply to the format {format}")
            options[columns[name]] = value
        if not labelled and format == "jsonl":
            options |= {"require_labels": False, "unknown": "ignore"}
        if not labelled and format == "delimited":
            options["labels"] = None
        return options


def is_number(value: str) -> bool:
    """Whether `value` is a whole number of at most nine ASCII digits."""
    return value.isascii() and value.isdigit() and len(value) <= _DIGITS


def takes_columns(data: str, format: str | None) -> bool:
    """Whether DATA has keys or columns to choose from."""
    from longtail.data import format_of

    return data == STANDARD_INPUT or (Path(data).is_file() and (format or format_of(data)) in ("jsonl", "delimited"))


def called(data: str) -> str:
    """The name of DATA in messages."""
    return "standard input" if data == STANDARD_INPUT else data


def counted_rows(corpus: Corpus | GroupedCorpus) -> str:
    """The number of rows, as texts or as rows of features."""
    if corpus.texts is not None:
        return counted(corpus.n_rows, "text")
    return counted(corpus.n_rows, "row of features", "rows of features")


class Batch(NamedTuple):
    """Rows to tag: their names or numbers, the texts or feature vectors and, if they are kept, their fields."""

    names: list[str | int]
    rows: Any
    fields: list[list[Any]] | None = None


def read(
    data: str,
    split: Literal["train", "test"],
    options: ReaderOptions,
    labelled: bool = True,
    plain: str = "",
    grouped: str = "",
) -> Corpus:
    """Read DATA: standard input, a file, or a part of a named data set.

    `plain` and `grouped` are advice for the error message if DATA turns out to be plain texts or groups.
    """
    from longtail.data import CATALOGUE, format_of, load_data_set, read_corpus, read_jsonl

    if data == STANDARD_INPUT:
        check_stdin(options)
        with reading(grouped=grouped):
            return read_jsonl(sys.stdin.buffer, **options.for_format("jsonl", labelled))
    if (found := read_prepared(data, options)) is not None:
        return found
    if not Path(data).is_file() and data.lower() in CATALOGUE:
        return load_data_set(data, split)
    check_exists(data)
    format = options.format or format_of(data)
    with reading(plain=plain, grouped=grouped):
        return read_corpus(data, options.format, **options.for_format(format, labelled))


def read_prepared(data: str, options: ReaderOptions) -> Corpus | None:
    """The corpus that `longtail prepare` wrote to a folder or URL; None if a folder holds something else.

    One of another version is an error.
    """
    if not is_url(data) and not Path(data, "manifest.json").is_file():
        return None
    from longtail.prepared import is_prepared, open_prepared

    if is_url(data) and not is_prepared(data):
        raise InvalidInput(f"{data} holds no prepared corpus; other data must be files of this machine")
    if options != ReaderOptions():
        raise InvalidInput(f"{data} is prepared: options of files do not apply to it")
    return open_prepared(data)


def batches(data: str, options: ReaderOptions, plain: bool, takes_texts: bool) -> Iterator[Batch]:
    """Rows to tag, in batches; texts are streamed, files of features are read whole."""
    from longtail.data import CATALOGUE, format_of, iter_jsonl, iter_records, read_text_lines

    is_stream = data == STANDARD_INPUT
    if plain:
        check_exists(data)
        lines = read_text_lines(sys.stdin.buffer if is_stream else data)
        yield from _in_batches((None, line.rstrip("\r\n")) for _, line in lines)
        return
    is_named = not is_stream and not Path(data).is_file() and data.lower() in CATALOGUE
    format = "jsonl" if is_stream else options.format or format_of(data)
    if not is_named and format in ("jsonl", "delimited"):
        check_stdin(options) if is_stream else check_exists(data)
        if not takes_texts:
            raise InvalidInput(f"the model takes features; {data} holds texts")
        chosen = options.for_format(format, False)
        with reading(plain=_PLAIN):
            records = iter_jsonl(sys.stdin.buffer, **chosen) if is_stream else iter_records(data, format, **chosen)
            yield from _in_batches((record.row_name, record.text) for record in records)
        return
    corpus = read(data, "test", options, labelled=False, plain=_PLAIN)
    rows: Any = corpus.texts if takes_texts else corpus.features
    if rows is None:
        wanted, found = ("texts", "features") if takes_texts else ("features", "texts")
        raise InvalidInput(f"the model takes {wanted}; {data} holds {found}")
    for start in range(0, corpus.n_rows, _ROWS_AT_ONCE):
        stop = min(start + _ROWS_AT_ONCE, corpus.n_rows)
        names = list(range(start + 1, stop + 1)) if corpus.row_names is None else corpus.row_names[start:stop]
        yield Batch(list(names), rows[start:stop])


def kept_batches(data: str, options: ReaderOptions) -> tuple[list[Column], Iterator[Batch]]:
    """The columns of a file of texts, and its rows to tag with their original fields, in batches."""
    from longtail.data import format_of, read_originals

    if data == STANDARD_INPUT:
        raise InvalidInput(
            "--keep-columns looks at DATA twice, so it cannot be standard input; write it to a file first"
        )
    check_exists(data)
    format = options.format or format_of(data)
    with reading(plain=_PLAIN):
        found = read_originals(data, format, **options.for_format(format, False))
    return found.columns, _kept(found)


def _kept(found: Originals) -> Iterator[Batch]:
    numbered = enumerate(found.rows, start=1)
    with reading(plain=_PLAIN):
        while some := list(islice(numbered, _ROWS_AT_ONCE)):
            names = [number if record.row_name is None else record.row_name for number, (record, _) in some]
            yield Batch(names, [record.text for _, (record, _) in some], [fields for _, (_, fields) in some])


def load_tagger(directory: str) -> Tagger:
    """Load MODEL."""
    from longtail.store import load
    from longtail.tagger import Tagger

    model = load(directory)
    if not isinstance(model, Tagger):
        raise InvalidInput(
            f"{directory} holds a {type(model).__name__}, which has no texts or label names; the command line needs a "
            f"model written by `longtail train` or Tagger.save"
        )
    return model


def check_labels(tagger: Tagger, names: Iterable[str], source: str) -> None:
    """Refuse labels that the model does not know."""
    try:
        tagger.check_labels(names)
    except InvalidInput as error:
        raise InvalidInput(f"{source}: {error}", code=error.code, name=error.name, found=error.found) from None


def _in_batches(rows: Iterable[tuple[str | None, str]]) -> Iterator[Batch]:
    numbered = enumerate(rows, start=1)
    while some := list(islice(numbered, _ROWS_AT_ONCE)):
        yield Batch([number if name is None else name for number, (name, _) in some], [text for _, (_, text) in some])


def check_stdin(options: ReaderOptions) -> None:
    """Refuse a format that cannot be read from standard input."""
    if options.format not in (None, "jsonl"):
        raise InvalidInput(f"standard input is read as JSON lines; for the format {options.format} give a file")


def check_exists(data: str) -> None:
    """Refuse DATA that is neither standard input nor a file; the error lists the data sets."""
    from longtail.data import CATALOGUE

    if data == STANDARD_INPUT:
        return
    if Path(data).exists() or Path(data).suffix or Path(data).name != data:
        check_file(data)
        return
    raise InvalidInput(f"there is no file and no data set {data}; the data sets are {', '.join(CATALOGUE)}")


def check_file(path: str) -> None:
    """Refuse a file that does not exist."""
    if Path(path).is_file():
        return
    if Path(path).is_dir():
        raise InvalidInput(f"{path} is a folder; give a file")
    if Path(path).exists():
        raise InvalidInput(f"{path} is not a regular file; to read from a pipe give -")
    folder = Path(path).absolute().parent
    if not folder.is_dir():
        raise InvalidInput(f"there is no file {path}, because there is no folder {folder}")
    from longtail.store import similar_names

    with os.scandir(folder) as entries:
        files = [entry.name for entry in islice(entries, _NAMES_SCANNED) if entry.is_file()]
    if near := similar_names(Path(path).name, files, 1):
        raise InvalidInput(f"there is no file {path}; did you mean {Path(path).with_name(near[0])}?")
    raise InvalidInput(f"there is no file {path} in {folder}")


def is_blank(path: str) -> bool:
    """Whether a file is empty or has only blank lines."""
    from longtail.data import read_lines

    return not any(line.strip() for _, line in read_lines(path))
