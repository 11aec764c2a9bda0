"""Input of commands: corpora from files, data sets or standard input, rows to tag in batches, and models."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from longtail.cli.advice import reading
from longtail.cli.reading import FORMATS, ReaderOptions
from longtail.errors import InvalidInput
from longtail.files import is_url
from longtail.printable import counted

if TYPE_CHECKING:
    from longtail.data import Column, Corpus, GroupedCorpus, Originals, Source
    from longtail.tagger import Tagger

Data = str | Sequence[str]

STANDARD_INPUT = "-"
_ROWS_AT_ONCE = 512
_DIGITS = 9
_NAMES_SCANNED = 10_000
_PLAIN = "for one text per line use --plain"


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


@contextmanager
def named_in_errors(data: Data) -> Iterator[None]:
    """Name DATA in errors about rows and labels that are missing."""
    try:
        yield
    except InvalidInput as error:
        if error.code not in ("no_rows", "no_labels"):
            raise
        raise InvalidInput(f"{called(data)}: {error.problem}", code=error.code, advice=error.advice) from None


class Batch(NamedTuple):
    """Rows to tag: their names or numbers, the texts or feature vectors and, if they are kept, their fields."""

    names: list[str | int]
    rows: Any
    fields: list[list[Any]] | None = None


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
            with reading(plain=plain, grouped=grouped, several=True):
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
        with reading(plain=_PLAIN, several=len(names) > 1):
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


def kept_batches(data: Data, options: ReaderOptions) -> tuple[list[Column], Iterator[Batch]]:
    """The columns of a file of texts, and its rows to tag with their original fields, in batches."""
    from longtail.data import format_of, read_originals

    names = each_of(data)
    if STANDARD_INPUT in names:
        raise InvalidInput(
            "--keep-columns looks at DATA twice, so it cannot be standard input; write it to a file first"
        )
    if len(names) > 1:
        raise InvalidInput("--keep-columns keeps the columns of one file; tag the files one after another")
    if options.merge_by is not None:
        raise InvalidInput("--keep-columns keeps rows as they are; leave out --merge-by")
    [name] = names
    check_exists(name)
    format = options.format or format_of(name)
    with reading(plain=_PLAIN):
        found = read_originals(name, format, **options.for_format(format, False))
    return found.columns, _kept(found)


def _kept(found: Originals) -> Iterator[Batch]:
    numbered = enumerate(found.rows, start=1)
    with reading(plain=_PLAIN):
        while some := list(islice(numbered, _ROWS_AT_ONCE)):
            names = [number if record.row_name is None else record.row_name for number, (record, _) in some]
            yield Batch(names, [record.text for _, (record, _) in some], [fields for _, (_, fields) in some])


def load_tagger(directory: str) -> Tagger:
    """Load MODEL."""
    from longtail.prepared import is_prepared
    from longtail.store import load
    from longtail.tagger import Tagger

    if is_prepared(directory):
        raise InvalidInput(
            f"{directory} holds prepared data, not a model; train one with `longtail train {directory} --out MODEL`"
        )
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
