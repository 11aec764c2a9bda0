"""Using a model: predict, evaluate, explain, info; and the list of data sets."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import longtail as library
from longtail.data import read_corpus
from longtail.store import read_model, write_model


def lines(text: str) -> list[dict]:
    return [json.loads(line) for line in text.splitlines()]


def test_predictions_are_those_of_the_library(longtail: Callable, model: str) -> None:
    found = lines(longtail("predict", model, "notes.jsonl", "-k", "2").out)
    corpus = read_corpus("notes.jsonl")
    expected = library.load(model).predict(corpus.texts, k=2)
    assert [row["id"] for row in found] == ["a", "b", "c", "d", "e", "f"]
    for row, tags in zip(found, expected, strict=True):
        assert [tag["label"] for tag in row["labels"]] == [tag.label for tag in tags]
        assert [tag["score"] for tag in row["labels"]] == pytest.approx([tag.score for tag in tags], abs=1e-6)


def test_json_lines(longtail: Callable, model: str, check_golden: Callable) -> None:
    check_golden("predict", longtail("predict", model, "notes.jsonl", "-k", "2").out)


def test_a_table(longtail: Callable, model: str, check_golden: Callable) -> None:
    check_golden("predict-table", longtail("predict", model, "notes.jsonl", "--output", "table", "-k", "5").out)


def test_every_way_to_give_a_text(longtail: Callable, model: str) -> None:
    Path("texts.txt").write_text("rain and sky\r\ngreen pears\n", encoding="utf-8", newline="")
    Path("texts.csv").write_text("text\nrain and sky\ngreen pears\n", encoding="utf-8")
    ways = [
        longtail("predict", model, "--text", "rain and sky", "--text", "green pears"),
        longtail("predict", model, "texts.txt", "--plain"),
        longtail("predict", model, "-", "--plain", stdin=b"rain and sky\ngreen pears"),
        longtail("predict", model, "-", stdin=b'{"text": "rain and sky"}\n\n{"text": "green pears", "source": 3}\n'),
        longtail("predict", model, "texts.csv"),
    ]
    assert [row["labels"][0]["label"] for row in lines(ways[0].out)] == ["weather", "fruit"]
    for way in ways:
        assert (way.code, way.err) == (0, "")
        assert way.out == ways[0].out


def test_a_text_without_a_known_word_gets_no_label(longtail: Callable, model: str) -> None:
    assert lines(longtail("predict", model, "--text", "xyzzy").out) == [{"id": 1, "labels": []}]


def test_allowed_and_denied_labels(longtail: Callable, model: str) -> None:
    Path("some").write_text("fruit\n\nred\n", encoding="utf-8")
    allowed = lines(longtail("predict", model, "--text", "rain", "--allow", "some", "-k", "5").out)
    assert {tag["label"] for tag in allowed[0]["labels"]} == {"fruit", "red"}
    denied = lines(longtail("predict", model, "--text", "rain", "--deny", "some", "-k", "5").out)
    assert {tag["label"] for tag in denied[0]["labels"]} == {"weather"}
    Path("some").write_text("vegetable\n", encoding="utf-8")
    unknown = longtail("predict", model, "--text", "rain", "--deny", "some")
    assert (unknown.code, unknown.err) == (1, "error: some: the model has no label 'vegetable'; it knows 3 labels\n")


def test_weighting_is_switched_without_training(longtail: Callable, model: str) -> None:
    Path("names").write_text("weather\n", encoding="utf-8")
    plain = lines(longtail("predict", model, "--text", "rain", "--weighting", "none", "--allow", "names").out)
    target = lines(longtail("predict", model, "--text", "rain", "--weighting", "target", "--allow", "names").out)
    factor = library.load(model).estimator_.inverse_propensity_[2]
    score = plain[0]["labels"][0]["score"]
    assert target[0]["labels"][0]["score"] == pytest.approx(factor * score, abs=1e-5)


def test_a_feature_model_takes_feature_files(longtail: Callable, feature_model: str) -> None:
    Path("new.txt").write_text("1 3 2\n 0:1\n", encoding="utf-8")
    found = lines(longtail("predict", feature_model, "new.txt", "-k", "1").out)
    assert [row["labels"][0]["label"] for row in found] == ["0"]
    explained = lines(
        longtail("explain", feature_model, "--data", "rows.txt", "--row", "4", "--label", "1", "--json").out
    )
    assert {reason["feature"] for reason in explained[0]["reasons"]} == {"1", "2"}


def test_predictions_in_a_file(longtail: Callable, model: str) -> None:
    printed = longtail("predict", model, "notes.jsonl").out
    result = longtail("predict", model, "notes.jsonl", "--out", "tags.jsonl")
    assert (result.code, result.out, result.err) == (0, "", "wrote tags.jsonl: 6 rows\n")
    written = lines(Path("tags.jsonl").read_text(encoding="utf-8"))
    assert [row["text"] for row in written] == read_corpus("notes.jsonl").texts
    for row, shown in zip(written, lines(printed), strict=True):
        assert row["id"] == shown["id"]
        pairs = zip(row["labels"], row["scores"], strict=True)
        assert [{"label": label, "score": score} for label, score in pairs] == shown["labels"]
    named = longtail("predict", model, "notes.jsonl", "--out", "-")
    assert (named.out, named.err, Path("-").exists()) == (printed, "", False)
    again = longtail("predict", model, "--text", "rain", "--out", "tags.jsonl")
    assert again.err == "replaced tags.jsonl: 1 row\n"


def test_a_folder_that_may_not_be_written_to_is_told_before_the_work(
    longtail: Callable, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.access", lambda path, mode: False)
    result = longtail("predict", model, "absent.jsonl", "--out", "tags.jsonl")
    assert result.err.startswith("error: cannot write tags.jsonl: the folder ")
    assert result.err.endswith(" is not writable; write elsewhere\n")


def test_a_fault_in_the_data_leaves_no_file(longtail: Callable, model: str) -> None:
    result = longtail("predict", model, "-", "--out", "tags.jsonl", stdin=b'{"text": "a"}\n[]\n')
    assert result.code == 1
    assert ":2: expected an object {...}, found a list; JSON lines have" in result.err
    assert sorted(path.name for path in Path().iterdir()) == ["model", "notes.jsonl", "rows.txt"]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (
            ["predict", "absent", "--text", "a"],
            "absent: there is no model here (no such directory); give the directory of a saved model\n",
        ),
        (["predict", ".", "--text", "a"], ".: there is no model here (manifest.json is missing)"),
        (
            ["predict", "model", "absent.jsonl"],
            "there is no file absent.jsonl",
        ),
        (
            ["predict", "notes.jsonl", "--text", "a"],
            "notes.jsonl: there is no model here (this is a file; ",
        ),
        (
            ["predict", "model/manifest.json", "--text", "a"],
            "model/manifest.json: there is no model here (this is a f",
        ),
        (
            ["predict", "model", "pages.jsonl"],
            "pages.jsonl:1: no key 'text'; the keys are 'labels', 'texts'; these are groups, not rows: ",
        ),
        (
            ["evaluate", "model", "pages.jsonl"],
            "pages.jsonl:1: no key 'text'; the keys are 'labels', 'texts'; these are groups, not rows: ",
        ),
        (
            ["evaluate", "model", "groups.txt"],
            "groups.txt:2: feature '0' has no colon; expected index:value; this is a groups file: ",
        ),
        (
            ["predict", "model", "plain.txt"],
            "plain.txt:1: expected the header, three whole numbers 'rows features labels', but found 'a red rose'; "
            "a .txt file holds features; for one text per line use --plain",
        ),
        (
            ["evaluate", "model", "plain.txt"],
            "plain.txt:1: expected the header, three whole numbers 'rows features labels', but found 'a red rose'; "
            "a .txt file holds features; texts with labels go into .jsonl, .csv or .tsv",
        ),
        (
            ["predict", "model", "--text", "a", "--out", "folder.csv"],
            "folder.csv is a folder; give the name of a file to write to",
        ),
        (["evaluate", "model", "empty.jsonl"], "empty.jsonl has no rows; there is nothing to evaluate on"),
        (["predict", "model", "rows.txt"], "the model takes texts; rows.txt holds features"),
        (
            ["predict", "feature-model", "--text", "a"],
            "feature-model takes features, not texts; give a file of features",
        ),
        (
            ["predict", "model", "--text", "a", "--allow", "absent"],
            "there is no file absent in ",
        ),
        (["predict", "model", "--text", "a", "--out", "no/tags.csv"], "cannot write no"),
        (["explain", "model", "--text", "a", "--label", "x"], "--label: the model has no label 'x'; it knows 3 labels"),
        (
            ["explain", "model", "--text", "a", "--label", "Fruit"],
            "--label: the model has no label 'Fruit'; it knows 3 labels; did you mean 'fruit'?\n",
        ),
        (["evaluate", "notes.jsonl", "model"], "notes.jsonl: there is no model here (this is a file; a model is a dir"),
        (["predict", "model", "note.jsonl"], "there is no file note.jsonl; did you mean notes.jsonl?\n"),
        (["predict", "model", "./note.jsonl"], "there is no file ./note.jsonl; did you mean notes.jsonl?\n"),
        (["predict", "model", "--text", "a", "--allow", "model"], "model is a folder; give a file\n"),
        (["predict", "model", "/dev/null"], "/dev/null is not a regular file; to read from a pipe give -\n"),
        (
            ["predict", "model", "--text", "a", "--out", "/dev/null"],
            "tags are written as .csv, .tsv, .jsonl or .parquet, also with .gz, not as /dev/null\n",
        ),
        (["explain", "model", "--data", "empty.jsonl"], "empty.jsonl has no rows; there is nothing to explain\n"),
        (["predict", "model", "no/notes.jsonl"], "there is no file no/notes.jsonl, because there is no folder "),
        (["explain", "model", "--text", "xyzzy"], "nothing to explain: no label has a score, because "),
        (["explain", "feature-model", "--text", "a"], "the model takes features, not texts; give --data and --row"),
        (["explain", "model", "--data", "notes.jsonl", "--row", "7"], "--row is 7; notes.jsonl has 6 rows"),
        (["evaluate", "model", "rows.txt"], "the model takes texts; the corpus has only features"),
        (
            ["evaluate", "model", "notes.jsonl", "--picture", "a.gif"],
            "pictures are written as .png, not as a.gif",
        ),
        (["info", "absent"], "absent: there is no model here (no such directory)"),
        (
            ["datasets", "fetch", "eurlex"],
            "no data set is called 'eurlex'; did you mean 'eurlex57k'? the data sets are bibtex, ",
        ),
    ],
)
def test_errors_are_one_line(
    longtail: Callable, model: str, feature_model: str, arguments: list[str], error: str
) -> None:
    Path("pages.jsonl").write_text('{"texts": ["a", "b"], "labels": ["x"]}\n', encoding="utf-8")
    Path("groups.txt").write_text("2 4 2\n0,1 0 1\n0 2 3\n", encoding="utf-8")
    Path("plain.txt").write_text("a red rose\n", encoding="utf-8")
    Path("empty.jsonl").touch()
    Path("folder.csv").mkdir()
    result = longtail(*arguments)
    assert result.code == 1
    assert result.err.startswith(f"error: {error}")
    assert result.err.count("\n") == 1


@pytest.mark.parametrize(("name", "content"), [("blank.jsonl", "\n"), ("empty.jsonl", ""), ("head.csv", "text\n")])
def test_a_file_without_rows_is_an_error_and_writes_nothing(
    longtail: Callable, model: str, name: str, content: str
) -> None:
    Path(name).write_text(content, encoding="utf-8")
    result = longtail("predict", model, name, "--out", "tags.jsonl")
    assert (result.code, result.out) == (1, "")
    assert result.err == f"error: {name} has no rows; there is nothing to tag\n"
    assert not Path("tags.jsonl").exists()


def test_standard_input_without_rows_gets_no_tags_and_a_word(longtail: Callable, model: str) -> None:
    result = longtail("predict", model, "-")
    assert (result.code, result.out, result.err) == (0, "", "standard input has no rows; there is nothing to tag\n")


def test_a_file_that_names_no_label_is_an_error(longtail: Callable, model: str) -> None:
    Path("some").write_text("\n\n", encoding="utf-8")
    told = longtail("predict", model, "--text", "rain", "--allow", "some").err
    assert told == "error: some lists no label; write one on each line\n"
    Path("some").write_text("fruit\nfruit\n", encoding="utf-8")
    assert longtail("predict", model, "--text", "rain", "--allow", "some").code == 0
    Path("none").touch()
    assert longtail("predict", model, "--text", "rain", "--deny", "none").code == 0


@pytest.mark.parametrize("option", ["--allow", "--deny"])
def test_a_list_of_labels_is_not_written_over(longtail: Callable, model: str, option: str) -> None:
    Path("some.csv").write_text("fruit\n", encoding="utf-8")
    result = longtail("predict", model, "--text", "rain", option, "some.csv", "--out", "some.csv")
    assert result.err == "error: some.csv is also an input; write to another file\n"
    assert Path("some.csv").read_text(encoding="utf-8") == "fruit\n"


def test_a_model_of_another_version_says_so(longtail: Callable, model: str) -> None:
    manifest = Path(model, "manifest.json")
    content = manifest.read_bytes()
    manifest.write_bytes(content.replace(b'"version": 1', b'"version": 7', 1))
    assert longtail("predict", model, "--text", "a").err == (
        "error: model: the model has format version 7; this longtail reads 1. Load it with a newer longtail\n"
    )
    state = read_model(without_counts(content, manifest))
    assert "label_counts" not in state.arrays
    told = longtail("predict", model, "--text", "a").err
    assert told.startswith("error: model: Tagger: array 'label_counts' is missing (a model of format 1, written by ")
    assert told.endswith(f"; this is longtail {library.__version__})\n")


def without_counts(content: bytes, manifest: Path) -> Path:
    """The model once more, saved as a version that did not know of counts would have."""
    manifest.write_bytes(content)
    state = library.load(manifest.parent).to_state()
    arrays = {name: array for name, array in state.arrays.items() if name != "label_counts"}
    write_model(replace(state, arrays=arrays), manifest.parent)
    return manifest.parent


def test_a_model_without_label_names_is_refused(longtail: Callable) -> None:
    library.Ridge().fit([[1.0, 0.0]], [[1, 0]]).save("ridge")
    result = longtail("predict", "ridge", "rows.txt")
    assert result.code == 1
    assert result.err.startswith("error: ridge holds a Ridge, which has no texts or label names; ")


def test_the_report(longtail: Callable, model: str, check_golden: Callable) -> None:
    result = longtail("evaluate", model, "notes.jsonl", "-k", "1,2")
    assert result.code == 0
    check_golden("evaluate", result.out)


def test_several_files_are_evaluated_reported_and_compared_as_one(longtail: Callable, model: str) -> None:
    pytest.importorskip("matplotlib")
    Path("more.csv").write_text("text,labels\nblue sky and rain,weather\nred pears,fruit;red\n")
    data = ["notes.jsonl", "more.csv"]
    assert "8 rows" in longtail("evaluate", model, *data, "--picture", "a.png").out
    assert longtail("report", model, *data, "-o", "a.html").err.endswith("wrote a.html; open it in a browser\n")
    assert "notes.jsonl, more.csv" in Path("a.html").read_text(encoding="utf-8")
    compared = longtail("compare", *data, "--min-df", "1", "--learners", "ridge", "--holdout", "0.3")
    assert (compared.code, "8 texts, 3 labels" in compared.err) == (0, True)


def test_the_report_as_json_and_as_a_picture(longtail: Callable, model: str) -> None:
    pytest.importorskip("matplotlib")
    result = longtail("evaluate", model, "notes.jsonl", "--json", "--propensity", "0.6,2.6", "--picture", "report.png")
    corpus = read_corpus("notes.jsonl")
    assert json.loads(result.out) == library.load(model).evaluate(corpus, a=0.6, b=2.6).to_dict()
    assert Path("report.png").read_bytes().startswith(b"\x89PNG")


def test_the_heads_of_a_network_are_judged(longtail: Callable) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("matplotlib")
    network = ["--learner", "network", "--width", "8", "--epochs", "2", "--min-df", "1", "--jobs", "1"]
    assert longtail("train", "notes.jsonl", "--out", "network", *network).code == 0
    result = longtail("evaluate", "network", "notes.jsonl", "--heads")
    tagger, corpus = library.load("network"), read_corpus("notes.jsonl")
    judged = tagger.diagnose(corpus)
    assert result.out == f"{tagger.evaluate(corpus).to_text()}\n\n{judged.to_text()}\n"
    drawn = longtail("evaluate", "network", "notes.jsonl", "--json", "--heads-picture", "heads.png")
    assert json.loads(drawn.out)["heads"] == json.loads(json.dumps(judged.to_dict()))
    assert Path("heads.png").read_bytes().startswith(b"\x89PNG")
    assert "heads" not in json.loads(longtail("evaluate", "network", "notes.jsonl", "--json").out)


def test_a_model_without_heads_is_refused_before_it_is_evaluated(longtail: Callable, model: str) -> None:
    result = longtail("evaluate", model, "notes.jsonl", "--heads")
    assert (result.code, result.out) == (1, "")
    assert result.err == (
        "error: Ridge does not write labels as codes, so it has no digits to judge; leave out --heads; networks with "
        "--head cascade, product or kronecker have them\n"
    )


@pytest.mark.parametrize("command", ["evaluate", "report"])
@pytest.mark.parametrize(
    ("content", "error"),
    [
        ('{"text": "a", "labels": []}\n' * 2, "bare.jsonl: none of its 2 rows has a label; evaluation needs "),
        ('{"text": "a", "labels": []}\n', "bare.jsonl: its only row has no label; evaluation needs rows with labels"),
    ],
)
def test_rows_without_any_label_cannot_be_measured_on(
    longtail: Callable, model: str, command: str, content: str, error: str
) -> None:
    Path("bare.jsonl").write_text(content, encoding="utf-8")
    result = longtail(command, model, "bare.jsonl")
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith(f"error: {error}")
    assert result.err.endswith("under another key or in another column, name it: --label-column\n")
    of_stream = longtail(command, model, "-", stdin=content.encode())
    assert of_stream.err.startswith("error: standard input: ")


def test_some_rows_without_a_label_are_counted(longtail: Callable, model: str) -> None:
    content = '{"text": "green apples", "labels": ["fruit"]}\n{"text": "clear sky", "labels": []}\n'
    Path("some.jsonl").write_text(content, encoding="utf-8")
    result = longtail("evaluate", model, "some.jsonl", "-k", "1")
    assert result.out.startswith("2 rows (1 without any label, counted as 0), 3 labels; values in percent\n")
    found = json.loads(longtail("evaluate", model, "some.jsonl", "-k", "1", "--json").out)
    assert (found["n_rows"], found["n_rows_without_labels"], found["metrics"]["P@1"]) == (2, 1, 0.5)


def test_labels_none_of_which_the_model_knows_are_noted(longtail: Callable, model: str) -> None:
    Path("other.jsonl").write_text('{"text": "green apples", "labels": ["Obst"]}\n', encoding="utf-8")
    result = longtail("evaluate", model, "other.jsonl")
    assert result.code == 0
    assert result.err == (
        "note: the model knows none of these labels; if the labels are in another column, name it: --label-column\n"
    )


def test_explanations_add_up(longtail: Callable, model: str, check_golden: Callable) -> None:
    check_golden(
        "explain", longtail("explain", model, "--text", "green pears in the rain", "-k", "2", "--words", "3").out
    )
    for found in lines(longtail("explain", model, "--text", "green pears in the rain", "--json").out):
        total = sum(reason["contribution"] for reason in found["reasons"]) + found["intercept"]
        assert found["score"] == found["margin"] == pytest.approx(total, abs=1e-6)


def test_what_a_model_says_about_itself(longtail: Callable, model: str, check_golden: Callable) -> None:
    check_golden("info", longtail("info", model).out)
    assert json.loads(longtail("info", model, "--json").out)["n_labels"] == 3


def test_a_tree_shows_the_path_to_a_label(longtail: Callable, tree_model: str, check_golden: Callable) -> None:
    arguments = ["explain", tree_model, "--text", "green pears in the rain", "--label", "fruit"]
    check_golden("explain-tree", longtail(*arguments, "--words", "3").out)
    [found] = lines(longtail(*arguments, "--json").out)
    assert sum(reason["contribution"] for reason in found["reasons"]) + found["intercept"] == pytest.approx(
        found["margin"]
    )
    in_python = library.load(tree_model).explain("green pears in the rain", "fruit").steps
    assert [step["tree"] for step in found["steps"]] == [step.tree for step in in_python]
    assert in_python[0].tree == 1
    by_tree: dict[int, float] = {}
    for step in found["steps"]:
        by_tree[step["tree"]] = by_tree.get(step["tree"], 1.0) * step["probability"]
        adds = sum(reason["contribution"] for reason in step["reasons"])
        assert adds + step["intercept"] == pytest.approx(step["margin"])
    assert sum(by_tree.values()) / len(by_tree) == pytest.approx(found["score"], abs=1e-6)


def test_one_vs_rest_has_words_but_no_path(longtail: Callable) -> None:
    assert longtail("train", "notes.jsonl", "--out", "flat", "--learner", "one-vs-rest").code == 0
    shown = longtail("explain", "flat", "--text", "green pears", "-k", "1").out.splitlines()
    assert re.fullmatch(r"fruit  score 0\.\d{4}", shown[0])
    assert shown[1].split() == ["word", "adds"]


def test_what_a_tree_says_about_itself(longtail: Callable, tree_model: str, check_golden: Callable) -> None:
    check_golden("info-tree", longtail("info", tree_model).out)
    facts = json.loads(longtail("info", tree_model, "--json").out)
    trees = library.load(tree_model).estimator_.trees_
    assert (facts["trees"], facts["nodes"]) == (2, sum(tree.hierarchy.n_nodes for tree in trees))
    assert facts["weights"] == sum(tree.n_weights for tree in trees)
    assert facts["bytes"] == sum(path.stat().st_size for path in Path(tree_model).glob("*.npy"))
    assert "estimator.tree1.weights" in longtail("info", tree_model, "--arrays").out


def test_the_tree_of_labels(longtail: Callable, tree_model: str, check_golden: Callable) -> None:
    check_golden("tree", longtail("tree", tree_model).out)
    assert longtail("tree", tree_model, "--depth", "1").out == "node 0: 3 labels\n"
    nodes = json.loads(longtail("tree", tree_model, "--output", "json", "--number", "2").out)["nodes"]
    assert sorted(name for node in nodes for name in node["labels"]) == ["fruit", "red", "weather"]


def test_a_learned_tree_can_be_trained_on_again(longtail: Callable, tree_model: str) -> None:
    printed = longtail("tree", tree_model, "--output", "tsv").out
    result = longtail("tree", tree_model, "--output", "tsv", "--out", "tree.tsv")
    assert (result.code, result.out) == (0, "")
    assert Path("tree.tsv").read_text(encoding="utf-8") == printed
    assert longtail("train", "notes.jsonl", "--out", "again", "--taxonomy", "tree.tsv", "--min-df", "1").code == 0
    again, first = (library.load(name).estimator_.hierarchies_[0] for name in ("again", tree_model))
    assert sorted(again.labels.tolist()) == sorted(first.labels.tolist())
    assert again.node_names is not None


@pytest.mark.parametrize(
    ("arguments", "code", "error"),
    [
        (["tree", "model"], 1, "error: model holds a Ridge, which has no tree; train with --learner tree"),
        (["tree", "tree-model", "--number", "3"], 1, "error: --number is 3; tree-model has 2 trees"),
        (["tree", "tree-model", "--output", "json", "--depth", "1"], 2, "Error: --depth is for --output text"),
        (
            ["predict", "tree-model", "--text", "rain", "--weighting", "target"],
            1,
            "error: tree-model holds a LabelTree, whose weighting is set in training (train --weighting); "
            "only ridge models accept --weighting here",
        ),
    ],
)
def test_what_a_model_cannot_do(
    longtail: Callable, model: str, tree_model: str, arguments: list[str], code: int, error: str
) -> None:
    result = longtail(*arguments)
    assert (result.code, result.out, result.err.splitlines()[-1]) == (code, "", error)


def test_a_lowest_score(longtail: Callable, tree_model: str) -> None:
    [row] = lines(longtail("predict", tree_model, "--text", "green pears", "-k", "3").out)
    lowest = row["labels"][1]["score"] + 1e-5
    [fewer] = lines(longtail("predict", tree_model, "--text", "green pears", "--threshold", str(lowest)).out)
    assert fewer["labels"] == row["labels"][:1]


def test_info_verifies_every_file_where_asked(longtail: Callable, model: str) -> None:
    assert "verified" not in longtail("info", model).out
    assert longtail("info", model, "--verify").out.startswith("verified: every file matches its checksum\n")
    victim = next(Path(model).glob("estimator-*.npy"))
    victim.write_bytes(victim.read_bytes()[:-1] + b"?")
    assert longtail("info", model).code == 0
    refused = longtail("info", model, "--verify")
    assert refused.code == 1
    assert victim.name in refused.err
    assert "checksum" in refused.err
    assert "needs a MODEL" in longtail("info", "--verify").err


def test_what_the_installation_is(longtail: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGTAIL_MEMORY", "3G")
    monkeypatch.setenv("LONGTAIL_CACHE", "somewhere")
    facts = json.loads(longtail("info", "--json").out)
    assert facts["memory available"] == 3 * 2**30
    assert facts["cache"] == "somewhere"
    assert facts["longtail"] == library.__version__
    assert "memory available: 3.0 GiB" in longtail("info").out.splitlines()


def test_the_data_sets(longtail: Callable, monkeypatch: pytest.MonkeyPatch, check_golden: Callable) -> None:
    Path("data/bibtex").mkdir(parents=True)
    monkeypatch.setenv("LONGTAIL_DATA", "data")
    monkeypatch.setenv("LONGTAIL_CACHE", "cache")
    monkeypatch.setattr("longtail.data.sets.catalogue._SHARED", Path("shared"))
    check_golden("datasets", longtail("datasets").out)
    found = {known["name"]: known for known in json.loads(longtail("datasets", "--json").out)}
    assert (found["bibtex"]["state"], found["bibtex"]["folder"]) == ("yes", str(Path("data") / "bibtex"))
    assert found["eurlex-4k"]["state"] == "fetchable"
    assert longtail("datasets", "fetch", "bibtex").out == f"{Path('data') / 'bibtex'}\n"
    absent = longtail("datasets", "fetch", "amazon-3m")
    assert absent.code == 1
    assert absent.err.startswith("error: Amazon-3M is not on this machine. Looked for the folders ")


def test_a_model_of_groups_is_measured_on_rows_and_how_is_told(longtail: Callable) -> None:
    Path("pages.jsonl").write_text(
        '{"texts": ["red apples", "grey sky"], "labels": ["fruit", "weather"]}\n'
        '{"texts": ["apples and pears"], "labels": ["fruit"]}\n{"texts": ["a sky"], "labels": ["weather"]}\n',
        encoding="utf-8",
    )
    arguments = ["--strategy", "eagle", "--min-df", "1", "--alpha", "1"]
    assert longtail("train", "pages.jsonl", "--out", "of-groups", *arguments).code == 0
    found = longtail("evaluate", "of-groups", "pages.jsonl")
    assert found.code == 1
    assert "these are groups, not rows: evaluation needs labels of rows" in found.err
    assert "label some texts by hand" in found.err
    Path("groups.txt").write_text("2 4 2\n0,1 0 1\n0 2 3\n", encoding="utf-8")
    of_features = longtail("evaluate", "of-groups", "groups.txt").err
    assert "label some texts by hand" in of_features
    assert "--groups" not in of_features


def test_few_texts_are_told_how_to_keep_their_words(longtail: Callable) -> None:
    assert "min_df=1 (--min-df 1) keeps them" in longtail("train", "notes.jsonl", "--out", "model", "--alpha", "1").err
    told = longtail("train", "notes.jsonl", "--out", "model", "--force", "--alpha", "1", "--min-df", "1").err
    assert "keeps them" not in told
    Path("words.jsonl").write_text(
        '{"text": "apples", "labels": ["fruit"]}\n{"text": "rain", "labels": ["weather"]}\n', encoding="utf-8"
    )
    assert "use --min-df 1" in longtail("train", "words.jsonl", "--out", "other").err
