"""`longtail.tagger.decision` and how `Tagger` uses it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import longtail
from longtail import Corpus, Tagger, TextFeatures
from longtail.choice import HeldOut
from longtail.errors import InvalidInput, ModelFormatError
from longtail.metrics import reliability
from longtail.ridge import Ridge
from longtail.store import State
from longtail.tagger import Aim, Decision
from longtail.trees import Calibration, LabelTree, OneVsRest
from tests.serve.browser.stage import UNTRAINED, examples
from tests.tagger.two_stages import two_stages

WORDS = [f"word{number}" for number in range(12)]


def held_out(n_rows: int = 400, seed: int = 0, warp: float = 1.0) -> HeldOut:
    """Rankings of five labels whose hits have the probability score ** warp."""
    rng = np.random.default_rng(seed)
    scores = -np.sort(-rng.random((n_rows, 5)), axis=1).astype(np.float32)
    hits = rng.random(scores.shape) < scores**warp
    rows = np.repeat(np.arange(n_rows), 5)
    return HeldOut(rows, scores.ravel(), hits.ravel(), int(hits.sum()) + 50, n_rows)


def data(n_rows: int = 120) -> tuple[list[str], list[list[str]]]:
    rng = np.random.default_rng(0)
    chosen = [rng.choice(12, size=rng.integers(1, 4), replace=False) for _ in range(n_rows)]
    return [" ".join(WORDS[i] for i in row) for row in chosen], [[f"label{i % 6}" for i in row] for row in chosen]


@pytest.fixture(scope="module", params=["ridge", "tree", "flat"])
def tagger(request: pytest.FixtureRequest) -> Tagger:
    learners = {"ridge": Ridge(), "tree": LabelTree(leaf_size=2, random_state=0), "flat": OneVsRest()}
    return Tagger(TextFeatures(min_df=1), learners[request.param]).fit(*data())


@pytest.mark.parametrize("of_odds", [True, False])
def test_probabilities_mean_what_they_say_on_other_rows(of_odds: bool) -> None:
    found = Decision.learn(held_out(4000, warp=3.0), Aim("f1"), of_odds)
    other = held_out(4000, seed=1, warp=3.0)
    assert reliability(other.scores, other.hits).error > 0.1
    assert reliability(found.probabilities(other.scores), other.hits).error < 0.02
    assert found.expected.error < 0.03


def test_what_is_expected_holds_on_other_rows() -> None:
    found = Decision.learn(held_out(4000), Aim("f1"), True)
    other = held_out(4000, seed=1)
    given = found.rule.given(found.probabilities(other.scores), other.is_first)
    right = np.count_nonzero(other.hits & given)
    assert right / given.sum() == pytest.approx(found.expected.precision, abs=0.02)
    assert right / other.n_true == pytest.approx(found.expected.recall, abs=0.02)
    assert given.sum() / other.n_rows == pytest.approx(found.expected.labels_per_row, abs=0.1)


@pytest.mark.parametrize(("aim", "times"), [("precision=0.9", 1), ("precision=0.2", 0), ("recall=1", 1)])
def test_an_aim_that_is_missed_is_told_once(aim: str, times: int, caplog: pytest.LogCaptureFixture) -> None:
    held = held_out()
    low = held.scores < 0.5  # high scores are wrong, so probabilities tell nothing
    Decision.learn(held._replace(hits=low, n_true=int(low.sum()) + 50), Aim.parse(aim), True)
    assert caplog.text.count("is not reached on held-out rows") == times


def test_probabilities_rise_with_the_score() -> None:
    for of_odds in (True, False):
        found = Decision.learn(held_out(), Aim("f1"), of_odds).probabilities(np.linspace(0, 1, 1000, dtype=np.float32))
        assert (np.diff(found) >= 0).all()


def test_places_without_a_label_stay_empty_and_zeros_stay_zero() -> None:
    found = Decision.learn(held_out(), Aim("f1"), True)
    assert found.probabilities(np.array([0, -np.inf], dtype=np.float32)).tolist() == [0, -np.inf]


@pytest.mark.filterwarnings("error")
def test_places_without_a_label_stay_empty_where_scores_tell_nothing() -> None:
    flat = replace(Decision.learn(held_out(), Aim("f1"), False), calibration=Calibration(slope=0.0, offset=-1.0))
    found = flat.probabilities(np.array([0.3, -np.inf], dtype=np.float32))
    assert found.tolist() == [pytest.approx(1 / (1 + np.e)), -np.inf]


@pytest.mark.parametrize("aim", ["f1", "count", "precision=0.8", "recall=0.7"])
def test_a_saved_decision_is_the_same(aim: str) -> None:
    found = Decision.learn(held_out(), Aim.parse(aim), True)
    again = Decision.from_state(found.to_state())
    scores = np.linspace(0, 1, 50, dtype=np.float32)
    assert (again.aim, again.rule, again.places, again.expected) == (
        found.aim,
        found.rule,
        found.places,
        found.expected,
    )
    np.testing.assert_array_equal(again.probabilities(scores), found.probabilities(scores))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("aim", "fame"),
        ("aim", None),
        ("threshold", float("nan")),
        ("threshold", -0.1),
        ("threshold", True),
        ("always_one", 1),
        ("only_best", 1),
        ("places", 0),
        ("places", 10**9),
        ("of_odds", "yes"),
        ("n_rows", -1),
        ("precision", 1.1),
        ("labels_per_row", float("inf")),
    ],
)
def test_a_spoilt_decision_is_refused(name: str, value: Any) -> None:
    state = Decision.learn(held_out(), Aim("f1"), True).to_state()
    with pytest.raises(ModelFormatError):
        Decision.from_state(replace(state, facts={**state.facts, name: value}))


@pytest.mark.parametrize(
    "array", [None, np.zeros(3, np.float32), np.full(2, np.nan, np.float32), np.zeros((2, 0), np.float32)]
)
def test_a_spoilt_calibration_is_refused(array: Any) -> None:
    state = Decision.learn(held_out(), Aim("f1"), True).to_state()
    arrays = {} if array is None else {"calibration0": array}
    with pytest.raises(ModelFormatError):
        Decision.from_state(State("Decision", facts=state.facts, arrays=arrays))


def test_auto_gives_the_labels_that_reach_the_threshold(tagger: Tagger) -> None:
    texts, _ = data(30)
    decision = tagger.decision_
    assert decision is not None
    for tags, ranked in zip(tagger.predict(texts), tagger.predict(texts, k=6), strict=True):
        reached = [tag for tag in ranked if tag.score >= decision.rule.threshold]
        assert tags == (reached or ranked[: int(decision.rule.always_one)])
        assert all(0 <= tag.score <= 1 for tag in ranked)


def test_probabilities_leave_rankings_as_they_are(tagger: Tagger) -> None:
    texts, _ = data(30)
    raw = tagger.estimator_.predict_topk(tagger.features_.transform(texts), 6)[0]
    np.testing.assert_array_equal(tagger.predict_topk(texts, 6)[0], raw)


def test_a_threshold_of_the_caller_replaces_the_learned_one(tagger: Tagger) -> None:
    texts, _ = data(30)
    ranked = tagger.predict(texts, k=6)
    assert tagger.predict(texts, threshold=0.02) == [[tag for tag in row if tag.score >= 0.02] for row in ranked]


def test_a_corpus_gets_the_same_tags(tagger: Tagger) -> None:
    texts, labels = data(30)
    assert list(tagger.tag_corpus(Corpus.from_lists(texts, labels))) == tagger.tag(texts)


def test_a_loaded_model_decides_alike(tagger: Tagger, tmp_path: Path) -> None:
    texts, _ = data(30)
    tagger.save(tmp_path / "model")
    loaded = longtail.load(tmp_path / "model")
    assert loaded.predict(texts) == tagger.predict(texts)
    assert loaded.aim == "f1"


def test_evaluation_judges_the_tags_as_given(tagger: Tagger) -> None:
    texts, labels = data(60)
    given = tagger.tag(texts)
    right = sum(tag.label in row for tags, row in zip(given, labels, strict=True) for tag in tags)
    n_given, n_true = sum(map(len, given)), sum(len(set(row)) for row in labels)
    found = tagger.evaluate(Corpus.from_lists(texts, labels), ks=(1,)).given
    assert found is not None
    assert found.precision == pytest.approx(right / n_given)
    assert found.recall == pytest.approx(right / n_true)
    assert found.per_row == pytest.approx(n_given / 60)


def test_only_probabilities_have_a_calibration_error() -> None:
    texts, labels = data(60)
    corpus = Corpus.from_lists(texts, labels)
    for aim, learner, has_error in (("f1", Ridge(), True), (None, Ridge(), False), (None, OneVsRest(), True)):
        report = Tagger(TextFeatures(min_df=1), learner, aim).fit_corpus(corpus).evaluate(corpus)
        assert (report.calibration_error is not None) == has_error
        assert ("calibration error" in report.to_text()) == has_error
        assert report.cutoffs


def test_an_explanation_has_the_score_of_the_tag_and_exact_sums(tagger: Tagger) -> None:
    text = data(1)[0][0]
    tag = tagger.predict([text], k=1)[0][0]
    found = tagger.explain(text, tag.label)
    assert found.score == pytest.approx(tag.score, abs=1e-6)
    parts = [found] if not found.steps else list(found.steps)
    for part in parts:
        assert sum(reason.contribution for reason in part.reasons) + part.intercept == pytest.approx(
            part.margin, abs=1e-4
        )


def test_evidence_adds_up_to_the_log_odds_of_the_probability() -> None:
    tagger = two_stages(Corpus.from_lists(*examples()), UNTRAINED)
    tagger.decision_ = Decision.learn(held_out(warp=3.0), Aim("f1"), True)
    tag = tagger.predict(["an apple in the rain"], k=1)[0][0]
    found = tagger.explain("an apple in the rain", tag.label)
    assert found.score == pytest.approx(tag.score, abs=1e-5)
    total = sum(each.contribution for each in found.evidence)
    assert total == pytest.approx(np.log(found.score / (1 - found.score)), abs=1e-2)


def test_without_an_aim_the_learner_decides() -> None:
    texts, labels = data()
    tagger = Tagger(TextFeatures(min_df=1), OneVsRest(), aim=None).fit(texts, labels)
    assert tagger.decision_ is None
    X = tagger.features_.transform(texts[:20])
    given = tagger.estimator_.predict(X)
    for row, tags in enumerate(tagger.predict(texts[:20])):
        assert {tag.label for tag in tags} == {tagger.label_names_[label] for label in given[[row]].indices}


def test_thresholds_of_the_estimator_decide() -> None:
    texts, labels = data()
    tagger = Tagger(TextFeatures(min_df=1), LabelTree(thresholds="f1", random_state=0)).fit(texts, labels)
    assert tagger.decision_ is None
    given = tagger.estimator_.predict(tagger.features_.transform(texts))
    assert [len(tags) for tags in tagger.predict(texts)] == np.diff(given.indptr).tolist()


def test_too_few_rows_leave_it_to_the_learner(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "longtail")
    tagger = Tagger(TextFeatures(min_df=1), Ridge()).fit(*data(40))
    assert tagger.decision_ is None
    assert "as 40 rows are too few to learn it" in caplog.text


def test_labels_with_one_row_each_leave_it_to_the_learner(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "longtail")
    texts, _ = data(60)
    tagger = Tagger(TextFeatures(min_df=1), OneVsRest()).fit(texts, [[str(i), f"other {i}"] for i in range(60)])
    assert tagger.decision_ is None
    assert "as no label of a held-out row was found" in caplog.text


def test_another_weighting_has_other_scores() -> None:
    tagger = Tagger(TextFeatures(min_df=1), Ridge()).fit(*data())
    X = tagger.features_.transform(["word1 word2"])
    raw = tagger.estimator_.predict_topk(X, 3, weighting="target")[1]
    np.testing.assert_array_equal(tagger.predict_topk(["word1 word2"], 3, weighting="target")[1], raw)


def test_a_wrong_aim_is_refused_before_training() -> None:
    with pytest.raises(InvalidInput, match="aim is 'fame'"):
        Tagger(aim="fame").fit(*data())
    assert clone(Tagger(aim="count")).aim == "count"


@pytest.mark.parametrize("k", ["car", None, 0, 1.5, True])
def test_other_numbers_of_labels_are_refused(tagger: Tagger, k: Any) -> None:
    with pytest.raises(InvalidInput):
        tagger.predict(["word1"], k)


def one_label_each(n_rows: int = 120) -> tuple[list[str], list[list[str]]]:
    texts, labels = data(n_rows)
    return texts, [row[:1] for row in labels]


@pytest.mark.parametrize("aim", ["f1", "count", None])
def test_rows_with_one_label_each_lead_to_one_tag(aim: str | None) -> None:
    texts, labels = one_label_each()
    tagger = Tagger(TextFeatures(min_df=1), OneVsRest(), aim).fit(texts, labels)
    assert tagger.gives_one
    assert all(len(tags) == 1 for tags in tagger.predict(texts))
    report = tagger.evaluate(Corpus.from_lists(texts, labels))
    assert report.given is not None
    assert report["F1"] == report["accuracy"] == report.given.precision
    assert (tagger.decision_ is None) == (aim is None)
    best = [tags[0].score for tags in tagger.predict(texts)]
    assert [len(tags) for tags in tagger.tag(texts, threshold=0.6)] == [int(score >= 0.6) for score in best]


def test_the_one_tag_of_a_row_has_a_probability_that_was_measured(tmp_path: Path) -> None:
    texts, labels = one_label_each(400)
    tagger = Tagger(TextFeatures(min_df=1), Ridge(10.0)).fit(texts, labels)
    tagger.save(tmp_path / "model")
    for each in (tagger, longtail.load(tmp_path / "model")):
        assert each.decision_ is not None
        assert each.gives_one
        assert each.scores_are_probabilities
        assert each.decision_.threshold is None
        assert "threshold" not in each.decision_.to_dict()
        assert "one tag for each row" in each.decision_.describe()
    expected = each.decision_.expected
    assert expected.precision == expected.recall == expected.f1
    assert expected.labels_per_row == 1
    texts, labels = (each[400:] for each in one_label_each(900))
    best = [tags[0] for tags in tagger.predict(texts)]
    right = np.mean([tag.label == row[0] for tag, row in zip(best, labels, strict=True)])
    raw = tagger.decision_function(texts).max(axis=1)
    assert np.mean([tag.score for tag in best]) == pytest.approx(right, abs=0.1)
    assert raw.mean() < right - 0.1


def test_a_precision_is_an_aim_for_rows_with_one_label_each_too() -> None:
    texts, labels = one_label_each()
    tagger = Tagger(TextFeatures(min_df=1), OneVsRest(), "precision=0.9").fit(texts, labels)
    assert tagger.decision_ is not None
    ranked = tagger.predict(texts, k=6)
    reached = [[tag for tag in row if tag.score >= tagger.decision_.rule.threshold] for row in ranked]
    assert tagger.tag(texts) == reached
    assert any(len(row) != 1 for row in reached)


def test_predict_proba_gives_the_scores_of_tags() -> None:
    texts, labels = data()
    tagger = Tagger(TextFeatures(min_df=1), OneVsRest()).fit(texts, labels)
    for tags, chances in zip(tagger.predict(texts[:9], k=3), tagger.predict_proba(texts[:9]), strict=True):
        for tag in tags:
            assert chances[list(tagger.label_names_).index(tag.label)] == pytest.approx(tag.score, abs=1e-6)
