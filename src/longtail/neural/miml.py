"""The deep MIML network, which predicts the labels of bags of instances, and its co-attention with label vectors.

Each instance gets several scores per label, one per concept. The score of a bag is the maximum over concepts, then over
instances (Feng and Zhou, AAAI 2017). The mask of Shen et al. (ICML 2020, section 6) first raises the instances that are
similar to the label's vector.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from longtail.errors import InvalidInput
from longtail.neural.batches import Bags, SparseBatch
from longtail.neural.heads.head import Head, best_labels
from longtail.neural.heads.losses import mean_of_rows
from longtail.neural.heads.precision import wide
from longtail.neural.targets import LabelRows


class ConceptScores(nn.Module):
    """Label scores of an instance: the maximum over several concepts.

    Parameters
    ----------
    n_features, n_labels : int
    concepts : int
        Number of scores per label.
    rectified : bool
        Whether negative scores become 0, as in the paper.

    Examples
    --------
    >>> ConceptScores(8, 3, concepts=2)(torch.zeros(5, 8)).shape
    torch.Size([5, 3])
    """

    def __init__(self, n_features: int, n_labels: int, concepts: int, rectified: bool = True) -> None:
        super().__init__()
        if concepts < 1:
            raise InvalidInput(f"concepts is {concepts}; expected at least 1")
        self.n_labels = n_labels
        self.concepts = concepts
        self.rectified = rectified
        self.linear = nn.Linear(n_features, concepts * n_labels)

    def forward(self, features: Tensor) -> Tensor:
        """Scores (n_instances x n_labels)."""
        scores = self.linear(features).view(-1, self.concepts, self.n_labels).amax(dim=1)
        return functional.relu(scores) if self.rectified else scores


def soft_assignment(similarities: Tensor, present: Tensor, tau: float) -> Tensor:
    """How strongly each instance of a bag is assigned to each label; the mean over a bag is 1.

    Parameters
    ----------
    similarities : float tensor of shape (n_bags, largest, n_labels)
        Similarities of instances and label vectors.
    present : bool tensor of shape (n_bags, largest)
        True where a bag has an instance, False for padding.
    tau : float
        0 assigns 1 to every instance; larger values favour the most similar ones.

    Examples
    --------
    >>> two_instances = torch.tensor([[[1.0], [0.0]]])
    >>> soft_assignment(two_instances, torch.tensor([[True, True]]), tau=2.0).flatten().tolist()
    [1.76..., 0.23...]
    """
    inside = present.unsqueeze(2)
    shares = torch.softmax(torch.where(inside, tau * similarities, -torch.inf), dim=1)
    return torch.where(inside, shares * present.sum(dim=1)[:, None, None], 0.0)


def masked(scores: Tensor, mask: Tensor, rectified: bool) -> Tensor:
    """Scores that are higher where the mask of `soft_assignment` is, and unchanged where it is 1.

    Rectified scores are multiplied by the mask, as in the paper. Scores of either sign are logits, whose odds are
    multiplied: a product would lower the negative ones.

    Examples
    --------
    >>> mask = torch.tensor([2.0, 0.5])
    >>> masked(torch.tensor([1.0, 1.0]), mask, rectified=True).tolist()
    [2.0, 0.5]
    >>> masked(torch.tensor([-1.0, -1.0]), mask, rectified=False)
    tensor([-0.3069, -1.6931])
    """
    if rectified:
        return scores * mask
    return scores + mask.clamp(min=torch.finfo(mask.dtype).tiny).log()


def products(instances: Tensor | SparseBatch, vectors: Tensor) -> Tensor:
    """Similarities (n_instances x n_labels) of instances with label vectors (n_inputs x n_labels)."""
    if isinstance(instances, SparseBatch):
        return instances.times(vectors)
    return instances.flatten(1) @ vectors


class BagScores(nn.Module):
    """Label scores of bags: the maximum over the instances, after the mask.

    Parameters
    ----------
    encoder : nn.Module
        Maps the inputs of instances to features.
    scores : ConceptScores
    label_vectors : float tensor of shape (n_labels, n_inputs) or None
        None: no mask.
    tau : float
        See `soft_assignment`.
    """

    label_vectors: Tensor | None

    def __init__(
        self, encoder: nn.Module, scores: ConceptScores, label_vectors: Tensor | None = None, tau: float = 0.0
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.scores = scores
        self.tau = tau
        # Feature-major, as rows read it. Not saved: the estimator saves the label vectors.
        self.register_buffer("label_vectors", None if label_vectors is None else label_vectors.T, persistent=False)

    def forward(self, bags: Bags) -> Tensor:
        """Scores (n_bags x n_labels); 0 for an empty bag."""
        scores, present = bags.padded(self.scores(self.encoder(bags.instances)))
        if self.tau and self.label_vectors is not None:
            scores = masked(scores, self._mask(bags), self.scores.rectified)
        best = torch.where(present.unsqueeze(2), scores, -torch.inf).amax(dim=1)
        return torch.where(present.any(dim=1, keepdim=True), best, 0.0)

    def _mask(self, bags: Bags) -> Tensor:
        assert self.label_vectors is not None
        return soft_assignment(*bags.padded(products(bags.instances, self.label_vectors)), self.tau)

    def soft_assignments(self, bags: Bags) -> Tensor:
        """The mask of each instance (n_instances x n_labels)."""
        if self.label_vectors is None:
            return self.scores.linear.weight.new_ones(int(bags.offsets[-1]), self.scores.n_labels)
        present = bags.padded(self.label_vectors.new_zeros(int(bags.offsets[-1]), 1))[1]
        return self._mask(bags)[present]


class BagLabels(Head):
    """A head without weights: its input is one logit per label.

    Parameters
    ----------
    n_labels : int
    loss : {"binary", "softmax"}
        Independent labels, or a softmax over all; both support amounts (shares of a bag).
    """

    takes_amounts = True

    def __init__(self, n_labels: int, loss: str = "binary", label_weights: Tensor | None = None) -> None:
        super().__init__(n_labels, n_labels, "multi-label", label_weights)
        self.kind = loss

    def logits(self, features: Tensor) -> Tensor:
        return features

    def _loss(self, features: Tensor, targets: LabelRows) -> Tensor:
        logits = wide(features)
        wanted = targets.dense()
        if self.label_weights is not None:
            wanted = wanted * self.label_weights
        if self.kind == "softmax":
            shares = wanted / wanted.sum(dim=1, keepdim=True).clamp(min=torch.finfo(torch.float32).tiny)
            return mean_of_rows(-(shares * torch.log_softmax(logits, dim=1)).sum(dim=1))
        positive = wanted * functional.logsigmoid(logits)
        terms = positive + (1 - targets.dense()) * functional.logsigmoid(-logits)
        return mean_of_rows(-terms.mean(dim=1))

    def _log_prob(self, features: Tensor) -> Tensor:
        logits = wide(features)
        return torch.log_softmax(logits, dim=1) if self.kind == "softmax" else functional.logsigmoid(logits)

    def _predict_topk(self, features: Tensor, k: int, allowed: Tensor | None = None) -> tuple[Tensor, Tensor]:
        return best_labels(self._probabilities(features), k, allowed)

    def multiply_adds(self, n_rows: int, training: bool = True) -> int:
        return 0
