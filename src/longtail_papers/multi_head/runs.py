"""What the parts of `reproduce multi-head` share: seeds, networks that follow from them, and lengths of heads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from longtail.neural import Network
from longtail.neural.heads import Head

SEEDS = (0, 1, 2)


def seeded_network(seed: int, encoder: Callable[[], Any], head: Callable[[int], Head]) -> Network:
    """A network whose first weights follow from the seed; `head` is told the width of the features."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        made = encoder()
        return Network(made, head(made.n_features))


def lengths(radices: Sequence[int]) -> str:
    """The lengths of heads as the paper writes them.

    Examples
    --------
    >>> lengths((40, 25))
    '{40;25}'
    """
    return "{" + ";".join(map(str, radices)) + "}"
