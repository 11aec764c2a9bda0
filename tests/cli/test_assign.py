"""`longtail assign`, and training on labels of groups: what goes in, what comes out, what is refused."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import longtail as library
from longtail.aggregated import GroupRobustLabelVectors, assign_labels
from longtail.aggregated.assignment import RULES as LIBRARY_RULES
from longtail.aggregated.classifier import STRATEGIES as LIBRARY_STRATEGIES
from longtail.cli.groups import PLACING, RULES, STRATEGIES
from longtail.cli.program import PIPE_CLOSED
from longtail.data import GroupedCorpus, read_corpus, read_grouped_jsonl, read_groups

PAGES = """\
{"id": "p1", "texts": ["ripe apples and pears from the garden", "rain and a grey sky"], "labels": ["fruit", "weather"]}
{"id": "p2", "texts": ["apples and pears in a basket", "train to the coast was late"], "labels": ["fruit", "travel"]}
{"id": "p3", "texts": ["a grey sky, then rain", "a late train to the coast"], "labels": ["weather", "travel"]}
{"id": "p4", "texts": ["pears, apples, plums", "ripe plums, apples", "rain"], "labels": ["fruit", "fruit", "weather"]}
{"id": "p5", "texts": ["rain, rain", "what a grey sky"], "labels": ["weather", "weather"]}
{"id": "p6", "texts": ["the coast", "a basket"], "labels": []}
"""
TRUTH = ["fruit", "weather", "fruit", "travel", "weather", "travel", "fruit", "fruit", "weather", "weather", "weather"]
ROWS = "6 4 2\n 0:1\n 1:1\n1 0:1 2:0.5\n0,1 3:1\n 3:2\n 2:1\n"
GROUPS = "3 6 3\n0,1 0 1\n0,2:2 2 3 4\n 5 0\n"


@pytest.fixture(autouse=True)
def _groups(_own_folder: None) -> None:
    Path("pages.jsonl").write_text(PAGES, encoding="utf-8", newline="\n")
    Path("vectors.txt").write_text(ROWS, encoding="utf-8", newline="\n")
    Path("groups.txt").write_text(GROUPS, encoding="utf-8", newline="\n")


def records(text: str) -> list[dict]:
    return [json.loads(line) for line in text.splitlines()]


def test_the_names_of_strategies_and_rules_are_the_librarys() -> None:
    assert set(STRATEGIES) == set(LIBRARY_STRATEGIES) == {*PLACING, "all", "auto"}
    assert set(RULES) == set(LIBRARY_RULES)


def test_what_assigning_says_and_writes(longtail: Callable, check_golden: Callable) -> None:
    result = longtail("assign", "pages.jsonl")
    assert result.code == 0
    check_golden("assign", result.err + result.out)


def test_groups_to_read(longtail: Callable, check_golden: Callable) -> None:
    result = longtail("assign", "pages.jsonl", "--show", "3")
    assert result.code == 0
    check_golden("assign-show", result.out)


@pytest.mark.parametrize("strategy", PLACING)
def test_every_strategy_finds_the_rows(longtail: Callable, strategy: str) -> None:
    found = records(longtail("assign", "pages.jsonl", "--strategy", strategy).out)
    assert [record["labels"] for record in found] == [[label] for label in TRUTH] + [[], []]
    assert [record["id"] for record in found] == list(range(1, 14))
    assert [record["group"] for record in found][:4] == ["p1", "p1", "p2", "p2"]
    assert found[9]["confidences"] == found[10]["confidences"] == [None]  # both rows of p5 have it


def test_the_rule_decides_how_often_a_label_is_placed(longtail: Callable) -> None:
    def placed(rule: str) -> list[list[str]]:
        return [record["labels"] for record in records(longtail("assign", "pages.jsonl", "--rule", rule).out)]

    assert sum(map(len, placed("count"))) == sum(map(len, placed("joint"))) == len(TRUTH)
    assert sum(map(len, placed("argmax"))) == len(TRUTH) - 2


def test_the_assignment_is_that_of_the_library(longtail: Callable) -> None:
    result = longtail("assign", "pages.jsonl", "--iterations", "3", "--step", "0.5", "--min-df", "1", "--ngrams", "1-2")
    corpus = read_grouped_jsonl("pages.jsonl")
    X = library.TextFeatures(min_df=1, ngrams=(1, 2)).fit_transform(corpus.texts)
    vectors = GroupRobustLabelVectors(3, 0.5).fit(X, corpus.groups, corpus.group_labels).label_vectors_
    found = assign_labels(X, corpus.groups, corpus.group_labels, vectors)
    expected = {
        (r, corpus.label_names[k]): c for r, k, c in zip(found.rows, found.labels, found.confidences, strict=True)
    }
    told = {
        (record["id"] - 1, label): np.inf if confidence is None else confidence
        for record in records(result.out)
        for label, confidence in zip(record["labels"], record["confidences"], strict=True)
    }
    assert told == pytest.approx(expected, abs=1e-5)


def test_every_way_to_give_groups_gives_the_same(longtail: Callable) -> None:
    content = Path("pages.jsonl").read_bytes()
    Path("zipped.jsonl.gz").write_bytes(gzip.compress(content))
    Path("pages.data").write_bytes(content)
    Path("other.jsonl").write_bytes(content.replace(b'"texts"', b'"parts"').replace(b'"labels"', b'"tags"'))
    expected = longtail("assign", "pages.jsonl").out
    for arguments, stdin in [
        (["zipped.jsonl.gz"], b""),
        (["-"], content),
        (["pages.data", "--format", "jsonl"], b""),
        (["other.jsonl", "--text-column", "parts", "--label-column", "tags"], b""),
    ]:
        result = longtail("assign", *arguments, stdin=stdin)
        assert (result.code, result.out) == (0, expected), result.err


def test_a_file_gets_what_standard_output_would(longtail: Callable) -> None:
    expected = longtail("assign", "pages.jsonl").out
    result = longtail("assign", "pages.jsonl", "--out", "rows.jsonl", "--show", "1")
    assert Path("rows.jsonl").read_text(encoding="utf-8") == expected
    assert result.out.startswith("p1: fruit, weather\n")
    corpus = read_corpus("rows.jsonl", unknown="ignore")
    assert list(corpus.texts)[:1] == ["ripe apples and pears from the garden"]
    assert longtail("train", "rows.jsonl", "--out", "model").code == 0


def test_rows_of_features_come_out_with_labels(longtail: Callable) -> None:
    result = longtail("assign", "vectors.txt", "--groups", "groups.txt")
    assert result.code == 0, result.err
    assert "vectors.txt: 6 rows of features in 3 groups of 2.3 on average, 3 labels, 1.3 labels per group" in result.err
    assert longtail("assign", "vectors.txt", "--groups", "groups.txt", "--out", "rows.txt").out == ""
    assert Path("rows.txt").read_text(encoding="utf-8") == result.out
    found, before = read_corpus("rows.txt"), read_corpus("vectors.txt")
    assert (found.features != before.features).nnz == 0
    rows = [found.labels[[row]].indices.tolist() for row in range(6)]
    assert rows[5] == []
    assert sorted(rows[0] + rows[1]) == [0, 1]
    assert sorted(rows[2] + rows[3] + rows[4]) == [0, 2, 2]


def test_texts_may_have_their_groups_in_a_file_and_overlap(longtail: Callable) -> None:
    Path("three.txt").write_text("2 6 2\n0 0 1 2\n1 2 3\n", encoding="utf-8")
    Path("labels.txt").write_text("fruit\nsky\n", encoding="utf-8")
    found = records(longtail("assign", "notes.jsonl", "--groups", "three.txt").out)
    assert [record["group"] for record in found] == [1, 1, [1, 2], 2, [], []]
    assert [record["id"] for record in found] == list("abcdef")
    assert sum("fruit" in record["labels"] for record in found) == 1


def test_groups_without_rows_and_labels_without_groups_are_told(longtail: Callable) -> None:
    Path("odd.jsonl").write_text(
        PAGES + '{"id": "p7", "texts": [], "labels": ["lost", "fruit"]}\n{"id": "p8", "texts": [], "labels": []}\n',
        encoding="utf-8",
    )
    result = longtail("assign", "odd.jsonl")
    assert result.code == 0
    assert "1 group has labels but no rows, for example group 6 ('p7'); these labels are dropped" in result.err
    assert records(result.out) == records(longtail("assign", "pages.jsonl").out)
    trained = longtail("train", "odd.jsonl", "--out", "model", "--strategy", "eagle")
    assert "dropped 1 label that occur in no group with rows\n" in trained.err
    assert library.load("model").label_names_ == ("fruit", "travel", "weather")


def test_labels_of_a_single_group_are_unsure(longtail: Callable) -> None:
    Path("single.jsonl").write_text('{"texts": ["red rose", "blue sky"], "labels": ["x"]}\n', encoding="utf-8")
    result = longtail("assign", "single.jsonl", "--min-df", "1", "--show", "1")
    assert "100 % of the assignments are unsure" in result.err
    assert "x +" in result.out
    assert "(only here)" in result.out


@pytest.mark.parametrize(
    ("content", "arguments", "error"),
    [
        (None, ["absent.jsonl"], "there is no file absent.jsonl"),
        (
            None,
            ["notes.jsonl"],
            "notes.jsonl:1: no key 'texts'; the keys are 'id', 'labels', 'text'; these are rows, not ",
        ),
        (
            None,
            ["vectors.txt", "--groups", "vectors.txt"],
            "vectors.txt:2: '0:1' is not a row; expected row numbers, separated by blanks; is it a file ",
        ),
        (None, ["vectors.txt"], "vectors.txt holds rows, not groups; give their groups as --groups FILE, as"),
        (
            None,
            ["groups.txt"],
            "groups.txt is a groups file: give the file of its rows as DATA, and this one as --groups",
        ),
        (None, ["bibtex"], "bibtex has labels of rows; give their groups as --groups FILE, or use python-api"),
        (
            None,
            ["pages.jsonl", "--out", "."],
            "labelled rows are written as .jsonl, .jsonl.gz, .txt, ",
        ),
        (
            b"[]",
            ["bad.jsonl"],
            "bad.jsonl:1: expected an object {...}, found a list; JSON lines have one object per",
        ),
        (None, ["vectors.txt", "--groups", "absent.txt"], "there is no file absent.txt"),
        (None, ["rows.txt", "--groups", "groups.txt"], "groups.txt:1: the header says 6 rows, but there are 4"),
        (None, ["pages.jsonl", "--groups", "groups.txt"], "pages.jsonl:1: no key 'text'; the keys are"),
        (None, ["pages.jsonl", "--log"], "--log is for features; pages.jsonl holds texts"),
        (None, ["vectors.txt", "--groups", "groups.txt", "--ngrams", "2"], "--ngrams is for texts; vectors.txt holds"),
        (
            None,
            ["pages.jsonl", "--label-separator", ";"],
            "--label-separator does not apply to the format",
        ),
        (
            None,
            ["pages.jsonl", "--out", "rows.txt"],
            "labelled texts are written as .jsonl or .jsonl.gz, not as rows.txt",
        ),
        (None, ["pages.jsonl", "--out", "no/rows.jsonl"], "cannot write no/rows.jsonl: there is no folder"),
        (
            None,
            ["vectors.txt", "--groups", "groups.txt", "--out", "rows.jsonl"],
            "labelled features are written as .txt, .txt.gz or .npz, not as rows.jsonl",
        ),
        (b"", ["bad.jsonl"], "the corpus has no rows to label"),
        (b'{"texts": [], "labels": ["x"]}', ["bad.jsonl"], "the corpus has no rows to label"),
        (b'{"texts": ["a"], "labels"', ["bad.jsonl"], "bad.jsonl:1: not JSON: Expecting ':' delimiter"),
        (b'{"texts": "a", "labels": []}', ["bad.jsonl"], "bad.jsonl:1: 'texts' is a text; expected a list of texts"),
        (b"1 6 3\n0 1 1\n", ["vectors.txt", "--groups", "bad"], "bad:2: row 1 appears twice"),
        (b"1 6 3\n0 9\n", ["vectors.txt", "--groups", "bad"], "bad:2: row 9 is too large: there are 6 rows, numbered"),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(
    longtail: Callable, content: bytes | None, arguments: list[str], error: str
) -> None:
    if content is not None:
        Path("bad" if "bad" in arguments else arguments[0]).write_bytes(content)
    before = sorted(path.name for path in Path().iterdir())
    result = longtail("--quiet", "assign", *arguments)
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith(f"error: {error}")
    assert result.err.count("\n") == 1
    assert sorted(path.name for path in Path().iterdir()) == before


def test_search_options_do_not_apply_to_plain_means(longtail: Callable) -> None:
    result = longtail("assign", "pages.jsonl", "--strategy", "eagle-0", "--iterations", "3")
    assert result.code == 2
    assert "--strategy eagle-0 does not search" in result.err


def test_the_embedded_corpus_shows_whose_a_label_is(longtail: Callable) -> None:
    result = longtail("assign", "python-api", "--show", "4")
    assert result.code == 0
    assert "python-api: " in result.err
    assert len([line for line in result.out.splitlines() if line.startswith(("numpy", "scipy", "sklearn"))]) == 4
    assert "labels and confidences" in result.out


def test_a_process_of_its_own_assigns_from_a_pipe() -> None:
    program = [sys.executable, "-m", "longtail", "--quiet", "assign", "-"]
    done = subprocess.run(program, input=PAGES.encode(), capture_output=True, check=True)
    assert done.stderr == b""
    assert [record["labels"] for record in records(done.stdout.decode())][:11] == [[label] for label in TRUTH]
    written = subprocess.run([*program, "-o", "rows.jsonl"], input=PAGES.encode(), capture_output=True, check=True)
    assert written.stdout == b""
    assert Path("rows.jsonl").read_bytes() == done.stdout
    broken = subprocess.run(program, input=b'{"texts": 1}', capture_output=True)
    assert broken.returncode == 1
    assert broken.stderr == b"error: <stdin>:1: 'texts' is a number; expected a list of texts\n"


def test_a_reader_that_goes_away_is_no_error() -> None:
    Path("many.jsonl").write_text(PAGES * 2000, encoding="utf-8")
    program = [sys.executable, "-m", "longtail", "--quiet", "assign", "many.jsonl"]
    assigning = subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert assigning.stdout is not None
    assert assigning.stdout.readline().startswith(b'{"id": 1, "group": "p1"')
    assigning.stdout.close()
    _, err = assigning.communicate(timeout=60)
    assert (assigning.returncode, err) == (PIPE_CLOSED, b"")


def test_what_training_on_groups_says(longtail: Callable, check_golden: Callable) -> None:
    result = longtail("train", "pages.jsonl", "--out", "model", "--strategy", "eagle", "--alpha", "0.1")
    assert result.code == 0
    check_golden("train-groups", result.err + result.out)


def test_a_model_of_groups_is_a_model_of_rows(longtail: Callable) -> None:
    arguments = ["--strategy", "eagle", "--alpha", "0.1", "--min-df", "1"]
    assert longtail("train", "pages.jsonl", "--out", "model", *arguments).code == 0
    tagger = library.load("model")
    assert isinstance(tagger, library.Tagger)
    corpus = read_grouped_jsonl("pages.jsonl")
    expected = library.Tagger(library.TextFeatures(min_df=1), library.Ridge(0.1)).fit_groups(corpus, "eagle")
    assert tagger.predict(corpus.texts) == expected.predict(corpus.texts)
    assert tagger.n_rows_ == expected.n_rows_ == len(TRUTH)
    assert tagger.label_counts_.tolist() == [4, 2, 5]
    told = longtail("predict", "model", "--text", "late train", "-k", "1").out
    assert json.loads(told)["labels"][0]["label"] == "travel"
    assert longtail("evaluate", "model", "notes.jsonl").code == 0
    assert longtail("explain", "model", "--text", "grey sky").code == 0


def test_training_chooses_a_strategy_and_says_why(longtail: Callable) -> None:
    result = longtail("train", "pages.jsonl", "--out", "model", "--alpha", "0.1")
    assert result.code == 0
    assert "5 groups are too few to compare strategies; using iterate\n" in result.err
    assert result.err.count("learner: ") == 1
    Path("more.jsonl").write_text(re.sub('"id": "p[0-9]", ', "", PAGES) * 4, encoding="utf-8")
    result = longtail("train", "more.jsonl", "--out", "other", "--alpha", "0.1")
    assert "strategies are compared on only 4 groups; consider choosing one yourself" in result.err
    assert "share of labels explained in held-out groups: all " in result.err
    assert result.err.count("learner: ") == 1


@pytest.mark.parametrize("options", [["--strategy", "eagle"], ["--rule", "argmax", "--strategy", "eagle-0"]])
def test_training_takes_groups_of_features(longtail: Callable, options: list[str]) -> None:
    result = longtail("train", "vectors.txt", "--groups", "groups.txt", "--out", "model", "--alpha", "1", *options)
    assert result.code == 0, result.err
    corpus = read_groups("groups.txt", read_corpus("vectors.txt"))
    given = dict(zip(("strategy", "rule"), (options[-1], options[1] if len(options) > 2 else "joint"), strict=True))
    expected = library.Tagger(estimator=library.Ridge(1.0)).fit_groups(corpus, **given)
    assert library.load("model").predict(corpus.features) == expected.predict(corpus.features)


def test_training_takes_groups_from_standard_input_when_told(longtail: Callable) -> None:
    told = longtail("train", "-", "--out", "model", "--strategy", "eagle", stdin=PAGES.encode())
    assert told.code == 0, told.err
    assert "standard input: 13 texts in 6 groups" in told.err
    untold = longtail("train", "-", "--out", "other", stdin=PAGES.encode())
    assert untold.code == 1
    assert (
        "no key 'text'; the keys are 'id', 'labels', 'texts'; these are groups, not rows: use --strategy auto\n"
        in untold.err
    )


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (
            ["pages.jsonl", "--holdout", "0.2"],
            "--holdout and --no-refit need labels of rows, but DATA has only ",
        ),
        (["notes.jsonl", "--strategy", "eagle"], "--strategy is for labels of groups; notes.jsonl has labels of rows"),
        (
            ["rows.txt", "--rule", "argmax"],
            "--rule is for labels of groups; rows.txt has labels of rows",
        ),
        (["absent.jsonl", "--rule", "argmax"], "there is no file absent.jsonl"),
        (["pages.jsonl", "--no-normalize"], "--no-normalize is for features; pages.jsonl holds texts"),
        (["empty.jsonl"], "empty.jsonl: no group has both rows and labels, so there is nothing to learn"),
    ],
)
def test_training_refuses_what_makes_no_sense(longtail: Callable, arguments: list[str], error: str) -> None:
    Path("empty.jsonl").write_text('{"texts": [], "labels": ["x"]}\n{"texts": ["a"], "labels": []}\n', encoding="utf-8")
    result = longtail("--quiet", "train", *arguments, "--out", "model")
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith(f"error: {error}")
    assert not Path("model").exists()


def test_a_taxonomy_of_the_labels_of_groups_is_the_tree(longtail: Callable) -> None:
    Path("taxonomy.tsv").write_text("fruit\tthings\ntravel\tthings\nweather\tthings\n", encoding="utf-8")
    result = longtail("train", "pages.jsonl", "--out", "model", "--taxonomy", "taxonomy.tsv", "--strategy", "eagle")
    assert result.code == 0, result.err
    assert library.load("model").estimator_.hierarchies_[0].node_names == ("things",)


def test_rows_in_no_group_and_labels_in_none_do_no_harm() -> None:
    corpus = GroupedCorpus(
        [[1, 0], [1, 0], [0, 1], [0, 0]], [[1, 0], [1, 0]], ["x", "never"], texts=["red", "red sky", "red", "red"]
    )
    tagger = library.Tagger(estimator=library.Ridge()).fit_groups(corpus, "eagle")
    assert tagger.n_rows_ == 2
    assert tagger.label_counts_.tolist() == [2]
    assert tagger.label_names_ == ("x",)


@pytest.mark.parametrize("command", [("assign", "pages.jsonl"), ("predict", "model", "pages.jsonl")])
def test_the_file_that_is_read_is_not_written_over(longtail: Callable, command: tuple[str, ...]) -> None:
    result = longtail(*command, "--out", str(Path("pages.jsonl").absolute()))
    assert result.code == 1
    assert "is also an input; write to another file" in result.err
    assert Path("pages.jsonl").read_text(encoding="utf-8") == PAGES


def test_the_groups_file_is_not_written_over(longtail: Callable) -> None:
    Path("rows.jsonl").write_text('{"text": "red"}\n', encoding="utf-8")
    Path("groups.jsonl").write_text('{"rows": [0], "labels": ["x"]}\n', encoding="utf-8")
    before = Path("groups.jsonl").read_bytes()
    result = longtail("assign", "rows.jsonl", "--groups", "groups.jsonl", "--out", "groups.jsonl")
    assert "is also an input; write to another file" in result.err
    assert Path("groups.jsonl").read_bytes() == before


def test_a_data_set_has_no_labels_of_groups(longtail: Callable) -> None:
    told = longtail("train", "python-api", "--out", "m", "--strategy", "eagle").err
    assert "--strategy is for labels of groups; python-api has labels of rows" in told


COLUMNS = """\
page,text,labels
p1,red apples and pears,fruit;weather
p1,grey sky and rain,
p2,apples in a basket,fruit
p3,rain and a grey sky,weather
"""


def test_a_column_says_which_rows_are_a_group(longtail: Callable) -> None:
    Path("pages.csv").write_text(COLUMNS, encoding="utf-8", newline="\n")
    result = longtail("assign", "pages.csv", "--group-column", "page", "--min-df", "1")
    assert result.code == 0, result.err
    assert "pages.csv: 4 texts in 3 groups of 1.3 on average, 2 labels, 1.3 labels per group" in result.err
    found = {record["text"]: record["labels"] for record in records(result.out)}
    by_number = longtail("assign", "pages.csv", "--group-column", "0", "--min-df", "1")
    assert by_number.out == result.out
    assert found["red apples and pears"] == ["fruit"]
    assert found["grey sky and rain"] == ["weather"]
    trained = longtail(
        "train", "pages.csv", "--group-column", "page", "--min-df", "1", "--alpha", "1", "--out", "model"
    )
    assert trained.code == 0, trained.err
    assert "in 3 groups" in trained.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["assign", "pages.csv", "--group-column", "sheet"], "no column is named 'sheet'"),
        (["assign", "pages.csv", "--group-column", "²"], "no column is named '²'"),
        (["assign", "pages.csv", "--group-column", "9" * 5000], "no column is named '999"),
        (["assign", "pages.csv", "--group-column", "page", "--label-column", "²"], "no column is named '²'"),
        (["assign", "pages.csv", "--group-column", "page", "--groups", "groups.txt"], "give one of them"),
        (["assign", "pages.jsonl", "--group-column", "page"], "--group-column is for delimited files"),
        (["assign", "-", "--group-column", "page"], "--group-column is for delimited files"),
        (["assign", "pages.csv"], "--group-column NAME"),
        (["assign", "list.json"], "list.json is JSON, not JSON lines: write each group on its own line"),
        (
            ["train", "keys.jsonl", "--out", "model"],
            "name the key of the text, or of the list of texts of a group: --text-column",
        ),
        (["train", "keys.jsonl", "--out", "model", "--strategy", "eagle"], "no list of texts under 'texts'"),
    ],
)
def test_the_next_step_is_told(longtail: Callable, arguments: list[str], message: str) -> None:
    Path("pages.csv").write_text(COLUMNS, encoding="utf-8", newline="\n")
    Path("list.json").write_text('\n [{"texts": ["a", "b"], "labels": ["x"]}]', encoding="utf-8")
    Path("keys.jsonl").write_text('{"paragraphs": ["a", "b"], "labels": ["x"]}\n', encoding="utf-8")
    found = longtail(*arguments)
    assert found.code == 1
    assert message in found.err


def test_more_groups_to_show_than_there_are_is_all_of_them(longtail: Callable) -> None:
    shown = longtail("assign", "pages.jsonl", "--show", "9223372036854775808")
    assert shown == longtail("assign", "pages.jsonl", "--show", "100")
    assert shown.code == 0
