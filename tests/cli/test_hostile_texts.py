"""Nothing that a file says steers the terminal: every command, on models and data with escapes in every text."""

from __future__ import annotations

import json
import logging
import os
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from longtail.cli.terminal import Terminal, guarded_streams
from longtail.store import State, read_model, update_card, write, write_model
from tests.cli.test_terminal import on_a_terminal

# Sets the title, colours, turns around what follows, and begins a line that would look like one of ours.
EVIL = "\x1b]0;owned\x07\x9b31m\x00\x7f\u202e\u2066\u200f\u061c\u2028\r\nFORGED"
STEERING = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ud800-\udfff]")
ROWS = [("red apples", ["fruit", "red"]), ("green apples", ["fruit"]), ("red roses", ["red"]), ("apples", ["fruit"])]
TREE = ("--learner", "tree", "--leaf-size", "2")
SMALL = ("--min-df", "1")


def evil(name: str) -> str:
    return name + EVIL


@pytest.fixture
def data() -> str:
    """Rows with escapes in texts, labels, ids, unknown keys and the name of the file."""
    path = "notes\x1b[2J\u202e.jsonl"
    lines = [
        json.dumps({"id": evil(str(i)), "text": evil(text), "labels": [*map(evil, labels)], evil("key"): EVIL})
        for i, (text, labels) in enumerate(ROWS * 3)
    ]
    Path(path).write_text("\n".join(lines), encoding="utf-8")
    return path


