"""Comparing learners: one split, the same metrics as `evaluate`, and reasons for what is left out."""

from __future__ import annotations

from pathlib import Path

import pytest

from longtail import OneVsRest, Tagger, TextFeatures
from longtail.choice import LearnerOptions
from longtail.data import Corpus
from longtail.errors import InvalidInput
from longtail.estimator import Estimator
from longtail.memory import limit
from longtail.tagger import compare, hold_out

TEXTS = [f"{word} number {number}" for number in range(30) for word in ("apple", "sky", "rain")]
LABELS = [["fruit"], ["weather", "blue"], ["weather"]] * 30
CORPUS = Corpus.from_lists(TEXTS, LABELS)


def test_a_learner_is_judged_as_evaluate_judges_it() -> None:
    [found] = compare(CORPUS, ["one-vs-rest"], features=TextFeatures(), holdout=0.2, random_state=3)
    rest, held_out = hold_out(CORPUS, 0.2, 3)
    tagger = Tagger(TextFeatures(), LearnerOptions("one-vs-rest", random_state=3)).fit_corpus(rest)
    assert found.report == tagger.evaluate(held_out)
    assert found.seconds > 0
    assert found.size == tagger.to_state().n_bytes()


def test_the_size_is_nearly_that_on_disk(tmp_path: Path) -> None:
    tagger = Tagger().fit_corpus(CORPUS)
    tagger.save(tmp_path / "model")
    on_disk = sum(path.stat().st_size for path in (tmp_path / "model").glob("*.npy"))
    arrays = len(list((tmp_path / "model").glob("*.npy")))
    assert 0 <= on_disk - tagger.to_state().n_bytes() <= 256 * arrays


def test_the_default_is_what_a_tagger_trains() -> None:
    [found] = compare(CORPUS, ["default"])
    rest, held_out = hold_out(CORPUS, 0.1)
    tagger = Tagger(estimator=LearnerOptions()).fit_corpus(rest)
    assert found.report == tagger.evaluate(held_out)
    assert list(found.reasons) == tagger.reasons_


def test_a_learner_that_takes_too_long_is_left_out_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def seconds(estimator: Estimator, *_: object) -> float:
        return 7200.0 if isinstance(estimator, OneVsRest) else 0.1

    monkeypatch.setattr("longtail.tagger.comparing.seconds_of", seconds)
    slow, fast = compare(CORPUS, ["one-vs-rest", "tree"], n_jobs=1)
    assert (slow.report, slow.quality()) == (None, -1.0)
    assert slow.left_out == "training would take about 7,200 s, more than 600 s"
    assert fast.report is not None
    [slow] = compare(CORPUS, ["one-vs-rest"], n_jobs=1, patience=1e4)
    assert slow.report is not None


def test_a_learner_that_takes_too_much_memory_is_left_out() -> None:
    with limit("1K"):
        [found] = compare(CORPUS, ["one-vs-rest"])
    assert found.report is None
    assert "of 1.0 KiB of memory" in found.left_out


def test_learners_are_told_apart_and_unknown_ones_refused() -> None:
    assert [each.learner for each in compare(CORPUS, ["ridge", "ridge"])] == ["ridge"]
    with pytest.raises(InvalidInput) as raised:
        compare(CORPUS, ["forest"])
    assert (raised.value.code, raised.value.name) == ("unknown_learner", "forest")
