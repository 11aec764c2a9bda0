"""`longtail train`: what it reads, what it chooses, what it refuses."""

from __future__ import annotations

import gzip
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import longtail as library
from longtail.data import read_corpus, write_corpus
from longtail.errors import NotEnoughMemory
from longtail.memory import available_memory
from longtail.tagger import Tagger


def test_what_training_says(longtail: Callable, check_golden: Callable) -> None:
    result = longtail("train", "notes.jsonl", "--out", "model")
    assert result.code == 0
    check_golden("train", result.err + result.out)


def test_the_model_is_that_of_the_library(longtail: Callable) -> None:
    longtail(
        "train", "notes.jsonl", "--out", "model", "--alpha", "0.5", "--min-df", "1", "--ngrams", "1-2", "--intercept"
    )
    corpus = read_corpus("notes.jsonl")
    features = library.TextFeatures(ngrams=(1, 2), min_df=1)
    expected = library.Tagger(features, library.Ridge(0.5, fit_intercept=True)).fit_corpus(corpus)
    loaded = library.load("model")
    assert loaded.label_names_ == expected.label_names_
    assert loaded.predict(corpus.texts) == expected.predict(corpus.texts)


def test_subwords_are_features_and_are_shown_with_dots(longtail: Callable) -> None:
    arguments = ["train", "notes.jsonl", "--out", "model", "--force", "--alpha", "0.5", "--min-df", "1"]
    for given, expected in [("none", None), ("0", None), ("4", 4)]:
        assert longtail(*arguments, "--subwords", given).code == 0
        assert library.load("model").features_.subwords == expected
    assert "pea…" in longtail("explain", "model", "--text", "pear", "--label", "fruit").out
    for wrong in ("2", "21", "-5", "five"):
        refused = longtail(*arguments, "--subwords", wrong)
        assert refused.code == 2
        assert "3 to 20" in refused.err


def test_every_way_to_give_texts_gives_the_same_model(longtail: Callable) -> None:
    lines = Path("notes.jsonl").read_bytes()
    Path("zipped.jsonl.gz").write_bytes(gzip.compress(lines))
    Path("notes.data").write_bytes(lines)
    corpus = read_corpus("notes.jsonl")
    write_corpus(corpus, "notes.csv")
    Path("other.tsv").write_text(
        "body\ttags\n"
        + "".join(
            f"{text}\t{'|'.join(corpus.label_names[label] for label in corpus.labels[[row]].indices)}\n"
            for row, text in enumerate(corpus.texts)
        ),
        encoding="utf-8",
    )
    for number, (arguments, stdin) in enumerate(
        [
            (["notes.jsonl"], b""),
            (["zipped.jsonl.gz"], b""),
            (["-"], lines),
            (["notes.data", "--format", "jsonl"], b""),
            (["notes.csv"], b""),
            (["other.tsv", "--text-column", "body", "--label-column", "1", "--label-separator", "|"], b""),
        ]
    ):
        result = longtail("train", *arguments, "--out", f"model-{number}", stdin=stdin)
        assert (result.code, result.out.count("3 labels, 7 features")) == (0, 1), result.err
    scores = [library.load(f"model-{number}").predict(["green pears"]) for number in range(6)]
    assert all(score == scores[0] for score in scores)


def test_features_are_brought_to_unit_length_unless_told(longtail: Callable) -> None:
    assert longtail("train", "rows.txt", "--out", "scaled").code == 0
    assert longtail("train", "rows.txt", "--out", "raw", "--no-normalize", "--log").code == 0
    assert library.load("scaled").features_.get_params() == {"log": False, "unit": True}
    assert library.load("raw").features_.get_params() == {"log": True, "unit": False}


def test_rows_are_held_out_and_then_learned_from(longtail: Callable, check_golden: Callable) -> None:
    result = longtail("train", "notes.jsonl", "--out", "model", "--holdout", "0.34", "--alpha", "1", "--min-df", "1")
    assert result.code == 0
    check_golden("train-holdout", result.err + result.out)
    assert library.load("model").n_rows_ == 6
    partial = longtail("train", "notes.jsonl", "--out", "part", "--holdout", "0.34", "--no-refit", "--min-df", "1")
    assert partial.code == 0
    assert library.load("part").n_rows_ == 4


