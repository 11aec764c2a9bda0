"""Folders that other programs save models in: Hugging Face, PECOS and omikuji."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from longtail.audit.models.networks import label_names, layer_of, rule_of
from longtail.audit.models.safetensor_files import read_safetensors
from longtail.audit.models.tensors import Stored, choose_layer
from longtail.errors import DataFormatError, InvalidInput
from longtail.estimator import OutputLayer, Rule

_LARGEST_JSON = 50_000_000
_SAFETENSORS = "model.safetensors"
_INDEX = "model.safetensors.index.json"
_PICKLED = ("pytorch_model.bin", "pytorch_model.bin.index.json")


def read_folder(path: Path, layer: str | None, rule: Rule | None, threshold: float | None) -> OutputLayer:
    """The layer of a Hugging Face folder; for folders of trees, an `InvalidInput` that says why they have none."""
    for program, file in (("PECOS", "param.json"), ("omikuji", "tree0.cbor")):
        if (path / file).is_file() and not (path / "config.json").is_file():
            raise InvalidInput(
                f"{path} is a model of {program}, a label tree: the score of a label is a product of the classifiers "
                f"along its path, each over all features, so there is no linear output layer that could rule out label "
                f"sets. What a tree never gives are labels outside its beam; a longtail tree is audited for those",
                code="needs_linear_layer",
            )
    if not (path / "config.json").is_file():
        raise DataFormatError(
            path, None, "no model that is known here: expected a folder of longtail, or one with config.json"
        )
    config = _read_json(path / "config.json")
    names = config.get("id2label")
    # Transformers leaves out id2label when there are two labels.
    n_labels = len(names) if isinstance(names, dict) else 2
    weights, bias = choose_layer(str(path), _arrays(path), layer, None if layer else n_labels)
    kind = config.get("problem_type")
    # Without a problem type, transformers takes the label with the highest score.
    found = rule or rule_of(kind if isinstance(kind, str) else None) or "topk"
    return layer_of(weights, bias, found, threshold, label_names(names, len(weights)))


def _arrays(path: Path) -> dict[str, Stored]:
    """The arrays of a model in one or several files."""
    if (path / _SAFETENSORS).is_file():
        return read_safetensors(path / _SAFETENSORS)
    if not (path / _INDEX).is_file():
        for name in _PICKLED:
            if (path / name).is_file():
                raise DataFormatError(path / name, None, pickled_advice())
        raise DataFormatError(path, None, f"no {_SAFETENSORS}; expected a folder as save_pretrained writes it")
    places = _read_json(path / _INDEX).get("weight_map")
    if not isinstance(places, dict):
        raise DataFormatError(path / _INDEX, None, "no weight_map; expected an index as save_pretrained writes it")
    parts = {str(part) for part in places.values()}
    if any(Path(part).name != part for part in parts):
        raise DataFormatError(path / _INDEX, None, "a file of the index lies outside the folder")
    return {name: stored for part in sorted(parts) for name, stored in read_safetensors(path / part).items()}


def _read_json(path: Path) -> dict[str, Any]:
    try:
        size = path.stat().st_size
        content = path.read_bytes() if size <= _LARGEST_JSON else b""
    except OSError as error:
        raise DataFormatError(path, None, f"cannot be opened: {error.strerror or error}") from None
    if size > _LARGEST_JSON:
        raise DataFormatError(path, None, f"longer than {_LARGEST_JSON:,} bytes")
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        raise DataFormatError(path, None, "no JSON") from None
    if not isinstance(found, dict):
        raise DataFormatError(path, None, "no JSON object")
    return found


def pickled_advice() -> str:
    """Why a pickled file is not read, and what to do."""
    return (
        "a pickled file, which can run any program while it is loaded, so it is not read. Save the weights instead: "
        "for torch with safetensors.torch.save_file(model.state_dict(), 'model.safetensors') or "
        "model.save_pretrained(folder); for scikit-learn with numpy.savez('model.npz', weights=model.coef_, "
        "bias=model.intercept_)"
    )
