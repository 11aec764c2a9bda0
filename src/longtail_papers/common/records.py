"""Records of an experiment's trainings, in a file beside its results.

A record is measured once for its settings, so an interrupted run continues where it stopped.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from longtail.errors import InvalidInput
from longtail.files import whole_file
from longtail.progress import stage

Record = TypeVar("Record")

Figures = dict[str, float]


class Records(Generic[Record]):
    """Records of one kind, by the settings they were measured with.

    Parameters
    ----------
    path : path
        Need not exist.
    kind : callable
        Makes a record from its fields as named arguments: a dataclass of plain values, or `dict`.
    code : str
        A digest of the code that measures. Records of other code are forgotten.

    Attributes
    ----------
    kept : int
        The number of records that the file already had.

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

    def __init__(self, path: Path, kind: Callable[..., Record], code: str = "") -> None:
        self.path = path
        self._code = code
        self._known: dict[str, Record] = {}
        if path.is_file():
            try:
                content = json.loads(path.read_text(encoding="utf-8"))
                if content["code"] == code:
                    self._known = {_key(each["settings"]): kind(**each["found"]) for each in content["records"]}
            except (ValueError, KeyError, TypeError) as error:
                raise InvalidInput(
                    f"{path} does not hold records of an experiment in this version's format: {error!r}; delete it to "
                    "measure again",
                    path=path,
                ) from None
        self.kept = len(self._known)

    def measured(self, settings: Mapping[str, Any], measure: Callable[[], Record], title: str = "") -> Record:
        """Return the record of these settings; measure it if there is none.

        Parameters
        ----------
        settings : mapping
            Everything the record depends on, as plain values, in any order.
        measure : callable
            Returns the record.
        title : str
            Shown with the progress while it is measured; by default the settings.
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
        text = json.dumps({"code": self._code, "records": records}, indent=1)
        with whole_file(self.path, parents=True) as file:
            file.write(f"{text}\n".encode())


def about(records: Sequence[Records[Any]]) -> str:
    """What readers of the results need to know about the record files; empty if there are none."""
    if not records:
        return ""
    names = ", ".join(f"`{each.path.name}`" for each in records)
    text = (
        f"Measurements are recorded in {names}: an interrupted run continues where it stopped. Delete them to measure "
        "everything again."
    )
    kept = sum(each.kept for each in records)
    return f"{text} Measurements recorded before this run: {kept}." if kept else text


def _key(settings: Mapping[str, Any]) -> str:
    return json.dumps(settings, sort_keys=True)


def _parts(record: Any) -> Any:
    return asdict(record) if is_dataclass(record) and not isinstance(record, type) else record
