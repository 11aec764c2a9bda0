from __future__ import annotations

import doctest
from pathlib import Path

import numpy as np
import pytest

from benchmarks.ranking import __main__ as program
from benchmarks.ranking import hidden, left_out, sources, vectors
from benchmarks.ranking.default import DefaultRun, train_default
from benchmarks.ranking.forests import forests_rows
from benchmarks.ranking.race import WORDS, Candidate, Outcome, candidates_table, race_table, train_candidates
from benchmarks.samples import Split, align
from longtail import LabelTree, Tagger, TextFeatures
from longtail.data import Corpus, LabelTexts
from longtail.ranking import TwoStage
from longtail.tagger import RaceSummary
from longtail.tagger.matching import label_readings

THINGS = ("apple", "sky", "stone", "river", "forest", "engine", "music", "bread")


def texts_about(n_rows: int, seed: int) -> Corpus:
    rng = np.random.default_rng(seed)
    labels = [[THINGS[label] for label in rng.permutation(len(THINGS))[:2]] for _ in range(n_rows)]
    filler = ["the", "large", "old", "small", "green"]
    texts = [f"{rng.choice(filler)} {first} {rng.choice(filler)} {second}s" for first, second in labels]
    return Corpus.from_lists(texts, labels)


@pytest.fixture(scope="module")
def split() -> Split:
    names = LabelTexts.from_mapping({name: name for name in (*THINGS, "sea")})
    return align(texts_about(300, 0), texts_about(60, 1), names)


@pytest.fixture(scope="module")
def two_stages(split: Split) -> DefaultRun:
    """A tagger of two stages, as the default makes of more rows."""
    model = TwoStage([("tree", LabelTree()), ("forest", LabelTree(n_trees=2))], rounds=5)
    features = TextFeatures(min_df=1)
    X = features.fit_transform(split.train.texts)
    readings = label_readings(features, list(split.train.label_names))
    tagger = Tagger.from_fitted(features, model.fit(X, split.train.labels, readings), split.train)
    tagger.race_ = RaceSummary(WORDS, (), (), "tree", ("one-vs-rest",), seconds=12)
    return DefaultRun(tagger, 1.0, 1.0)


@pytest.mark.parametrize("module", [sources, hidden], ids=lambda module: module.__name__)
def test_examples_in_docstrings_hold(module: object) -> None:
    failed, tried = doctest.testmod(module)  # type: ignore[arg-type]
    assert tried
    assert not failed


def test_sources_are_switched_off_one_by_one(split: Split, two_stages: DefaultRun) -> None:
    found = dict(sources.ablate("yso-sv", split, two_stages, threads=1))
    assert list(found)[:4] == ["tree alone", "forest alone", "learners only", "learners + neighbours"]
    assert {"all", "all without names", "all, forest only"} <= found.keys()
    top = two_stages.tagger.predict_topk(split.test.texts, 5)[0]
    alone = two_stages.tagger.estimator_.sources_[0].estimator
    X = two_stages.tagger.features_.transform(split.test.texts)
    assert found["tree alone"] == two_stages.judge("yso-sv", split, alone.predict_topk(X, 5)[0])
    assert found["all"] == two_stages.judge("yso-sv", split, top)


def test_a_line_has_only_its_own_sources(split: Split, two_stages: DefaultRun) -> None:
    rows = sources.rows_of(two_stages, split)
    whole = two_stages.tagger.estimator_
    model = sources.Ablation(rows, whole).model(["forest"], ("names",))
    assert model.sources_ == (whole.sources_[1], whole.sources_[-1])
    assert model.ranker_.n_features == sum(len(source.columns) for source in model.sources_)


def test_the_winner_of_the_race_is_known(two_stages: DefaultRun) -> None:
    assert two_stages.learner == "tree"
    without = Tagger.from_fitted(two_stages.tagger.features_, LabelTree(), texts_about(9, 0))
    assert DefaultRun(without, 1.0, 2.0).learner == "LabelTree"


def test_every_candidate_is_trained_unless_it_takes_too_long(split: Split, two_stages: DefaultRun) -> None:
    found = list(train_candidates("yso-sv", split, two_stages, threads=1, most=1e-3))
    assert {each.ndcg is None for each in found if each.estimated_seconds > 1e-3} <= {True}
    trained = [each for each in found if each.ndcg is not None]
    assert trained
    assert all(0 < (each.ndcg or 0) <= 100 for each in trained)


