"""`LabelRows`: the labels of a batch of rows as flat ids, whose cost does not grow with the vocabulary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from longtail.errors import InvalidInput


@dataclass(frozen=True)
class LabelRows:
    """The labels of a batch.

    Parameters
    ----------
    labels : int64 tensor
        Ids of the labels of all rows, one row after the other.
    offsets : int64 tensor of n_rows + 1
        Where the labels of each row begin; the last is the number of all.
    n_labels : int
        How many labels there are in the vocabulary.
    amounts : float32 tensor or None
        How much of each of `labels` a row has, above 0 and at most 1; None: all of it. For heads that say they take it.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> batch = LabelRows.of(csr_array([[0.0, 1.0, 1.0], [1.0, 0.0, 0.0]]))
    >>> batch.labels.tolist(), batch.rows.tolist()
    ([1, 2, 0], [0, 0, 1])
    """

    labels: Tensor
    offsets: Tensor
    n_labels: int
    amounts: Tensor | None = None

    @classmethod
    def of(cls, Y: Any) -> LabelRows:
        """The labels of a csr_array without stored zeros."""
        return cls(
            torch.from_numpy(Y.indices.astype(np.int64)), torch.from_numpy(Y.indptr.astype(np.int64)), int(Y.shape[1])
        )

    @property
    def n_rows(self) -> int:
        return len(self.offsets) - 1

    @property
    def rows(self) -> Tensor:
        """The row of each of `labels`."""
        return torch.repeat_interleave(torch.arange(self.n_rows), self.offsets.diff())

    def single(self) -> Tensor:
        """The one label of each row."""
        if not bool((self.offsets.diff() == 1).all()):
            raise InvalidInput('task "single-label" wants exactly one label per row; "multi-label" takes any number')
        return self.labels

    def dense(self) -> Tensor:
        """A float matrix of all rows and labels, 0 or the amount: for heads that compute every logit anyway."""
        matrix = torch.zeros(self.n_rows, self.n_labels)
        matrix[self.rows, self.labels] = 1.0 if self.amounts is None else self.amounts
        return matrix
