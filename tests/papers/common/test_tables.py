from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from longtail.errors import InvalidInput
from longtail.pictures import Line, Panel, Picture
from longtail_papers.common import tables
from longtail_papers.common.tables import Column, Results, Section, Table

TABLE = Table("T", (Column("a | b"), Column("value", ".1f")), [("x|y", 1.25), ("none", None)])


def picture(name: str) -> Picture:
    return Picture(name, "A line", [[Panel("p", "x", "y", [Line("l", [1, 10], [1, 2])], log_x=True, log_y=True)]])


def results(folder: Path) -> Results:
    return Results(folder / "made", "try", "A trial", "Why.")


def test_a_markdown_row_has_one_cell_per_column() -> None:
    rows = TABLE.to_markdown().splitlines()[4:]
    assert rows == ["| x\\|y  |   1.2 |", "| none  |     - |"]


def test_a_row_of_the_wrong_length_is_refused() -> None:
    with pytest.raises(InvalidInput, match="1 cells for 2 columns"):
        Table("T", (Column("a"), Column("b")), [("x",)])


def test_json_keeps_full_precision_and_missing_values(tmp_path: Path) -> None:
    trial = results(tmp_path)
    trial.put(Section("S", "text", [TABLE]))
    read = json.loads((tmp_path / "made" / "try.json").read_text(encoding="utf-8"))
    assert read["sections"][0]["tables"][0]["rows"] == [
        {"a | b": "x|y", "value": 1.25},
        {"a | b": "none", "value": None},
    ]


def test_what_is_put_is_on_disk_before_the_run_ends(tmp_path: Path) -> None:
    trial = results(tmp_path)
    trial.put(Section("First", "one", [TABLE], [picture("line.png")]))
    folder = tmp_path / "made"
    text = (folder / "try.md").read_text(encoding="utf-8")
    assert "## First" in text
    assert "![A line](line.png)" in text
    assert "has not finished" in text
    assert json.loads((folder / "try.json").read_text(encoding="utf-8"))["finished"] is False
    assert (folder / "line.png").read_bytes().startswith(b"\x89PNG")

    paths = trial.finish()
    assert "has not finished" not in (folder / "try.md").read_text(encoding="utf-8")
    assert sorted(paths) == sorted(folder.iterdir())


def test_a_fuller_section_takes_the_place_of_the_first(tmp_path: Path) -> None:
    trial = results(tmp_path)
    for text in ("half", "whole"):
        trial.put(Section("S", text))
        trial.put(Section("Other", "between"))
    text = (tmp_path / "made" / "try.md").read_text(encoding="utf-8")
    assert text.index("whole") < text.index("between")
    assert "half" not in text


def test_a_value_that_json_cannot_hold_leaves_the_last_files_whole(tmp_path: Path) -> None:
    trial = results(tmp_path)
    trial.put(Section("S", "good"))
    before = (tmp_path / "made" / "try.json").read_bytes()
    with pytest.raises(ValueError, match="JSON"):
        trial.put(Section("S", "bad", [Table("T", (Column("v", "f"),), [(math.nan,)])]))
    assert (tmp_path / "made" / "try.json").read_bytes() == before


def test_without_matplotlib_the_page_says_why_there_are_no_pictures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "can_draw", lambda: False)
    trial = results(tmp_path)
    trial.put(Section("S", "text", [], [picture("line.png")]))
    paths = trial.finish()
    assert "need matplotlib" in paths[0].read_text(encoding="utf-8")
    assert sorted(path.name for path in (tmp_path / "made").iterdir()) == ["try.json", "try.md"]