def test_a_failure_of_the_training_on_all_rows_does_not_lose_the_report(longtail, monkeypatch):
    fit_rows = Tagger._fit_rows

    def fail_on_all(self, corpus, *part):
        if corpus.n_rows == 6:
            raise NotEnoughMemory("no room")
        return fit_rows(self, corpus, *part)

    monkeypatch.setattr(Tagger, "_fit_rows", fail_on_all)
    result = longtail("train", "notes.jsonl", "--out", "model", "--holdout", "0.34", "--min-df", "1")
    assert (result.code, result.err.splitlines()[-1]) == (1, "error: no room")
    assert "P " in result.out
    assert not Path("model").exists()


def test_the_split_depends_on_the_seed_alone(longtail: Callable) -> None:
    def report(seed: str) -> str:
        arguments = ["--holdout", "0.5", "--no-refit", "--force", "--min-df", "1", "--seed", seed]
        return longtail("--quiet", "train", "notes.jsonl", "--out", "model", *arguments).out

    assert report("1") == report("1")
    assert len({report(str(seed)) for seed in range(6)}) > 1


def test_labels_without_rows_are_left_out(longtail: Callable) -> None:
    Path("sparse.txt").write_text("2 2 4\n0 0:1\n2 1:1\n", encoding="utf-8")
    result = longtail("train", "sparse.txt", "--out", "model")
    assert "dropped 2 labels without rows\n" in result.err
    assert library.load("model").label_names_ == ("0", "2")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ([], "learner: ridge, as 3 labels x 6 rows are few; alpha chosen by leave-one-out"),
        (["--learner", "ridge"], "learner: ridge, as requested; alpha chosen by leave-one-out"),
        (["--alpha", "2"], "learner: ridge with alpha=2, as given"),
        (
            ["--solver", "cg"],
            "learner: ridge, as solver is given; alpha=1, as leave-one-out does not support solver=cg",
        ),
        (
            ["--weighting", "loss"],
            "learner: ridge, as 3 labels x 6 rows are few; alpha=1, as leave-one-out does not support weighting=loss",
        ),
        (
            ["--memory", "4K"],
            "learner: ridge, as 3 labels x 6 rows are few; alpha=1, as leave-one-out would take ",
        ),
        (["--trees", "2"], "learner: label tree with negatives=beam, as n_trees is given"),
        (["--negatives", "siblings"], "learner: label tree, as negatives is given"),
        (["--learner", "tree"], "learner: label tree with negatives=beam, as requested"),
        (["--C", "2"], "learner: one-vs-rest, as 3 labels x 6 rows take only about 1 s"),
    ],
)
def test_the_choice_of_the_learner_is_told(longtail: Callable, arguments: list[str], reason: str) -> None:
    result = longtail("train", "notes.jsonl", "--out", "model", *arguments)
    assert result.code == 0, result.err
    assert [line for line in result.err.splitlines() if line.startswith(reason)]


def test_options_of_the_tree_reach_it(longtail: Callable) -> None:
    flags = "--trees 2 --leaf-size 2 --branching 3 --beam 4 --prune 7 --negatives beam --loss logistic --C 2 --seed 5"
    result = longtail("train", "notes.jsonl", "--out", "model", "--weighting", "score", "--jobs", "1", *flags.split())
    assert result.code == 0, result.err
    assert "2 trees of 6 nodes" in result.out
    expected = library.LabelTree(
        leaf_size=2, branching=3, n_trees=2, loss="logistic", C=2.0, beam=4, prune=7, negatives="beam",
        weighting="score", random_state=5, n_jobs=1,
    )  # fmt: skip
    loaded = library.load("model")
    assert loaded.estimator_.get_params() == expected.get_params()
    corpus = read_corpus("notes.jsonl")
    tagger = library.Tagger(library.TextFeatures(), expected).fit_corpus(corpus)
    assert loaded.predict(corpus.texts) == tagger.predict(corpus.texts)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ("--learner ridge --trees 3", "--trees is for tree; it does not go with --learner ridge"),
        ("--learner one-vs-rest --beam 3", "--beam is for tree; it does not go with --learner one-vs-rest"),
        ("--learner tree --alpha 1", "--alpha is for ridge; it does not go with --learner tree"),
        ("--C 1 --density 0.5", "--density is for ridge; it does not go with --C"),
        (
            "--learner ridge --loss logistic",
            "--loss logistic is for tree and one-vs-rest; it does not go with --learner ridge",
        ),
        ("--trees 2 --weighting target", "--weighting target is for ridge; it does not go with --trees"),
        ("--alpha 1 --weighting score", "--weighting score is for tree and one-vs-rest; it does not go with --alpha"),
        ("--missing root", "--missing needs --taxonomy"),
    ],
)
def test_options_of_another_learner_are_refused_before_anything_is_read(
    longtail: Callable, arguments: str, error: str
) -> None:
    result = longtail("train", "absent.jsonl", "--out", "model", *arguments.split())
    assert (result.code, result.err) == (1, f"error: {error}\n")


