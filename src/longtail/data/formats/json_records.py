"""The shared part of the JSON lines readers: one object per line, checked field by field.

Blank lines are skipped. Unknown keys are reported once at the end, ignored, or refused.
"""

from __future__ import annotations

import json
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import IO, Any, Literal, TypeVar

from longtail.data.streams import read_text_lines, source_name
from longtail.errors import DataFormatError, InvalidInput
from longtail.files import PathName
from longtail.printable import json_text

ID_KEY = "id"
LABEL_KEY, LABELS_KEY = "label", "labels"
_WARNED_KEYS = 10
Unknown = Literal["report", "ignore", "error"]
Built = TypeVar("Built")


class FaultError(Exception):
    """What is wrong with a line, or with a line of a longer text, with the facts for the `DataFormatError`."""

    def __init__(self, reason: str, line: int | None = None, **facts: Any) -> None:
        super().__init__(reason)
        self.line = line
        self.facts = facts


def check_unknown(unknown: str) -> None:
    """Check the parameter `unknown` of a reader."""
    if unknown not in ("report", "ignore", "error"):
        raise InvalidInput(f"unknown is {unknown!r}; expected 'report', 'ignore' or 'error'")


def read_records(
    source: PathName | IO[bytes],
    build: Callable[[int, dict[str, Any]], Built],
    keys: set[str],
    unknown: Unknown,
    line_limit: int,
    encoding: str | None = None,
) -> Iterator[Built]:
    """Yield ``build(line number, object)`` of each line; a `FaultError` becomes a `DataFormatError` of that line."""
    name = source_name(source)
    others: Counter[str] = Counter()
    for number, line in read_text_lines(source, line_limit, encoding=encoding):
        if line.isspace():
            continue
        try:
            found = parse_object(line)
            if found.keys() - keys and unknown != "ignore":
                if unknown == "error":
                    key = min(found.keys() - keys)
                    raise FaultError(
                        f"unknown key {key!r}; the known keys are {_listed(keys)}", code="unknown_key", name=key
                    )
                others.update(found.keys() - keys)
            record = build(number, found)
        except FaultError as fault:
            if number == 1 and fault.facts.get("code") == "not_json":
                fault.facts["advice"] = _instead_of_an_object(line)
            raise DataFormatError(name, number, str(fault), **fault.facts) from None
        yield record
    if others:
        shown = ", ".join(f"{key!r} in {count} lines" for key, count in others.most_common(_WARNED_KEYS))
        more = f" and {len(others) - _WARNED_KEYS} more" if len(others) > _WARNED_KEYS else ""
        warnings.warn(f"{name}: unknown keys were ignored: {shown}{more}", stacklevel=2)


def _instead_of_an_object(line: str) -> str:
    """What to do about a first line that is not JSON."""
    if line.lstrip().startswith(("[", "{")):
        return "JSON lines have one whole object in each line; `jq -c '.[]'` makes them of a list of objects"
    return "JSON lines have an object in each line; if this is a table, name the file .csv"


def parse_object(text: str, build: Callable[[list[tuple[str, Any]]], Any] | None = None) -> dict[str, Any]:
    """Parse a line or a text that must be an object; `build` makes each object from its keys and values."""
    try:
        found = json.loads(text.rstrip(), object_pairs_hook=build)
    except json.JSONDecodeError as error:
        raise FaultError(f"not JSON: {error.msg} at character {error.colno}", error.lineno, code="not_json") from None
    except RecursionError:
        raise FaultError("not readable JSON: nested too deeply", code="not_json") from None
    except ValueError as error:  # a whole number of thousands of digits
        raise FaultError(f"not readable JSON: {error}", code="not_json") from None
    if not isinstance(found, dict):
        raise FaultError(f"expected an object {{...}}, found {_kind(found)}", code="not_an_object")
    return found


def text_of(found: dict[str, Any], key: str) -> str:
    """The text under a key."""
    value = _required(found, key)
    if not isinstance(value, str):
        none = ', which is "" if there is none' if value is None else ""
        raise FaultError(f"{key!r} is {_kind(value)}; expected a text{none}")
    return checked_text(value, repr(key))


