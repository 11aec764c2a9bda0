"""Workbooks of Excel (.xlsx): a sheet whose first row names the columns, read row by row through openpyxl."""

from __future__ import annotations

import re
import warnings
import zipfile
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from typing import IO, Any

from longtail.data.corpus import Corpus
from longtail.data.formats.cells import as_text
from longtail.data.formats.delimited import check_numbers, doubt_header, doubt_separator, find_named
from longtail.data.formats.json_records import FaultError
from longtail.data.formats.rows import RowCollector
from longtail.data.formats.tables import Column, Columns, TableRow, columns_in, find_columns, table_rows
from longtail.errors import DataFormatError, LongtailError, Unavailable
from longtail.files import PathName
from longtail.memory import MemoryPlan
from longtail.printable import counted

# The largest sheet that Excel writes has this many rows.
_ROWS = 2**20
_PARTS = 10_000
# Workbooks shrink to about a tenth; a bomb shrinks to a thousandth.
_EXPANSION = 200
_SMALL = 2**28
_STRINGS = "sharedStrings.xml"
_STRING_BYTES = 3
_OLD_EXCEL = b"\xd0\xcf\x11\xe0"
_MERGED = re.compile(rb'<(?:\w+:)?mergeCell\s[^<>]*?ref="([A-Z]{1,3}([0-9]{1,7}):[A-Z]{1,3}([0-9]{1,7}))"')
_LONGEST_MERGED = 200
_BLOCK = 2**20
AS_CSV = "in Excel: File > Save As > CSV UTF-8 (Comma delimited)"


def read_excel(
    path: PathName,
    *,
    text: Columns = "text",
    labels: Column | None = "labels",
    id: Column | None = None,
    label_separator: str = ";",
    header: bool = True,
    sheet: str | None = None,
) -> Corpus:
    """Read texts and their labels from a sheet of an Excel workbook; needs openpyxl.

    Parameters
    ----------
    path : str or path-like
        An ``.xlsx`` file.
    text, labels, id, label_separator, header
        As for `read_delimited`; numbers, dates and results of formulas count as the texts that a CSV file would have.
    sheet : str or None
        The name of the sheet; the default is the first that is not hidden.
    """
    rows = RowCollector(path)
    for row in iter_excel(
        path, text=text, labels=labels, id=id, label_separator=label_separator, header=header, sheet=sheet
    ):
        rows.add(row.line, row.text, row.labels, row.row_name)
    corpus = rows.corpus()
    doubt_separator(path, corpus.labels, corpus.label_names, label_separator)
    return corpus


def iter_excel(
    path: PathName,
    *,
    text: Columns = "text",
    labels: Column | None = "labels",
    id: Column | None = None,
    label_separator: str = ";",
    header: bool = True,
    sheet: str | None = None,
) -> Iterator[TableRow]:
    """Yield the rows of a sheet; the parameters are those of `read_excel`, the line of a row is its number."""
    if not header:
        check_numbers(*columns_in(text), labels, id)
    names, line, rows = _named_rows(path, sheet, header)
    if header:
        places = find_named(path, line, names, text, labels, id)
    else:
        places = find_columns(path, line, None, len(names), text, labels, id)
    width = max(len(names), places.used()[-1] + 1)
    wide = ((number, [*found, *[None] * (width - len(found))]) for number, found in rows)
    found = table_rows(path, wide, places, label_separator)
    yield from doubt_header(path, found, names, places, label_separator, text) if header else found


def excel_names(path: PathName, *, header: bool = True, sheet: str | None = None) -> list[str]:
    """The names of the columns of a sheet; all empty without a header."""
    names, _, rows = _named_rows(path, sheet, header)
    rows.close()
    return names


def _named_rows(
    path: PathName, sheet: str | None, header: bool
) -> tuple[list[str], int, Generator[tuple[int, Sequence[Any]]]]:
    """The names of the columns, the line of the first row, and the rows below the names."""
    rows = _filled_rows(path, sheet)
    first = next(rows, None)
    if first is None:
        raise DataFormatError(
            path, None, "the sheet is empty; choose another with sheet= (--sheet on the command line)"
        )
    line, cells = first
    if not header:
        return [""] * len(cells), line, _all_rows(first, rows)
    try:
        return [as_text(cell, place) for place, cell in enumerate(cells)], line, rows
    except FaultError as fault:
        raise DataFormatError(path, line, str(fault)) from None


def _all_rows(
    first: tuple[int, Sequence[Any]], rows: Iterator[tuple[int, Sequence[Any]]]
) -> Generator[tuple[int, Sequence[Any]]]:
    yield first
    yield from rows