def test_the_choice_is_compared_with_the_best_candidate(two_stages: DefaultRun) -> None:
    found = [Candidate(WORDS, "tree", 1.0, 1.0, 50.0), Candidate(WORDS, "forest", 3.0, 3.0, 50.6)]
    dear = Candidate(WORDS, "one-vs-rest", 9.0, 9.0, 40.0)
    outcome = Outcome("here", two_stages, found, {"nDCG@5": 55.0})
    [row] = race_table([outcome]).to_dict()["rows"]
    assert (row["chosen"], row["best"], row["behind"]) == ("tree", "forest", pytest.approx(0.6))
    assert row["at most 0.5 behind"] == "DOES NOT HOLD"
    assert row["announced s, at most"] == 12
    best, chosen, last = candidates_table("here", [*found, dear], two_stages).to_dict()["rows"]
    assert (best["note"], chosen["note"], last["note"]) == ("", "**chosen**", "left out of the race")


def test_forests_are_compared_in_training_and_prediction(split: Split) -> None:
    rows = forests_rows("here", split, threads=1, rounds=1)
    measured = ["training, CPU s", "top 5 of 60 rows, CPU s", "top 30 of 60 rows, CPU s"]
    assert [row[1:3] for row in rows] == [(shape, what) for shape in ("default", "wide") for what in measured]


def test_what_forests_leave_out_is_judged_against_the_mean_of_all_scores(rng: np.random.Generator) -> None:
    X, Y = rng.random((80, 12)), rng.random((80, 60)) < 0.05
    model = LabelTree(n_trees=3, leaf_size=10, branching=4, random_state=0, n_jobs=1).fit(X, Y)
    every = left_out.by_all_scores(model, X, 5)
    np.testing.assert_array_equal(every, np.argsort(-model.decision_function(X), axis=1)[:, :5])
    assert (every != model.predict_topk(X, 5)[0]).any()


def test_what_forests_leave_out_has_a_line_for_each_shape_and_number_of_labels(split: Split) -> None:
    lines = left_out.left_out_table("here", split.train, threads=1, folds=2, places=(1, 5)).rows
    assert [line[:2] for line in lines] == [("default", 1), ("default", 5), ("wide", 1), ("wide", 5)]
    # A forest leaves out nothing if there are so few labels. A ranking of one label has no P@3.
    assert lines[0][2:] == (0, None, None, None)
    assert lines[1][2:] == (0, 0, 0, 0)


def test_hidden_labels_lose_their_rows_and_keep_their_texts(split: Split) -> None:
    gone = hidden.choose_hidden(split, share=0.25)
    assert gone.sum() == 2
    assert not gone[split.n_learnable :].any()
    corpus = hidden.without_labels(split.train, gone)
    assert corpus.label_counts[gone].tolist() == [0, 0]
    assert (corpus.label_counts[~gone] == split.train.label_counts[~gone]).all()
    assert all(corpus.label_texts[label] for label in np.flatnonzero(gone))  # type: ignore[index]
    nameless = hidden.without_texts(corpus, gone)
    assert not any(nameless.label_texts[label] for label in np.flatnonzero(gone))  # type: ignore[index]


def test_both_models_of_hidden_labels_are_judged_on_the_others(split: Split) -> None:
    found = hidden.measure_hidden(split, threads=1, share=0.25)
    assert found.n_labels == 2
    assert found.n_pairs > 0
    assert 0 <= found.recall <= 1
    assert found.with_names > 0
    assert "loss" in found.table().to_markdown()


def test_the_program_writes_tables(split: Split, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "load_sample", lambda _: split)
    program.main(["--data", "yso-sv-1k", "--parts", "forests", "hidden", "--threads", "1", "--out", str(tmp_path)])
    written = (tmp_path / "ranking.md").read_text(encoding="utf-8")
    assert "Three trees and one" in written
    assert "recall at 10 of hidden labels" in written


def test_the_default_reports_what_it_took(split: Split) -> None:
    run = train_default(split.train, threads=1)
    assert run.seconds > 0
    assert run.learner


def test_the_default_is_measured_without_and_with_an_encoder(
    split: Split, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("transformers")
    from tests.neural.tiny import write_tiny_encoder

    folder = write_tiny_encoder(tmp_path, THINGS)
    monkeypatch.setattr(vectors, "find_installed_encoder", lambda: folder)
    rows = vectors.vectors_rows("python-api", "Things", split, threads=1)
    assert [row[0] for row in rows] == ["Things", "Things"]
    assert rows[0][-1] is None
    assert isinstance(rows[1][-1], float)
    assert rows[1][-1] > 0
    assert "Things" in vectors.vectors_table(rows).to_markdown()


def test_without_an_encoder_the_program_says_so(split: Split, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "load_sample", lambda name: split)
    monkeypatch.setattr(vectors, "find_installed_encoder", lambda: None)
    program.main(["--parts", "vectors", "--vectors-data", "python-api", "--out", str(tmp_path)])
    assert "no sentence encoder is installed" in (tmp_path / "ranking.md").read_text()
