"""Averages: of a network's weights over its last steps, and of the predictions of several networks."""

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

    The mean of several points of a training run lies in a flatter region than its end, and generalises better.

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
        """Include the current weights of the network in the mean."""
        self.count += 1
        with torch.no_grad():
            torch._foreach_lerp_(list(self.mean.values()), list(_trained(network).values()), 1 / self.count)

    @contextmanager
    def applied(self, network: nn.Module) -> Iterator[None]:
        """Give the network the mean inside the block, and restore its own weights afterwards."""
        own = {name: parameter.detach().clone() for name, parameter in _trained(network).items()}
        self.copy_to(network)
        try:
            yield
        finally:
            _copy(own, network)

    def copy_to(self, network: nn.Module) -> None:
        """Replace the weights of the network by the mean."""
        _copy(self.mean, network)


class Ensemble(nn.Module):
    """Several networks over the same inputs and labels: the mean of their probabilities.

    Each network returns its best `candidates` labels; all others count as 0. With `candidates` at the number of labels
    the mean is exact. With fewer it is a lower bound, and the error for a label is at most the last probability that a
    network returned.

    Parameters
    ----------
    networks : sequence of Network
    candidates : int
        Number of labels that each network returns for a row, or k if that is larger.
    """

    def __init__(self, networks: Sequence[nn.Module], candidates: int = 100) -> None:
        super().__init__()
        if not networks or candidates < 1:
            raise InvalidInput(f"{len(networks)} networks and {candidates} candidates; expected at least one of each")
        self.networks = nn.ModuleList(networks)
        self.candidates = candidates

    def predict_topk(self, inputs: Any, k: int, allowed: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """The k best labels of each row by their mean probability."""
        named = [network.predict_topk(inputs, max(k, self.candidates), allowed) for network in self.networks]  # type: ignore[operator]
        return mean_of_lists([labels for labels, _ in named], [scores for _, scores in named], k)


def mean_of_lists(labels: Sequence[Tensor], scores: Sequence[Tensor], k: int) -> tuple[Tensor, Tensor]:
    """The k best labels of several lists for the same rows, by mean score; a label missing from a list counts as 0.

    Parameters
    ----------
    labels : sequence of int64 tensors (n_rows x any)
        -1 where there is no label; each label at most once per row.
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
    # Each label's scores are summed at the place where it first occurs, so labels stay in ascending order.
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
