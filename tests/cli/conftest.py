"""The program driven as a user would drive it, inside this process and in a folder of its own."""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from longtail.cli.program import run

GOLDEN = Path(__file__).parent / "golden"
REGENERATE = os.environ.get("LONGTAIL_REGENERATE_GOLDEN", "0") == "1"

NOTES = """\
{"id": "a", "text": "red apples and pears", "labels": ["fruit", "red"]}
{"id": "b", "text": "green apples and pears", "labels": ["fruit"]}
{"id": "c", "text": "clear blue sky", "labels": ["weather"]}
{"id": "d", "text": "grey sky and rain", "labels": ["weather"]}
{"id": "e", "text": "rain on red roses", "labels": ["weather", "red"]}
{"id": "f", "text": "green pears in the rain", "labels": ["fruit", "weather"]}
"""
ROWS = "4 3 2\n0 0:1 2:0.5\n0 0:2\n1 1:1\n0,1 1:3 2:1\n"


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("LONGTAIL_TRACEBACK", raising=False)
    (tmp_path / "notes.jsonl").write_text(NOTES, encoding="utf-8", newline="\n")
    (tmp_path / "rows.txt").write_text(ROWS, encoding="utf-8", newline="\n")


@pytest.fixture
def longtail(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Run the program with arguments and, where given, standard input."""

    def call(*arguments: str, stdin: bytes = b"") -> Result:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        capsys.readouterr()
        code = run(arguments)
        printed = capsys.readouterr()
        return Result(code, printed.out, printed.err)

    return call


@pytest.fixture
def model(longtail: Callable[..., Result]) -> str:
    assert longtail("train", "notes.jsonl", "--out", "model", "--alpha", "0.1", "--min-df", "1").code == 0
    return "model"


@pytest.fixture
def tree_model(longtail: Callable[..., Result]) -> str:
    """Two trees whose leaves hold a label or two."""
    arguments = ["--trees", "2", "--leaf-size", "2", "--min-df", "1", "--prune", "0"]
    assert longtail("train", "notes.jsonl", "--out", "tree-model", *arguments).code == 0
    return "tree-model"


@pytest.fixture
def feature_model(longtail: Callable[..., Result]) -> str:
    assert longtail("train", "rows.txt", "--out", "feature-model", "--alpha", "0.1").code == 0
    return "feature-model"


@pytest.fixture
def check_golden() -> Callable[[str, str], None]:
    """Compare with a file of `golden/`; LONGTAIL_REGENERATE_GOLDEN=1 writes the files anew."""

    def check(name: str, text: str) -> None:
        path = GOLDEN / f"{name}.txt"
        scrubbed = scrub(text)
        if REGENERATE:
            path.write_text(scrubbed, encoding="utf-8", newline="\n")
        assert scrubbed == path.read_text(encoding="utf-8")

    return check


def scrub(text: str) -> str:
    """Take out what differs between runs and machines: times, versions, the last digits of scores."""
    text = re.sub(r"\d\.\d{4,}", lambda number: f"{float(number[0]):.3f}", text)
    text = re.sub(r"took \d+\.\d s", "took TIME s", text)
    text = re.sub(r"\d{4}-\d\d-\d\dT[\d:]+\+00:00", "DATE", text)
    text = re.sub(r"[0-9a-f]{64}", "SHA-256", text)
    return re.sub(r"(longtail|numpy|scipy|python) \d[\w.]*", r"\1 VERSION", text)
