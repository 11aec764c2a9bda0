"""For the same input and options, `longtail train` and `Tagger` write the same bytes; only the card has a time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from longtail import GroupedCorpus, LabelTree, OneVsRest, Ridge, Tagger, TextFeatures
from longtail.choice import LearnerOptions
from longtail.data import Corpus, read_corpus, read_grouped_delimited, read_grouped_jsonl, read_groups, write_corpus
from longtail.text import FeatureOptions

LEARNERS: dict[str, dict[str, Any]] = {
    "auto": {},
    "tree": {"n_trees": 2, "leaf_size": 2, "prune": 0},
    "one-vs-rest": {"loss": "logistic", "C": 2.0, "weighting": "score"},
    "ridge": {"prune": 3, "fit_intercept": True},
    "network": {"width": 8, "epochs": 2, "head": "one-hot"},
}
FLAGS = {"n_trees": "--trees", "fit_intercept": "--intercept"}
TEXT_FILES = ("notes.jsonl", "notes.csv", "notes.tsv")
FEATURE_FILES = ("rows.txt", "X.npz", "rows.arff")
GROUPS = (
    ("groups.jsonl",),
    ("groups.csv", "--group-column", "page"),
    ("members.jsonl", "--groups", "members.groups"),
)


def bytes_of(model: str | Path) -> dict[str, bytes]:
    return {
        path.relative_to(model).as_posix(): path.read_bytes()
        for path in sorted(Path(model).rglob("*"))
        if path.is_file() and path.name != "card.json"
    }


def shell(options: dict[str, Any]) -> list[str]:
    """The options of a learner as the shell spells them."""
    found = []
    for name, value in options.items():
        flag = FLAGS.get(name, f"--{name.replace('_', '-')}")
        found += [flag] if value is True else [flag, str(value)]
    return found


@pytest.fixture(autouse=True)
def files(_own_folder: None) -> None:
    notes = read_corpus("notes.jsonl")
    write_corpus(notes, "notes.csv")
    write_corpus(notes, "notes.tsv")
    rows = read_corpus("rows.txt")
    write_corpus(rows, "X.npz")
    dense, labels = rows.features.toarray(), rows.labels.toarray()
    names = "".join(f'<label name="label{i}"></label>' for i in range(2))
    Path("rows.xml").write_text(f'<labels xmlns="http://mulan.sourceforge.net/labels">{names}</labels>')
    lines = ["@relation rows", *(f"@attribute label{i} {{0,1}}" for i in range(2))]
    lines += [*(f"@attribute feature{i} numeric" for i in range(3)), "@data"]
    lines += [",".join(map(str, [*labels[row].astype(int), *dense[row]])) for row in range(len(dense))]
    Path("rows.arff").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert notes.texts is not None
    Path("groups.jsonl").write_text(
        '{"texts": ["red apples", "blue sky"], "labels": ["fruit", "weather"]}\n'
        '{"texts": ["red pears", "green apples"], "labels": ["fruit"]}\n'
        '{"texts": ["grey sky", "red sky"], "labels": ["weather"]}\n',
        encoding="utf-8",
    )
    Path("groups.csv").write_text(
        "page,text,labels\n1,red apples,fruit;weather\n1,blue sky,\n2,red pears,fruit\n2,green apples,\n"
        "3,grey sky,weather\n",
        encoding="utf-8",
    )
    Path("members.jsonl").write_text("".join(f'{{"text": "{text}"}}\n' for text in notes.texts), encoding="utf-8")
    Path("members.groups").write_text("3 6 2\n0 0 1\n1 2 3\n0,1 4 5\n", encoding="utf-8")


def read_members(file: str) -> GroupedCorpus:
    if file == "groups.jsonl":
        return read_grouped_jsonl(file)
    if file == "groups.csv":
        return read_grouped_delimited(file, group="page")
    return read_groups("members.groups", read_corpus(file, require_labels=False))


def skip_without_torch(learner: str) -> None:
    if learner == "network":
        pytest.importorskip("torch")


@pytest.mark.parametrize("file", [*TEXT_FILES, *FEATURE_FILES])
@pytest.mark.parametrize("learner", LEARNERS)
def test_rows_of_every_kind_of_file(longtail: Callable, learner: str, file: str) -> None:
    skip_without_torch(learner)
    options = LEARNERS[learner]
    arguments = ["--learner", learner, *shell(options), "--seed", "3", "--jobs", "1"]
    result = longtail("train", file, "--out", "shell", *arguments)
    assert result.code == 0, result.err
    tagger = Tagger(estimator=LearnerOptions(learner, **options, random_state=3, n_jobs=1))
    tagger.fit_corpus(read_corpus(file)).save("python")
    assert bytes_of("shell") == bytes_of("python")
    assert "manifest.json" in bytes_of("shell")


@pytest.mark.parametrize("file", GROUPS, ids=lambda file: file[0])
@pytest.mark.parametrize("learner", [learner for learner in LEARNERS if learner != "network"])
def test_groups_of_every_kind_of_file(longtail: Callable, learner: str, file: tuple[str, ...]) -> None:
    options = LEARNERS[learner]
    arguments = ["--learner", learner, *shell(options), "--min-df", "1", "--strategy", "eagle", "--rule", "count"]
    result = longtail("train", *file, "--out", "shell", *arguments)
    assert result.code == 0, result.err
    tagger = Tagger(FeatureOptions(min_df=1), LearnerOptions(learner, **options))
    tagger.fit_groups(read_members(file[0]), "eagle", rule="count").save("python")
    assert bytes_of("shell") == bytes_of("python")


@pytest.mark.parametrize("file", GROUPS, ids=lambda file: file[0])
def test_a_network_from_groups_of_every_kind_of_file(longtail: Callable, file: tuple[str, ...]) -> None:
    skip_without_torch("network")
    options = {"width": 8, "epochs": 2, "learning_rate": 0.01}
    arguments = ["--learner", "network", *shell(options), "--min-df", "1", "--seed", "3", "--jobs", "1"]
    result = longtail("train", *file, "--out", "shell", *arguments)
    assert result.code == 0, result.err
    tagger = Tagger(FeatureOptions(min_df=1), LearnerOptions("network", **options, random_state=3, n_jobs=1))
    tagger.fit_groups(read_members(file[0])).save("python")
    assert bytes_of("shell") == bytes_of("python")


@pytest.mark.parametrize(
    ("arguments", "estimator"),
    [
        (["--alpha", "0.5", "--intercept"], Ridge(0.5, fit_intercept=True)),
        (["--learner", "one-vs-rest", "--C", "2"], OneVsRest(C=2.0)),
        (["--trees", "2", "--negatives", "siblings"], LabelTree(n_trees=2)),
    ],
    ids=["ridge", "one-vs-rest", "tree"],
)
def test_options_and_the_learner_itself(longtail: Callable, arguments: list[str], estimator: Any) -> None:
    """What a learner is given by name in the shell is what it is given as an object in Python."""
    flags = ["--ngrams", "1-2", "--min-df", "1", "--max-features", "9"]
    assert longtail("train", "notes.jsonl", "--out", "shell", *arguments, *flags).code == 0
    features = TextFeatures((1, 2), min_df=1, max_features=9)
    Tagger(features, estimator).fit_corpus(read_corpus("notes.jsonl")).save("python")
    assert bytes_of("shell") == bytes_of("python")


@pytest.mark.parametrize("refit", [True, False])
def test_held_out_rows(longtail: Callable, refit: bool) -> None:
    arguments = ["--holdout", "0.34", "--min-df", "1", "--seed", "5", *([] if refit else ["--no-refit"])]
    result = longtail("--quiet", "train", "notes.jsonl", "--out", "shell", *arguments)
    assert result.code == 0, result.err
    tagger = Tagger(FeatureOptions(min_df=1), LearnerOptions(random_state=5))
    tagger.fit_corpus(read_corpus("notes.jsonl"), holdout=0.34, refit=refit, random_state=5).save("python")
    assert bytes_of("shell") == bytes_of("python")
    assert tagger.holdout_report_ is not None
    assert result.out == tagger.holdout_report_.to_text() + "\n"


def test_a_taxonomy_and_labels_without_rows(longtail: Callable) -> None:
    Path("taxonomy.tsv").write_text("fruit\tthings\nred\tlooks\nlooks\tthings\n", encoding="utf-8")
    arguments = ["--taxonomy", "taxonomy.tsv", "--missing", "root"]
    assert longtail("train", "notes.jsonl", "--out", "shell", *arguments).code == 0
    corpus = read_corpus("notes.jsonl")
    assert corpus.texts is not None
    wider = Corpus(
        labels=sparse.hstack([corpus.labels, np.zeros((corpus.n_rows, 1), dtype=np.int8)]),
        label_names=[*corpus.label_names, "without rows"],
        texts=corpus.texts,
    )
    Tagger(estimator=LearnerOptions(taxonomy="taxonomy.tsv", missing="root")).fit_corpus(wider).save("python")
    assert bytes_of("shell") == bytes_of("python")
