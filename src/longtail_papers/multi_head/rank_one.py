"""Figure 5: a network with one hidden unit and as many classes as inputs, by cross-entropy and squared error."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from longtail.arrays import Array
from longtail.pictures import Line, Panel, Picture
from longtail.progress import task
from longtail_papers.common import Cell, Claim, Column, Context, Section, Spread, Table
from longtail_papers.multi_head.runs import SEEDS

Loss = Literal["cross-entropy", "squared error"]
LOSSES: tuple[Loss, ...] = ("cross-entropy", "squared error")

_N = 100
_EPOCHS = 20_000
_LEARNING_RATE = 0.01
_ASKED = 95.0


@dataclass(frozen=True)
class Course:
    """Accuracies in percent and ranks of the probabilities after some epochs, by seed."""

    epochs: list[int]
    accuracies: Array
    ranks: Array


def courses(seeds: Sequence[int], n: int = _N, n_epochs: int = _EPOCHS) -> dict[Loss, Course]:
    """Train linear networks with one hidden unit, one for each loss and seed, to classify n Gaussian inputs.

    Each input has n numbers and its own class; all inputs form one batch. The probabilities are the softmax of the
    outputs. The networks are independent but too small to fill a processor, so they are trained as one stack.

    Examples
    --------
    >>> courses([0], n=3, n_epochs=500)["cross-entropy"].accuracies[-1]
    array([100.])
    """
    inputs, weights = zip(*(_drawn(seed, n) for _ in LOSSES for seed in seeds), strict=True)
    X, classes, wanted = torch.stack(inputs), torch.arange(n), torch.eye(n)
    hidden, output, offset = (torch.stack(parts).requires_grad_() for parts in zip(*weights, strict=True))
    optimiser = torch.optim.Adam([hidden, output, offset], _LEARNING_RATE)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, n_epochs)
    shown = np.unique(np.geomspace(1, n_epochs, 40).astype(int)).tolist()
    accuracies, ranks = [], []
    with task("networks of one hidden unit", total=n_epochs) as advance:
        for epoch in range(1, n_epochs + 1):
            outputs = X @ hidden @ output + offset
            entropic, squared = outputs.chunk(len(LOSSES))
            value = functional.cross_entropy(entropic.flatten(0, 1), classes.repeat(len(seeds)))
            value = value + (squared - wanted).square().sum(2).mean()
            if epoch in shown:
                probabilities = outputs.detach().double().softmax(2)
                accuracies.append(100 * (outputs.argmax(2) == classes).double().mean(1).numpy())
                ranks.append(torch.linalg.matrix_rank(probabilities, rtol=1e-6).numpy())
            optimiser.zero_grad()
            value.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            schedule.step()
            advance(1)
    return {
        loss: Course(shown, *(np.split(np.array(values), len(LOSSES), axis=1)[place] for values in (accuracies, ranks)))
        for place, loss in enumerate(LOSSES)
    }


def _drawn(seed: int, n: int) -> tuple[Tensor, tuple[Tensor, Tensor, Tensor]]:
    """Inputs, and the initial weights of a network with biases at the outputs only."""
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(n, n, generator=generator)
    hidden = torch.randn(n, 1, generator=generator) / n**0.5
    return inputs, (hidden, torch.randn(1, n, generator=generator), torch.zeros(1, n))


def rank_one(context: Context) -> Iterator[Section]:
    """A section with the picture of both losses."""
    seeds, n_epochs = (SEEDS[:1], 300) if context.quick else (SEEDS, _EPOCHS)
    columns = (
        *(Column("loss"), Column("paper"), Column("accuracy", ".1f"), Column("±", ".1f")),
        *(Column("epochs", ",d"), Column("rank of the probabilities", ".0f")),
    )
    rows: list[tuple[Cell, ...]] = []
    accuracy_lines, rank_lines = [], []
    last = []
    for style, (loss, found) in enumerate(courses(seeds, n_epochs=n_epochs).items()):
        accuracies, ranks = found.accuracies.mean(axis=1), found.ranks.mean(axis=1)
        told = "approaches 100" if loss == "cross-entropy" else "does not rise"
        spread = Spread.of(found.accuracies[-1])
        last.append(spread.mean)
        rows.append((loss, told, *spread, n_epochs, float(ranks[-1])))
        accuracy_lines.append(Line(loss, found.epochs, accuracies.tolist(), style=style, marked=False))
        rank_lines.append(Line(loss, found.epochs, ranks.tolist(), style=style, marked=False))
    reached, squared = last
    context.claims.append(
        Claim(
            f"{_N} classes, one hidden unit: cross-entropy reaches {_ASKED:g} percent, squared error less than half",
            f"{reached:.1f}, {squared:.1f}",
            reached >= _ASKED and squared < _ASKED / 2,
        )
    )
    text = (
        f"{_N} inputs of {_N} Gaussian numbers, each with its own class, and a linear network with one hidden unit and "
        f"biases at the outputs (figure 5 of the paper, which prints no numbers). Accuracy on the {_N} inputs "
        f"themselves, in percent, mean of {len(seeds)} seeds; the rank is that of the softmax of the outputs. Adam "
        f"with a learning rate of {_LEARNING_RATE:g} that falls to 0, all inputs in one batch."
    )
    panels = [
        Panel("accuracy", "epoch", "percent", accuracy_lines, log_x=True),
        Panel("rank of the probabilities", "epoch", "rank", rank_lines, log_x=True),
    ]
    picture = Picture("multi-head-rank-one.png", f"{_N} classes through one hidden unit", [panels])
    yield Section("Many classes through one hidden unit", text, [Table("One hidden unit", columns, rows)], [picture])
