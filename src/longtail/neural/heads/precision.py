"""The precision in which heads compute what low precision would spoil."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor
from torch.nn import functional


def wide(values: Tensor) -> Tensor:
    """In single precision, or in double precision if the values are.

    Examples
    --------
    >>> wide(torch.zeros(1, dtype=torch.bfloat16)).dtype, wide(torch.zeros(1, dtype=torch.float64)).dtype
    (torch.float32, torch.float64)
    """
    return values.to(torch.promote_types(values.dtype, torch.float32))


def widest(values: Tensor) -> Tensor:
    """In double precision, or in single precision on devices that have no other."""
    return values.float() if values.device.type == "mps" else values.double()


def without_autocast(device: torch.device) -> AbstractContextManager[None]:
    """A block in which nothing is computed in low precision on this device."""
    available = torch.amp.is_autocast_available(device.type)
    return torch.autocast(device.type, enabled=False) if available else nullcontext()


def log_sigmoid(logits: Tensor) -> Tensor:
    """As `torch.nn.functional.logsigmoid`, which an ONNX model computes as log(sigmoid), -inf for logits below -100.

    Examples
    --------
    >>> log_sigmoid(torch.tensor([-200.0, 0.0]))
    tensor([-200.0000,   -0.6931])
    """
    return -functional.softplus(-logits, threshold=40)
