"""`Product`: a label's score is the product of the outputs of several short layers, one per digit of its code (MHP).

The layer has as many outputs as the sum of the radices, while one output per label needs their product. The search
finds the best labels exactly, without scoring all of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from longtail.errors import InvalidInput
from longtail.neural.heads.coded import CodedHead, best_candidates, each_once
from longtail.neural.heads.decisions import Decisions
from longtail.neural.heads.head import Task, best_labels, row_blocks, search_blocks
from longtail.neural.heads.losses import binary_loss, mean_of_rows
from longtail.neural.heads.precision import log_sigmoid, wide, widest
from longtail.neural.targets import LabelRows

Loss = Literal["binary", "softmax"]
LOSSES: tuple[Loss, ...] = ("binary", "softmax")


class Product(CodedHead):
    """Several short linear layers, one per digit of a label's code, whose outputs are multiplied.

    The outputs are turned into probabilities first: only for non-negative outputs are the best digits the digits of the
    best label (Theorem 1). With several groups a score is the mean of the groups' products, so the scores of a row, as
    a tensor with one axis per digit, have at most that CP rank (Eq. 16).

    One group with ``loss="binary"`` is trained digit by digit, as in the paper: binary cross-entropy of all outputs
    against the digits of the row's labels. All other variants are trained on the score S itself, by the Poisson
    likelihood: -log S of the row's labels plus the sum of S over all codes. That sum is the mean of the groups'
    products of sums, so it costs no more than the layer. The loss is minimal where each S is the label's probability,
    in both tasks. With softmax outputs the sum is always 1, which leaves the negative log-likelihood; with one group
    that is the cross-entropy of each digit. A single product mixes up the digits of a row's several labels; groups
    trained together can each take one label.

    Parameters
    ----------
    n_features, n_labels, radices, task, order
        As for `CodedHead`.
    groups : int
    loss : {"binary", "softmax"}
        Whether the outputs are sigmoids, or a softmax per digit.
    label_weights : float tensor of n_labels or None
        An output shared by several labels of a row has the largest of their weights.

    Examples
    --------
    >>> _ = torch.manual_seed(0)
    >>> head = Product(n_features=16, n_labels=985, radices=(197, 5))
    >>> head.n_parameters(), 985 * 17
    (3434, 16745)
    >>> labels, scores = head.predict_topk(torch.randn(2, 16), k=3)
    >>> labels.shape
    torch.Size([2, 3])
    """

    def __init__(
        self,
        n_features: int,
        n_labels: int,
        radices: Sequence[int] | None = None,
        groups: int = 1,
        loss: Loss = "binary",
        task: Task = "multi-label",
        label_weights: Tensor | None = None,
        order: Any = None,
    ) -> None:
        super().__init__(n_features, n_labels, radices, task, label_weights, order)
        if groups < 1:
            raise InvalidInput(f"groups is {groups}; expected at least 1")
        if loss not in LOSSES:
            raise InvalidInput(f"loss is {loss!r}; expected one of {', '.join(map(repr, LOSSES))}")
        self.groups = groups
        self.outputs = loss
        self.width = sum(self.codes.radices)
        self.linear = nn.Linear(n_features, groups * self.width)
        self._start()

    def _start(self) -> None:
        if self.outputs == "binary":
            # Start with one output per digit on: at 1/2 each, the sum of all scores would be huge.
            start = [-math.log(max(n - 1, 1)) for n in self.codes.radices for _ in range(n)]
            with torch.no_grad():
                self.linear.bias.copy_(torch.tensor(start * self.groups, device=self.linear.bias.device))

    def _logits(self, features: Tensor) -> Tensor:
        return wide(self.linear(features)).view(-1, self.groups, self.width)

    def _log_outputs(self, logits: Tensor) -> Tensor:
        if self.outputs == "binary":
            return log_sigmoid(logits)
        return torch.cat([digit.log_softmax(-1) for digit in torch.split(logits, list(self.codes.radices), -1)], -1)

    def _columns(self, labels: Tensor) -> Tensor:
        """The outputs of each label's digits, as a last axis."""
        positions = self.positions_of(labels)
        columns, start = [], 0
        for radix, stride in zip(self.codes.radices, self.codes.strides, strict=True):
            columns.append(positions // stride % radix + start)
            start += radix
        return torch.stack(columns, -1)

    def logits(self, features: Tensor) -> tuple[Tensor, ...]:
        """The logits of each digit: tensors of shape (n_rows, groups, radix)."""
        return torch.split(self._logits(features), list(self.codes.radices), -1)

    def _loss(self, features: Tensor, targets: LabelRows) -> Tensor:
        if self.task == "single-label":
            targets.single()
        logits = self._logits(features)
        columns = self._columns(targets.labels)
        weights = self.weights_of(targets.labels)
        if self.groups == 1 and self.outputs == "binary":
            return self._digit_loss(logits[:, 0], targets.rows[:, None].expand_as(columns), columns, weights)
        return self._score_loss(self._log_outputs(logits), targets.rows, columns, weights)

    def _digit_loss(self, logits: Tensor, rows: Tensor, columns: Tensor, weights: Tensor | None) -> Tensor:
        if weights is not None and self.task == "single-label":
            on = torch.zeros_like(logits).scatter(1, columns, 1)
            terms = functional.binary_cross_entropy_with_logits(logits, on, reduction="none")
            return mean_of_rows(terms.mean(1), weights)
        if weights is not None:
            weights = weights[:, None].expand_as(columns).flatten()
        return binary_loss(logits, *each_once(rows.flatten(), columns.flatten(), self.width, weights))

    def _score_loss(self, log_outputs: Tensor, rows: Tensor, columns: Tensor, weights: Tensor | None) -> Tensor:
        log_products = log_outputs[rows[:, None], :, columns].sum(1)
        log_scores = log_products.logsumexp(-1) - math.log(self.groups)
        if weights is not None:
            log_scores = log_scores * weights
        loss = -log_scores.sum() / max(1, len(log_outputs))
        if self.outputs == "softmax":
            return loss
        digits = torch.split(log_outputs, list(self.codes.radices), -1)
        totals = torch.stack([digit.logsumexp(-1) for digit in digits]).sum(0).exp().mean(1)
        return loss + mean_of_rows(totals, weights if self.task == "single-label" else None)

    def _log_prob(self, features: Tensor) -> Tensor:
        columns = self._columns(torch.arange(self.n_labels, device=features.device)).unbind(-1)
        outputs = self._log_outputs(self._logits(features))
        log_products = reduce(torch.add, (outputs[:, :, column] for column in columns))
        return log_products.logsumexp(1) - math.log(self.groups)

    def _probabilities(self, features: Tensor) -> Tensor:
        return self._scores(self._outputs(features), torch.arange(self.n_labels, device=features.device)[None])

    def _outputs(self, features: Tensor) -> Tensor:
        """The probabilities of all digits (n_rows x groups x width)."""
        # In single precision, products of many small outputs would underflow before they are summed.
        return widest(self._log_outputs(self._logits(features))).exp()

    def _scores(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Scores of each row's own labels; a single row of labels applies to all rows."""
        columns = self._columns(labels).unbind(-1)
        return self._mean(
            [
                reduce(torch.mul, (torch.take_along_dim(group, column, dim=1) for column in columns))
                for group in outputs.unbind(1)
            ]
        )

    def _mean(self, products: list[Tensor]) -> Tensor:
        # Sums and products in a fixed order are monotonic in each part, even with rounding: the search relies on it.
        return (reduce(torch.add, products) / self.groups).float()

    def _predict_topk(self, features: Tensor, k: int, allowed: Tensor | None = None) -> tuple[Tensor, Tensor]:
        every = torch.arange(self.n_labels, device=features.device)
        candidates = every if allowed is None else every[allowed]
        return search_blocks(
            lambda rows: self._find(self._outputs(rows), k, allowed, candidates),
            features,
            values_per_row=self.groups * self.width,
        )

    def _find(self, outputs: Tensor, k: int, allowed: Tensor | None, candidates: Tensor) -> tuple[Tensor, Tensor]:
        """Search each row, doubling the number of codes until its k labels are certain."""
        labels = torch.full((len(outputs), k), -1, device=outputs.device)
        scores = torch.full((len(outputs), k), -torch.inf, device=outputs.device, dtype=torch.float32)
        pending = torch.arange(len(outputs), device=outputs.device)
        size, n_candidates = self.codes.size, len(candidates)
        # A code is a candidate with probability n_candidates / size; one more than k excludes a tie at the end.
        searched = size if n_candidates == 0 else -(-(k + 1) * size // n_candidates)
        while len(pending):
            cost = self.groups * searched * searched.bit_length()
            direct = cost >= n_candidates
            later = []
            for rows in row_blocks(pending, max(1, min(cost, n_candidates))):
                if direct:
                    columns, scores[rows] = best_labels(self._scores(outputs[rows], candidates[None]), k)
                    labels[rows] = torch.where(columns < 0, -1, candidates[columns]) if n_candidates else columns
                    continue
                labels[rows], scores[rows], bound = self._search(outputs[rows], k, searched, allowed)
                later.append(rows[scores[rows, k - 1] <= bound])
            pending = torch.cat(later) if later else pending[:0]
            searched *= 2
        return labels, scores

    def _search(self, outputs: Tensor, k: int, searched: int, allowed: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """The k best labels among the best codes of each group, and an upper bound on the score of all others."""
        groups = [best_codes(torch.split(group, list(self.codes.radices), -1), searched) for group in outputs.unbind(1)]
        codes = torch.cat([codes for codes, _ in groups], 1).sort(dim=1).values
        labels = self.labels_at(codes)
        labels[:, 1:].masked_fill_(codes[:, 1:] == codes[:, :-1], -1)
        usable = labels >= 0 if allowed is None else (labels >= 0) & allowed[labels]
        scores = torch.where(usable, self._scores(outputs, labels.clamp(min=0)), -torch.inf)
        # Fagin's threshold: a code that no group has listed scores at most the mean of their last products.
        return *best_candidates(labels, scores, k), self._mean([products[:, -1] for _, products in groups])

    def multiply_adds(self, n_rows: int, training: bool = True) -> int:
        return n_rows * self.n_features * self.groups * self.width * (3 if training else 1)

    def _decisions(self, features: Tensor, targets: LabelRows) -> Decisions:
        preferred = torch.stack([digit.argmax(1) for digit in self._digit_scores(features)], 1)
        return self._compared(preferred, self._predict_topk(features, 1)[0], targets)

    def _digit_scores(self, features: Tensor) -> Sequence[Tensor]:
        """For each digit, scores (n_rows x radix) in the order of the total score of all codes with each value."""
        logits = self._logits(features)
        if self.groups == 1:
            return torch.split(logits[:, 0], list(self.codes.radices), -1)
        digits = torch.split(widest(self._log_outputs(logits)), list(self.codes.radices), -1)
        sums = torch.stack([digit.logsumexp(-1) for digit in digits])
        others = sums.sum(0) - sums
        return [(digit + other[:, :, None]).logsumexp(1) for digit, other in zip(digits, others, strict=True)]


def best_codes(heads: Sequence[Tensor], k: int) -> tuple[Tensor, Tensor]:
    """The k codes with the largest product of their digits' outputs, for many rows at a time.

    Heads are joined one after the other. In two sorted lists, the i-th and the j-th entry (from 1) cannot form one of
    the k best pairs if i * j > k, because that many pairs are at least as good. About k log k products remain.

    Parameters
    ----------
    heads : sequence of tensors of shape (n_rows, radix)
        Non-negative outputs of each digit, most significant first.
    k : int

    Returns
    -------
    codes : int64 tensor of shape (n_rows, k), or narrower if there are fewer codes
        Best first; ties in any order.
    products : tensor of the same shape

    Examples
    --------
    >>> codes, products = best_codes([torch.tensor([[0.5, 1.0]]), torch.tensor([[0.25, 1.0, 0.75]])], k=3)
    >>> codes.tolist(), products.tolist()
    ([[4, 5, 1]], [[1.0, 0.75, 0.5]])
    """
    products, codes = torch.topk(heads[0], min(k, heads[0].shape[1]), dim=1)
    for head in heads[1:]:
        outputs, digits = torch.topk(head, min(k, head.shape[1]), dim=1)
        ranks = torch.arange(products.shape[1], device=head.device)
        partners = (k // (ranks + 1)).clamp(max=outputs.shape[1])
        left = torch.repeat_interleave(ranks, partners)
        right = torch.arange(len(left), device=head.device) - (partners.cumsum(0) - partners)[left]
        joined = products[:, left] * outputs[:, right]
        products, best = torch.topk(joined, min(k, joined.shape[1]), dim=1)
        codes = codes.gather(1, left[best]) * head.shape[1] + digits.gather(1, right[best])
    return codes, products
