"""Heads that predict a label set as a whole: one of 2^n_labels, in chunks of a few labels each.

Independent decisions per label may add up to a set that never occurs; here each chunk chooses among the subsets of its
labels. The three heads are those of Table 1 of Liang et al. (TPAMI 2025): all chunks in parallel, chunk after chunk,
and a sample of the chunks.
"""

from __future__ import annotations

from abc import abstractmethod

import torch
from torch import Tensor, nn
from torch.nn import functional

from longtail.errors import InvalidInput
from longtail.labels import BitChunks
from longtail.neural.heads.decisions import Decisions
from longtail.neural.heads.head import Head, best_labels, search_blocks
from longtail.neural.heads.losses import mean_of_rows
from longtail.neural.heads.precision import wide
from longtail.neural.targets import LabelRows

_MOST_BITS = 16


class PowersetHead(Head):
    """A head with a softmax over the subsets of each chunk of labels.

    The loss is the negative log-likelihood of a row's label set, a sum over chunks.

    Parameters
    ----------
    n_features, n_labels : int
    bits : int
        Labels per chunk, 1 to 16; the last chunk may have fewer.
    label_weights : float tensor of n_labels or None
        A chunk's term has the largest weight of the row's labels in it, or 1 if it has none.
    """

    def __init__(self, n_features: int, n_labels: int, bits: int = 5, label_weights: Tensor | None = None) -> None:
        super().__init__(n_features, n_labels, "multi-label", label_weights)
        if not 1 <= bits <= _MOST_BITS:
            raise InvalidInput(f"bits is {bits}; expected 1 to {_MOST_BITS}: a chunk has 2^bits outputs")
        self.chunks = BitChunks(n_labels, bits)
        self.radices = list(self.chunks.radices)
        self.n_chunks = len(self.radices)
        self.n_subsets = max(self.radices)
        self.n_outputs = sum(self.radices)

    @property
    def lengths(self) -> tuple[int, ...]:
        return self.chunks.radices

    def batch_values(self, n_rows: int) -> int:
        """A score for each subset of each chunk."""
        return n_rows * self.n_chunks * self.n_subsets

    def codes_of(self, targets: LabelRows) -> Tensor:
        """The number of each chunk's subset (n_rows x n_chunks), as in `longtail.labels.BitChunks`."""
        codes = targets.labels.new_zeros(targets.n_rows, self.n_chunks)
        places = targets.rows, targets.labels // self.chunks.bits
        return codes.index_put(places, self._worth(targets.labels), accumulate=True)

    def _worth(self, labels: Tensor) -> Tensor:
        """The place value of each label in the number of its chunk's subset."""
        bits = self.chunks.bits
        return 1 << ((labels // bits * bits + bits - 1).clamp(max=self.n_labels - 1) - labels)

    def _by_chunk(self, outputs: Tensor) -> Tensor:
        """Outputs as n_rows x chunks x n_subsets, padded with -inf where the last chunk is shorter."""
        n_chunks = -(-outputs.shape[1] // self.n_subsets)
        outputs = functional.pad(wide(outputs), (0, -outputs.shape[1] % self.n_subsets), value=-torch.inf)
        return outputs.view(len(outputs), n_chunks, self.n_subsets)

    def _set_loss(self, logits: Tensor, targets: LabelRows, chunks: Tensor | None = None) -> Tensor:
        """The mean over rows of the sum over all chunks, or over `chunks`."""
        codes, weights = self.codes_of(targets), logits.new_ones(targets.n_rows * self.n_chunks)
        label_weights = self.weights_of(targets.labels)
        if label_weights is not None:
            places = targets.rows * self.n_chunks + targets.labels // self.chunks.bits
            weights.scatter_reduce_(0, places, label_weights.to(weights.dtype), "amax", include_self=False)
        weights = weights.view_as(codes)
        if chunks is not None:
            codes, weights = codes[:, chunks], weights[:, chunks]
        terms = functional.cross_entropy(logits.transpose(1, 2), codes, reduction="none")
        return mean_of_rows((terms * weights).sum(1))

    @abstractmethod
    def logits(self, features: Tensor) -> tuple[Tensor, ...]:
        """The logits of the subsets of each chunk, of shape (n_rows, 2 ** labels of the chunk)."""

    @abstractmethod
    def _set_logits(self, features: Tensor, codes: Tensor) -> Tensor:
        """The logits of the subsets of each chunk (n_rows x n_chunks x n_subsets), given those of chunks before."""

    def labels_of(self, head: int, value: int) -> Tensor:
        """The labels in the subset `value` of chunk `head`."""
        first = head * self.chunks.bits
        last = min(first + self.chunks.bits, self.n_labels)
        labels = torch.arange(first, last, device=next(self.parameters()).device)
        return labels[(value & self._worth(labels)) > 0]

    def _decisions(self, features: Tensor, targets: LabelRows) -> Decisions:
        """Values are subsets, of which each row has one in each chunk. Chunks before are given as they should be."""
        codes = self.codes_of(targets)
        preferred = self._set_logits(features, codes).argmax(-1)
        rows = torch.arange(targets.n_rows, device=codes.device)
        return Decisions(
            preferred,
            tuple((rows, chunk) for chunk in codes.unbind(1)),
            (preferred == codes).cumprod(1).bool(),
            (self._predict_sets(features) == (targets.dense() > 0)).all(1),
        )

    def _predict_sets(self, features: Tensor) -> Tensor:
        """The most probable subset of each chunk."""
        codes = torch.stack([chunk.argmax(-1) for chunk in self.logits(features)], 1)
        labels = torch.arange(self.n_labels, device=codes.device)
        return (codes[:, labels // self.chunks.bits] & self._worth(labels)) > 0

    def _log_prob(self, features: Tensor) -> Tensor:
        return self._marginals(features).log()

    def _probabilities(self, features: Tensor) -> Tensor:
        return self._marginals(features).clamp(max=1)

    def _marginals(self, features: Tensor) -> Tensor:
        """The probability of every label: the sum over the subsets of its chunk that contain it."""
        columns = []
        labels = torch.split(torch.arange(self.n_labels, device=features.device), self.chunks.bits)
        for chunk, logits in zip(labels, self.logits(features), strict=True):
            subsets = torch.arange(logits.shape[1], device=chunk.device)
            probabilities = wide(logits).softmax(-1)
            columns.append(probabilities @ ((subsets[:, None] & self._worth(chunk)) > 0).to(probabilities.dtype))
        return torch.cat(columns, 1)

    def _predict_topk(self, features: Tensor, k: int, allowed: Tensor | None = None) -> tuple[Tensor, Tensor]:
        return search_blocks(
            lambda rows: best_labels(self._probabilities(rows), k, allowed), features, self.n_chunks * self.n_subsets
        )


class PowersetProduct(PowersetHead):
    """Chunks in parallel (MHP): given the features, the subsets of different chunks are independent.

    The most probable set consists of the most probable subset of each chunk, and the marginals are exact. Parameters as
    for `PowersetHead`.

    Examples
    --------
    >>> _ = torch.manual_seed(0)
    >>> head = PowersetProduct(n_features=16, n_labels=101, bits=5)
    >>> head.n_chunks, head.n_outputs
    (21, 642)
    >>> head.predict(torch.randn(3, 16)).shape
    torch.Size([3, 101])
    """

    def __init__(self, n_features: int, n_labels: int, bits: int = 5, label_weights: Tensor | None = None) -> None:
        super().__init__(n_features, n_labels, bits, label_weights)
        self.linear = nn.Linear(n_features, self.n_outputs)

    def _loss(self, features: Tensor, targets: LabelRows) -> Tensor:
        return self._set_loss(self._by_chunk(self.linear(features)), targets)

    def _set_logits(self, features: Tensor, codes: Tensor) -> Tensor:
        return self._by_chunk(self.linear(features))

    def logits(self, features: Tensor) -> tuple[Tensor, ...]:
        return torch.split(self.linear(features), self.radices, 1)

    def multiply_adds(self, n_rows: int, training: bool = True) -> int:
        return n_rows * self.n_features * self.n_outputs * (3 if training else 1)


class PowersetSampling(PowersetProduct):
    """Chunks in parallel, of which each training step uses a random sample (MHS).

    The loss is scaled so that its expectation is the loss of all chunks. In evaluation mode it covers all chunks.

    Parameters
    ----------
    n_features, n_labels, bits, label_weights
        As for `PowersetHead`.
    sampled : int or None
        Chunks per step; None means half of them.

    Examples
    --------
    >>> _ = torch.manual_seed(0)
    >>> head = PowersetSampling(n_features=16, n_labels=101, bits=5, sampled=4)
    >>> head.multiply_adds(1) < PowersetProduct(n_features=16, n_labels=101, bits=5).multiply_adds(1)
    True
    """

    def __init__(
        self,
        n_features: int,
        n_labels: int,
        bits: int = 5,
        sampled: int | None = None,
        label_weights: Tensor | None = None,
    ) -> None:
        super().__init__(n_features, n_labels, bits, label_weights)
        self.sampled = -(-self.n_chunks // 2) if sampled is None else sampled
        if not 1 <= self.sampled <= self.n_chunks:
            raise InvalidInput(f"sampled is {sampled}; expected 1 to {self.n_chunks}, the number of chunks")

    def _loss(self, features: Tensor, targets: LabelRows) -> Tensor:
        if not self.training or self.sampled == self.n_chunks:
            return super()._loss(features, targets)
        # Sorted, so that the short chunk comes last.
        device = features.device
        chunks = torch.randperm(self.n_chunks, device=device)[: self.sampled].sort().values
        outputs = (chunks[:, None] * self.n_subsets + torch.arange(self.n_subsets, device=device)).flatten()
        outputs = outputs[outputs < self.n_outputs]
        logits = self._by_chunk(functional.linear(features, self.linear.weight[outputs], self.linear.bias[outputs]))
        return self._set_loss(logits, targets, chunks) * (self.n_chunks / self.sampled)

    def multiply_adds(self, n_rows: int, training: bool = True) -> int:
        if not training:
            return super().multiply_adds(n_rows, training)
        return 3 * n_rows * self.n_features * min(self.n_outputs, self.sampled * self.n_subsets)


class PowersetCascade(PowersetHead):
    """Chunk after chunk (MHC): each chunk sees the features and the subsets of the chunks before it.

    In training these are the true subsets, in prediction the predicted ones. The logits are those of the features plus
    those of a hidden layer over the features and the embeddings of the earlier subsets. Marginals are conditional on
    the predicted subsets of the earlier chunks.

    Parameters
    ----------
    n_features, n_labels, bits, label_weights
        As for `PowersetHead`.
    width : int
        Width of the hidden layer.

    Examples
    --------
    >>> _ = torch.manual_seed(0)
    >>> head = PowersetCascade(n_features=16, n_labels=101, bits=5, width=8)
    >>> head.predict(torch.randn(3, 16)).shape
    torch.Size([3, 101])
    """

    def __init__(
        self, n_features: int, n_labels: int, bits: int = 5, width: int = 64, label_weights: Tensor | None = None
    ) -> None:
        super().__init__(n_features, n_labels, bits, label_weights)
        if width < 1:
            raise InvalidInput(f"width is {width}; expected at least 1")
        self.width = width
        self.linear = nn.Linear(n_features, self.n_outputs)
        self.query = nn.Linear(n_features, width)
        self.subsets = nn.Embedding(self.n_outputs, width)
        self.answer = nn.Linear(width, self.n_outputs, bias=False)
        self._start()

    def _start(self) -> None:
        nn.init.normal_(self.subsets.weight, std=self.width**-0.5)

    def _loss(self, features: Tensor, targets: LabelRows) -> Tensor:
        return self._set_loss(self._set_logits(features, self.codes_of(targets)), targets)

    def _set_logits(self, features: Tensor, codes: Tensor) -> Tensor:
        embeddings = self.subsets(codes + torch.arange(self.n_chunks, device=codes.device) * self.n_subsets)
        before = embeddings.cumsum(1) - embeddings
        hidden = torch.relu(self.query(features)[:, None] + before)
        short = self.n_chunks * self.n_subsets - self.n_outputs
        answers = functional.pad(self.answer.weight, (0, 0, 0, short)).view(self.n_chunks, self.n_subsets, self.width)
        return self._by_chunk(self.linear(features)) + wide(torch.einsum("nhw,hsw->nhs", hidden, answers))

    def logits(self, features: Tensor) -> tuple[Tensor, ...]:
        """Given the predicted subsets of the chunks before."""
        query, found = self.query(features), []
        alone = torch.split(self.linear(features), self.radices, 1)
        for chunk, answers in enumerate(torch.split(self.answer.weight, self.radices)):
            found.append(alone[chunk] + functional.linear(torch.relu(query), answers))
            query = query + self.subsets(found[-1].argmax(-1) + chunk * self.n_subsets)
        return tuple(found)

    def multiply_adds(self, n_rows: int, training: bool = True) -> int:
        each = self.n_features * (self.n_outputs + self.width) + self.width * self.n_outputs
        return n_rows * each * (3 if training else 1)
