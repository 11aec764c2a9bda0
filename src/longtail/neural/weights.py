"""Convert the weights of a module to arrays for the store, and back.

A tensor is stored under its name in `state_dict`. Before anything is loaded, the stored names, dtypes and shapes are
compared with those of the module.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from longtail.arrays import Array
from longtail.errors import InvalidInput, ModelFormatError
from longtail.store import MAX_DIMENSIONS, NAME, State

KIND = "Weights"


def weights_state(module: nn.Module) -> State:
    """The tensors of `module` as a part of a model, not copied.

    Examples
    --------
    >>> weights_state(nn.Linear(2, 1)).arrays["weight"].shape
    (1, 2)
    """
    return tensors_state(module.state_dict())


def load_weights(module: nn.Module, state: State) -> None:
    """Copy the tensors of `state` into `module`, or raise `ModelFormatError` if they do not fit.

    Examples
    --------
    >>> load_weights(nn.Linear(3, 1), weights_state(nn.Linear(2, 1)))
    Traceback (most recent call last):
    ...
    longtail.errors.ModelFormatError: Weights: array 'weight' has shape (1, 2); expected (1, 3)
    """
    module.load_state_dict(loaded_tensors(state, module.state_dict()))


def tensors_state(tensors: Mapping[str, Any]) -> State:
    """Named tensors as a part of a model."""
    return State(KIND, arrays={_stored_name(name): _as_array(name, tensor) for name, tensor in tensors.items()})


def loaded_tensors(state: State, like: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Copies of the tensors of `state`, or `ModelFormatError`.

    Names, dtypes and shapes must be those of `like`, and all values finite.
    """
    if state.kind != KIND:
        raise ModelFormatError(f"found {state.kind!r}; expected {KIND!r}")
    extra = sorted(set(state.arrays) - {_stored_name(name) for name in like})
    if extra:
        raise ModelFormatError(f"{KIND}: array {extra[0]!r} does not belong to this network")
    found = {}
    for name, tensor in like.items():
        array = state.array(_stored_name(name), _as_array(name, tensor).dtype, _stored_shape(tensor.shape))
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ModelFormatError(f"{KIND}: array {_stored_name(name)!r} holds NaN or infinity")
        # A copy, because the array may be a read-only memory map.
        found[name] = torch.from_numpy(np.array(array)).reshape(tensor.shape)
    return found


def _as_array(name: str, tensor: Any) -> Array:
    if not isinstance(tensor, Tensor) or tensor.dtype in (torch.bfloat16, torch.complex64, torch.complex128):
        found = tensor.dtype if isinstance(tensor, Tensor) else type(tensor).__name__
        raise InvalidInput(f"{name} is of type {found}, which cannot be stored; expected integers or floats")
    array: Array = tensor.detach().cpu().numpy()
    return array.reshape(_stored_shape(tensor.shape))


def _stored_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    # The store supports three dimensions; the filters of an image convolution have four.
    return tuple(shape) if len(shape) <= MAX_DIMENSIONS else (shape[0], math.prod(shape[1:]))


def _stored_name(name: str) -> str:
    # Names deep inside a transformer are longer than the store allows.
    return (
        name if NAME.fullmatch(name) else f"{name[-40:].lstrip('.-')}.{sha256(name.encode('utf-8')).hexdigest()[:16]}"
    )
