"""`read_changes`: new, corrected and removed rows, feedback on tags, and changes of labels, one record at a time.

`Tagger.update` and `longtail update` learn from them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import IO, Any

from longtail.data.batches import iter_records
from longtail.data.formats.json_records import (
    ID_KEY,
    LABEL_KEY,
    FaultError,
    Unknown,
    id_of,
    label_names_of,
    labels_of,
    read_records,
)
from longtail.data.formats.jsonl import text_reader
from longtail.data.sources import format_of
from longtail.data.streams import LINE_LIMIT, source_name
from longtail.errors import InvalidInput
from longtail.files import PathName

_REMOVE, _RENAME, _DROP = "remove", "rename", "drop_label"
_OPINIONS = ("accepted", "rejected", "added")
_MODEL, _TIME = "model", "time"
_ABOUT = (_MODEL, _TIME, "version")


@dataclass(frozen=True)
class RowChange:
    """A new or corrected row; it replaces the rows of the same id or, without one, each row of the same text.

    Parameters
    ----------
    text : str
    labels : tuple of str
    id : str or None
        A new row without one gets `row_id` of its text.
    place : str
        The file and the line, for messages; empty if there is none.
    """

    text: str
    labels: tuple[str, ...]
    id: str | None = None
    place: str = ""


@dataclass(frozen=True)
class RowRemoval:
    """The rows of an id or, without one, of a text are no longer to be learnt from."""

    id: str | None = None
    place: str = ""
    text: str = ""


@dataclass(frozen=True)
class RowFeedback:
    """What a person thinks of the tags of a text: labels that are right or wrong, and labels to add.

    The row of this id or, without one, each row of this text gets these labels besides those that it has. A text that
    is no row yet becomes one. `model` and `time` are what `longtail serve` wrote about it: the name of the model that
    gave the tags, and when.
    """

    text: str
    accepted: tuple[str, ...] = ()
    rejected: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    id: str | None = None
    place: str = ""
    model: str | None = None
    time: datetime | None = None


@dataclass(frozen=True)
class LabelRename:
    """A label has another name now. If there is a label of that name, the two become one."""

    old: str
    new: str
    place: str = ""


@dataclass(frozen=True)
class LabelDrop:
    """A label is no longer given."""

    label: str
    place: str = ""


Change = RowChange | RowRemoval | RowFeedback | LabelRename | LabelDrop


def read_changes(source: PathName | IO[bytes], format: str | None = None, **options: Any) -> Iterator[Change]:
    """Yield the changes in a file, in their order.

    Each line of a JSON lines file is one of these; other files of texts hold new and corrected rows::

        {"id": "7", "text": "a red apple", "labels": ["fruit"]}
        {"id": "7", "remove": true}
        {"text": "a green apple", "remove": true}
        {"text": "a red apple", "accepted": ["fruit"], "rejected": ["sky"], "added": ["red"]}
        {"rename": {"fruit": "fruits"}}
        {"drop_label": "sky"}

    Parameters
    ----------
    source : str, path-like or binary stream
        A stream holds JSON lines.
    format, **options
        As for `read_corpus`.

    Raises
    ------
    DataFormatError
        With the file and the line.

    Examples
    --------
    >>> import io
    >>> lines = b'{"text": "a red apple", "labels": ["fruit"]}\\n{"rename": {"fruit": "fruits"}}\\n'
    >>> [change, rename] = read_changes(io.BytesIO(lines))
    >>> change.labels, rename.new
    (('fruit',), 'fruits')
    """
    is_path = not hasattr(source, "read")
    chosen = format or (format_of(source) if is_path else "jsonl")  # type: ignore[arg-type]
    if chosen == "jsonl":
        return _of_json_lines(source, **options)
    if not is_path:
        raise InvalidInput(f"a stream of changes is read as JSON lines; for the format {chosen} give a file")
    records = iter_records(source, chosen, **options)  # type: ignore[arg-type]
    return (RowChange(record.text, record.labels, record.row_name, f"{source}:{record.line}") for record in records)


def _of_json_lines(
    source: PathName | IO[bytes],
    *,
    text_key: str | Sequence[str] = "text",
    labels_key: str = "labels",
    id_key: str | None = None,
    unknown: Unknown = "report",
    encoding: str | None = None,
    line_limit: int = LINE_LIMIT,
) -> Iterator[Change]:
    name = source_name(source)
    text_keys, text_in = text_reader(text_key)
    labels_keys, opinions, row_keys = {labels_key, LABEL_KEY}, set(_OPINIONS), {*text_keys, id_key or ID_KEY}
    of_one_kind = (
        ({_RENAME}, {_DROP}, {_REMOVE, *row_keys, *labels_keys, *opinions}),
        ({_REMOVE}, labels_keys, opinions),
    )

    def build(number: int, found: dict[str, Any]) -> list[Change]:
        place = f"{name}:{number}"
        if found.get(_REMOVE) is False:
            del found[_REMOVE]
        for kinds in of_one_kind:
            given = [sorted(found.keys() & kind) for kind in kinds if found.keys() & kind]
            if len(given) > 1:
                raise FaultError(f"{given[0][0]!r} and {given[1][0]!r} in one line; write each change in its own line")
        if _RENAME in found:
            return [LabelRename(old, new, place) for old, new in _renames(found[_RENAME])]
        if _DROP in found:
            return [LabelDrop(_name(found[_DROP], _DROP), place)]
        if _REMOVE in found:
            if found[_REMOVE] is not True:
                raise FaultError(f"{_REMOVE!r} is {found[_REMOVE]!r:.20}; expected true")
            if (row := id_of(found, id_key)) is not None:
                return [RowRemoval(row, place)]
            if not found.keys() & text_keys:
                reason = f"a removal needs the {ID_KEY!r} or the text of its row"
                raise FaultError(reason, code="missing_key", name=ID_KEY, found=found)
            return [RowRemoval(None, place, text_in(found))]
        text = text_in(found)
        if any(key in found for key in _OPINIONS):
            accepted, rejected, added = (
                tuple(dict.fromkeys(label_names_of(found, key))) if key in found else () for key in _OPINIONS
            )
            model = found.get(_MODEL)
            return [
                RowFeedback(
                    text,
                    accepted,
                    rejected,
                    added,
                    id_of(found, id_key),
                    place,
                    model if isinstance(model, str) else None,
                    _time_of(found),
                )
            ]
        return [RowChange(text, tuple(dict.fromkeys(labels_of(found, labels_key, True))), id_of(found, id_key), place)]

    keys = {_REMOVE, _RENAME, _DROP, *row_keys, *labels_keys, *opinions, *_ABOUT}
    for changes in read_records(source, build, keys, unknown, line_limit, encoding):
        yield from changes


def _time_of(found: dict[str, Any]) -> datetime | None:
    """The time of a record; None for one that only people can read."""
    try:
        time = datetime.fromisoformat(found.get(_TIME, ""))
    except (TypeError, ValueError):
        return None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _renames(found: Any) -> list[tuple[str, str]]:
    if not isinstance(found, dict) or not found:
        raise FaultError(f'{_RENAME!r} is {found!r:.20}; expected the old and the new name: {{"old": "new"}}')
    if chained := set(found) & {new for old, new in found.items() if isinstance(new, str) and new != old}:
        raise FaultError(f"{_RENAME!r} has {min(chained)!r} as an old and as a new name; rename in several steps")
    return [(_name(old, _RENAME), _name(new, _RENAME)) for old, new in found.items()]


def _name(found: Any, key: str) -> str:
    [name] = label_names_of({key: [found]}, key)
    return name
