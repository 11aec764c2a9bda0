"""`Sampling`: a plain linear layer in blocks of labels; each batch trains only some of the blocks.

Multi-head sampling (Liang et al., TPAMI 2025, section 4.3): the cost of training is that of the blocks in use;
prediction and memory are those of `OneHot`. An optional margin is the angular one of ArcFace: a row's own label must
win by an angle.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from longtail.arrays import Array
from longtail.errors import InvalidInput
from longtail.neural.heads.dense import DenseHead
from longtail.neural.heads.head import Task, label_shares, starting_offsets
from longtail.neural.heads.losses import binary_loss, softmax_loss
from longtail.neural.heads.precision import wide, without_autocast
from longtail.neural.targets import LabelRows

# Below every value of 1 - cos^2 in float32 except 0 and negative rounding errors.
_LEAST_SQUARE = 1e-20


class Sampling(DenseHead):
    """One weight vector per label, in `n_heads` blocks of ``ceil(n_labels / n_heads)`` labels; the last may be shorter.

    Label y is in block ``y // length``. The candidates of a batch are the labels of the blocks it uses, and the loss is
    over the candidates only:

    - single-label, fast: the blocks of the batch's labels and ``sampled - 1`` others, shared by all rows;
    - single-label, not fast: for each row the block of its own label and ``sampled - 1`` others;
    - multi-label: the same blocks as for fast; each candidate is an independent binary decision.

    With ``sampled=n_heads`` that is the loss of `OneHot`. torch's generator draws the other blocks.

    Parameters
    ----------
    n_features, n_labels, task, label_weights
        As for `Head`.
    n_heads : int or None
        Number of blocks. Many short blocks are cheapest, but each label then competes with fewer others. None: blocks
        about as long as the cube root of the number of labels.
    sampled : int
        Number of blocks, as above; at most `n_heads`.
    fast : bool
        Whether rows share their candidates.
    bias : bool
        Whether every label has an offset; ignored with a margin.
    margin : float or None
        Single-label: logits are cosines, and a row's own label must win by this angle (0.5 is usual).
    scale : float
        Factor of the cosines, with a margin.
    sparse_gradients : bool
        Whether gradients hold only the rows in use, which the optimiser must support. Dense gradients are as large as
        the table; for very many labels clearing them takes most of the time.

    Examples
    --------
    >>> head = Sampling(n_features=8, n_labels=1_000_000, n_heads=10_000, task="single-label", sparse_gradients=True)
    >>> targets = LabelRows(torch.tensor([7, 123_456]), torch.tensor([0, 1, 2]), 1_000_000)
    >>> head(torch.randn(2, 8), targets).loss.backward()
    >>> head.weight.grad.coalesce().values().shape
    torch.Size([200, 8])
    """

    def __init__(
        self,
        n_features: int,
        n_labels: int,
        n_heads: int | None = None,
        task: Task = "multi-label",
        label_weights: Tensor | None = None,
        sampled: int = 1,
        fast: bool = True,
        bias: bool = True,
        margin: float | None = None,
        scale: float = 64.0,
        sparse_gradients: bool = False,
    ) -> None:
        super().__init__(n_features, n_labels, task, label_weights)
        if n_heads is None:
            n_heads = -(-n_labels // max(1, round(n_labels ** (1 / 3))))
        if not 1 <= n_heads <= n_labels:
            raise InvalidInput(f"{n_heads} heads for {n_labels} labels; expected 1 to {n_labels}")
        self.length = -(-n_labels // n_heads)
        filled = -(-n_labels // self.length)
        if filled < n_heads:
            raise InvalidInput(
                f"{n_heads} heads of {self.length} labels are more than {n_labels} labels fill: use {filled}"
            )
        if not 1 <= sampled <= n_heads:
            raise InvalidInput(f"sampled is {sampled} of {n_heads} heads; expected 1 to {n_heads}")
        if task == "multi-label" and (margin is not None or not fast):
            raise InvalidInput("margin and fast=False need the task 'single-label'")
        if margin is not None and not (0 <= margin < math.pi and scale > 0):
            raise InvalidInput(f"margin is {margin} and scale {scale}; expected 0 <= margin < pi and scale > 0")
        self.n_heads = n_heads
        self.sampled = sampled
        self.fast = fast
        self.margin = margin
        self.scale = scale
        self.sparse_gradients = sparse_gradients
        self.weights = _Table(n_labels, n_features, sparse=sparse_gradients)
        # A table with one column, so that its rows can be gathered and have sparse gradients like those of the weights.
        self.offsets = _Table(n_labels, 1, sparse=sparse_gradients) if bias and margin is None else None
        self._start()

    @property
    def weight(self) -> Tensor:
        """The weight vectors (n_labels x n_features)."""
        return self.weights.weight

    @property
    def offset(self) -> Tensor | None:
        """The offsets (n_labels x 1), or None."""
        return None if self.offsets is None else self.offsets.weight

    def _start(self) -> None:
        bound = self.n_features**-0.5
        nn.init.uniform_(self.weight, -bound, bound)
        if self.offset is not None:
            nn.init.zeros_(self.offset)

    def start_from(self, label_counts: Tensor, n_rows: int) -> None:
        if self.offset is not None:
            with torch.no_grad():
                shares = label_shares(label_counts.to(self.offset.device), n_rows)
                self.offset[:, 0] = starting_offsets(shares, self.task).to(self.offset.dtype)

    def logits(self, features: Tensor) -> Tensor:
        return self._logits(features, self.weight, self.offset)

    def _logits(self, features: Tensor, weight: Tensor, offset: Tensor | None) -> Tensor:
        if self.margin is not None:
            return self.scale * cosines(features, weight)
        return functional.linear(features, weight, None if offset is None else offset[:, 0])

    def _loss(self, features: Tensor, targets: LabelRows) -> Tensor:
        """The loss of a `DenseHead`, over the candidates of the batch only."""
        if self.task == "multi-label":
            return self._loss_of_shared(features, targets.rows, targets.labels)
        labels = targets.single()
        if self.fast:
            return self._loss_of_shared(features, None, labels)
        return self._loss_of_own(features, labels)

    def _loss_of_shared(self, features: Tensor, rows: Tensor | None, labels: Tensor) -> Tensor:
        heads = self._with_others(torch.unique(labels // self.length))
        # Only the last block can be short, and it is also the last among the candidates.
        columns = torch.searchsorted(heads, labels // self.length) * self.length + labels % self.length
        if len(heads) == self.n_heads and not self.sparse_gradients:
            logits = self.logits(features)
        else:
            candidates = self._members(heads)
            candidates = candidates[candidates < self.n_labels]
            logits = self._logits(features, *self._gather(candidates))
        if rows is None:
            return softmax_loss(self._add_margin(logits, columns), columns, self.weights_of(labels))
        return binary_loss(logits, rows, columns, self.weights_of(labels))

    def _with_others(self, heads: Tensor) -> Tensor:
        """These heads and the sampled others, ascending; a batch without labels gets some too."""
        n_others = min(self.sampled - min(1, len(heads)), self.n_heads - len(heads))
        if n_others == 0:
            return heads
        free = torch.ones(self.n_heads, dtype=torch.bool, device=heads.device)
        free[heads] = False
        others = torch.nonzero(free)[:, 0]
        # By `gather`, because torch's compiler fails on a tensor that is indexed by a part of a permutation.
        drawn = others.gather(0, torch.randperm(len(others), device=heads.device)[:n_others])
        return torch.cat([heads, drawn]).sort().values

    def _loss_of_own(self, features: Tensor, labels: Tensor) -> Tensor:
        own = labels // self.length
        others = draw_distinct(len(labels), self.sampled - 1, self.n_heads - 1, labels.device)
        heads = torch.cat([own[:, None], others + (others >= own[:, None])], dim=1)
        candidates = self._members(heads)
        missing = candidates >= self.n_labels
        weight, offset = self._gather(torch.where(missing, labels[:, None], candidates))
        if self.margin is not None:
            logits = self.scale * cosines(features[:, None, :], weight)[:, 0]
        else:
            logits = wide((weight @ features.to(weight.dtype)[:, :, None])[:, :, 0])
            logits = logits if offset is None else logits + offset[:, :, 0]
        columns = labels % self.length
        logits = self._add_margin(logits, columns).masked_fill(missing, -torch.inf)
        return softmax_loss(logits, columns, self.weights_of(labels))

    def _members(self, heads: Tensor) -> Tensor:
        """The labels of the heads along the last dimension, block by block."""
        return (heads[..., None] * self.length + torch.arange(self.length, device=heads.device)).flatten(-2)

    def _gather(self, labels: Tensor) -> tuple[Tensor, Tensor | None]:
        return self.weights(labels), None if self.offsets is None else self.offsets(labels)

    def _add_margin(self, logits: Tensor, columns: Tensor) -> Tensor:
        if not self.margin:
            return logits
        own = logits.gather(1, columns[:, None])
        return logits.scatter(1, columns[:, None], self.scale * with_margin(own / self.scale, self.margin))

    def multiply_adds(self, n_rows: int, training: bool = True) -> int:
        """In training the maximum: one label per row, each in a different block."""
        if not training:
            return n_rows * self.n_features * self.n_labels
        heads = min(self.n_heads, n_rows + self.sampled - 1) if self.fast else self.sampled
        return 3 * n_rows * self.n_features * min(heads * self.length, self.n_labels)

    def output_layer(self) -> tuple[Array, Array]:
        """With a margin: the scaled directions of the weights, for features of length 1."""
        weight = self.weight.detach().cpu()
        weights = (weight if self.margin is None else self.scale * functional.normalize(weight, dim=1)).numpy()
        if self.offset is None:
            return weights, np.zeros(self.n_labels, weights.dtype)
        return weights, self.offset.detach()[:, 0].cpu().numpy()

    def sparse_parameters(self) -> list[nn.Parameter]:
        """The weights and the offsets."""
        return list(self.parameters()) if self.sparse_gradients else []


class _Table(nn.Embedding):
    """A table whose initial values the head sets.

    It is an `nn.Embedding`, because `DistributedDataParallel` expects sparse gradients from these modules only.
    """

    def reset_parameters(self) -> None:
        """Leave the values to the head."""


def draw_distinct(n_rows: int, n_drawn: int, n: int, device: torch.device | None = None) -> Tensor:
    """Draw `n_drawn` distinct integers below `n` for each row, uniformly, by Floyd's method.

    The cost does not depend on n.

    Examples
    --------
    >>> draw_distinct(2, 3, 3).sort(dim=1).values.tolist()
    [[0, 1, 2], [0, 1, 2]]
    """
    drawn = torch.full((n_rows, n_drawn), -1, device=device)
    for place in range(n_drawn):
        last = n - n_drawn + place
        number = torch.randint(last + 1, (n_rows,), device=device)
        drawn[:, place] = torch.where((drawn == number[:, None]).any(1), last, number)
    return drawn


def cosines(features: Tensor, weights: Tensor) -> Tensor:
    """The cosine of each row of features with each row of weights, without a normalised copy of the weights.

    Examples
    --------
    >>> cosines(torch.tensor([[3.0, 4.0]]), torch.tensor([[2.0, 0.0], [0.0, -1.0]])).tolist()  # doctest: +ELLIPSIS
    [[0.6..., -0.8...]]
    """
    # A cosine in bfloat16 (8 bits), scaled by 64, would be off by an eighth.
    with without_autocast(features.device):
        features, weights = wide(features), wide(weights)
        lengths = torch.linalg.vector_norm(weights, dim=-1).clamp_min(1e-12)
        return (functional.normalize(features, dim=-1) @ weights.mT / lengths).clamp(-1, 1)


def with_margin(cosine: Tensor, margin: float) -> Tensor:
    """The cosine of the angle plus `margin`; a line of slope 1 where the sum would exceed pi.

    Parameters
    ----------
    cosine : float tensor
        Cosines of the angles between rows and the weights of their own labels.
    margin : float
        In radians, at least 0 and less than pi.

    Examples
    --------
    >>> with_margin(torch.tensor([1.0]), math.pi / 3).tolist()  # doctest: +ELLIPSIS
    [0.5...]
    """
    # The gradient of a square root is infinite at 0; clamped values have gradient 0.
    sine = (1 - cosine.square()).clamp_min(_LEAST_SQUARE).sqrt()
    further = cosine * math.cos(margin) - sine * math.sin(margin)
    beyond = cosine - margin * math.sin(math.pi - margin)
    return torch.where(cosine > math.cos(math.pi - margin), further, beyond)
