"""`Kronecker`: the logits of all labels are a sum of Kronecker products of short layers (G-MHE, Eq. 16).

`Product` multiplies probabilities, which lets it search without scoring all labels. Here raw outputs are multiplied and
the softmax comes last, so every label is scored, but with as few weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from longtail.errors import InvalidInput
from longtail.neural.heads.coded import CodedHead
from longtail.neural.heads.decisions import Decisions
from longtail.neural.heads.dense import DenseHead
from longtail.neural.heads.head import Task, label_shares, starting_offsets
from longtail.neural.heads.precision import wide
from longtail.neural.targets import LabelRows

# Codes beyond the labels only cost memory. A short list of weights must not ask for scores that fill it.
_MOST_CODES = 16
_FEW_CODES = 2**16


class Kronecker(CodedHead, DenseHead):
    """Logits ``sum_g (W_g1 x + b_g1) ⊗ (W_g2 x + b_g2) ⊗ ...`` of the features x, with one factor for each digit.

    As a tensor with one axis per digit, the logits of a row have a CP rank of at most `groups` (Liang et al., TPAMI
    2025, Eq. 16). The loss is the cross-entropy after a softmax, as in the paper, or for several labels per row the
    binary cross-entropy after sigmoids, which is ours. Raw outputs may be negative, so the best digits need not make
    the best label (Theorem 1 does not hold), and prediction scores all labels.

    Parameters
    ----------
    n_features, n_labels, radices, task, label_weights, order
        As for `CodedHead`.
    groups : int
        Number of products in the sum.

    Examples
    --------
    >>> _ = torch.manual_seed(0)
    >>> head = Kronecker(n_features=16, n_labels=985, radices=(197, 5), groups=4, task="single-label")
    >>> head.n_parameters(), 985 * 17
    (13736, 16745)
    >>> head(torch.randn(2, 16)).shape
    torch.Size([2, 985])
    """

    def __init__(
        self,
        n_features: int,
        n_labels: int,
        radices: Sequence[int] | None = None,
        groups: int = 1,
        task: Task = "multi-label",
        label_weights: Tensor | None = None,
        order: Any = None,
    ) -> None:
        super().__init__(n_features, n_labels, radices, task, label_weights, order)
        if groups < 1:
            raise InvalidInput(f"groups is {groups}; expected at least 1")
        if self.codes.size > _MOST_CODES * n_labels + _FEW_CODES:
            raise InvalidInput(
                f"radices {self.codes.radices} make {self.codes.size:,} codes for {n_labels:,} labels, and this head "
                "computes a score for each code: longtail.labels.plan_heads returns radices that fit"
            )
        self.groups = groups
        self.width = sum(self.codes.radices)
        self.linear = nn.Linear(n_features, groups * self.width)
        self._start()

    def _start(self) -> None:
        # With offsets of 1, each factor is learned as if the others were constant. A softmax does not see that all
        # logits then start near 1 instead of 0; sigmoids do.
        nn.init.ones_(self.linear.bias)
        if self.task == "multi-label":
            self._start_at(0.0)

    def _start_at(self, logit: float) -> None:
        with torch.no_grad():
            self.linear.bias.view(self.groups, self.width)[:, : self.codes.radices[0]] = logit / self.groups

    def start_from(self, label_counts: Tensor, n_rows: int) -> None:
        """Start all labels at the logit of their mean share; a softmax needs no such start."""
        if self.task == "multi-label":
            self._start_at(float(starting_offsets(label_shares(label_counts, n_rows).mean(), self.task)))

    def logits(self, features: Tensor) -> Tensor:
        outputs = wide(self.linear(features)).view(-1, self.groups, self.width)
        *digits, last = torch.split(outputs, list(self.codes.radices), -1)
        if not digits:
            found = last.sum(1)
        else:
            products = digits[0]
            for digit in digits[1:]:
                products = (products[:, :, :, None] * digit[:, :, None, :]).flatten(2)
            found = torch.bmm(products.transpose(1, 2), last).flatten(1)
        return found[:, : self.n_labels] if self.position is None else found[:, self.position]

    def multiply_adds(self, n_rows: int, training: bool = True) -> int:
        """The sum over groups takes one for each group and code."""
        each = self.groups * (self.n_features * self.width + self.codes.size)
        return n_rows * each * (3 if training else 1)

    def batch_values(self, n_rows: int) -> int:
        """A score for each code."""
        return n_rows * self.codes.size

    def _decisions(self, features: Tensor, targets: LabelRows) -> Decisions:
        """No digit is scored alone, so the preferred digits are those of the best label."""
        best, _ = self._predict_topk(features, 1)
        return self._compared(self._digits(self.positions_of(best[:, 0])), best, targets)
