"""Named arrays in a file, read one by one, and the choice of the two that are the output layer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from longtail.arrays import Array
from longtail.errors import DataFormatError, InvalidInput

_SHOWN = 10
_BIASES = ("bias", "b", "intercept", "intercept_")


@dataclass(frozen=True)
class Stored:
    """An array in a file: its shape, and how to read it as float64."""

    shape: tuple[int, ...]
    read: Callable[[], Array]


def choose_layer(
    path: str, arrays: Mapping[str, Stored], name: str | None = None, n_labels: int | None = None
) -> tuple[Array, Array | None]:
    """The weights and the bias of the output layer.

    Parameters
    ----------
    path : str
        The file, for messages.
    arrays : mapping of names to `Stored`
    name : str or None
        The matrix, or the layer that it is the ``weight`` of. By default the only matrix, or the only one with a row
        for each label; if several have as many rows, the only one of them with a bias.
    n_labels : int or None
        The number of labels, if known.
    """
    matrices = {each: stored for each, stored in arrays.items() if len(stored.shape) == 2 and 0 not in stored.shape}
    chosen = (
        _only(matrices, arrays, n_labels)
        if name is None
        else next((each for each in (name, f"{name}.weight") if each in matrices), None)
    )
    if chosen is None:
        known = "" if n_labels is None else f" for {n_labels:,} labels"
        unclear = f"it is not clear which matrix is the last layer{known}"
        problem = unclear if name is None else f"no matrix {name!r}"
        raise InvalidInput(
            f"{path}: {problem}; the matrices are {_listed(matrices)}. Name the matrix with layer= (--layer)",
            code="unclear_layer",
        )
    weights = matrices[chosen].read()
    bias = _bias_of(chosen, arrays, len(weights))
    if n_labels is not None and len(weights) != n_labels:
        raise DataFormatError(path, None, f"{chosen} has {len(weights)} rows, but there are {n_labels} labels")
    return weights, None if bias is None else arrays[bias].read()


def _only(matrices: Mapping[str, Stored], arrays: Mapping[str, Stored], n_labels: int | None) -> str | None:
    fitting = [name for name, stored in matrices.items() if n_labels is None or stored.shape[0] == n_labels]
    if len(fitting) > 1 and n_labels is not None:
        fitting = [name for name in fitting if _bias_of(name, arrays, n_labels) is not None]
    return fitting[0] if len(fitting) == 1 else None


def _bias_of(name: str, arrays: Mapping[str, Stored], n_labels: int) -> str | None:
    """The vector with the bias of a matrix: of the same layer, or the usual names where the file has one layer."""
    layer, dot, last = name.rpartition(".")
    near = [f"{layer}.bias"] if dot and last == "weight" else list(_BIASES)
    return next((each for each in near if each in arrays and arrays[each].shape == (n_labels,)), None)


def _listed(matrices: Mapping[str, Stored]) -> str:
    names = [f"{name} ({stored.shape[0]} x {stored.shape[1]})" for name, stored in matrices.items()]
    more = len(names) - _SHOWN
    return ", ".join([*names[:_SHOWN], *([f"and {more} more"] if more > 0 else [])]) or "none"
