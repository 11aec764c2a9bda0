"""Losses that take the positives as flat indices, so no dense target matrix is needed.

Both return the mean over the batch in at least single precision, whatever the precision of the logits.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from longtail.neural.heads.precision import wide, widest

# Number of values whose softplus is computed at a time: few enough to stay in cache.
_AT_ONCE = 2**20


class _BinaryLoss(torch.autograd.Function):
    """Written by hand, because indexing the positives would add a second gradient as large as the logits."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, rows: Tensor, columns: Tensor, weights: Tensor | None) -> Tensor:
        ctx.save_for_backward(logits, rows, columns, weights)
        flat = logits.reshape(-1)
        total = widest(torch.stack([functional.softplus(part).sum() for part in torch.split(flat, _AT_ONCE)])).sum()
        positives = widest(logits[rows, columns])
        if weights is not None:
            positives = functional.softplus(positives) - weights * functional.softplus(-positives)
        return ((total - positives.sum()) / max(1, logits.numel())).to(logits.dtype)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None]:
        logits, rows, columns, weights = ctx.saved_tensors
        gradient = torch.sigmoid(logits)
        correction = gradient.new_full((len(rows),), -1.0)
        if weights is not None:
            probability = gradient[rows, columns]
            correction = -probability - weights * (1 - probability)
        gradient.index_put_((rows, columns), correction.to(gradient.dtype), accumulate=True)
        return gradient.mul_(gradients[0] / max(1, logits.numel())), None, None, None


def binary_loss(logits: Tensor, rows: Tensor, columns: Tensor, weights: Tensor | None = None) -> Tensor:
    """Mean binary cross-entropy over all logits.

    Parameters
    ----------
    logits : float tensor of shape (n_rows, n_columns)
    rows, columns : int64 tensors
        Places of the positives; everything else is negative.
    weights : float tensor, one per positive, or None
        Factor of each positive's term.

    Examples
    --------
    >>> logits = torch.tensor([[2.0, -1.0], [0.0, 0.5]])
    >>> found = binary_loss(logits, torch.tensor([0]), torch.tensor([0]))
    >>> dense = functional.binary_cross_entropy_with_logits(logits, torch.tensor([[1.0, 0.0], [0.0, 0.0]]))
    >>> bool(torch.isclose(found, dense))
    True
    """
    result: Tensor = _BinaryLoss.apply(wide(logits), rows, columns, weights)  # type: ignore[no-untyped-call]
    return result


def softmax_loss(logits: Tensor, columns: Tensor, weights: Tensor | None = None) -> Tensor:
    """Mean cross-entropy of rows that have one positive each.

    Parameters
    ----------
    logits : float tensor of shape (n_rows, n_columns)
        -inf excludes a column.
    columns : int64 tensor of n_rows
        The positive of each row.
    weights : float tensor of n_rows or None
        Factor of each row's term.

    Examples
    --------
    >>> float(softmax_loss(torch.zeros(3, 4), torch.tensor([0, 1, 3])))  # doctest: +ELLIPSIS
    1.386...
    """
    return mean_of_rows(functional.cross_entropy(wide(logits), columns, reduction="none"), weights)


def mean_of_rows(terms: Tensor, weights: Tensor | None = None) -> Tensor:
    """The mean of one term for each row, weighted or not; 0 without rows.

    Examples
    --------
    >>> mean_of_rows(torch.tensor([1.0, 2.0]), weights=torch.tensor([4.0, 1.0])), mean_of_rows(torch.zeros(0))
    (tensor(3.), tensor(0.))
    """
    terms = terms if weights is None else terms * weights
    return terms.sum() / max(1, len(terms))