def joined_text_of(found: dict[str, Any], keys: Sequence[str]) -> str:
    """The texts under several keys, joined by line ends; keys that are missing, null or empty are left out."""
    if not any(key in found for key in keys):
        _required(found, keys[0])
    texts = (optional_text_of(found, key) for key in keys)
    return "\n".join(text for text in texts if text and not text.isspace())


def texts_of(found: dict[str, Any], key: str) -> list[str]:
    """The list of texts under a key."""
    return _strings(found, key, "texts", "expected texts only")


def optional_text_of(found: dict[str, Any], key: str) -> str:
    """The text under a key; empty if there is none, or null."""
    return "" if found.get(key) is None else text_of(found, key)


def optional_texts_of(found: dict[str, Any], key: str) -> list[str]:
    """The text or the list of texts under a key, as a list; empty if there is none, or null."""
    value = found.get(key)
    if value is None:
        return []
    if isinstance(value, str):
        return [text_of(found, key)]
    if not isinstance(value, list):
        raise FaultError(f"{key!r} is {_kind(value)}; expected a text or a list of texts")
    return texts_of(found, key)


def labels_of(found: dict[str, Any], key: str, required: bool) -> list[str]:
    """The list of label names under a key, with repetitions; or the one label of a row with a single label.

    ``"label": "x"`` is read as ``"labels": ["x"]``. Under a key that the user names, a label may stand by itself.
    """
    if key == LABELS_KEY and LABEL_KEY in found:
        if key in found:
            raise FaultError(
                f"both {LABEL_KEY!r} and {LABELS_KEY!r}; expected one label, or a list", code="label_and_labels"
            )
        return _one_label(found, LABEL_KEY, required)
    if found.get(key) is None and not required:
        return []
    if key != LABELS_KEY and not isinstance(found.get(key, []), list):
        return _one_label(found, key, required)
    return label_names_of(found, key)


def label_names_of(found: dict[str, Any], key: str) -> list[str]:
    """The list of label names under a key, with repetitions."""
    labels = _strings(found, key, "names", "labels are names, written in quotes")
    if "" in labels:
        raise FaultError(f"{key!r} holds an empty name")
    return labels


def _one_label(found: dict[str, Any], key: str, required: bool) -> list[str]:
    """The label under a key: a name, or a whole number."""
    value = found[key]
    if value is None and not required:
        return []
    if (number := _whole_number(value)) is not None:
        return [number]
    if not isinstance(value, str):
        raise FaultError(f"{key!r} is {_kind(value)}; expected one label, a text or a whole number")
    if not value:
        raise FaultError(f"{key!r} is an empty name")
    return [checked_text(value, repr(key))]


def _strings(found: dict[str, Any], key: str, what: str, advice: str) -> list[str]:
    value = _required(found, key)
    if not isinstance(value, list):
        none = ", which is [] if there are none" if value is None else ""
        raise FaultError(f"{key!r} is {_kind(value)}; expected a list of {what}{none}")
    for text in value:
        if not isinstance(text, str):
            raise FaultError(f"{key!r} holds {_kind(text)}; {advice}")
        checked_text(text, repr(key))
    return value


def id_of(found: dict[str, Any], key: str | None = None) -> str | None:
    """The id, or None if there is none or a blank one; with `key`, it must be there."""
    value = found.get(ID_KEY) if key is None else _required(found, key)
    if value is None or isinstance(value, str):
        return checked_text(value, repr(key or ID_KEY)) if value and value.strip() else None
    if (number := _whole_number(value)) is not None:
        return number
    raise FaultError(f"{key or ID_KEY!r} is {_kind(value)}; expected a text or a whole number")


def _whole_number(value: Any) -> str | None:
    """A whole number as a text; spreadsheets and data frames write some with a decimal point, as 12.0."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None


def as_line(record: dict[str, Any]) -> bytes:
    """An object as a line of a file."""
    return json_text(record).encode("utf-8") + b"\n"


def _required(found: dict[str, Any], key: str) -> Any:
    if key not in found:
        raise FaultError(f"no key {key!r}; the keys are {_listed(found)}", code="missing_key", name=key, found=found)
    return found[key]


def _listed(keys: Any) -> str:
    return ", ".join(repr(key) for key in sorted(keys)) or "none"


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


def checked_text(text: str, what: str) -> str:
    if not text.isascii():
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            raise FaultError(f"{what} contains half of a surrogate pair, which is not a character") from None
    return text
