"""The angular margin of ArcFace: a row's own label has to win by an angle, not only by a nose."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

# Far below what 1 - cos^2 can be in float32 unless it is 0 or, by rounding, negative.
_LEAST_SQUARE = 1e-20


def cosines(features: Tensor, weights: Tensor) -> Tensor:
    """The cosine of every row of features with every row of weights, without a normalised copy of the weights.

    Examples
    --------
    >>> cosines(torch.tensor([[3.0, 4.0]]), torch.tensor([[2.0, 0.0], [0.0, -1.0]])).tolist()  # doctest: +ELLIPSIS
    [[0.6..., -0.8...]]
    """
    # Scaled by 64, a cosine of 8 bits would be off by an eighth.
    with torch.autocast(features.device.type, enabled=False):
        lengths = torch.linalg.vector_norm(weights.float(), dim=-1).clamp_min(1e-12)
        return (functional.normalize(features.float(), dim=-1) @ weights.float().mT / lengths).clamp(-1, 1)


def with_margin(cosine: Tensor, margin: float) -> Tensor:
    """The cosine of an angle `margin` further away, and a line with the slope of 1 where that would be beyond pi.

    Parameters
    ----------
    cosine : float tensor
        Of the angles between rows and the weights of their own labels.
    margin : float
        In radians, at least 0 and less than pi.

    Examples
    --------
    >>> with_margin(torch.tensor([1.0]), math.pi / 3).tolist()  # doctest: +ELLIPSIS
    [0.5...]
    """
    # The gradient of a root is infinite at 0; what is clamped has gradient 0.
    sine = (1 - cosine.square()).clamp_min(_LEAST_SQUARE).sqrt()
    further = cosine * math.cos(margin) - sine * math.sin(margin)
    beyond = cosine - margin * math.sin(math.pi - margin)
    return torch.where(cosine > math.cos(math.pi - margin), further, beyond)