def _filled_rows(path: PathName, sheet: str | None) -> Generator[tuple[int, Sequence[Any]]]:
    """The rows of a sheet that are not empty, with their numbers."""
    _check_parts(path)
    try:
        with open(path, "rb") as stream, closing(_opened(path, stream)) as book:
            chosen = _sheet(path, book, sheet)
            chosen.reset_dimensions()  # some programs write wrong ones
            for number, cells in enumerate(chosen.iter_rows(values_only=True), start=1):
                if number > _ROWS:
                    raise DataFormatError(path, number, f"the sheet has more than {_ROWS:,} rows; save it as CSV")
                if not all(cell is None or (isinstance(cell, str) and not cell.strip()) for cell in cells):
                    yield number, cells
            _tell_merged(path, chosen)
    except (LongtailError, GeneratorExit):
        raise
    except Exception as error:  # openpyxl raises whatever a damaged part of a workbook leads to
        raise DataFormatError(
            path, None, f"the workbook is damaged ({type(error).__name__}: {error!s:.100}); save it as CSV: {AS_CSV}"
        ) from None


def _opened(path: PathName, stream: IO[bytes]) -> Any:
    try:
        # openpyxl reads hostile XML safely only with defusedxml.
        import defusedxml  # noqa: F401
        from openpyxl import load_workbook
    except ImportError as missing:
        raise Unavailable(
            f"reading {path} needs {missing.name}, which is not installed; install it: pip install 'longtail[excel]', "
            f"or save the sheet as CSV ({AS_CSV})",
            name=missing.name,
        ) from None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about styles, charts and other parts that are not read
        return load_workbook(stream, read_only=True, data_only=True, keep_links=False)


def _sheet(path: PathName, book: Any, name: str | None) -> Any:
    titles = [sheet.title for sheet in book.worksheets]
    if not titles:
        raise DataFormatError(path, None, "the workbook has no sheet with cells")
    if name is None:
        shown = [sheet for sheet in book.worksheets if sheet.sheet_state == "visible"] or book.worksheets
        if others := ", ".join(repr(sheet.title) for sheet in shown[1:]):
            warnings.warn(
                f"{path}: the sheet {shown[0].title!r} is read; choose another ({others}) with sheet= (--sheet on the "
                f"command line)",
                stacklevel=1,
            )
        return shown[0]
    if name not in titles:
        listed = ", ".join(repr(title) for title in titles)
        raise DataFormatError(
            path,
            None,
            f"there is no sheet {name!r}; the sheets are {listed}",
            code="missing_sheet",
            name=name,
            found=titles,
        )
    return book.worksheets[titles.index(name)]


def _tell_merged(path: PathName, sheet: Any) -> None:
    """Warn of merged cells in several rows, of which only the first has the value."""
    found, rest = [], b""
    with sheet._get_source() as source:  # openpyxl reads merged cells only into memory, with the whole sheet
        while block := source.read(_BLOCK):
            rest += block
            end = 0
            for cells in _MERGED.finditer(rest) if b"mergeCell" in rest else ():
                end = cells.end()
                if int(cells[2]) < int(cells[3]):
                    found.append(cells[1].decode())
            rest = rest[max(end, len(rest) - _LONGEST_MERGED) :]
    if found:
        warnings.warn(
            f"{path}: {counted(len(found), 'merged cell')} in several rows, such as {found[0]}: only the first row has "
            f"the value, and the others are empty there; unmerge the cells and fill them",
            stacklevel=1,
        )


def _check_parts(path: PathName) -> None:
    """Refuse what is no workbook, and workbooks that would fill the memory; zipfile never unpacks more than it says."""
    try:
        with open(path, "rb") as stream:
            if stream.read(len(_OLD_EXCEL)) == _OLD_EXCEL:
                raise DataFormatError(
                    path,
                    None,
                    f"the workbook has a password or the old format .xls; save it as CSV ({AS_CSV}), or as .xlsx "
                    f"without a password",
                )
            packed = stream.seek(0, 2)
            with zipfile.ZipFile(stream) as parts:
                sizes = {part.filename: part.file_size for part in parts.infolist()}
    except OSError as error:
        raise DataFormatError(path, None, f"cannot be opened: {error.strerror or error}") from None
    except (zipfile.BadZipFile, NotImplementedError, ValueError, EOFError) as error:
        raise DataFormatError(
            path,
            None,
            f"not a whole .xlsx workbook ({error}); if it is a text file, name it .csv, else save it as CSV: {AS_CSV}",
        ) from None
    total = sum(sizes.values())
    if len(sizes) > _PARTS or total > max(_SMALL, _EXPANSION * packed):
        raise DataFormatError(
            path, None, f"the workbook unpacks to {total:,} bytes in {len(sizes):,} parts; is this the right file?"
        )
    strings = sum(size for name, size in sizes.items() if name.endswith(_STRINGS))
    MemoryPlan(f"reading {path}", {"strings": _STRING_BYTES * strings}, f"Save it as CSV: {AS_CSV}.").check()
