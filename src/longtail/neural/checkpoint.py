"""Checkpoints: the state of a training run after an epoch, from which it resumes to the same result.

A checkpoint is a model directory, replaced as a whole after each epoch. It needs no random state, because every epoch
derives its own from the seed and its number.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from longtail.errors import InvalidInput, ModelFormatError
from longtail.neural.averaging import WeightAverage
from longtail.neural.optimiser import Optimiser
from longtail.neural.weights import loaded_tensors, tensors_state, weights_state
from longtail.store import State, read_model, write_model

KIND = "Checkpoint"


@dataclass
class Position:
    """The progress of a training run.

    Parameters
    ----------
    losses : list of float
        The mean training loss of each finished epoch.
    values : list of float
        The metric on held-out rows after each epoch; empty without held-out rows.
    best : dict of str to tensor or None
        The network's tensors after the epoch with the best value.
    best_epoch : int
        That epoch, counted from 1; 0 if there is none.
    average : WeightAverage or None
    """

    losses: list[float] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    best: dict[str, Tensor] | None = None
    best_epoch: int = 0
    average: WeightAverage | None = None


def write_checkpoint(
    directory: str | os.PathLike[str],
    identity: Mapping[str, Any],
    network: nn.Module,
    optimiser: Optimiser,
    position: Position,
) -> None:
    """Write a checkpoint over an earlier one. Being killed at any moment leaves the old one or the new one.

    `identity` identifies the training run by its settings and data, as plain values.
    """
    parts = {"network": weights_state(network), "optimiser": tensors_state(optimiser.tensors())}
    if position.best is not None:
        parts["best"] = tensors_state(position.best)
    if position.average is not None:
        parts["average"] = tensors_state(position.average.mean)
    facts = {
        "losses": position.losses,
        "values": position.values,
        "best_epoch": position.best_epoch,
        "averaged": 0 if position.average is None else position.average.count,
    }
    write_model(State(KIND, identity, facts, parts=parts), directory)


def read_checkpoint(
    directory: str | os.PathLike[str], identity: Mapping[str, Any], network: nn.Module, optimiser: Optimiser
) -> Position:
    """Restore network and optimiser from a checkpoint; without one, leave them unchanged and start anew.

    Raises
    ------
    InvalidInput
        If the checkpoint belongs to another training run.
    ModelFormatError
        If it is damaged, or belongs to a network with other tensors.
    """
    path = Path(directory)
    if not path.is_dir() or not any(path.iterdir()):
        return Position()
    state = read_model(path, verify=True, mmap=False)
    if state.kind != KIND:
        raise InvalidInput(f"{path} holds a {state.kind}, not a checkpoint; choose another directory")
    for name in sorted(set(identity) | set(state.params)):
        if state.params.get(name) != identity.get(name):
            raise InvalidInput(
                f"{path} holds the checkpoint of another run: {name} was {state.params.get(name)!r} and is now "
                f"{identity.get(name)!r}; choose another directory, or remove that checkpoint"
            )
    try:
        return _restore(state, network, optimiser)
    except ModelFormatError as error:
        raise ModelFormatError(f"{path}: {error}; the checkpoint does not belong to this network") from None


def _restore(state: State, network: nn.Module, optimiser: Optimiser) -> Position:
    position = Position(_numbers(state, "losses"), _numbers(state, "values"), best_epoch=state.size("best_epoch"))
    if not (
        0 <= position.best_epoch <= len(position.losses)
        and len(position.values) in (0, len(position.losses))
        and (position.best_epoch > 0) == ("best" in state.parts) == bool(position.values)
    ):
        raise ModelFormatError("the epochs contradict each other")
    weights = loaded_tensors(state.part("network"), network.state_dict())
    moments = loaded_tensors(state.part("optimiser"), optimiser.tensors())
    if "best" in state.parts:
        position.best = loaded_tensors(state.part("best"), network.state_dict())
    count = state.size("averaged")
    if count:
        position.average = WeightAverage(network)
        position.average.mean = loaded_tensors(state.part("average"), position.average.mean)
        position.average.count = count
    # Last, so that an error above leaves the network unchanged.
    network.load_state_dict(weights)
    optimiser.load(moments)
    return position


def _numbers(state: State, name: str) -> list[float]:
    found = state.fact(name, list)
    if not all(isinstance(number, float) for number in found):
        raise ModelFormatError(f"the fact {name!r} holds values that are not numbers")
    return list(found)
