"""The output layer of a model in a file or a folder; what kind it is, its name and its content say."""

from __future__ import annotations

import os
from pathlib import Path

from longtail.audit.files import read_layer
from longtail.audit.models.array_files import read_npz
from longtail.audit.models.folders import pickled_advice, read_folder
from longtail.audit.models.networks import layer_of
from longtail.audit.models.onnx_files import read_onnx
from longtail.audit.models.safetensor_files import read_safetensors
from longtail.audit.models.tensors import choose_layer
from longtail.errors import DataFormatError, InvalidInput
from longtail.estimator import OutputLayer, Rule

_PICKLED = (".pt", ".pth", ".bin", ".ckpt", ".pkl", ".pickle", ".joblib")
_KNOWN = "a folder as save_pretrained writes it, .safetensors, .onnx, .npz or .npy"


def read_model(
    path: str | os.PathLike[str],
    *,
    layer: str | None = None,
    n_labels: int | None = None,
    rule: Rule | None = None,
    threshold: float | None = None,
) -> OutputLayer:
    """The output layer of a model that another program saved.

    Parameters
    ----------
    path : str or path-like
        A folder of Hugging Face with ``config.json`` and ``.safetensors`` files, or a ``.safetensors``, ``.onnx``,
        ``.npz`` or ``.npy`` file. Pickled files are never read.
    layer : str or None
        The name of the last layer, or of its matrix of labels x features. By default it is found, if only one matrix
        can be meant.
    n_labels : int or None
        The number of labels, if known, which helps to find the last layer in a file of named arrays.
    rule : {"predict", "topk"} or None
        Labels by their own scores, or the labels with the highest scores. By default what the file says; else labels
        whose score is above the threshold.
    threshold : float or None
        The score, before any sigmoid, that a label must exceed; 0 by default.

    Raises
    ------
    DataFormatError
        If the file is damaged, or of another kind.
    InvalidInput
        If the model has no linear output layer, or it is not clear which matrix it is.
    """
    place = Path(path)
    if place.is_dir():
        return read_folder(place, layer, rule, threshold)
    ending = place.suffix.lower()
    if ending in _PICKLED:
        raise DataFormatError(path, None, pickled_advice())
    if layer is not None and ending in (".onnx", ".npy"):
        raise InvalidInput(f"{path}: layer goes with files of named arrays; this one has no names to choose from")
    if ending == ".onnx":
        return read_onnx(place, rule, threshold)
    if ending == ".npy":
        if rule == "topk" and threshold is not None:
            raise InvalidInput("a threshold goes with rule='predict'; a ranking has no threshold")
        return read_layer(path, None, threshold or 0.0, rule or "predict")
    if ending not in (".safetensors", ".npz"):
        raise DataFormatError(path, None, f"no model that is known here; expected {_KNOWN}")
    arrays = read_safetensors(place) if ending == ".safetensors" else read_npz(place)
    if not isinstance(arrays, dict):
        if layer is not None:
            raise InvalidInput(f"{path}: layer goes with files of named arrays; this one is a sparse matrix")
        return layer_of(arrays, None, rule, threshold)
    return layer_of(*choose_layer(str(path), arrays, layer, n_labels), rule, threshold)
