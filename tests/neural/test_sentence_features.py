"""Sentence vectors as features: all components stored, saved without weights, checked when the first text comes."""

from __future__ import annotations

import json
import pickle
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from longtail import Ridge, Tagger, TextFeatures, load
from longtail.errors import ModelFormatError, Unavailable
from longtail.neural import SentenceEncoder, SentenceFeatures, encoding_seconds
from longtail.store import put_together
from longtail.text import ENCODER_VARIABLE, JoinedFeatures
from tests.neural.tiny import POSITIONS, WIDTH, write_tiny_encoder

pytest.importorskip("transformers")

TEXTS = ["red apples", "green apples", "", "blue sky"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: Any) -> Path:
    words = ["red", "green", "blue", "apples", "sky"]
    return write_tiny_encoder(tmp_path_factory.mktemp("tiny"), words)


@pytest.fixture
def features(folder: Path) -> SentenceFeatures:
    return SentenceFeatures(folder, precision="float32").fit()


@pytest.fixture(autouse=True)
def no_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ENCODER_VARIABLE, raising=False)


def test_rows_are_the_vectors_of_the_encoder(features: SentenceFeatures, folder: Path) -> None:
    X = features.transform(TEXTS)
    expected = SentenceEncoder(folder, precision="float32").encode(TEXTS)
    assert X.dtype == np.float32
    assert np.diff(X.indptr).tolist() == [WIDTH] * 4
    np.testing.assert_array_equal(X.toarray(), expected)
    assert not X.toarray()[2].any()
    assert features.n_features_out_ == WIDTH
    assert features.feature_names_[:2] == ("sentence vector 0", "sentence vector 1")
    assert len(features.feature_names_) == WIDTH
    assert features.transform([]).shape == (0, WIDTH)


def test_the_state_has_no_weights_and_gives_the_same_vectors(features: SentenceFeatures, folder: Path) -> None:
    state = features.to_state()
    assert not state.arrays
    assert dict(state.facts) == {
        "folder": str(folder),
        "fingerprint": features.fingerprint_,
        "width": WIDTH,
        "max_tokens": POSITIONS,
        "precision": "float32",
    }
    again = put_together(state)
    assert "_loaded" not in vars(again)
    np.testing.assert_array_equal(again.transform(TEXTS).toarray(), features.transform(TEXTS).toarray())


def test_pickles_have_no_weights(features: SentenceFeatures) -> None:
    again = pickle.loads(pickle.dumps(features))
    assert "_loaded" not in vars(again)
    np.testing.assert_array_equal(again.transform(TEXTS).toarray(), features.transform(TEXTS).toarray())


def test_a_missing_or_changed_encoder_is_named_with_the_first_text(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved = Path(shutil.copytree(folder, tmp_path / "moved"))
    state = SentenceFeatures(moved, precision="float32").fit().to_state()
    config = json.loads((moved / "config.json").read_text(encoding="utf-8"))
    (moved / "config.json").write_text(json.dumps({**config, "layer_norm_eps": 0.5}), encoding="utf-8")
    changed = put_together(state)
    with pytest.raises(ModelFormatError, match="another encoder") as caught:
        changed.transform(TEXTS)
    assert str(moved) in str(caught.value)
    shutil.rmtree(moved)
    with pytest.raises(ModelFormatError, match="there is no such folder") as caught:
        changed.transform(TEXTS)
    assert str(moved) in str(caught.value)
    assert ENCODER_VARIABLE in str(caught.value.advice)
    monkeypatch.setenv(ENCODER_VARIABLE, str(folder))
    assert changed.transform(TEXTS).shape == (4, WIDTH)


def test_a_wrong_variable_does_not_hide_the_folder_of_the_model(
    features: SentenceFeatures, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ENCODER_VARIABLE, str(tmp_path / "nothing"))
    assert put_together(features.to_state()).transform(TEXTS).shape == (4, WIDTH)


@pytest.mark.parametrize(
    "facts",
    [
        {"folder": ""},
        {"folder": "a\0b"},
        {"folder": 3},
        {"fingerprint": "abc"},
        {"fingerprint": "Z" * 64},
        {"width": 0},
        {"width": 2**40},
        {"max_tokens": 0},
        {"precision": "float8"},
    ],
)
def test_forged_facts_are_refused(features: SentenceFeatures, facts: dict[str, Any]) -> None:
    state = features.to_state()
    with pytest.raises(ModelFormatError):
        put_together(replace(state, facts={**state.facts, **facts}))


@pytest.mark.parametrize("facts", [{"width": WIDTH + 1}, {"max_tokens": POSITIONS + 1}])
def test_sizes_that_contradict_the_encoder_are_refused(features: SentenceFeatures, facts: dict[str, Any]) -> None:
    state = features.to_state()
    with pytest.raises(ModelFormatError, match="the model says"):
        put_together(replace(state, facts={**state.facts, **facts})).transform(TEXTS)


@pytest.mark.parametrize("place", ["//server/share/encoder", "\\\\server\\share\\encoder"])
def test_a_model_cannot_open_a_share(
    features: SentenceFeatures, place: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    opened = []
    module = "longtail.text.encoder_place"
    monkeypatch.setattr(f"{module}.encoder_fingerprint", lambda folder: opened.append(str(folder)) or "")
    monkeypatch.setattr(f"{module}.find_installed_encoder", lambda: None)
    state = features.to_state()
    with pytest.raises(ModelFormatError):
        put_together(replace(state, facts={**state.facts, "folder": place})).transform(TEXTS)
    assert opened == []


def test_without_an_encoder_the_error_says_how_to_give_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longtail.text.encoder_place.find_installed_encoder", lambda: None)
    with pytest.raises(Unavailable, match=ENCODER_VARIABLE):
        SentenceFeatures().fit()


def test_they_are_the_last_part_of_joined_features(features: SentenceFeatures) -> None:
    words = TextFeatures(min_df=1).fit(TEXTS)
    joined = JoinedFeatures((words, features))
    again = put_together(joined.to_state())
    np.testing.assert_array_equal(again.transform(TEXTS).toarray(), joined.transform(TEXTS).toarray())
    assert again.feature_names_[-1] == f"sentence vector {WIDTH - 1}"
    for parts in ((features, words), (features,), (words, joined)):
        with pytest.raises(ModelFormatError):
            put_together(JoinedFeatures(parts).to_state())


def test_a_tagger_learns_from_vectors_alone(folder: Path, tmp_path: Path) -> None:
    labels = [["fruit"], ["fruit"], ["nothing"], ["weather"]]
    tagger = Tagger(SentenceFeatures(folder), Ridge(0.01)).fit(TEXTS, labels)
    tagger.save(tmp_path / "model")
    assert [tags[0].label for tags in load(tmp_path / "model").predict(TEXTS[:2], k=1)] == ["fruit", "fruit"]


def test_the_estimated_time_grows_with_texts_and_words(folder: Path) -> None:
    short = encoding_seconds(folder, ["red apples"] * 10)
    assert encoding_seconds(folder, ["red apples"] * 20) == pytest.approx(2 * short)
    assert encoding_seconds(folder, ["red apples and green ones"] * 10) > short > 0
    assert encoding_seconds(folder, []) == 0
