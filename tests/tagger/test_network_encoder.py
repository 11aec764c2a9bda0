"""Networks with a pretrained encoder, through `Tagger`: sentence vectors beside the words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from longtail import Corpus, GroupedCorpus, Tagger, TextFeatures, load
from longtail.choice import LearnerOptions
from longtail.errors import InvalidInput, ModelFormatError
from longtail.text import ENCODER_VARIABLE, FeatureOptions, JoinedFeatures, RowScaling

pytest.importorskip("transformers")

TOPICS, SYNONYMS, ROWS = 6, 40, 120
WORDS = [f"w{number}" for number in range(TOPICS * SYNONYMS)]
NETWORK: dict[str, Any] = {"head": "one-hot", "width": 16, "epochs": 20, "learning_rate": 0.02, "n_jobs": 1}


@pytest.fixture(autouse=True)
def no_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ENCODER_VARIABLE, raising=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: Any) -> Path:
    from tests.neural.tiny import write_tiny_encoder

    return write_tiny_encoder(tmp_path_factory.mktemp("tiny"), WORDS, SYNONYMS)


def corpus_of(words: range, seed: int) -> Corpus:
    """Texts of three of these synonyms of their topic."""
    rng = np.random.default_rng(seed)
    topics = np.arange(ROWS) % TOPICS
    texts = [" ".join(WORDS[topic * SYNONYMS + word] for word in rng.choice(words, 3)) for topic in topics]
    return Corpus.from_lists(texts, [[f"topic{topic}"] for topic in topics])


@pytest.fixture(scope="module")
def seen() -> Corpus:
    return corpus_of(range(20), 0)


@pytest.fixture(scope="module")
def unseen() -> Corpus:
    """Texts that share no word with those of the training."""
    return corpus_of(range(20, SYNONYMS), 1)


@pytest.fixture(scope="module")
def tagger(seen: Corpus, folder: Path) -> Tagger:
    return Tagger(None, LearnerOptions("network", encoder=str(folder), **NETWORK), aim=None).fit_corpus(seen)


def test_words_that_were_never_seen_are_known_by_their_meaning(tagger: Tagger, seen: Corpus, unseen: Corpus) -> None:
    words = Tagger(None, LearnerOptions("network", **NETWORK), aim=None).fit_corpus(seen)
    assert tagger.evaluate(unseen)["P@1"] > 0.75
    assert words.evaluate(unseen)["P@1"] < 0.4
    assert isinstance(tagger.features_, JoinedFeatures)
    assert tagger.estimator_.n_features_in_ == words.estimator_.n_features_in_ + 16


def test_a_loaded_tagger_gives_the_same_tags(tagger: Tagger, unseen: Corpus, tmp_path: Path) -> None:
    tagger.save(tmp_path / "model")
    again = load(tmp_path / "model")
    for mine, loaded in zip(tagger.predict_topk(unseen.texts), again.predict_topk(unseen.texts), strict=True):
        assert mine.tobytes() == loaded.tobytes()


def test_vectors_are_cached(seen: Corpus, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = LearnerOptions(
        "network", encoder=str(folder), encoder_cache=str(tmp_path / "vectors"), **{**NETWORK, "epochs": 1}
    )
    first = Tagger(None, options, aim=None).fit_corpus(seen)
    monkeypatch.setattr("longtail.neural.sentences.SentenceEncoder._pooled", None)
    second = Tagger(None, options, aim=None).fit_corpus(seen)
    assert second.predict_topk(seen.texts)[1].tobytes() == first.predict_topk(seen.texts)[1].tobytes()


def test_networks_of_groups_use_vectors_too(seen: Corpus, unseen: Corpus, folder: Path) -> None:
    texts = seen.texts or ()
    pairs = [(row, row + 1) for row in range(0, ROWS, 2)]
    topics = [f"topic{row % TOPICS}" for row in range(ROWS)]
    groups = GroupedCorpus.from_lists(
        [[texts[row] for row in pair] for pair in pairs], [[topics[row] for row in pair] for pair in pairs]
    )
    options = LearnerOptions("network", encoder=str(folder), width=16, epochs=2, n_jobs=1)
    found = Tagger(FeatureOptions(min_df=1), options).fit_groups(groups)
    assert isinstance(found.features_, JoinedFeatures)
    assert found.evaluate(unseen).n_rows == ROWS


def test_without_an_installed_encoder_auto_takes_words(
    seen: Corpus, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("longtail.tagger.encoding.find_installed_encoder", lambda: None)
    options = LearnerOptions("network", encoder="auto", **{**NETWORK, "epochs": 1})
    with caplog.at_level("INFO", "longtail"):
        found = Tagger(None, options, aim=None).fit_corpus(seen)
    assert isinstance(found.features_, TextFeatures)
    assert "no sentence encoder: none is installed" in caplog.text
    assert "encoder has no effect" not in caplog.text


def test_an_encoder_that_cannot_be_used_is_refused(seen: Corpus, folder: Path, tmp_path: Path) -> None:
    options = LearnerOptions("network", encoder=str(tmp_path / "nothing"))
    with pytest.raises(ModelFormatError, match="there is no such folder"):
        Tagger(None, options).fit_corpus(seen)
    rows = Corpus(seen.labels, seen.label_names, features=np.eye(ROWS))
    with pytest.raises(InvalidInput, match="encoder is for texts"):
        Tagger(RowScaling(), LearnerOptions("network", encoder=str(folder))).fit_corpus(rows)


TUNED: dict[str, Any] = {"epochs": 12, "batch_size": 8, "learning_rate": 0.05, "n_jobs": 1}


@pytest.fixture(scope="module")
def tuned(seen: Corpus, folder: Path) -> Tagger:
    options = LearnerOptions("network", encoder=str(folder), fine_tune=True, **TUNED)
    return Tagger(FeatureOptions(), options, aim=None).fit_corpus(seen)


def test_a_trained_encoder_knows_words_by_their_meaning(tuned: Tagger, seen: Corpus, unseen: Corpus) -> None:
    assert tuned.evaluate(seen)["P@1"] > 0.9
    assert tuned.evaluate(unseen)["P@1"] > 0.7
    assert tuned.reasons_ == ["learner: network with one-hot head, an encoder that is trained, too, 12 epochs"]


def test_a_trained_encoder_is_saved_with_the_tagger(
    tuned: Tagger, unseen: Corpus, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tuned.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.predict(unseen.texts) == tuned.predict(unseen.texts)
    moved = tmp_path / "moved"
    folder.rename(moved)
    try:
        with pytest.raises(ModelFormatError, match="the model needs the sentence encoder") as caught:
            load(tmp_path / "model")
        assert ENCODER_VARIABLE in str(caught.value)
        monkeypatch.setenv(ENCODER_VARIABLE, str(moved))
        assert load(tmp_path / "model").predict(unseen.texts) == tuned.predict(unseen.texts)
    finally:
        moved.rename(folder)


def test_the_learner_itself_trains_the_same_network(tuned: Tagger, seen: Corpus, folder: Path) -> None:
    from longtail.neural import MultiHeadClassifier, TokenFeatures

    how: dict[str, Any] = {"task": "single-label", "warmup": 0.1, **TUNED}  # every row has one label
    network = MultiHeadClassifier("one-hot", encoder="pretrained", encoder_folder=str(folder), **how)
    found = Tagger(TokenFeatures(folder), network, aim=None).fit_corpus(seen)
    assert found.predict_topk(seen.texts)[1].tobytes() == tuned.predict_topk(seen.texts)[1].tobytes()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"learner": "network", "fine_tune": True}, "fine_tune needs encoder"),
        ({"fine_tune": True, "encoder": "auto"}, "fine_tune is for network; it does not go with learner auto"),
        ({"learner": "network", "fine_tune": True, "encoder": "auto", "width": 8}, "width does not go with fine_tune"),
        (
            {"learner": "network", "fine_tune": True, "encoder": "auto", "encoder_cache": "x"},
            "encoder_cache does not go with fine_tune",
        ),
    ],
)
def test_options_that_contradict_fine_tuning_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        LearnerOptions(**options).candidates()


def test_a_trained_encoder_takes_texts_and_has_no_other_features(seen: Corpus, folder: Path) -> None:
    options = LearnerOptions("network", encoder=str(folder), fine_tune=True)
    with pytest.raises(InvalidInput, match="ngrams has no effect: with fine_tune"):
        Tagger(FeatureOptions(ngrams=(1, 2)), options).fit_corpus(seen)
    rows = Corpus(seen.labels, seen.label_names, features=np.eye(ROWS))
    with pytest.raises(InvalidInput, match="encoder is for texts"):
        Tagger(None, options).fit_corpus(rows)
    groups = GroupedCorpus.from_lists([["w1", "w2"]], [["a"]])
    with pytest.raises(InvalidInput, match="fine_tune is for labels of rows"):
        Tagger(None, options).fit_groups(groups)
