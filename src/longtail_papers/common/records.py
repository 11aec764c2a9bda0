"""What trainings of an experiment led to, in a file beside its results.

A record is measured once for its settings, so that a run that was interrupted goes on where it stopped.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, Generic, TypeVar

import longtail
from longtail.errors import InvalidInput
from longtail.files import whole_file
from longtail.progress import stage

Record = TypeVar("Record")

Figures = dict[str, float]


class Records(Generic[Record]):
    """Records of one kind by the settings they were measured with.

    What was measured with other settings or by other code is measured anew.

    Parameters
    ----------
    path : path
        Need not exist.
    kind : callable
        Makes a record from its parts as named arguments: a dataclass of plain values, or `dict`.

    Attributes
    ----------
    kept : int
        Records that the file had before.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as directory:
    ...     path = Path(directory, "runs.json")
    ...     first = Records(path, dict).measured({"seed": 0}, lambda: {"P@1": 82.5})
    ...     again = Records(path, dict).measured({"seed": 0}, lambda: {"P@1": 0.0})
    >>> first == again == {"P@1": 82.5}
    True
    """

    def __init__(self, path: Path, kind: Callable[..., Record]) -> None:
        self.path = path
        self._known: dict[str, Record] = {}
        if path.is_file():
            try:
                content = json.loads(path.read_text(encoding="utf-8"))
                if content["code"] == code_digest():
                    self._known = {_key(each["settings"]): kind(**each["found"]) for each in content["records"]}
            except (ValueError, KeyError, TypeError) as error:
                raise InvalidInput(
                    f"{path} does not hold records of an experiment as this version keeps them: {error!r}; remove it "
                    "to measure anew"
                ) from None
        self.kept = len(self._known)

    @classmethod
    def of(cls, directory: Path, name: str, kind: Callable[..., Record], *, quick: bool) -> Records[Record]:
        """The records of the experiment `name`.

        The small version has a file of its own: its figures must never stand in for those of the full one.
        """
        return cls(directory / f"{name}-{'quick' if quick else 'runs'}.json", kind)

    def measured(self, settings: Mapping[str, Any], measure: Callable[[], Record], title: str = "") -> Record:
        """The record of these settings, or what `measure` finds now.

        Parameters
        ----------
        settings : mapping
            All that the record depends on, as plain values; their order does not matter.
        measure : callable
        title : str
            Of the progress while it is measured; the settings unless told.
        """
        key = _key(settings)
        if key not in self._known:
            told = title or ", ".join(f"{name} {value}" for name, value in settings.items() if value not in ("", None))
            with stage(told):
                self._known[key] = measure()
            self._write()
        return self._known[key]

    def _write(self) -> None:
        records = [{"settings": json.loads(key), "found": _parts(record)} for key, record in self._known.items()]
        text = json.dumps({"code": code_digest(), "records": records}, indent=1)
        with whole_file(self.path, parents=True) as file:
            file.write(f"{text}\n".encode())


def about(records: Sequence[Records[Any]]) -> str:
    """What readers of the results have to know of the files, in two sentences or three."""
    names = ", ".join(f"`{each.path.name}`" for each in records)
    text = (
        f"Trainings are kept in {names}: a run that was interrupted goes on where it stopped, and removing what is "
        "kept measures everything anew."
    )
    kept = sum(each.kept for each in records)
    return f"{text} Trainings kept there from before this run: {kept}." if kept else text


@cache
def code_digest() -> str:
    """A digest of the package's code: a figure is only as old as the code that measured it."""
    root = Path(longtail.__file__).parent
    digest = blake2b(digest_size=8)
    for path in sorted(path for path in root.rglob("*") if path.suffix in (".py", ".cpp", ".h")):
        digest.update(f"{path.relative_to(root).as_posix()}\n".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _key(settings: Mapping[str, Any]) -> str:
    return json.dumps(settings, sort_keys=True)


def _parts(record: Any) -> Any:
    return asdict(record) if is_dataclass(record) and not isinstance(record, type) else record
