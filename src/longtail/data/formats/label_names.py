"""Label names for formats that store only label ids: given by the caller, or in ``labels.txt`` beside the file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from longtail.data.streams import read_names
from longtail.errors import DataFormatError, InvalidInput
from longtail.files import PathName, writing
from longtail.memory import MemoryPlan

_NAMES_FILE = "labels.txt"
# A short string and its place in a tuple.
_NAME_BYTES = 64

LabelNames = Sequence[str] | PathName | None


def resolve_label_names(label_names: LabelNames, path: PathName, count: int, at_least: bool = False) -> Sequence[str]:
    """Names for the `count` labels (or more, if `at_least`) of a file: given, from a file, or the ids."""
    origin = "label_names"
    if label_names is None:
        beside = Path(path).parent / _NAMES_FILE
        if not beside.is_file():
            plan = MemoryPlan(f"naming the {count} labels of {path}", {"names": count * _NAME_BYTES})
            plan.check()
            return [str(number) for number in range(count)]
        label_names = beside
    if isinstance(label_names, str) or not isinstance(label_names, Sequence):
        origin = str(label_names)
        label_names = read_names(label_names)
    if len(label_names) < count or (len(label_names) != count and not at_least):
        raise DataFormatError(
            path, None, f"{count} labels, but {origin} has {len(label_names)} names; give the right ones as label_names"
        )
    return label_names


def write_label_names(label_names: Sequence[str], path: PathName) -> None:
    """Write names that are not just ids to ``labels.txt`` beside `path`; an existing one must have the same names."""
    beside = Path(path).parent / _NAMES_FILE
    names = list(label_names)
    if beside.exists():
        if read_names(beside) != names:
            raise InvalidInput(f"{beside} and the corpus have different label names; write to another directory")
    elif names != [str(number) for number in range(len(names))]:
        for name in names:
            if "\n" in name or "\r" in name:
                raise InvalidInput(f"the label {name!r} contains a line end and cannot be a line of {_NAMES_FILE}")
        with writing(beside) as stream:
            stream.writelines(f"{name}\n".encode() for name in names)
