"""`Decisions`: what each short layer of a code prefers for a row, beside what the labels of the row ask for."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from longtail.errors import InvalidInput
from longtail.neural.targets import LabelRows


class Decisions(NamedTuple):
    """The values that the heads of a code (its digits or chunks) prefer for each row of a batch.

    Parameters
    ----------
    preferred : int64 tensor of shape (n_rows, n_heads)
        The best value of each head, ties to the lowest.
    true : tuple of (rows, values), one for each head
        The right values: two int64 tensors with each pair of row and value once.
    together : bool tensor of shape (n_rows, n_heads)
        Whether the preferred values up to this head are the beginning of a right code.
    predicted : bool tensor of n_rows
        Whether the prediction of the whole head is right: its best label, or its label set.
    """

    preferred: Tensor
    true: tuple[tuple[Tensor, Tensor], ...]
    together: Tensor
    predicted: Tensor


def any_of_row(pairs: Tensor, rows: Tensor, n_rows: int) -> Tensor:
    """Whether any of a row's pairs is True, for pairs in columns; `rows` has the row of each pair.

    Examples
    --------
    >>> any_of_row(torch.tensor([[True, False], [True, True]]), torch.tensor([0, 2]), 3).tolist()
    [[True, False], [False, False], [True, True]]
    """
    counts = torch.zeros(n_rows, *pairs.shape[1:], dtype=torch.int64, device=pairs.device)
    return counts.index_add(0, rows, pairs.long()) > 0


def best_label_is_right(best: Tensor, targets: LabelRows) -> Tensor:
    """Whether the one label predicted for each row is one of its labels."""
    return any_of_row(targets.labels == best[targets.rows], targets.rows, targets.n_rows)


def no_heads(name: str) -> InvalidInput:
    """The error for a head that is one layer; `name` is that of its class."""
    return InvalidInput(
        f"{name} is one layer over all labels, so there are no digits or chunks to judge",
        code="no_heads",
        advice="Cascade, Product, Kronecker and the powerset heads have them",
    )