def test_a_network_is_trained_saved_and_read_like_any_model(longtail: Callable) -> None:
    arguments = ["--learner", "network", "--width", "16", "--epochs", "60", "--batch-size", "2", "--head", "one-hot"]
    trained = longtail("train", "notes.jsonl", "--out", "model", "--min-df", "1", "--learning-rate", "0.02", *arguments)
    assert trained.code == 0, trained.err
    assert "learner: network with one-hot head, width 16, 60 epochs" in trained.err
    assert "weights, loss from" in trained.err + trained.out
    predicted = longtail("predict", "model", "-", "-k", "1", stdin=b'{"text": "clear blue sky"}\n')
    assert '"weather"' in predicted.out
    assert "P@1" in longtail("evaluate", "model", "notes.jsonl").out
    assert "not linear" in longtail("explain", "model", "--text", "clear blue sky").err
    assert "weights: 0" not in longtail("info", "model").out


def test_a_network_for_rows_of_one_label_has_a_softmax_unless_told_otherwise(longtail: Callable) -> None:
    lines = [json.dumps({"text": f"word{row % 3} and", "labels": [f"label {row % 3}"]}) for row in range(30)]
    Path("one.jsonl").write_text("\n".join(lines), encoding="utf-8")
    quick = ["--learner", "network", "--head", "sampling", "--heads", "3", "--width", "8", "--epochs", "2", "--force"]
    own = ["--sampled", "2", "--own-blocks", "--sparse-gradients"]
    for options, task in (([], "single-label"), (own, "single-label"), (["--task", "multi-label"], "multi-label")):
        trained = longtail("train", "one.jsonl", "--out", "model", "--aim", "none", *quick, *options)
        assert trained.code == 0, trained.err
        head = library.load("model").estimator_.networks_[0].head
        assert (head.task, head.fast, head.sparse_gradients) == (task, options != own, options == own)


@pytest.mark.parametrize(
    ("options", "facts"),
    [
        (["--head", "dft", "--active", "1", "--slack", "5"], {"k": 1, "slack": 5}),
        (["--head", "dft"], {"k": 1, "slack": 0}),
        (["--head", "bottleneck", "--head-width", "2"], {"width": 2}),
        (["--head", "bottleneck"], {"width": 100}),
    ],
)
def test_the_width_of_a_bottleneck_and_the_guarantee_of_a_dft_reach_the_network(
    longtail: Callable, options: list[str], facts: dict[str, int]
) -> None:
    trained = longtail("train", "notes.jsonl", "--out", "model", "--learner", "network", "--epochs", "1", *options)
    assert trained.code == 0, trained.err
    head = library.load("model").estimator_.networks_[0].head
    assert {name: getattr(head, name) for name in facts} == facts


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--epochs", "3"], "--epochs is for network; it does not go with --learner auto"),
        (["--learner", "tree", "--head", "dft"], "--head is for network; it does not go with --learner tree"),
        (["--learner", "network", "--alpha", "1"], "--alpha is for ridge; it does not go with --learner network"),
        (
            ["--learner", "network", "--loss", "logistic"],
            "--loss logistic is for tree and one-vs-rest; it does not go with --learner network",
        ),
        (["--loss", "stages"], "--loss stages is for network; it does not go with --learner auto"),
        (["--learner", "network", "--head", "dft", "--loss", "stages"], "--loss stages needs --head cascade"),
        (["--learner", "network", "--head", "sampling", "--margin", "0.5"], "which needs task='single-label'"),
        (["--slack", "3"], "--slack needs --head dft"),
        (["--learner", "network", "--products", "4"], "--products needs --head product or kronecker"),
        (["--learner", "network", "--head", "one-hot", "--sampled", "4"], "--sampled needs --head sampling"),
        (["--learner", "network", "--own-blocks"], "--own-blocks needs --head sampling"),
        (
            ["--learner", "network", "--encoder", "auto", "--fine-tune", "--head-width", "9"],
            "--head-width needs --head bottleneck or cascade",
        ),
        (["--learner", "network", "--head", "bottleneck", "--active", "3"], "--active needs --head dft"),
        (
            ["--learner", "network", "--head", "dft", "--head-width", "3"],
            "--head-width needs --head bottleneck or cascade",
        ),
        (
            ["--learner", "network", "--weighting", "score"],
            "--weighting score is for tree and one-vs-rest; it ",
        ),
    ],
)
def test_options_of_networks_are_theirs(longtail: Callable, arguments: list[str], message: str) -> None:
    result = longtail("train", "notes.jsonl", "--out", "model", *arguments)
    assert result.code != 0
    assert message in result.err
    assert not Path("model").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--encoder", "nowhere"], "nowhere: there is no such folder"),
        (["--encoder", "auto", "--alpha", "1"], "--encoder is for the race of learners; it does not go with --alpha"),
        (["--encoder", "auto", "--learner", "tree"], "--encoder goes with --learner auto or network only"),
        (["--encoder-cache", "vectors"], "--encoder-cache needs --encoder"),
    ],
)
def test_an_encoder_that_cannot_be_used_is_refused(longtail: Callable, arguments: list[str], message: str) -> None:
    result = longtail("train", "notes.jsonl", "--out", "model", *arguments)
    assert result.code != 0
    assert message in result.err
    assert not Path("model").exists()


