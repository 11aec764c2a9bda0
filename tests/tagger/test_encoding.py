"""Sentence vectors in the default training: used where they help, left out where they do not, and never by surprise."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from longtail import Corpus, Tagger, load
from longtail.choice import LearnerOptions
from longtail.errors import InvalidInput, ModelFormatError
from longtail.tagger.encoding import choose_encoder
from longtail.text import JoinedFeatures

TOPICS, SYNONYMS, ROWS = 12, 300, 1000
WORDS = [f"w{number}" for number in range(TOPICS * SYNONYMS)]


@pytest.fixture(autouse=True, scope="module")
def no_ridge() -> Iterator[None]:
    """Ridge, which enters the race if there are few labels, takes most of the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(import_module("longtail.choice.race"), "_FEW_LABELS", 0)
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory: Any) -> Path:
    pytest.importorskip("transformers")
    from tests.neural.tiny import write_tiny_encoder

    return write_tiny_encoder(tmp_path_factory.mktemp("tiny"), WORDS, SYNONYMS)


def corpus_of(topics: Any, words_of: Any) -> Corpus:
    return Corpus.from_lists([words_of(topic) for topic in topics], [[f"topic{topic}"] for topic in topics.tolist()])


@pytest.fixture(scope="module")
def synonyms() -> Corpus:
    """Texts of three words that mean their topic; most words occur once, so that words tell little."""
    rng = np.random.default_rng(0)
    return corpus_of(
        rng.integers(TOPICS, size=ROWS),
        lambda topic: " ".join(WORDS[topic * SYNONYMS + number] for number in rng.integers(SYNONYMS, size=3)),
    )


@pytest.fixture(scope="module")
def tagger(synonyms: Corpus, folder: Path) -> Tagger:
    return Tagger(None, LearnerOptions(encoder=str(folder))).fit_corpus(synonyms)


def test_vectors_are_used_where_words_tell_little(tagger: Tagger, synonyms: Corpus) -> None:
    assert tagger.estimator_.dense == 16
    assert isinstance(tagger.features_, JoinedFeatures)
    text = " ".join(WORDS[5 * SYNONYMS + number] for number in (7, 8, 9))
    assert tagger.predict([text], k=1)[0][0].label == "topic5"


def test_a_saved_tagger_encodes_again(tagger: Tagger, synonyms: Corpus, tmp_path: Path) -> None:
    tagger.save(tmp_path / "model")
    again = load(tmp_path / "model")
    for mine, loaded in zip(
        tagger.predict_topk(synonyms.texts[:50]), again.predict_topk(synonyms.texts[:50]), strict=True
    ):
        assert mine.tobytes() == loaded.tobytes()


def test_vectors_that_do_not_help_are_left_out(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    rng = np.random.default_rng(1)
    clear = corpus_of(rng.integers(TOPICS, size=ROWS), lambda topic: f"clear{topic} w{rng.integers(100)}")
    with caplog.at_level("INFO", "longtail"):
        tagger = Tagger(None, LearnerOptions(encoder=str(folder))).fit_corpus(clear)
    assert any(message.startswith("sentence vectors: not used") for message in caplog.messages)
    assert getattr(tagger.estimator_, "dense", None) is None
    tagger.predict(["clear3"])


@pytest.mark.parametrize(
    ("found", "missing", "texts", "limit", "reason"),
    [
        (None, (), 100, 100.0, "none is installed"),
        ("folder", ("torch",), 100, 100.0, "torch must be installed"),
        ("folder", (), 20_001, 1e9, "long (41 words on average) and many"),
        ("folder", (), 100, 1e-9, "encoding 100 texts would take"),
    ],
)
def test_auto_says_why_there_is_no_encoder(
    folder: Path,
    found: str | None,
    missing: tuple[str, ...],
    texts: int,
    limit: float,
    reason: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr("longtail.tagger.encoding.find_installed_encoder", lambda: found and folder)
    monkeypatch.setattr("longtail.tagger.encoding.missing_encoder_packages", lambda: missing)
    corpus = Corpus.from_lists(["word " * 41] * texts, [["a"]] * texts)
    with caplog.at_level("INFO", "longtail"):
        assert choose_encoder(corpus, None, LearnerOptions(encoder="auto"), limit) is None
    assert "no sentence encoder: " in caplog.text
    assert reason in caplog.text


def test_auto_takes_the_installed_encoder(folder: Path, monkeypatch: pytest.MonkeyPatch, synonyms: Corpus) -> None:
    monkeypatch.setenv("LONGTAIL_ENCODER", str(folder))
    found = choose_encoder(synonyms, None, LearnerOptions(encoder="auto"), 1000.0)
    assert found is not None
    assert found.folder == folder


def test_a_wrong_folder_is_refused_before_training(synonyms: Corpus, tmp_path: Path) -> None:
    with pytest.raises(ModelFormatError, match="there is no such folder"):
        Tagger(None, LearnerOptions(encoder=str(tmp_path / "nothing"))).fit_corpus(synonyms)


def test_an_encoder_is_for_texts(folder: Path) -> None:
    corpus = Corpus(np.eye(2), ["a", "b"], features=np.eye(2))
    with pytest.raises(InvalidInput, match="encoder is for texts"):
        choose_encoder(corpus, None, LearnerOptions(encoder=str(folder)), 10.0)
    assert choose_encoder(corpus, None, LearnerOptions(encoder="auto"), 10.0) is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"encoder": "auto", "learner": "ridge"}, "encoder goes with learner auto or network only"),
        ({"encoder": "auto", "fast": True}, "does not go with fast"),
        ({"encoder": "auto", "alpha": 0.0}, "does not go with alpha"),
        ({"encoder_cache": "vectors"}, "encoder_cache needs encoder"),
    ],
)
def test_options_that_contradict_an_encoder_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        LearnerOptions(**options).candidates()


def test_a_model_without_vectors_loads_without_torch(tmp_path: Path) -> None:
    Tagger().fit(["red apples", "red sky"], [["a"], ["b"]]).save(tmp_path / "model")
    program = f"import sys, longtail; longtail.load({str(tmp_path / 'model')!r}); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)
