"""The results of an experiment, as Markdown for people and JSON for programs.

`Results` rewrites both files whenever a section is added, so they are complete at any moment.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy

from longtail.errors import InvalidInput
from longtail.files import whole_file
from longtail.parallel import count_cores
from longtail.pictures import Picture, can_draw, draw
from longtail.version import __version__

Cell = str | int | float | None


@dataclass(frozen=True)
class Column:
    """A column of a table; `format` is a Python format for its numbers, such as ".2f"."""

    name: str
    format: str = ""


@dataclass(frozen=True)
class Table:
    """Rows of cells under named columns; None is an empty cell.

    Examples
    --------
    >>> print(Table("Sizes", (Column("name"), Column("rows", ",d")), [("Bibtex", 4880)]).to_markdown())
    **Sizes**
    <BLANKLINE>
    | name   |  rows |
    |:-------|------:|
    | Bibtex | 4,880 |
    """

    title: str
    columns: tuple[Column, ...]
    rows: Sequence[tuple[Cell, ...]]

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise InvalidInput(
                    f"table {self.title!r}: a row has {len(row)} cells for {len(self.columns)} columns: {row}"
                )

    def to_markdown(self) -> str:
        """The table as aligned Markdown, with numbers on the right."""
        cells = [[_write(cell, column) for cell, column in zip(row, self.columns, strict=True)] for row in self.rows]
        widths = [
            max([3, len(column.name), *(len(row[place]) for row in cells)]) for place, column in enumerate(self.columns)
        ]
        right = [bool(column.format) for column in self.columns]
        lines = [
            _line([column.name for column in self.columns], widths, right),
            "|"
            + "|".join("-" * (w + 1) + ":" if r else ":" + "-" * (w + 1) for w, r in zip(widths, right, strict=True))
            + "|",
            *(_line(row, widths, right) for row in cells),
        ]
        return "\n".join([f"**{self.title}**", "", *lines])

    def to_dict(self) -> dict[str, Any]:
        """The title and the rows, each a mapping from column to value."""
        names = [column.name for column in self.columns]
        return {"title": self.title, "rows": [dict(zip(names, row, strict=True)) for row in self.rows]}


def _write(cell: Cell, column: Column) -> str:
    if cell is None:
        return "-"
    return cell.replace("|", "\\|") if isinstance(cell, str) else format(cell, column.format)


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    parts = (cell.rjust(w) if r else cell.ljust(w) for cell, w, r in zip(cells, widths, right, strict=True))
    return "| " + " | ".join(parts) + " |"


@dataclass(frozen=True)
class Section:
    """A part of the results: a few sentences on what was measured, then tables and pictures."""

    title: str
    text: str
    tables: Sequence[Table] = ()
    pictures: Sequence[Picture] = ()

    def to_dict(self) -> dict[str, Any]:
        return {
            "title": self.title,
            "tables": [table.to_dict() for table in self.tables],
            "pictures": [picture.file_name for picture in self.pictures],
        }


class Results:
    """The sections of one experiment and their files.

    Parameters
    ----------
    directory : path
        Created if it does not exist.
    name : str
        The files are ``name.md``, ``name.json`` and the pictures.
    title, introduction : str
    quick : bool
        Whether this is the small version; the files then say so.
    """

    def __init__(self, directory: Path, name: str, title: str, introduction: str, *, quick: bool = False) -> None:
        self._directory = directory
        self._name = name
        self._title = title
        self._introduction = introduction
        self._quick = quick
        self._finished = False
        self._sections: dict[str, Section] = {}

    def put(self, section: Section) -> None:
        """Add a section, or replace the one with the same title, and write everything to disk."""
        self._sections[section.title] = section
        for picture in section.pictures if can_draw() else ():
            with whole_file(self._directory / picture.file_name, parents=True) as file:
                draw(picture, file)
        self._flush()

    def finish(self) -> list[Path]:
        """Mark the results as complete and return the paths of all files; without sections there are none."""
        if not self._sections:
            return []
        self._finished = True
        self._flush()
        pictures = [picture.file_name for section in self._sections.values() for picture in section.pictures]
        names = [f"{self._name}.md", f"{self._name}.json", *(pictures if can_draw() else ())]
        return [self._directory / name for name in names]

    def _flush(self) -> None:
        for ending, text in (("md", self._to_markdown()), ("json", self._to_json())):
            with whole_file(self._directory / f"{self._name}.{ending}", parents=True) as file:
                file.write(text.encode())

    def _to_markdown(self) -> str:
        lines = [f"# {self._title}", "", self._introduction, "", _environment_line()]
        if self._quick:
            lines += ["", "This is the quick version: it shows that everything works, but its figures mean little."]
        if not self._finished:
            lines += ["", "The run has not finished: parts are missing."]
        if not can_draw():
            lines += ["", "There are no pictures: they need matplotlib (`pip install 'longtail[plots]'`)."]
        for section in self._sections.values():
            lines += ["", f"## {section.title}", "", section.text]
            for picture in section.pictures if can_draw() else ():
                lines += ["", f"![{picture.caption}]({picture.file_name})"]
            for table in section.tables:
                lines += ["", table.to_markdown()]
        return "\n".join(lines) + "\n"

    def _to_json(self) -> str:
        content = {
            "name": self._name,
            "quick": self._quick,
            "finished": self._finished,
            "environment": _environment(),
            "sections": [section.to_dict() for section in self._sections.values()],
        }
        return json.dumps(content, indent=2, allow_nan=False) + "\n"


def _environment() -> dict[str, str | int]:
    return {
        "longtail": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "system": platform.system(),
        "processor": platform.machine(),
        "cores": count_cores(),
    }


def _environment_line() -> str:
    here = _environment()
    return (
        f"Measured with longtail {here['longtail']}, Python {here['python']}, NumPy {here['numpy']} and SciPy "
        f"{here['scipy']} on {here['cores']} cores ({here['system']}, {here['processor']})."
    )
