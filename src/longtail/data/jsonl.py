"""JSON lines: one object per line, ``{"text": "...", "labels": ["...", "..."]}``.

An ``id`` (text or whole number) names the row. Blank lines are passed over.
"""

from __future__ import annotations

import json
import warnings
from collections import Counter
from collections.abc import Iterator
from typing import IO, Any, Literal, NamedTuple

from longtail.data.corpus import Corpus
from longtail.data.rows import RowCollector
from longtail.data.streams import LINE_LIMIT, PathName, read_text_lines, source_name, writing
from longtail.errors import DataFormatError, InvalidInput

_ID_KEY = "id"
_WARNED_KEYS = 10
Unknown = Literal["report", "ignore", "error"]


class Record(NamedTuple):
    """One line of a JSON lines file.

    Parameters
    ----------
    line : int
        Its number, counted from 1.
    text : str
    labels : tuple of str
        Without repetition, in the order of the file; empty where the line has none.
    row_name : str or None
        The line's ``id``.
    """

    line: int
    text: str
    labels: tuple[str, ...]
    row_name: str | None


def iter_jsonl(
    source: PathName | IO[bytes],
    *,
    text_key: str = "text",
    labels_key: str = "labels",
    unknown: Unknown = "report",
    require_labels: bool = True,
    line_limit: int = LINE_LIMIT,
) -> Iterator[Record]:
    """Yield the records of a JSON lines file one at a time; the parameters are those of `read_jsonl`.

    Examples
    --------
    >>> import io
    >>> [record] = iter_jsonl(io.BytesIO(b'{"text": "a red apple"}'), require_labels=False)
    >>> record.text, record.labels
    ('a red apple', ())
    """
    if unknown not in ("report", "ignore", "error"):
        raise InvalidInput(f"unknown is {unknown!r}; expected 'report', 'ignore' or 'error'")
    return _records(source, text_key, labels_key, unknown, require_labels, line_limit)


def _records(
    source: PathName | IO[bytes],
    text_key: str,
    labels_key: str,
    unknown: Unknown,
    require_labels: bool,
    line_limit: int,
) -> Iterator[Record]:
    name = source_name(source)
    known = {text_key, labels_key, _ID_KEY}
    others: Counter[str] = Counter()
    for number, line in read_text_lines(source, line_limit):
        if line.isspace():
            continue
        try:
            found = _parse(line)
            if found.keys() - known and unknown != "ignore":
                if unknown == "error":
                    raise _FaultError(f"unknown key {min(found.keys() - known)!r}; known are {_listed(known)}")
                others.update(found.keys() - known)
            record = Record(
                number,
                _text_of(found, text_key),
                _labels_of(found, labels_key, require_labels),
                _row_name_of(found),
            )
        except _FaultError as fault:
            raise DataFormatError(name, number, str(fault)) from None
        yield record
    if others:
        shown = ", ".join(f"{key!r} in {count} lines" for key, count in others.most_common(_WARNED_KEYS))
        more = f" and {len(others) - _WARNED_KEYS} more" if len(others) > _WARNED_KEYS else ""
        warnings.warn(f"{name}: unknown keys were ignored: {shown}{more}", stacklevel=2)


class _FaultError(Exception):
    """What is wrong with a line."""


def _listed(keys: Any) -> str:
    return ", ".join(repr(key) for key in sorted(keys)) or "none"


def _parse(line: str) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except json.JSONDecodeError as error:
        raise _FaultError(f"not JSON: {error.msg} at character {error.pos + 1}") from None
    except RecursionError:
        raise _FaultError("not readable JSON: nested too deeply") from None
    except ValueError as error:  # a whole number of thousands of digits
        raise _FaultError(f"not readable JSON: {error}") from None
    if not isinstance(found, dict):
        raise _FaultError(f"expected an object {{...}}, found {_kind(found)}")
    return found


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


