"""Read the weights and offsets of an output layer from files that `numpy.save` wrote."""

from __future__ import annotations

import math
import os

import numpy as np

from longtail.arrays import Array
from longtail.data import read_header
from longtail.errors import DataFormatError, InvalidInput
from longtail.estimator import OutputLayer, Rule
from longtail.memory import MemoryPlan

_NPY = b"\x93NUMPY"
_NPZ = b"PK"
_EXPECTED = "expected an array of numbers as numpy.save writes it"


def read_layer(
    weights: str | os.PathLike[str],
    bias: str | os.PathLike[str] | None = None,
    threshold: float = 0.0,
    rule: Rule = "predict",
) -> OutputLayer:
    """The layer of two ``.npy`` files: a matrix of labels x features, and a bias for each label.

    It gives the labels whose score is above the threshold; in a ranking, equal scores go to the lowest label.

    Raises
    ------
    DataFormatError
        If a file is not such an array, or the shapes do not match.
    """
    matrix = _read_array(weights)
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise DataFormatError(
            weights, None, f"an array of shape {matrix.shape}; expected a matrix of labels x features"
        )
    offsets = np.zeros(len(matrix)) if bias is None else _read_array(bias)
    if bias is not None and offsets.shape != (len(matrix),):
        turned = offsets.shape == (matrix.shape[1],)
        hint = f"; if the weights, of shape {matrix.shape}, are the wrong way round, save W.T" if turned else ""
        raise DataFormatError(bias, None, f"shape {offsets.shape}; expected {len(matrix)} numbers{hint}")
    if not math.isfinite(threshold):
        raise InvalidInput(f"threshold is {threshold!r}; expected a finite number")
    description = f"its score is above {threshold:g}" if rule == "predict" else "its score is among the highest"
    return OutputLayer(matrix, offsets - threshold if rule == "predict" else offsets, rule, description)


def read_inputs(path: str | os.PathLike[str]) -> Array:
    """The matrix of a ``.npy`` file with one input of a layer per row.

    Raises
    ------
    DataFormatError
        If the file is not such a matrix.
    """
    inputs = _read_array(path)
    if inputs.ndim != 2 or 0 in inputs.shape:
        raise DataFormatError(path, None, f"an array of shape {inputs.shape}; expected a matrix with an input per row")
    return inputs


def _read_array(path: str | os.PathLike[str]) -> Array:
    try:
        with open(path, "rb") as file:
            start = file.read(len(_NPY))
            if start != _NPY:
                found = (
                    "an empty file" if not start else "an .npz archive" if start.startswith(_NPZ) else "no .npy file"
                )
                raise DataFormatError(path, None, f"{found}; {_EXPECTED}")
            file.seek(0)
            read_header(file, path, _EXPECTED)
    except OSError as error:
        raise DataFormatError(path, None, f"cannot be opened: {error.strerror or error}") from None
    try:
        # Mapped, so that a header that promises more than the file holds allocates nothing.
        stored = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError, OverflowError) as error:
        raise DataFormatError(path, None, f"{_EXPECTED}: {str(error).partition(chr(10))[0]}") from None
    if stored.dtype.kind not in "iuf":
        raise DataFormatError(path, None, f"an array of dtype {stored.dtype}; expected real numbers")
    MemoryPlan("reading an array", {str(path): 16 * stored.size}, "Give a smaller matrix.").check()
    with np.errstate(over="ignore"):
        array = np.array(stored, dtype=np.float64, order="C")
    if not np.isfinite(array).all():
        raise DataFormatError(path, None, "the array contains NaN or infinity")
    return array
