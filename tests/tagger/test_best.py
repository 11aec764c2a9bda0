"""The default training: features by measuring, learners by a race, label texts, and a second stage."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from longtail import LabelTree, Tagger, load
from longtail.choice import LearnerOptions
from longtail.data import Corpus
from longtail.errors import InvalidInput
from longtail.ranking import TwoStage
from longtail.text import RowScaling

SYLLABLES = ["ku", "sko", "mu", "hi", "bar", "na", "spr", "po", "te", "fi", "han", "bra", "lek", "tro", "gle", "vis"]
STEMS = sorted({"".join(np.random.default_rng(seed).choice(SYLLABLES, 3)) for seed in range(400)})
ENDINGS = ["", "er", "en", "arna", "s", "ernas"]


def compound_titles(n_rows: int = 1000, seed: int = 0) -> tuple[list[str], list[list[str]]]:
    """Titles in which stems stand in compounds and with endings, so that whole words repeat rarely.

    A third of the labels does not show in its title.
    """
    rng = np.random.default_rng(seed)
    texts, labels = [], []
    for _ in range(n_rows):
        own = rng.choice(STEMS, 3, replace=False)
        shown = [f"{stem}{rng.choice(ENDINGS)}" for stem in own if rng.random() < 0.67]
        filler = ["".join(rng.choice(SYLLABLES, 3)) for _ in range(3)]
        texts.append(" ".join(["".join(shown), *filler]))
        labels.append(own.tolist())
    return texts, labels


@pytest.fixture(scope="module")
def trained():
    return Tagger(estimator=LearnerOptions(n_jobs=1)).fit(*compound_titles())


def test_parts_of_words_are_used_where_they_are_better(trained):
    subwords = [name for name in trained.features_.feature_names_ if name.startswith(("<", "~"))]
    assert subwords
    assert isinstance(trained.estimator_, TwoStage)


def test_the_default_is_better_than_words_alone(trained):
    test = Corpus.from_lists(*compound_titles(300, seed=1))
    words = Tagger(estimator=LabelTree()).fit(*compound_titles())
    assert trained.evaluate(test)["P@1"] > words.evaluate(test)["P@1"] + 0.05


def test_the_reason_has_the_figures(trained):
    [reason] = trained.reasons_
    assert reason.startswith("learner: two stages over ")
    assert "nDCG@5 on all held-out rows" in reason


def test_the_race_is_handed_out_without_models(trained, tmp_path):
    race = trained.race_
    assert race.features == "words and their parts"
    assert {each.features for each in race.feature_standings} == {"words", "words and their parts"}
    last = max((each.n_parts, each.n_rows) for each in race.standings)
    best = max((each for each in race.standings if (each.n_parts, each.n_rows) == last), key=lambda each: each.ndcg)
    assert best.name == race.winner
    assert [source.name for source in trained.estimator_.sources_ if source.kind == "Learner"] == [race.winner]
    assert race.seconds >= 50
    trained.save(tmp_path / "model")
    assert load(tmp_path / "model").race_ is None


def test_a_label_known_only_by_its_text_is_found_and_explained():
    texts, labels = compound_titles()
    names = {stem: stem for stem in STEMS} | {"trädgård": ["trädgård", "odling"]}
    tagger = Tagger(estimator=LearnerOptions(n_jobs=1)).fit(texts, labels, label_texts=names)
    assert "trädgård" in tagger.label_names_
    [tags] = tagger.predict(["en ny trädgårdarna bok"], k=5)
    assert "trädgård" in [tag.label for tag in tags]
    found = tagger.explain("en ny trädgårdarna bok", "trädgård")
    assert any("trä" in reason.feature for reason in found.reasons)
    [denied] = tagger.predict(["en ny trädgårdarna bok"], k=5, deny=["trädgård"])
    assert "trädgård" not in [tag.label for tag in denied]


def test_fast_trains_one_stage_and_drops_labels_without_rows():
    texts, labels = compound_titles()
    names = {stem: stem for stem in STEMS} | {"trädgård": "trädgård"}
    tagger = Tagger(estimator=LearnerOptions(fast=True, n_jobs=1)).fit(texts, labels, label_texts=names)
    assert not isinstance(tagger.estimator_, TwoStage)
    assert tagger.race_.winner in tagger.reasons_[0]
    assert "trädgård" not in tagger.label_names_


def test_a_learner_by_name_skips_the_race(caplog):
    caplog.set_level(logging.INFO, "longtail")
    tagger = Tagger(estimator=LearnerOptions("tree", n_jobs=1)).fit(*compound_titles())
    assert isinstance(tagger.estimator_, LabelTree)
    assert tagger.race_ is None
    assert "nDCG" not in caplog.text


def test_the_race_tells_its_time_and_its_table(caplog):
    caplog.set_level(logging.INFO, "longtail")
    Tagger(estimator=LearnerOptions(n_jobs=1)).fit(*compound_titles())
    assert "training should take at most about" in caplog.text
    assert "label tree           nDCG@5" in caplog.text
    assert "features: words and their parts" in caplog.text


def test_little_patience_gives_one_stage_and_says_so(caplog):
    caplog.set_level(logging.INFO, "longtail")
    tagger = Tagger(estimator=LearnerOptions(patience=1.0, n_jobs=1)).fit(*compound_titles())
    assert not isinstance(tagger.estimator_, TwoStage)
    assert "one stage: a second one would take about" in caplog.text


def test_the_same_seed_gives_the_same_bytes(tmp_path):
    for name in ("one", "other"):
        Tagger(estimator=LearnerOptions(n_jobs=1)).fit(*compound_titles()).save(tmp_path / name)
    assert load(tmp_path / "one").fingerprint_ == load(tmp_path / "other").fingerprint_


def test_a_loaded_model_of_two_stages_chooses_anew_when_it_is_fitted_again(trained, tmp_path):
    trained.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    other = compound_titles(1200, seed=1)
    loaded.fit(*other).save(tmp_path / "again")
    fresh = Tagger().fit(*other)
    fresh.save(tmp_path / "fresh")
    assert isinstance(fresh.estimator_, TwoStage)
    assert loaded.reasons_ == fresh.reasons_
    assert load(tmp_path / "again").fingerprint_ == load(tmp_path / "fresh").fingerprint_


def test_a_loaded_model_of_two_stages_keeps_how_rows_of_features_are_scaled(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.random((200, 6))
    corpus = Corpus(label_names=("a", "b"), labels=(X[:, :2] > 0.4).astype(int), features=X)
    Tagger(RowScaling(log=True), TwoStage()).fit_corpus(corpus).save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.estimator is None
    assert loaded.fit_corpus(corpus).features_.log


def test_label_names_that_are_not_words_are_not_compared(caplog):
    caplog.set_level(logging.INFO, "longtail")
    texts, labels = compound_titles()
    codes = {stem: f"Q{number}" for number, stem in enumerate(STEMS)}
    tagger = Tagger(estimator=LearnerOptions(n_jobs=1)).fit(texts, [[codes[each] for each in row] for row in labels])
    assert "label names are words" not in caplog.text
    assert all(source.kind != "Names" for source in tagger.estimator_.sources_)


@pytest.mark.parametrize("patience", [0, -1.0])
def test_patience_is_a_time(patience):
    with pytest.raises(InvalidInput, match="patience is"):
        LearnerOptions(patience=patience).candidates()


def test_patience_and_fast_go_with_auto_only():
    with pytest.raises(InvalidInput, match="goes with learner auto only"):
        LearnerOptions("tree", fast=True).candidates()


@pytest.mark.parametrize(("options", "name"), [({"fast": True}, "fast"), ({"patience": 3.0}, "patience")])
def test_options_of_the_race_do_not_go_with_those_of_a_learner(options, name):
    with pytest.raises(InvalidInput, match=f"{name} is for the race of learners; it does not go with alpha") as caught:
        LearnerOptions(alpha=0.0, **options).candidates()
    assert (caught.value.code, caught.value.name) == ("conflicting_parameters", name)