def _checked(text: str, what: str) -> str:
    if not text.isascii():
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            raise _FaultError(f"{what} holds half of a surrogate pair, which is no character") from None
    return text


def _text_of(found: dict[str, Any], key: str) -> str:
    if key not in found:
        raise _FaultError(f"no key {key!r}; the keys are {_listed(found)}")
    if not isinstance(found[key], str):
        raise _FaultError(f"{key!r} is {_kind(found[key])}; expected a text")
    return _checked(found[key], repr(key))


def _labels_of(found: dict[str, Any], key: str, required: bool) -> tuple[str, ...]:
    if key not in found:
        if required:
            raise _FaultError(f"no key {key!r}; the keys are {_listed(found)}")
        return ()
    labels = found[key]
    if not isinstance(labels, list):
        raise _FaultError(f"{key!r} is {_kind(labels)}; expected a list of names")
    for label in labels:
        if not isinstance(label, str):
            raise _FaultError(f"{key!r} holds {_kind(label)}; labels are names, written in quotes")
        if not label:
            raise _FaultError(f"{key!r} holds an empty name")
        _checked(label, repr(key))
    return tuple(dict.fromkeys(labels))


def _row_name_of(found: dict[str, Any]) -> str | None:
    value = found.get(_ID_KEY)
    if value is None or isinstance(value, str):
        return value if value is None else _checked(value, repr(_ID_KEY))
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise _FaultError(f"{_ID_KEY!r} is {_kind(value)}; expected a text or a whole number")


def read_jsonl(
    source: PathName | IO[bytes],
    *,
    text_key: str = "text",
    labels_key: str = "labels",
    unknown: Unknown = "report",
    require_labels: bool = True,
    line_limit: int = LINE_LIMIT,
) -> Corpus:
    """Read texts and their labels from JSON lines, plain or gzipped.

    Parameters
    ----------
    source : str, path-like or binary stream
        For standard input give ``sys.stdin.buffer``.
    text_key, labels_key : str
        The keys of the text and of the list of label names.
    unknown : {"report", "ignore", "error"}
        What to do about other keys than these and ``id``: warn once at the end, nothing, or stop.
    require_labels : bool
        Whether a line without labels is an error; say False for texts that are to be tagged.
    line_limit : int
        Bytes a line may have.

    Returns
    -------
    corpus : Corpus
        Labels are numbered in the order of their names.

    Examples
    --------
    >>> import io
    >>> corpus = read_jsonl(io.BytesIO(b'{"text": "a red apple", "labels": ["fruit", "red"], "id": 7}'))
    >>> corpus.texts, corpus.label_names, corpus.row_names
    (['a red apple'], ('fruit', 'red'), ['7'])
    """
    rows = RowCollector()
    records = iter_jsonl(
        source,
        text_key=text_key,
        labels_key=labels_key,
        unknown=unknown,
        require_labels=require_labels,
        line_limit=line_limit,
    )
    for record in records:
        if fault := rows.add(record.text, record.labels, record.row_name):
            raise DataFormatError(source_name(source), record.line, f"{_ID_KEY!r}: {fault}")
    return rows.corpus()


def write_jsonl(corpus: Corpus, path: PathName, *, text_key: str = "text", labels_key: str = "labels") -> None:
    """Write texts, label names and row names as JSON lines, gzipped if the name ends in ``.gz``."""
    if corpus.texts is None:
        raise InvalidInput("JSON lines hold texts and the corpus has only features; use the repository text format")
    names, indptr, indices = corpus.label_names, corpus.labels.indptr, corpus.labels.indices
    with writing(path) as stream:
        for row, text in enumerate(corpus.texts):
            record: dict[str, Any] = {} if corpus.row_names is None else {_ID_KEY: corpus.row_names[row]}
            record[text_key] = text
            record[labels_key] = [names[label] for label in indices[indptr[row] : indptr[row + 1]]]
            stream.write(json.dumps(record, ensure_ascii=False).encode("utf-8") + b"\n")
