"""How the learning rate moves over the steps of a training."""

from __future__ import annotations

import math
from typing import Literal

Schedule = Literal["cosine", "linear", "constant"]
SCHEDULES: tuple[Schedule, ...] = ("cosine", "linear", "constant")


def learning_rate_factor(schedule: Schedule, step: int, n_steps: int, warmup: float = 0.0) -> float:
    """What the learning rate is multiplied with at a step counted from 0.

    It rises in equal steps over the first `warmup` share of the steps, the last of which has 1, then falls towards 0
    as the half of a cosine or as a line, or stays.

    Examples
    --------
    >>> [round(learning_rate_factor("linear", step, 6, warmup=0.34), 2) for step in range(6)]
    [0.5, 1.0, 1.0, 0.75, 0.5, 0.25]
    """
    rising = int(warmup * n_steps)
    if step < rising:
        return (step + 1) / rising
    if schedule == "constant":
        return 1.0
    share = (step - rising) / (n_steps - rising)
    return 1 - share if schedule == "linear" else (1 + math.cos(math.pi * share)) / 2
