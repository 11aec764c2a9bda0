"""Input of commands: corpora from files, data sets or standard input, rows to tag in batches, and models."""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import click

from longtail.cli.advice import reading
from longtail.cli.options import flag_of, option
from longtail.errors import InvalidInput
from longtail.files import is_url
from longtail.printable import counted

if TYPE_CHECKING:
    from longtail.data import Corpus, GroupedCorpus, Source
    from longtail.tagger import Tagger

Data = str | Sequence[str]

STANDARD_INPUT = "-"
FORMATS = ("jsonl", "delimited", "parquet", "arrow", "excel", "repository", "scipy", "arff")
GROUPS = "groups in JSON lines"
_ROWS_AT_ONCE = 512
_DIGITS = 9
_CUTOFF = 0.8
# Limits of the search for a similar name: comparing all names could take minutes.
_NAMES_SCANNED = 100_000
_NAMES_COMPARED = 500
_PLAIN = "for one text per line use --plain"


@dataclass(frozen=True)
class ReaderOptions:
    """How to read a file, where its name does not say enough."""

    section = "Data"

    format: str | None = option(type=click.Choice(FORMATS), help="Format of DATA.  [default: from the file extension]")
    text_column: str | None = option(
        metavar="NAME",
        help="Key or column of the text; columns also by number, counted from 0. Several, such as title,abstract, are "
        "joined.  [default: text]",
    )
    label_column: str | None = option(metavar="NAME", help="Key or column of the labels.  [default: labels]")
    id_column: str | None = option(
        metavar="NAME", help="Key or column of the ids of rows.  [default: id, if there is one]"
    )
    label_separator: str | None = option(help="Separator between labels in one cell of a table.  [default: ;]")
    merge_by: str | None = option(
        type=click.Choice(["id"]), help="Make one row of rows with the same id, for files with a row for each label."
    )
    no_header: bool = option(
        is_flag=True, default=False, help="The first line of a table is a row, and columns are numbers."
    )
    sheet: str | None = option(metavar="NAME", help="Sheet of a workbook.  [default: the first]")
    encoding: str | None = option(
        metavar="NAME", help="Encoding of text files, e.g. cp1252.  [default: UTF-8, or by the byte-order mark]"
    )

    def for_format(self, format: str | None, labelled: bool) -> dict[str, Any]:
        """The options for the reader of `format`; an option that the reader does not have is an error."""
        known = _NAMES.get(format or "", {})
        for name in self.given():
            if name not in known:
                raise InvalidInput(f"{flag_of(ReaderOptions, name)} does not apply to the format {format}")
        options = {known[name]: getattr(self, name) for name in self.given()}
        if self.no_header:
            options["header"] = False
        if not labelled and format == "jsonl":
            options |= {"require_labels": False, "unknown": "ignore"}
        elif not labelled and format in _TABLES:
            options["labels"] = None
        return options

    def given(self) -> list[str]:
        """The names of the options of readers that are not left at their defaults."""
        return [name for name in _GIVEN if getattr(self, name) != getattr(ReaderOptions, name)]

    def sources(self, data: Sequence[str], labelled: bool = True) -> list[Source]:
        """The files to read, each with those of the options that its format has; each option must apply to one."""
        from longtail.data import Source, format_of

        formats = [self.format or format_of(path) for path in data]
        found = []
        for path, format in zip(data, formats, strict=True):
            apart = len(set(formats)) > 1
            others = [name for name in self.given() if apart and name not in _NAMES.get(format or "", {})]
            for name in others:
                if not any(name in _NAMES.get(other or "", {}) for other in formats):
                    raise InvalidInput(f"{flag_of(ReaderOptions, name)} does not apply to any of these files")
            own = replace(self, **{name: getattr(ReaderOptions, name) for name in others})
            found.append(Source(path, self.format, own.for_format(format, labelled)))
        return found


# What readers call the options.
_TABLE = {"text_column": "text", "label_column": "labels", "id_column": "id", "label_separator": "label_separator"}
_TABLES = ("delimited", "parquet", "arrow", "excel")
_NAMES: dict[str, dict[str, str]] = {
    "jsonl": {"text_column": "text_key", "label_column": "labels_key", "id_column": "id_key", "encoding": "encoding"},
    GROUPS: {"text_column": "texts_key", "label_column": "labels_key"},
    "delimited": {**_TABLE, "no_header": "header", "encoding": "encoding"},
    "parquet": _TABLE,
    "arrow": _TABLE,
    "excel": {**_TABLE, "no_header": "header", "sheet": "sheet"},
}
_GIVEN = ("text_column", "label_column", "id_column", "label_separator", "no_header", "sheet", "encoding")


def is_number(value: str) -> bool:
    """Whether `value` is a whole number of at most nine ASCII digits."""
    return value.isascii() and value.isdigit() and len(value) <= _DIGITS


def takes_columns(data: Data, format: str | None) -> bool:
    """Whether DATA has keys or columns to choose from."""
    from longtail.data import TEXT_FORMATS, format_of

    return any(
        each == STANDARD_INPUT or (Path(each).is_file() and (format or format_of(each)) in TEXT_FORMATS)
        for each in each_of(data)
    )


def each_of(data: Data) -> Sequence[str]:
    """The parts of DATA, of which there can be several."""
    return (data,) if isinstance(data, str) else data


def called(data: Data) -> str:
    """The name of DATA in messages."""
    return ", ".join("standard input" if each == STANDARD_INPUT else each for each in each_of(data))


def counted_rows(corpus: Corpus | GroupedCorpus) -> str:
    """The number of rows, as texts or as rows of features."""
    if corpus.texts is not None:
        return counted(corpus.n_rows, "text")
    return counted(corpus.n_rows, "row of features", "rows of features")