def test_few_rows_are_trained_without_an_encoder(longtail: Callable) -> None:
    result = longtail("train", "notes.jsonl", "--out", "model", "--encoder", "auto")
    assert result.code == 0
    assert "encoder has no effect: learners race only with at least 1,000 rows" in result.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--trees", "3", "--fast"], "--fast is for the race of learners; it does not go with --trees"),
        (["--C", "2", "--patience", "9"], "--patience is for the race of learners; it does not go with --C"),
        (["--learner", "tree", "--patience", "9"], "--patience goes with --learner auto only"),
    ],
)
def test_options_of_the_race_beside_a_learner_are_refused(
    longtail: Callable, arguments: list[str], message: str
) -> None:
    result = longtail("train", "notes.jsonl", "--out", "model", *arguments)
    assert result.code != 0
    assert message in result.err
    assert not Path("model").exists()


def test_options_of_the_race_have_no_effect_on_few_rows_and_that_is_told(longtail: Callable) -> None:
    result = longtail("train", "notes.jsonl", "--out", "model", "--fast", "--patience", "9")
    assert result.code == 0
    for name in ("fast", "patience"):
        assert f"{name} has no effect: learners race only with at least 1,000 rows" in result.err


@pytest.mark.parametrize("value", ["-1", "few", "nan", "inf"])
def test_prune_is_a_magnitude_or_a_count(longtail: Callable, value: str) -> None:
    result = longtail("train", "notes.jsonl", "--out", "model", "--prune", value)
    assert result.code == 2
    assert "expected a limit such as 0.1, up to which weights are dropped, or a number of weights to keep" in result.err


def test_a_taxonomy_is_the_tree(longtail: Callable) -> None:
    Path("taxonomy.tsv").write_text("fruit\tthings\nred\tlooks\nlooks\tthings\nblue\tlooks\n", encoding="utf-8")
    lacking = longtail("train", "notes.jsonl", "--out", "model", "--taxonomy", "taxonomy.tsv")
    assert lacking.code == 1
    assert (
        "error: taxonomy.tsv: 1 of 3 labels have no parent (label 'weather'); add them, or choose --missing root"
        in (lacking.err)
    )
    result = longtail("train", "notes.jsonl", "--out", "model", "--taxonomy", "taxonomy.tsv", "--missing", "root")
    assert result.code == 0, result.err
    assert "taxonomy.tsv: 1 class, 3 labels" in result.err.splitlines()
    assert "learner: label tree with negatives=beam, as hierarchy is given" in result.err.splitlines()
    assert library.load("model").estimator_.hierarchies_[0].node_names == ("things",)


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ("\n", "taxonomy.tsv is empty; write lines of child, tab, parent"),
        ("cat\tanimals\n", "taxonomy.tsv has none of the labels of the corpus; there is nothing to learn"),
    ],
)
def test_a_taxonomy_without_any_label_is_refused(longtail: Callable, content: str, error: str) -> None:
    Path("taxonomy.tsv").write_text(content, encoding="utf-8")
    result = longtail("-q", "train", "notes.jsonl", "--out", "m", "--taxonomy", "taxonomy.tsv", "--missing", "drop")
    assert (result.code, result.err) == (1, f"error: {error}\n")


