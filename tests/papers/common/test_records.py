from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from longtail.errors import InvalidInput
from longtail_papers.common.claims import Claim, Spread, statements
from longtail_papers.common.records import Records, about, code_digest


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


def test_records_of_other_code_are_measured_anew(path: Path) -> None:
    Records(path, Run).measured({"seed": 0}, lambda: Run("all", [1.0]))
    content = json.loads(path.read_text(encoding="utf-8"))
    # Other code may keep other things of a record.
    content = {"code": "0", "records": [{"settings": each["settings"], "found": {}} for each in content["records"]]}
    path.write_text(json.dumps(content), encoding="utf-8")
    again = Records(path, Run)
    assert again.kept == 0
    assert again.measured({"seed": 0}, lambda: Run("all", [2.0])) == Run("all", [2.0])
    assert Records(path, Run).kept == 1


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
    path.write_text(text.replace("CODE", code_digest()), encoding="utf-8")
    with pytest.raises(InvalidInput, match=r"runs\.json does not hold records .* remove it to measure anew"):
        Records(path, Run)


def test_the_small_version_has_a_file_of_its_own(tmp_path: Path) -> None:
    Records.of(tmp_path, "eagle", dict, quick=True).measured({"seed": 0}, lambda: {"P@1": 7.0})
    full = Records.of(tmp_path, "eagle", dict, quick=False)
    assert full.kept == 0
    assert full.measured({"seed": 0}, lambda: {"P@1": 8.0}) == {"P@1": 8.0}
    assert sorted(each.name for each in tmp_path.iterdir()) == ["eagle-quick.json", "eagle-runs.json"]


def test_readers_are_told_where_records_are_and_how_many_are_older(path: Path) -> None:
    Records(path, dict).measured({"seed": 0}, lambda: {"P@1": 7.0})
    assert "from before" not in about([Records(path.with_name("other.json"), dict)])
    assert "`runs.json`, `other.json`" in about([Records(path, dict), Records(path.with_name("other.json"), dict)])
    assert about([Records(path, dict)]).endswith("from before this run: 1.")


def test_statements_that_fail_are_told() -> None:
    claims = [Claim("water is wet", "9", True), Claim("the moon is cheese", "0", False)]
    section = statements(claims)
    assert section.text == "1 of 2 statements hold in this run. Those that do not: the moon is cheese (0)."
    assert [row["holds"] for row in section.to_dict()["tables"][0]["rows"]] == ["yes", "no"]
    told = statements(claims[:1], "By the mean", "So be it.")
    assert told.text == "By the mean, 1 of 1 statements hold in this run. So be it."


def test_one_seed_has_no_spread() -> None:
    assert Spread.of([4.0]) == (4.0, None)
    assert Spread.of(iter([1.0, 2.0, 3.0])) == (2.0, 1.0)
