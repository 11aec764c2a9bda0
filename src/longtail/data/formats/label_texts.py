"""Files of label texts: JSON lines, one JSON object of all labels, or a comma- or tab-separated table."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from longtail.data.formats.delimited import fields_up_to, records
from longtail.data.formats.json_records import (
    FaultError,
    checked_text,
    optional_text_of,
    optional_texts_of,
    parse_object,
    read_records,
    text_of,
)
from longtail.data.label_texts import LabelTexts
from longtail.data.streams import LINE_LIMIT, read_text_lines, suffix_of
from longtail.errors import DataFormatError, InvalidInput
from longtail.files import PathName
from longtail.memory import MemoryPlan

_ALT_SEPARATOR = "|"
_COLUMNS = ("label", "name", "alt", "description")
# The keys that vocabularies use in one object of all labels, where the label itself is the key of its object.
_NAME_KEYS = ("name", "prefLabel", "label")
_ALT_KEYS = ("alt", "alt_labels", "altLabels")
_DESCRIPTION_KEYS = ("description", "definition")
_OBJECT_LIMIT = 2**26
# Parsed JSON takes at most about this many bytes for each byte of text.
_PARSED_BYTES = 40
_SHOWN = 80
_IN_ANGLES = re.compile(r"<(.+)>")


def read_label_texts(path: PathName) -> LabelTexts:
    """Read names, alternative names and descriptions of labels from a file, plain or gzipped.

    The extension chooses the format:

    - ``.jsonl``, ``.ndjson``: a line per label, ``{"label": "Q89", "name": "apple", "alt": ["apples"], "description":
      "fruit of the apple tree"}``. Only ``label`` is required, ``alt`` can be one text, and other keys are ignored.
    - ``.json``: one object with an object per label, ``{"Q89": {"name": "apple", "alt": ["apples"]}}``. The name can
      also be called ``prefLabel`` or ``label``, and the alternative names ``altLabels`` or ``alt_labels``. A text or a
      list of texts can replace the object of a label.
    - ``.tsv``, ``.tab``, ``.csv``: a table with the columns ``label``, ``name``, ``alt`` (separated by ``|``) and
      ``description``. Only ``label`` is required, and other columns are ignored. A tab-separated file without these
      column names has an id and a name in each line; a third column is ignored.

    A label without a name has itself as its name. A label can repeat only with the same texts.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "vocabulary.tsv"
    >>> _ = path.write_text("<http://example.org/89>\\tapple\\n<http://example.org/1>\\tuniverse\\n")
    >>> found = read_label_texts(path)
    >>> found.labels, found.names
    (('http://example.org/89', 'http://example.org/1'), ['apple', 'universe'])
    """
    readers: dict[str, Callable[[PathName], Iterable[_Entry]]] = {
        ".jsonl": _read_lines,
        ".ndjson": _read_lines,
        ".json": _read_object,
        ".tsv": _read_table,
        ".tab": _read_table,
        ".csv": _read_table,
    }
    suffix = suffix_of(path)
    if suffix not in readers:
        raise InvalidInput(
            f"the extension {suffix!r} of {path} is unknown; files of label texts end in {', '.join(readers)}, "
            "each also with .gz"
        )
    found: dict[str, _Entry] = {}
    for entry in readers[suffix](path):
        before = found.setdefault(entry.label, entry)
        if before.texts != entry.texts:
            raise DataFormatError(
                path,
                entry.line,
                f"the label {entry.label!r:.{_SHOWN}} has other texts in line {before.line}; merge the two",
            )
    if not found:
        raise DataFormatError(path, None, "the file has no labels")
    return LabelTexts(tuple(found), tuple(entry.texts for entry in found.values()), str(path))


class _Entry(NamedTuple):
    line: int | None
    label: str
    texts: tuple[str, ...]


def _entry(line: int | None, label: str, name: str, others: Iterable[str]) -> _Entry:
    if not label.strip():
        raise FaultError("the label is empty")
    texts = [name if name.strip() else label, *(text for text in others if text.strip())]
    return _Entry(line, label, tuple(dict.fromkeys(texts)))


def _read_lines(path: PathName) -> Iterator[_Entry]:
    def build(number: int, found: dict[str, Any]) -> _Entry:
        others = [*optional_texts_of(found, "alt"), optional_text_of(found, "description")]
        return _entry(number, text_of(found, "label"), optional_text_of(found, "name"), others)

    return read_records(path, build, set(_COLUMNS), "ignore", LINE_LIMIT)


def _read_object(path: PathName) -> Iterator[_Entry]:
    lines, size = [], 0
    for number, line in read_text_lines(path, _OBJECT_LIMIT):
        lines.append(line)
        size += len(line)
        if size > _OBJECT_LIMIT:
            raise DataFormatError(path, number, f"the object is longer than {_OBJECT_LIMIT} characters; use JSON lines")
    MemoryPlan(f"reading {path}", {"objects": _PARSED_BYTES * size}, "Use JSON lines.").check()
    try:
        content = parse_object("".join(lines), _without_repetition)
    except FaultError as fault:
        raise DataFormatError(path, fault.line, str(fault), **fault.facts) from None
    for label, found in content.items():
        try:
            yield _entry_of(label, found)
        except FaultError as fault:
            raise DataFormatError(path, None, f"label {label!r:.{_SHOWN}}: {fault}", **fault.facts) from None


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if found.setdefault(key, value) != value:
            raise FaultError(f"the key {key!r:.{_SHOWN}} is there twice, with different values; merge the two")
    return found


def _entry_of(label: str, found: Any) -> _Entry:
    """The texts of a label of one object: an object, or texts that begin with the name."""
    checked_text(label, "the label")
    if not isinstance(found, dict):
        key = label[:_SHOWN]
        texts = optional_texts_of({key: found}, key)
        return _entry(None, label, "".join(texts[:1]), texts[1:])
    name = next((text for key in _NAME_KEYS if (text := optional_text_of(found, key)).strip()), "")
    others = [text for key in _ALT_KEYS for text in optional_texts_of(found, key)]
    others += [text for key in _DESCRIPTION_KEYS for text in optional_texts_of(found, key)]
    return _entry(None, label, name, others)


def _read_table(path: PathName) -> Iterator[_Entry]:
    if suffix_of(path) != ".csv" and not _has_header(path):
        return _read_pairs(path)
    return _read_columns(path)


def _has_header(path: PathName) -> bool:
    """Whether the first line names columns: it begins with ``label``, or has it together with another known name."""
    first = next((line for _, line in read_text_lines(path) if not line.isspace()), "")
    names = [name.strip('"') for name in _column_names(first.split("\t"))]
    return names[0] == "label" or ("label" in names and len(set(names) & set(_COLUMNS)) > 1)


def _column_names(fields: list[str]) -> list[str]:
    return [field.strip().lower() for field in fields]


def _read_columns(path: PathName) -> Iterator[_Entry]:
    places: dict[str, int] = {}
    width = 0
    with fields_up_to(LINE_LIMIT):
        for line, fields in records(path, None, LINE_LIMIT):
            if not places:
                places, width = _find_columns(path, line, fields), len(fields)
                continue
            if len(fields) != width:
                raise DataFormatError(path, line, f"{len(fields)} columns, expected {width} as in the first line")
            row = dict.fromkeys(_COLUMNS, "") | {name: fields[place].strip() for name, place in places.items()}
            others = [*(text.strip() for text in row["alt"].split(_ALT_SEPARATOR)), row["description"]]
            yield _entry_of_line(path, line, row["label"], row["name"], others)


def _find_columns(path: PathName, line: int, fields: list[str]) -> dict[str, int]:
    names = _column_names(fields)
    repeated = next((name for name in _COLUMNS if names.count(name) > 1), None)
    if repeated is not None or "label" not in names:
        column = repeated or "label"
        raise DataFormatError(
            path,
            line,
            f"{'several columns are' if repeated else 'no column is'} named {column!r}; the columns are "
            f"{', '.join(map(repr, fields)):.200}",
            code="ambiguous_column" if repeated else "missing_column",
            column=column,
            found=fields,
            advice=f"the first line names the columns: {', '.join(_COLUMNS)}",
        )
    return {name: names.index(name) for name in _COLUMNS if name in names}


def _read_pairs(path: PathName) -> Iterator[_Entry]:
    """An id and a name in each line, not quoted; vocabularies of Annif have a notation in a third column."""
    for line, text in read_text_lines(path):
        if text.isspace():
            continue
        fields = [field.strip() for field in text.rstrip("\r\n").split("\t")]
        if len(fields) not in (2, 3):
            raise DataFormatError(
                path,
                line,
                f"{len(fields)} column{'s' * (len(fields) != 1)}; expected an id and a name, separated by a tab, or a "
                f"first line that names the columns: {', '.join(_COLUMNS)}",
            )
        in_angles = _IN_ANGLES.fullmatch(fields[0])
        yield _entry_of_line(path, line, in_angles[1] if in_angles else fields[0], fields[1], [])


def _entry_of_line(path: PathName, line: int, label: str, name: str, others: Iterable[str]) -> _Entry:
    try:
        return _entry(line, label, name, others)
    except FaultError as fault:
        raise DataFormatError(path, line, str(fault)) from None
