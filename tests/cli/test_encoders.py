"""Networks with a pretrained encoder in the shell: sentence vectors beside the words, or an encoder that is trained."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from longtail import Tagger
from longtail.choice import LearnerOptions
from longtail.data import read_corpus
from longtail.text import FeatureOptions
from tests.cli.test_same_bytes import bytes_of, shell

pytest.importorskip("transformers")

SMALL = ["--learner", "network", "--head", "one-hot", "--jobs", "1"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: Any) -> Path:
    from tests.neural.tiny import write_tiny_encoder

    words = ["red", "green", "blue", "clear", "grey", "apples", "pears", "sky", "rain", "in", "the", "and"]
    return write_tiny_encoder(tmp_path_factory.mktemp("tiny"), words)


@pytest.fixture(autouse=True)
def own_folder(_own_folder: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LONGTAIL_ENCODER", raising=False)


def test_vectors_and_words_make_the_model_of_the_library(longtail: Callable, folder: Path) -> None:
    options: dict[str, Any] = {"width": 8, "epochs": 2, "encoder": str(folder), "max_tokens": 9}
    options["encoder_cache"] = "vectors"
    trained = longtail("train", "notes.jsonl", "--out", "shell", "--min-df", "1", *SMALL, *shell(options))
    assert trained.code == 0, trained.err
    assert f"texts with {folder}" in trained.err
    assert list(Path("vectors").iterdir())
    learner = LearnerOptions("network", head="one-hot", n_jobs=1, **options)
    Tagger(FeatureOptions(min_df=1), learner).fit_corpus(read_corpus("notes.jsonl")).save("python")
    assert bytes_of("shell") == bytes_of("python")


def test_a_trained_encoder_makes_the_model_of_the_library(longtail: Callable, folder: Path) -> None:
    options: dict[str, Any] = {
        "epochs": 30, "batch_size": 3, "learning_rate": 0.05, "encoder": str(folder), "encoder_learning_rate": 0.001,
        "max_tokens": 9,
    }  # fmt: skip
    trained = longtail("train", "notes.jsonl", "--out", "shell", "--fine-tune", *SMALL, *shell(options))
    assert trained.code == 0, trained.err
    assert "learner: network with one-hot head, an encoder that is trained, too, 30 epochs" in trained.err
    learner = LearnerOptions("network", head="one-hot", n_jobs=1, fine_tune=True, **options)
    corpus = read_corpus("notes.jsonl")
    tagger = Tagger(FeatureOptions(), learner).fit_corpus(corpus)
    tagger.save("python")
    assert bytes_of("shell") == bytes_of("python")
    predicted = longtail("predict", "shell", "notes.jsonl", "-k", "1").out.splitlines()
    assert [json.loads(line)["labels"][0]["label"] for line in predicted] == [
        tags[0].label for tags in tagger.predict(corpus.texts, k=1)
    ]
    assert "P@1" in longtail("evaluate", "shell", "notes.jsonl").out
    assert tagger.features_.n_features_out_ == 9
    assert tagger.estimator_.encoder_learning_rate == 0.001
    assert "features TokenFeatures, estimator MultiHeadClassifier" in longtail("info", "shell").out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--learner network --encoder nowhere", "nowhere: there is no such folder"),
        ("--learner network --encoder nowhere --fine-tune", "nowhere: there is no such folder"),
        ("--learner network --fine-tune", "--fine-tune needs --encoder"),
        ("--learner network --max-tokens 9", "--max-tokens needs --encoder and --learner network"),
        ("--encoder auto --max-tokens 9", "--max-tokens needs --encoder and --learner network"),
        ("--learner network --encoder-learning-rate 0.1", "--encoder-learning-rate needs --fine-tune"),
        ("--encoder auto --fine-tune", "--fine-tune is for network; it does not go with --learner auto"),
        ("--learner network --encoder auto --fine-tune --width 9", "--width does not go with --fine-tune"),
        ("--learner network --encoder auto --fine-tune --dropout 0.1", "--dropout does not go with --fine-tune"),
        ("--learner network --encoder auto --fine-tune --ngrams 1-2", "--ngrams does not go with --fine-tune"),
        (
            "--learner network --encoder auto --fine-tune --encoder-cache vectors",
            "--encoder-cache does not go with --fine-tune",
        ),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_read(longtail: Callable, arguments: str, message: str) -> None:
    result = longtail("train", "absent.jsonl", "--out", "model", *arguments.split())
    assert result.code == 1
    assert result.err.startswith(f"error: {message}")


def test_a_damaged_encoder_is_one_line(longtail: Callable, folder: Path) -> None:
    Path("damaged").mkdir()
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        Path("damaged", name).write_bytes((folder / name).read_bytes())
    Path("damaged", "model.safetensors").write_bytes(b"damaged")
    result = longtail("train", "notes.jsonl", "--out", "model", *SMALL, "--encoder", "damaged", "--fine-tune")
    assert result.code == 1
    assert "damaged: cannot read the pretrained encoder" in result.err
    assert not Path("model").exists()