def test_a_column_may_be_named_like_a_number(longtail: Callable) -> None:
    Path("years.csv").write_text("0,2024\nfruit,a red apple\nsky,a blue sky\n", encoding="utf-8")
    columns = ["--text-column", "2024", "--label-column", "0", "--min-df", "1"]
    assert longtail("train", "years.csv", "--out", "model", *columns).code == 0
    assert library.load("model").label_names_ == ("fruit", "sky")


def test_classes_that_are_too_wide_are_divided(longtail: Callable) -> None:
    Path("taxonomy.tsv").write_text("fruit\tthings\nred\tthings\nweather\tthings\n", encoding="utf-8")
    result = longtail("train", "notes.jsonl", "--out", "model", "--taxonomy", "taxonomy.tsv", "--leaf-size", "2")
    assert "1 class with more than 2 members: split into learned groups" in result.err.splitlines()
    assert library.load("model").estimator_.hierarchies_[0].node_names == ("things", "things / 1")


def test_wide_classes_branch_as_the_help_says(longtail: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    told = " ".join(longtail("train", "--help").out.split())
    asked: dict[str, Any] = {}

    def split(hierarchy: Any, vectors: Any, **options: Any) -> Any:
        asked.update(options)
        return hierarchy

    monkeypatch.setattr("longtail.tagger.learners.split_wide", split)
    Path("taxonomy.tsv").write_text("fruit\tthings\nred\tthings\nweather\tthings\n", encoding="utf-8")
    arguments = ["train", "notes.jsonl", "--out", "model", "--taxonomy", "taxonomy.tsv", "--leaf-size", "2"]
    assert longtail(*arguments).code == 0
    assert re.search(r"--branching .*?\[default: (\d+)\]", told)[1] == str(asked["branching"])  # type: ignore[index]
    assert asked["leaf_size"] == 2


def test_weights_are_dropped_where_all_would_take_much_memory(longtail: Callable) -> None:
    rng = np.random.default_rng(0)
    lines = ["30 400 30"]
    for row in range(30):
        features = " ".join(f"{feature}:1" for feature in sorted(rng.choice(400, 8, replace=False)))
        lines.append(f"{row} {features}")
    Path("wide.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    result = longtail("train", "wide.txt", "--out", "model", "--memory", "186K")
    assert result.code == 0, result.err
    assert (
        "keeping the 33 largest weights of each label: all 400 x 30 would take 46.9 KiB of 186.0 KiB of memory"
        in result.err.splitlines()
    )
    coefficients = library.load("model").estimator_.coef_
    assert np.bincount(coefficients.indices).max() <= 33


def test_the_memory_limit_is_not_left_in_the_environment(longtail: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGTAIL_MEMORY", "3G")
    seen: list[tuple[str | None, int]] = []

    def note(*_: Any, **__: Any) -> Any:
        seen.append((os.environ.get("LONGTAIL_MEMORY"), available_memory()))
        return read_corpus("notes.jsonl")

    monkeypatch.setattr("longtail.data.read_corpus", note)
    assert longtail("train", "notes.jsonl", "--out", "model", "--memory", "1G").code == 0
    assert seen == [("3G", 2**30)]
    assert available_memory() == 3 * 2**30


def test_the_help_groups_options_by_learner(longtail: Callable) -> None:
    told = longtail("train", "--help").out
    sections = re.findall(r"^(\S.*):$", told, re.MULTILINE)
    assert sections == [
        "Output",
        "Data",
        "Learner",
        "Label trees (--learner tree)",
        "Label trees and one-vs-rest (--learner tree, one-vs-rest)",
        "Ridge (--learner ridge)",
        "Networks (--learner network)",
        "Features",
        "Labels of groups",
        "Held-out evaluation",
        "Number of tags",
        "Seed, threads and memory",
        "Large data",
        "Other options",
    ]
    ridge = told[told.index("\nRidge (") : told.index("\nNetworks (")]
    assert re.findall(r"^  (--\S+)", ridge, re.MULTILINE) == ["--alpha", "--solver", "--intercept", "--density"]


def test_a_label_without_a_known_word_does_no_harm(longtail: Callable) -> None:
    Path("more.jsonl").write_text(
        Path("notes.jsonl").read_text(encoding="utf-8") + '{"id": "g", "text": "xyzzy", "labels": ["magic"]}\n',
        encoding="utf-8",
    )
    assert longtail("train", "more.jsonl", "--out", "model", "--solver", "cg").code == 0
    tags = library.load("model").predict(["red apples"], k=4)[0]
    assert {tag.label for tag in tags[:2]} == {"fruit", "red"}
    assert {tag.label: tag.score for tag in tags}["magic"] == 0


def test_a_model_is_replaced_only_when_told(longtail: Callable) -> None:
    longtail("train", "notes.jsonl", "--out", "model", "--alpha", "1")
    again = longtail("train", "notes.jsonl", "--out", "model", "--alpha", "2")
    assert (again.code, again.err) == (
        1,
        "error: model already holds a model or prepared data; use --force to replace it\n",
    )
    assert library.load("model").estimator_.alpha == 1
    assert longtail("train", "notes.jsonl", "--out", "model", "--alpha", "2", "--force").code == 0
    assert library.load("model").estimator_.alpha == 2


@pytest.mark.parametrize(
    ("content", "arguments", "error"),
    [
        (None, ["absent.jsonl"], "there is no file absent.jsonl"),
        (None, ["."], ". is a folder; give a file"),
        (b"", ["bad.jsonl"], "bad.jsonl: there are no rows to learn from"),
        (b"\n \n", ["bad.jsonl", "--holdout", "0.5"], "bad.jsonl: there are no rows to learn from"),
        (b"text,labels\n", ["bad.csv"], "bad.csv: there are no rows to learn from"),
        (b"", ["bad.csv"], "bad.csv:1: the file is empty"),
        (b"", ["bad.txt"], "bad.txt:1: "),
        (b"", ["bad.arff"], "bad.arff:"),
        (b"", ["X.npz"], "X.npz: "),
        (b"\n", ["bad.jsonl", "--strategy", "eagle"], "bad.jsonl has no rows; there is nothing to learn from"),
        (None, ["notes.jsonl", "--taxonomy", "absent"], "there is no file absent in "),
        (
            b"text,labels\na,b\n",
            ["bad.csv", "--group-column", "page"],
            "bad.csv:1: no column is named 'page'; the columns are 'text', 'labels'; name the column of the groups: "
            "--group-column\n",
        ),
        (
            b"text,labels\na,b\n",
            ["bad.csv", "--text-column", "7"],
            "bad.csv:1: no column 7: there are 2, numbered from 0: 'text', 'labels'\n",
        ),
        (b'{"text": "a"}', ["bad.jsonl"], "bad.jsonl:1: no key 'labels'; the keys are 'text'; name the key"),
        (
            b'{"text": "a", "labels": []}',
            ["bad.jsonl"],
            "bad.jsonl: no row has a label, so there is not",
        ),
        (b'{"text"', ["bad.jsonl"], "bad.jsonl:1: not JSON: Expecting ':' delimiter at character 8"),
        (
            b'\n{"text": "caf\xe9", "labels": []}',
            ["bad.jsonl"],
            "bad.jsonl:2: byte 14 of the line is not UTF-8 (invalid continuation byte); save the file as UTF-8",
        ),
        (b"\x1f\x8b\x08\x00", ["bad.jsonl"], "bad.jsonl: the gzip stream ends early"),
        (b"2 2 2\n0 0:1\n", ["bad.txt"], "bad.txt:2: "),
        (
            b"2 4 2\n0,1 0 1\n0 2 3\n",
            ["bad.txt"],
            "bad.txt:2: feature '0' has no colon; expected index:value; this is a groups file: ",
        ),
        (
            b"a red rose\n",
            ["bad.txt"],
            "bad.txt:1: expected the header, three whole numbers 'rows features lab",
        ),
        (
            b"body,tags\na,b\n",
            ["bad.csv"],
            "bad.csv:1: no column is named 'text'; the columns are 'body', 'tags'; name the columns of text and "
            "labels: --text-column and --label-column",
        ),
        (b"1", ["bad.xyz"], "the extension '.xyz' of bad.xyz is unknown; the known extensions are .txt (repository), "),
        (
            b"1 1 1\n0 0:1\n",
            ["bad.txt", "--text-column", "t"],
            "--text-column does not apply to the format rep",
        ),
        (b"1 1 1\n0 0:1\n", ["bad.txt", "--ngrams", "2"], "--ngrams is for texts; bad.txt holds features"),
        (None, ["notes.jsonl", "--log"], "--log is for features; notes.jsonl holds texts"),
        (None, ["notes.jsonl", "--no-refit"], "--no-refit needs --holdout"),
        (None, ["notes.jsonl", "--holdout", "0.01"], "holding out 0.01 of 6 rows leaves one part empty"),
        (None, ["notes.jsonl", "--memory", "much"], "'much' is not a size; write a number with K, M, G or T, as in 4G"),
        (None, ["notes.jsonl", "--memory", "100"], "training classifiers: the largest task needs about "),
        (
            None,
            ["notes.jsonl", "--min-df", "7"],
            "min_df=7 asks for at least 7 of 6 texts and max_df=1.0 for at most 6; ",
        ),
        (
            None,
            ["notes.jsonl", "--density", "0.5", "--prune", "0.5"],
            "--density and --prune exclude each other",
        ),
        (
            None,
            ["-", "--format", "arff"],
            "standard input is read as JSON lines; for the format arff give a file",
        ),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(
    longtail: Callable, content: bytes | None, arguments: list[str], error: str
) -> None:
    if content is not None:
        Path(arguments[0]).write_bytes(content)
    result = longtail("--quiet", "train", *arguments, "--out", "model")
    assert result.code == 1
    assert result.out == ""
    assert result.err.startswith(f"error: {error}")
    assert result.err.count("\n") == 1
    assert not Path("model").exists()


def test_a_folder_of_something_else_is_refused_before_the_work(longtail: Callable) -> None:
    Path("folder").mkdir()
    Path("folder/letter.txt").write_text("dear", encoding="utf-8")
    for out in ("folder", "notes.jsonl"):
        result = longtail("train", "absent.jsonl", "--out", out, "--force")
        assert result.err == f"error: {out} exists and is not a model; choose a new or empty directory\n"
    assert [path.name for path in Path("folder").iterdir()] == ["letter.txt"]


def test_a_named_data_set_means_its_training_part(longtail: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("data/bibtex").mkdir(parents=True)
    Path("data/bibtex/train.txt").write_text("2 2 2\n0 0:1\n1 1:1\n", encoding="utf-8")
    Path("data/bibtex/test.txt").write_text("1 2 2\n1 0:1\n", encoding="utf-8")
    monkeypatch.setenv("LONGTAIL_DATA", "data")
    assert longtail("train", "bibtex", "--out", "model").code == 0
    assert library.load("model").n_rows_ == 2
    evaluated = longtail("evaluate", "model", "Bibtex", "-k", "1")
    assert evaluated.out.startswith("1 row, 2 labels; values in percent")


def test_a_share_that_is_no_number_is_refused(longtail: Callable) -> None:
    result = longtail("train", "notes.jsonl", "--out", "m", "--holdout", "nan")
    assert result.code == 2
    assert "nan is not a finite number" in result.err


def test_more_threads_than_any_machine_has_are_no_reason_to_fail(longtail: Callable) -> None:
    assert longtail("train", "notes.jsonl", "--out", "m", "--jobs", "1000000000000", "--learner", "tree").code == 0


def test_label_texts_are_read_and_told(longtail: Callable, check_golden: Callable) -> None:
    Path("labels.tsv").write_text("1\tfruit\n2\tred\n3\tmusic\n", encoding="utf-8")
    result = longtail("train", "notes.jsonl", "--out", "model", "--label-texts", "labels.tsv")
    assert result.code == 0
    check_golden("train-label-texts", result.err + result.out)
    assert longtail("train", "notes.jsonl", "--out", "plain").code == 0
    described, plain = library.load("model"), library.load("plain")
    assert described.predict(["red pears"]) == plain.predict(["red pears"])


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        (
            "labels.jsonl",
            b'{"label": "fruit"}\n{"name": "red"}\n',
            "labels.jsonl:2: no key 'label'; the keys are 'name'",
        ),
        ("labels.jsonl", b'{"label": "\xe4"}\n', "labels.jsonl:1: byte 12 of the line is not UTF-8"),
        ("labels.tsv", b"1\tfruit\n1\tred\n", "labels.tsv:2: the label '1' has other texts in line 1"),
        ("labels.csv", b"id,title\n1,fruit\n", "labels.csv:1: no column is named 'label'"),
        ("labels.json", b"{", "labels.json:1: not JSON"),
        ("labels.tsv", b"", "labels.tsv: the file has no labels"),
        ("labels.tsv", b"1\tsnow\n", "labels.tsv: no label of the corpus is in it, by id or by name"),
        ("labels.txt", b"fruit\n", "the extension '.txt' of labels.txt is unknown"),
        ("other.tsv", b"", "there is no file labels.tsv"),
    ],
)
def test_label_texts_that_cannot_be_used_are_refused(longtail: Callable, name: str, content: bytes, told: str) -> None:
    Path(name).write_bytes(content)
    result = longtail(
        "train", "notes.jsonl", "--out", "model", "--label-texts", "labels.tsv" if name == "other.tsv" else name
    )
    assert (result.code, result.out) == (1, "")
    assert told in result.err
    assert not Path("model").exists()


PAGES = """\
{"texts": ["ripe apples and pears", "rain and a grey sky"], "labels": ["fruit", "weather"]}
{"texts": ["apples in a basket", "a late train"], "labels": ["fruit", "travel"]}
{"texts": ["a grey sky, then rain", "the train was late"], "labels": ["weather", "travel"]}
"""


def test_a_network_learns_from_labels_of_groups(longtail: Callable) -> None:
    Path("pages.jsonl").write_text(PAGES, encoding="utf-8")
    arguments = ["--learner", "network", "--width", "16", "--epochs", "60", "--learning-rate", "0.02"]
    trained = longtail("train", "pages.jsonl", "--out", "model", "--min-df", "1", "--jobs", "1", *arguments)
    assert trained.code == 0, trained.err
    assert "learner: network that learns from groups, with width 16, 60 epochs" in trained.err
    predicted = longtail("predict", "model", "--text", "pears and apples", "--text", "rain", "-k", "1").out
    assert [line.split('"label": ')[1].split(",")[0] for line in predicted.splitlines()] == ['"fruit"', '"weather"']
    Path("rows.jsonl").write_text('{"text": "late train", "labels": ["travel"]}\n', encoding="utf-8")
    assert re.search(r"^P +100\.00", longtail("evaluate", "model", "rows.jsonl").out, re.MULTILINE)
    assert "learner: DeepMIML" in longtail("info", "model").out
    stdin = ["train", "-", "--out", "other", "--strategy", "auto", "--learner", "network", "--epochs", "1"]
    assert longtail(*stdin, stdin=PAGES.encode()).code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--head dft", "--head is for labels of rows; a network for labels of groups has only --width, --epochs,"),
        ("--heads 3", "--heads is for labels of rows"),
        ("--networks 2", "--networks is for labels of rows"),
        ("--checkpoint folder", "--checkpoint is for labels of rows"),
        ("--weighting loss", "--weighting is for labels of rows"),
        ("--strategy eagle", "--strategy does not go with --learner network"),
        ("--rule count", "--rule does not go with --learner network"),
    ],
)
def test_options_that_a_network_of_groups_lacks_are_refused_by_name(
    longtail: Callable, arguments: str, message: str
) -> None:
    Path("pages.jsonl").write_text(PAGES, encoding="utf-8")
    result = longtail("train", "pages.jsonl", "--out", "model", "--learner", "network", *arguments.split())
    assert result.code == 1
    assert result.err.startswith(f"error: {message}")
    assert not Path("model").exists()


def test_label_texts_do_not_apply_to_labels_of_groups(longtail: Callable) -> None:
    Path("pages.jsonl").write_text('{"texts": ["a", "b"], "labels": ["fruit"]}\n', encoding="utf-8")
    result = longtail("train", "pages.jsonl", "--out", "model", "--label-texts", "labels.tsv")
    assert result.code == 1
    assert "--label-texts needs labels of rows, but DATA has only labels of groups" in result.err
