from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from longtail.errors import InvalidInput
from longtail_papers.common.records import Records, about


@dataclass(frozen=True)
class Run:
    way: str
    values: list[float]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.json"


def test_a_record_is_measured_once_for_its_settings_in_whatever_order(path: Path) -> None:
    assert Records(path, dict).measured({"head": "MHC", "seed": 0}, lambda: {"P@1": 7.0}) == {"P@1": 7.0}
    again = Records(path, dict)
    assert again.kept == 1
    assert again.measured({"seed": 0, "head": "MHC"}, lambda: {"P@1": 8.0}) == {"P@1": 7.0}
    assert again.measured({"seed": 1, "head": "MHC"}, lambda: {"P@1": 8.0}) == {"P@1": 8.0}
    assert Records(path, dict).kept == 2


def test_records_are_read_back_as_they_were_measured(path: Path) -> None:
    settings = {"shapes": [(3, 4), (5, 4)], "rate": 0.1, "way": None}
    run = Records(path, Run).measured(settings, lambda: Run("all", [0.1, 1 / 3]))
    assert Records(path, Run).measured(settings, lambda: pytest.fail("measured again")) == run


def test_what_was_measured_before_an_interruption_is_kept(path: Path) -> None:
    def interrupted() -> Run:
        raise KeyboardInterrupt

    records = Records(path, Run)
    records.measured({"seed": 0}, lambda: Run("all", [1.0]))
    with pytest.raises(KeyboardInterrupt):
        records.measured({"seed": 1}, interrupted)
    again = Records(path, Run)
    assert again.kept == 1
    assert again.measured({"seed": 1}, lambda: Run("all", [2.0])) == Run("all", [2.0])


def test_records_of_other_code_are_forgotten(path: Path) -> None:
    Records(path, Run, "old").measured({"seed": 0}, lambda: Run("all", [1.0]))
    content = json.loads(path.read_text(encoding="utf-8"))
    # Other code may have other fields in a record.
    content = {
        "code": content["code"],
        "records": [{"settings": each["settings"], "found": {}} for each in content["records"]],
    }
    path.write_text(json.dumps(content), encoding="utf-8")
    again = Records(path, Run, "new")
    assert again.kept == 0
    assert again.measured({"seed": 0}, lambda: Run("all", [2.0])) == Run("all", [2.0])
    assert Records(path, Run, "new").kept == 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        '{"code": ',
        "[1]",
        "7",
        '[{"way": "all", "values": []}]',
        '{"code": "CODE", "figures": {}}',
        '{"code": "CODE", "records": [{"settings": {}, "found": {"way": "all"}}]}',
        '{"code": "CODE", "records": [{"settings": {}, "found": {"way": "", "values": [], "more": 1}}]}',
        '{"code": "CODE", "records": [{"found": {"way": "", "values": []}}]}',
        '{"code": "CODE", "records": [3]}',
    ],
)
def test_a_file_that_is_damaged_or_of_something_else_is_refused_by_name(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidInput, match=r"runs\.json does not hold records .* delete it to measure again") as raised:
        Records(path, Run, "CODE")
    assert raised.value.path == str(path)


def test_readers_are_told_where_records_are_and_how_many_are_older(path: Path) -> None:
    Records(path, dict).measured({"seed": 0}, lambda: {"P@1": 7.0})
    assert about([]) == ""
    assert "before this run" not in about([Records(path.with_name("other.json"), dict)])
    assert "`runs.json`, `other.json`" in about([Records(path, dict), Records(path.with_name("other.json"), dict)])
    assert about([Records(path, dict)]).endswith("recorded before this run: 1.")