class Batch(NamedTuple):
    """Rows to tag: their names or numbers, and the texts or feature vectors."""

    names: list[str | int]
    rows: Any


def read(
    data: Data,
    split: Literal["train", "test"],
    options: ReaderOptions,
    labelled: bool = True,
    plain: str = "",
    grouped: str = "",
) -> Corpus:
    """Read DATA: standard input, a file or several, or a part of a named data set.

    `plain` and `grouped` are advice for the error message if DATA turns out to be plain texts or groups.
    """
    from longtail.data import CATALOGUE, format_of, load_data_set, read_corpus, read_jsonl

    if not isinstance(data, str):
        if len(data) > 1:
            with reading(plain=plain, grouped=grouped):
                return read_corpus(several(data, options, labelled), merge_by=options.merge_by)
        data = data[0]
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
        return read_corpus(data, options.format, merge_by=options.merge_by, **options.for_format(format, labelled))


def several(data: Sequence[str], options: ReaderOptions, labelled: bool) -> list[Source]:
    """The files of DATA, where several are given: all must be files of texts."""
    from longtail.data import TEXT_FORMATS, format_of

    for each in data:
        if each == STANDARD_INPUT:
            raise InvalidInput("standard input cannot be combined with files; write it to a file first")
        check_exists(each)
        format = options.format or format_of(each)
        if format not in TEXT_FORMATS and format in FORMATS:
            raise InvalidInput(
                f"{each} is not a file of texts; only those can be combined. `longtail prepare` combines files of "
                f"features"
            )
    return options.sources(data, labelled)


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


def batches(data: Data, options: ReaderOptions, plain: bool, takes_texts: bool) -> Iterator[Batch]:
    """Rows to tag, in batches; texts are streamed, files of features are read whole."""
    from longtail.data import CATALOGUE, TEXT_FORMATS, format_of, iter_jsonl, iter_records, read_text_lines

    names = each_of(data)
    if plain:
        for each in names:
            check_exists(each)
        lines = chain.from_iterable(
            read_text_lines(sys.stdin.buffer if each == STANDARD_INPUT else each, encoding=options.encoding)
            for each in names
        )
        with reading():
            yield from _in_batches((None, line.rstrip("\r\n")) for _, line in lines)
        return
    first = names[0]
    is_stream = first == STANDARD_INPUT and len(names) == 1
    is_named = not is_stream and not Path(first).is_file() and first.lower() in CATALOGUE
    if len(names) > 1 or is_stream or (not is_named and (options.format or format_of(first)) in TEXT_FORMATS):
        if is_stream:
            check_stdin(options)
        else:
            check_exists(first)
        if not takes_texts:
            raise InvalidInput(f"the model takes features; {called(data)} holds texts")
        with reading(plain=_PLAIN):
            if is_stream:
                records = iter_jsonl(sys.stdin.buffer, **options.for_format("jsonl", False))
            else:
                records = iter_records(several(names, options, False), merge_by=options.merge_by)
            yield from _in_batches((record.row_name, record.text) for record in records)
        return
    corpus = read(first, "test", options, labelled=False, plain=_PLAIN)
    rows: Any = corpus.texts if takes_texts else corpus.features
    if rows is None:
        wanted, found = ("texts", "features") if takes_texts else ("features", "texts")
        raise InvalidInput(f"the model takes {wanted}; {called(data)} holds {found}")
    for start in range(0, corpus.n_rows, _ROWS_AT_ONCE):
        stop = min(start + _ROWS_AT_ONCE, corpus.n_rows)
        ids = list(range(start + 1, stop + 1)) if corpus.row_names is None else corpus.row_names[start:stop]
        yield Batch(list(ids), rows[start:stop])


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
    unknown = tagger.unknown_labels(names)
    if not unknown:
        return
    near = _alike(unknown[0], tagger.label_names_)
    meant = "" if near is None else f"; did you mean {near!r}?"
    knows = f"the model has no label {unknown[0]!r}; it knows {len(tagger.label_names_):,} labels{meant}"
    raise InvalidInput(f"{source}: {knows}")


def _alike(sought: str, names: Iterable[str]) -> str | None:
    """A similar name: the same first letter, about the same length, few differences."""
    similar = (
        name
        for name in islice(names, _NAMES_SCANNED)
        if name[:1].lower() == sought[:1].lower() and 3 * len(sought) <= 4 * len(name) <= 6 * len(sought)
    )
    return next(iter(difflib.get_close_matches(sought, islice(similar, _NAMES_COMPARED), n=1, cutoff=_CUTOFF)), None)


def _in_batches(rows: Iterable[tuple[str | None, str]]) -> Iterator[Batch]:
    numbered = enumerate(rows, start=1)
    while some := list(islice(numbered, _ROWS_AT_ONCE)):
        yield Batch([number if name is None else name for number, (name, _) in some], [text for _, (_, text) in some])


def check_stdin(options: ReaderOptions) -> None:
    """Refuse a format that cannot be read from standard input."""
    if options.merge_by is not None:
        raise InvalidInput("--merge-by needs files, not standard input; write it to a file first")
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
    with os.scandir(folder) as entries:
        files = [entry.name for entry in islice(entries, _NAMES_SCANNED) if entry.is_file()]
    near = _alike(Path(path).name, files)
    if near is not None:
        raise InvalidInput(f"there is no file {path}; did you mean {Path(path).with_name(near)}?")
    raise InvalidInput(f"there is no file {path} in {folder}")


def is_blank(path: str) -> bool:
    """Whether a file is empty or has only blank lines."""
    from longtail.data import read_lines

    return not any(line.strip() for _, line in read_lines(path))
