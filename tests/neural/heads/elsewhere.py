"""`Elsewhere`: tensors that say they are on the meta device, hold values, and do not mix with tensors of the CPU.

There is no GPU where these tests run. Tensors of the meta device hold no values, so what depends on values, such as a
search, could not run there.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

META = torch.device("meta")


class Elsewhere(Tensor):
    """A tensor of the meta device with values."""

    values: Tensor

    @staticmethod
    def __new__(cls, values: Tensor, requires_grad: bool = False) -> Elsewhere:
        sparse = values.layout == torch.sparse_coo
        found: Any = torch.Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls,
            values.shape,
            **({} if sparse else {"strides": values.stride(), "storage_offset": values.storage_offset()}),
            dtype=values.dtype,
            layout=values.layout,
            device=META,
            requires_grad=requires_grad,
        )
        found.values = values
        return found

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        with _Operators():
            return func(*args, **(kwargs or {}))


class _Operators(TorchDispatchMode):
    """Runs every operator on the values, and raises an error if tensors of the CPU are among its arguments."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        tensors = [part for part in tree_flatten((args, kwargs))[0] if isinstance(part, Tensor)]
        ours = [tensor for tensor in tensors if isinstance(tensor, Elsewhere)]
        device = kwargs.get("device")
        moves = func in (torch.ops.aten._to_copy.default, torch.ops.aten.copy_.default)
        strangers = [tensor for tensor in tensors if not isinstance(tensor, Elsewhere) and tensor.ndim > 0]
        if ours and strangers and not moves:
            raise AssertionError(f"{func} mixes tensors of the meta device and of the CPU")
        if device is not None and torch.device(device) == META:
            kwargs["device"] = torch.device("cpu")
        found = func(*tree_map(_values, args), **tree_map(_values, kwargs))
        here = device is not None and torch.device(device) != META
        if here or not (ours or (device is not None and not here)):
            return found
        if func.__name__.partition(".")[0].endswith("_") and isinstance(args[0], Elsewhere):
            return args[0]
        return tree_map(lambda part: Elsewhere(part) if isinstance(part, Tensor) else part, found)


def _values(part: Any) -> Any:
    return part.values if isinstance(part, Elsewhere) else part


@contextmanager
def elsewhere() -> Iterator[None]:
    """Check inside the block that no operator mixes the devices."""
    with _Operators():
        yield


def moved(head: nn.Module) -> nn.Module:
    """The head with its parameters and buffers elsewhere."""
    for module in head.modules():
        for name, parameter in list(module.named_parameters(recurse=False)):
            setattr(module, name, nn.Parameter(Elsewhere(parameter.detach())))
        for name, buffer in list(module.named_buffers(recurse=False)):
            setattr(module, name, Elsewhere(buffer))
    return head


def back(found: Tensor) -> Tensor:
    """The values of a tensor that must be elsewhere."""
    assert isinstance(found, Elsewhere)
    return found.values
