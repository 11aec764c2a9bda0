"""`CodedHead`: the base of heads that write a label as a code of digits, with one short layer per digit.

A label has a position in the space of codes, and its digits are those of the position. If there are more codes than
labels, the remaining positions are padding, which no head may predict.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from longtail.errors import InvalidInput
from longtail.labels import MixedRadix, plan_heads
from longtail.neural.heads.decisions import Decisions, any_of_row, best_label_is_right
from longtail.neural.heads.head import Head, Task, check_loaded_order, is_order
from longtail.neural.targets import LabelRows

_MOST_DIGITS = 64  # the maximum of `longtail.labels.plan_heads`


class CodedHead(Head):
    """A head whose labels have codes in a mixed-radix system.

    Parameters
    ----------
    n_features, n_labels : int
    radices : sequence of int or None
        Number of values of each digit, most significant first; None: `longtail.labels.plan_heads` chooses two.
    task, label_weights
        As for `Head`.
    order : int64 array of n_labels or None
        The position of each label: a permutation, for example from `longtail.labels.label_order`; None: its id.
    """

    _lengths = "equal"  # the order of planned radices
    position: Tensor | None
    label_at: Tensor | None

    def __init__(
        self,
        n_features: int,
        n_labels: int,
        radices: Sequence[int] | None = None,
        task: Task = "multi-label",
        label_weights: Tensor | None = None,
        order: Any = None,
    ) -> None:
        super().__init__(n_features, n_labels, task, label_weights)
        if radices is None:
            radices = plan_heads(n_labels, order=self._lengths).radices
        self.codes = MixedRadix(tuple(radices))
        if not n_labels <= self.codes.size < 2**63:
            raise InvalidInput(
                f"radices {self.codes.radices} make {self.codes.size} codes; expected at least {n_labels}, one for "
                "each label, and fewer than 2^63: longtail.labels.plan_heads returns radices that fit"
            )
        if len(self.codes.radices) > _MOST_DIGITS:
            raise InvalidInput(f"{len(self.codes.radices)} radices; expected at most {_MOST_DIGITS}")
        position = None if order is None else torch.as_tensor(order, dtype=torch.int64, device="cpu")
        if position is not None and not is_order(position, n_labels):
            raise InvalidInput(f"order is not a permutation of 0 to {n_labels - 1}; expected one position per label")
        self._keep("position", position)
        self._keep("label_at", None if position is None else position.argsort(), persistent=False)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        check_loaded_order(state_dict, f"{prefix}position", self.n_labels)
        super()._load_from_state_dict(state_dict, prefix, *rest)
        if self.position is not None:
            self.label_at = self.position.argsort()

    def _leave_meta(self) -> None:
        super()._leave_meta()
        if self.position is not None:
            self.label_at = self.position.argsort()

    def positions_of(self, labels: Tensor) -> Tensor:
        """The position of each label."""
        return labels if self.position is None else self.position[labels]

    @property
    def lengths(self) -> tuple[int, ...]:
        return self.codes.radices

    def labels_at(self, positions: Tensor) -> Tensor:
        """The label at each position; -1 at padding."""
        inside = positions < self.n_labels
        if self.label_at is None:
            return torch.where(inside, positions, -1)
        return torch.where(inside, self.label_at[positions.clamp(max=self.n_labels - 1)], -1)

    def labels_of(self, head: int, value: int) -> Tensor:
        """The labels whose digit `head` is `value`."""
        positions = torch.arange(self.n_labels, device=next(self.parameters()).device)
        return self.labels_at(positions[self._digits(positions)[:, head] == value])

    def _digits(self, positions: Tensor) -> Tensor:
        lengths = zip(self.codes.radices, self.codes.strides, strict=True)
        return torch.stack([positions // stride % radix for radix, stride in lengths], 1)

    def _compared(self, preferred: Tensor, best: Tensor, targets: LabelRows) -> Decisions:
        """Compare the preferred digits (n_rows x n_heads), and the best label (n_rows x 1), with the labels of rows.

        A digit alone is right if it is that of any label of the row; together, digits must be of one label.
        """
        rows, digits = targets.rows, self._digits(self.positions_of(targets.labels))
        columns = zip(digits.unbind(1), self.codes.radices, strict=True)
        return Decisions(
            preferred,
            tuple(each_once(rows, column, radix)[:2] for column, radix in columns),
            any_of_row((digits == preferred[rows]).cumprod(1).bool(), rows, targets.n_rows),
            best_label_is_right(best[:, 0], targets),
        )


def each_once(
    rows: Tensor, columns: Tensor, n_columns: int, weights: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor | None]:
    """The distinct (row, column) pairs, sorted, each with its largest weight.

    Examples
    --------
    >>> rows, columns, weights = torch.tensor([0, 0, 1]), torch.tensor([4, 4, 2]), torch.tensor([1.0, 3.0, 2.0])
    >>> [part.tolist() for part in each_once(rows, columns, 5, weights)]
    [[0, 1], [4, 2], [3.0, 2.0]]
    """
    keys, which = torch.unique(rows * n_columns + columns, return_inverse=True)
    if weights is not None:
        weights = weights.new_zeros(len(keys)).scatter_reduce(0, which, weights, "amax", include_self=False)
    return keys // n_columns, keys % n_columns, weights


def best_candidates(labels: Tensor, scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k best of each row's own candidates, ties to the lowest label; -1 and -inf if fewer have a score above -inf.

    Examples
    --------
    >>> labels, scores = best_candidates(torch.tensor([[7, 3, 5]]), torch.tensor([[0.5, 0.5, -torch.inf]]), k=3)
    >>> labels.tolist(), scores.tolist()
    ([[3, 7, -1]], [[0.5, 0.5, -inf]])
    """
    labels, order = labels.sort(dim=1)
    best = scores.gather(1, order).sort(dim=1, descending=True, stable=True)
    kept = min(k, labels.shape[1])
    top_labels, top_scores = labels.new_full((len(labels), k), -1), scores.new_full((len(labels), k), -torch.inf)
    top_scores[:, :kept] = best.values[:, :kept]
    top_labels[:, :kept] = labels.gather(1, best.indices[:, :kept]).masked_fill(top_scores[:, :kept] == -torch.inf, -1)
    return top_labels, top_scores