@pytest.fixture
def forged(data: str, longtail: Callable, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Models of each kind, with escapes in names, versions, and cards."""
    monkeypatch.setattr(write, "_versions", lambda: {evil("longtail"): EVIL})
    taxonomy = [f"{label}\t{evil(f'{kind}').splitlines()[0]}" for label, kind in (("fruit", "food"), ("red", "colour"))]
    Path("taxonomy.tsv").write_text("\n".join(taxonomy), encoding="utf-8")
    Path("plain.jsonl").write_text(
        "\n".join(json.dumps({"text": text, "labels": labels}) for text, labels in ROWS * 3), encoding="utf-8"
    )
    for name, *options in (
        ("ridge", data, "--alpha", "1", "--holdout", "0.3"),
        ("one-vs-rest", data, "--learner", "one-vs-rest"),
        ("tree", data, *TREE, "--trees", "2"),
        ("taxonomy", "plain.jsonl", *TREE, "--taxonomy", "taxonomy.tsv"),
    ):
        check(longtail("train", *options, "--out", name, *SMALL))
        update_card(
            name,
            data={"source": EVIL, "covers": EVIL},
            trained={"at": EVIL, "reason": EVIL, "learner": EVIL},
            metrics={"data": EVIL, "metrics": {evil("P@1"): 0.5}},
            audit={"data": EVIL, "at": EVIL, "label_sets": 1, "unargmaxable": 1, "reasons": [EVIL]},
        )
    return ["ridge", "one-vs-rest", "tree", "taxonomy"]


def check(result: object, code: int | None = 0) -> None:
    for text in (result.out, result.err):
        assert not STEERING.search(text), ascii(text)
        assert not re.search("^FORGED", text, re.MULTILINE), ascii(text)
    assert "unexpected" not in result.err
    assert code is None or result.code == code, result


def test_no_command_prints_what_a_model_or_a_data_file_steers_with(
    longtail: Callable, forged: list[str], data: str
) -> None:
    for model in forged:
        for arguments in (
            ("info", model),
            ("info", model, "--arrays", "--verify"),
            ("info", model, "--json"),
            ("predict", model, data),
            ("predict", model, data, "--output", "table"),
            ("explain", model, "--text", evil("apples")),
            ("explain", model, "--data", data, "--json"),
            ("evaluate", model, data),
            ("evaluate", model, data, "--json"),
        ):
            check(longtail(*arguments))
        # In HTML a line end is a blank, and elements keep the direction of their texts to themselves.
        page = longtail("report", model, data, "--out", "-")
        assert page.code == 0
        assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]", page.out)
        for arguments in (
            ("tree", model),
            ("tree", model, "--output", "json"),
            ("audit", model, data),
            ("audit", model, data, "--json"),
            ("audit", model, "plain.jsonl"),
            ("evaluate", model, data, "--card"),
            ("audit", model, data, "--card"),
            ("explain", model, "--text", "apples", "--label", evil("fruit")),
            ("explain", model, "--text", "apples", "--label", evil("none")),
            ("predict", model, data, "--allow", data),
        ):
            check(longtail(*arguments), code=None)


def test_json_is_equal_once_it_is_read(longtail: Callable, forged: list[str], data: str) -> None:
    assert json.loads(longtail("info", "ridge", "--json").out)["card"]["data"]["source"] == EVIL
    first = json.loads(longtail("predict", "ridge", data).out.splitlines()[0])
    assert first["id"] == evil("0")
    assert {label["label"] for label in first["labels"]} == {evil("fruit"), evil("red")}
    nodes = json.loads(longtail("tree", "tree", "--output", "json").out)["nodes"]
    assert {label for node in nodes for label in node["labels"]} == {evil("fruit"), evil("red")}


def test_no_command_that_reads_data_prints_what_it_steers_with(longtail: Callable, data: str) -> None:
    groups = [
        json.dumps({"id": evil(str(i)), "texts": [evil(text), EVIL], "labels": [*map(evil, labels)], EVIL: 1})
        for i, (text, labels) in enumerate(ROWS * 6)
    ]
    groups.append(json.dumps({"id": evil("last"), "texts": [], "labels": [EVIL]}))
    Path("groups.jsonl").write_text("\n".join(groups), encoding="utf-8")
    for arguments in (
        ("check", data, "--test", data, "--out", "page.html"),
        ("check", data, "--json"),
        ("select", data, *SMALL),
        ("select", data, "--labels-only"),
        ("assign", "groups.jsonl", *SMALL),
        ("assign", "groups.jsonl", "--show", "3", *SMALL),
        ("train", "groups.jsonl", "--out", "of-groups", *SMALL),
        ("info", "of-groups"),
    ):
        check(longtail(*arguments))
    assert longtail("select", data, "--labels-only", "--out", "chosen.tsv").code == 0
    assert not STEERING.search(Path("chosen.tsv").read_text(encoding="utf-8").replace("\t", ""))


def test_no_error_prints_what_a_file_steers_with(longtail: Callable, data: str) -> None:
    Path("broken.jsonl").write_text(f'{{"text": "{EVIL}"', encoding="utf-8")
    Path("keys.jsonl").write_text(json.dumps({EVIL: 1}), encoding="utf-8")
    Path("columns.csv").write_text(f"{EVIL.splitlines()[0]},b\n1,2\n", encoding="utf-8")
    Path("numbers.txt").write_text(EVIL, encoding="utf-8")
    Path("data.arff").write_text(f"@relation {EVIL}\n@attribute {EVIL}\n", encoding="utf-8")
    Path("taxonomy.tsv").write_text(f"{EVIL}\t{EVIL}\n", encoding="utf-8")
    for arguments in (
        ("train", "broken.jsonl", "--out", "m"),
        ("train", "keys.jsonl", "--out", "m"),
        ("train", "columns.csv", "--out", "m"),
        ("train", "numbers.txt", "--out", "m"),
        ("train", "data.arff", "--out", "m"),
        ("train", data, "--out", "m", *TREE, *SMALL, "--taxonomy", "taxonomy.tsv"),
        ("train", evil("nothing"), "--out", "m"),
        ("train", data, "--out", evil("numbers.txt/folder")),
        ("predict", evil("nothing"), data),
        ("info", evil("nothing")),
        ("serve", evil("nothing")),
        ("reproduce", evil("nothing")),
        ("datasets", "fetch", evil("nothing")),
        (EVIL.partition("\r")[0],),
        ("predict", f"--{EVIL}".partition("\r")[0]),
    ):
        result = longtail(*(argument.replace("\0", "") for argument in arguments))
        check(result, code=None)
        assert result.code in (1, 2), arguments
        assert result.err


def test_a_forged_manifest_is_described_without_its_escapes(longtail: Callable, model: str) -> None:
    def forge(state: State) -> State:
        return replace(
            state,
            params={**state.params, EVIL: EVIL},
            facts={**state.facts, evil("fact"): EVIL},
            parts={name: forge(part) for name, part in state.parts.items()},
        )

    write_model(forge(read_model(model)), "forged")
    for arguments in (("info", "forged"), ("info", "forged", "--json")):
        check(longtail(*arguments))
    check(longtail("predict", "forged", "--text", "apples"), code=1)


def test_the_log_does_not_steer_whoever_writes_it(capsys: pytest.CaptureFixture[str]) -> None:
    with guarded_streams(), Terminal().working():
        logging.getLogger("longtail.serve.guard").error("a request failed\n%s", evil("Traceback"))
        print(evil("another library"), file=sys.stderr)
    told = capsys.readouterr().err
    assert "a request failed\n" in told
    assert "another library" in told
    assert not STEERING.search(told)


@pytest.mark.skipif(os.name == "nt", reason="needs a terminal to write to")
def test_nothing_from_a_file_steers_a_real_terminal(forged: list[str], data: str) -> None:
    os.rename(data, named := "[red]notes\x1b]0;owned\x07.jsonl")
    for arguments in (
        ("predict", "ridge", named),
        ("info", "ridge", "--arrays"),
        ("tree", "taxonomy", "--output", "tsv"),
        ("train", named, "--out", "another", *SMALL),
    ):
        seen = on_a_terminal(*arguments)
        assert seen.strip()
        # Our own colours and bars are sequences that begin with \x1b[.
        ours = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r|\n|\t", "", seen)
        assert not STEERING.search(ours), ascii(ours)
