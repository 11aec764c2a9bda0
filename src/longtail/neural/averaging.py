"""Averages: of one network's weights over its last steps, and of what several networks predict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from longtail.errors import InvalidInput
from longtail.neural.heads.head import best_labels


class WeightAverage:
    """The running mean of a network's trained weights (stochastic weight averaging).

    The mean of points on the way of a training lies in a flatter place than its end, and generalises better.

    Parameters
    ----------
    network : nn.Module

    Examples
    --------
    >>> network = nn.Linear(1, 1, bias=False)
    >>> average = WeightAverage(network)
    >>> for value in (1.0, 2.0, 6.0):
    ...     _ = nn.init.constant_(network.weight, value)
    ...     average.add(network)
    >>> with average.applied(network):
    ...     network.weight.item()
    3.0
    """

    def __init__(self, network: nn.Module) -> None:
        self.count = 0
        self.mean = {name: torch.zeros_like(parameter) for name, parameter in _trained(network).items()}

    def add(self, network: nn.Module) -> None:
        """Let the weights the network has now take part."""
        self.count += 1
        with torch.no_grad():
            torch._foreach_lerp_(list(self.mean.values()), list(_trained(network).values()), 1 / self.count)

    @contextmanager
    def applied(self, network: nn.Module) -> Iterator[None]:
        """Give the network the mean inside the block, and its own weights back after it."""
        own = {name: parameter.detach().clone() for name, parameter in _trained(network).items()}
        self.copy_to(network)
        try:
            yield
        finally:
            _copy(own, network)

    def copy_to(self, network: nn.Module) -> None:
        """Give the network the mean for good."""
        _copy(self.mean, network)


class Ensemble(nn.Module):
    """Networks over the same inputs and labels that predict together: the mean of their probabilities.

    Each gives its best `candidates` labels, and a label that a network does not name counts 0 with it. That is the
    exact mean where a network names every label to which it gives more than 0: with `candidates` at the number of
    labels, or for heads that score candidates only, asked for all of them. With fewer it is a lower bound, short for a
    label by at most the last probability a network has named.

    Parameters
    ----------
    networks : sequence of Network
    candidates : int
        How many labels each network names for a row; k, where more are asked for.
    """

    def __init__(self, networks: Sequence[nn.Module], candidates: int = 100) -> None:
        super().__init__()
        if not networks or candidates < 1:
            raise InvalidInput(f"{len(networks)} networks and {candidates} candidates; expected at least one of each")
        self.networks = nn.ModuleList(networks)
        self.candidates = candidates

    def predict_topk(self, inputs: Any, k: int, allowed: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """The k best labels of each row by the mean of the probabilities."""
        named = [network.predict_topk(inputs, max(k, self.candidates), allowed) for network in self.networks]  # type: ignore[operator]
        return mean_of_lists([labels for labels, _ in named], [scores for _, scores in named], k)


def mean_of_lists(labels: Sequence[Tensor], scores: Sequence[Tensor], k: int) -> tuple[Tensor, Tensor]:
    """The k best of the labels in several lists for the same rows, by their mean score; 0 where a list lacks a label.

    Parameters
    ----------
    labels : sequence of int64 tensors (n_rows x any)
        -1 where there is none; each label at most once in a row.
    scores : sequence of float tensors of the same shapes
    k : int

    Returns
    -------
    labels, scores : tensors of shape (n_rows, k)
        Best first, ties to the lowest label, -1 and -inf where there are fewer.

    Examples
    --------
    >>> first, second = torch.tensor([[7, 3]]), torch.tensor([[3, 5]])
    >>> best, means = mean_of_lists([first, second], [torch.tensor([[0.75, 0.5]]), torch.tensor([[0.5, 0.25]])], k=2)
    >>> best.tolist(), means.tolist()
    ([[3, 7]], [[0.5, 0.375]])
    """
    together, order = torch.sort(torch.cat(list(labels), dim=1), dim=1, stable=True)
    values = torch.cat(list(scores), dim=1).float().gather(1, order)
    values = torch.where(together >= 0, values, 0)
    begins = torch.ones_like(together, dtype=torch.bool)
    begins[:, 1:] = together[:, 1:] != together[:, :-1]
    # Each label's scores are added up at the place of its first mention, which leaves labels ascending in a row.
    sums = torch.zeros_like(values).scatter_add_(1, begins.cumsum(1) - 1, values)
    distinct = torch.full_like(together, -1).scatter_(1, begins.cumsum(1) - 1, together)
    means = torch.where(distinct >= 0, sums / len(labels), -torch.inf)
    places, best = best_labels(means, k)
    return torch.where(places >= 0, distinct.gather(1, places.clamp(min=0)), -1), best


def _trained(network: nn.Module) -> dict[str, Tensor]:
    return {name: parameter.detach() for name, parameter in network.named_parameters() if parameter.requires_grad}


def _copy(values: dict[str, Tensor], network: nn.Module) -> None:
    for name, parameter in _trained(network).items():
        parameter.copy_(values[name])
