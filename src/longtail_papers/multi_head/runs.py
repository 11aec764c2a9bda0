"""What the parts of `reproduce multi-head` share: seeds, seeded networks, records of trainings, lengths of heads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from longtail.neural import Network, Settings, diagnose
from longtail.neural.heads import Head
from longtail_papers.common import Figures, Records

SEEDS = (0, 1, 2)


def seeded_network(seed: int, encoder: Callable[[], Any], head: Callable[[int], Head]) -> Network:
    """A network whose initial weights depend only on the seed; `head` gets the width of the features."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        made = encoder()
        return Network(made, head(made.n_features))


def start_at_log_odds(network: Network, Y: Any) -> None:
    """Set the biases of the head to the log-odds of the labels."""
    network.head.start_from(torch.from_numpy(np.bincount(Y.indices, minlength=Y.shape[1])), Y.shape[0])


def recorded(
    records: Records[Figures], what: Mapping[str, Any], n_rows: int, settings: Settings, train: Callable[[], Figures]
) -> Figures:
    """The record of a training; `train` makes it if there is none."""
    how = {"learning rate": settings.learning_rate, "seed": settings.seed, "rows": n_rows, "epochs": settings.epochs}
    return records.measured({**what, **how}, train)


def head_figures(network: Network, rows: Any, labels: Any) -> Figures:
    """The accuracy of each head alone and of the heads up to it, in percent; nothing for a head of one layer."""
    if not network.head.lengths:
        return {}
    found: Figures = {}
    for number, head in enumerate(diagnose(network, rows, labels, most=0).heads, start=1):
        found |= {f"head {number}": 100 * head.accuracy, f"up to {number}": 100 * head.together}
    return found


def n_heads(figures: Figures) -> int:
    """The number of heads that `head_figures` has judged."""
    return sum(name.startswith("head ") for name in figures)


def lengths(radices: Sequence[int]) -> str:
    """The lengths of heads as the paper writes them.

    Examples
    --------
    >>> lengths((40, 25))
    '{40;25}'
    """
    return "{" + ";".join(map(str, radices)) + "}"
