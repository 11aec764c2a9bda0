"""`train`: train a network in epochs of mini-batches.

The same seed, data and number of threads give the same result bit for bit, also when training resumes from a
checkpoint. The random state of the caller is not changed.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any, Literal

import numpy as np
import torch

from longtail.arrays import Array
from longtail.errors import Diverged, InvalidInput
from longtail.neural.averaging import WeightAverage
from longtail.neural.batches import Rows, as_rows, blocks, epoch_order
from longtail.neural.checkpoint import Position, read_checkpoint, write_checkpoint
from longtail.neural.judge import Judge
from longtail.neural.network import Network
from longtail.neural.optimiser import SCHEDULES, Optimiser, Schedule, learning_rate_factor
from longtail.neural.targets import LabelRows
from longtail.parameters import Choice, Constraint, Number, check_parameters
from longtail.progress import task
from longtail.validation import as_features, as_labels

# More snapshots do not improve the mean, and each costs a pass over all weights.
_SNAPSHOTS = 100
_PARAMETERS: dict[str, Constraint] = {
    "epochs": Number(low=1, whole=True),
    "batch_size": Number(low=1, whole=True),
    "learning_rate": Number(above=0),
    "encoder_learning_rate": Number(above=0, optional=True),
    "weight_decay": Number(low=0),
    "schedule": Choice(SCHEDULES),
    "warmup": Number(low=0, high=1),
    "clip": Number(above=0, optional=True),
    "patience": Number(low=1, whole=True, optional=True),
    "holdout": Number(low=0, high=0.9),
    "average": Number(low=0, high=1),
    "autocast": Choice(("bf16", None)),
    "seed": Number(low=0, whole=True),
}


@dataclass(frozen=True)
class Settings:
    """Settings of a training run.

    Parameters
    ----------
    epochs : int
        Maximum number of passes over the rows.
    batch_size : int
    learning_rate : float
        Peak learning rate.
    encoder_learning_rate : float or None
        A different rate for the encoder, usually a lower one for a pretrained encoder.
    weight_decay : float
        Weight decay of AdamW; biases and norms do not decay.
    schedule : {"cosine", "linear", "constant"}
        Decay of the learning rate.
    warmup : float
        Share of the steps over which the learning rate rises first.
    clip : float or None
        Maximum norm of the gradient.
    patience : int or None
        Stop after this many epochs without a better metric on the held-out rows; None: never stop early.
    holdout : float
        Share of the rows to hold out and evaluate epochs on, unless `train` is given other rows.
    average : float
        Average the weights over this share of the steps, at the end; 0: no averaging.
    autocast : {"bf16", None}
        Compute matrix products in bfloat16: faster on processors with instructions for it (AMX, AVX512-BF16), an order
        of magnitude slower on others.
    seed : int

    Examples
    --------
    >>> Settings(epochs=0)
    Traceback (most recent call last):
    ...
    longtail.errors.InvalidInput: Settings: epochs is 0; expected a whole number at least 1
    """

    epochs: int = 20
    batch_size: int = 128
    learning_rate: float = 1e-3
    encoder_learning_rate: float | None = None
    weight_decay: float = 0.01
    schedule: Schedule = "cosine"
    warmup: float = 0.0
    clip: float | None = None
    patience: int | None = None
    holdout: float = 0.0
    average: float = 0.0
    autocast: Literal["bf16"] | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        check_parameters(self, _PARAMETERS)


@dataclass(frozen=True)
class History:
    """The course of a training run.

    Parameters
    ----------
    losses : tuple of float
        The mean training loss of each epoch.
    metric : str
        The metric measured on the held-out rows.
    values : tuple of float
        The metric after each epoch; empty without held-out rows.
    best_epoch : int
        The epoch whose weights the network has, counted from 1; the last one without held-out rows.
    stopped_early : bool
        Whether training stopped because of `patience`.
    """

    losses: tuple[float, ...]
    metric: str
    values: tuple[float, ...]
    best_epoch: int
    stopped_early: bool


def train(
    network: Network,
    inputs: Any,
    Y: Any,
    settings: Settings | None = None,
    *,
    held_out: tuple[Any, Any] | None = None,
    metric: str = "P@1",
    checkpoint: str | os.PathLike[str] | None = None,
) -> History:
    """Train a network in place.

    With held-out rows the network ends with the weights of its best epoch. Each epoch is evaluated with the weights
    that would be returned: the averaged ones, once averaging has begun.

    Parameters
    ----------
    network : Network
    inputs : Rows, sparse matrix or array
        One row for each row of `Y`, in the form the encoder takes.
    Y : sparse or dense 0/1 matrix of shape (n_rows, n_labels)
        A head with `takes_amounts` also takes values between 0 and 1.
    settings : Settings or None
        None means the defaults.
    held_out : (inputs, Y) or None
        Rows to evaluate epochs on, instead of a share of the training rows (`Settings.holdout`).
    metric : str
        "loss", or P, R, F1, nDCG or PSP at some k, such as "P@1".
    checkpoint : str or path-like or None
        Directory of the checkpoint, which is written after each epoch. If it holds a checkpoint of the same training
        run, training resumes from it.

    Raises
    ------
    Diverged
        If the loss or the weights become NaN or infinite. The checkpoint is then that of the epoch before.

    Examples
    --------
    >>> from longtail.neural.encoders import Dense
    >>> from longtail.neural.heads import OneHot
    >>> from longtail.neural import predict_rows
    >>> _ = torch.manual_seed(0)
    >>> X = np.eye(4, dtype=np.float32)
    >>> network = Network(Dense(4, [8]), OneHot(8, 4))
    >>> history = train(network, X, np.eye(4), Settings(epochs=200, batch_size=4, learning_rate=0.02))
    >>> predict_rows(network, X, k=1)[0].ravel().tolist()
    [0, 1, 2, 3]
    """
    settings = Settings() if settings is None else settings
    rows = as_rows(inputs)
    labels = _checked_labels(Y, len(rows), network.head.takes_amounts)
    if labels.shape[1] != network.head.n_labels:
        raise InvalidInput(f"Y has {labels.shape[1]} labels; the head of the network has {network.head.n_labels}")
    chosen, judge = _held_out(rows, labels, settings, held_out, metric)
    if not len(chosen):
        raise InvalidInput(f"no rows left to train on: {len(rows)} rows, holdout={settings.holdout:g}")
    optimiser = Optimiser(network, settings.learning_rate, settings.weight_decay, settings.encoder_learning_rate)
    identity = asdict(settings) | {"metric": metric if judge else "", "data": _digest(labels, chosen, judge)}
    position = Position()
    if checkpoint is not None:
        position = read_checkpoint(checkpoint, identity, network, optimiser)
    training = network.training
    left = (settings.epochs - len(position.losses)) * len(chosen)
    with torch.random.fork_rng(devices=[]), _deterministic(), task("training", total=left) as advance:

        def tell(rows: int, loss: float) -> None:
            advance(rows, _described(loss, settings, position, metric))

        try:
            while len(position.losses) < settings.epochs and not _out_of_patience(position, settings):
                _epoch(network, rows, labels, chosen, settings, optimiser, position, tell)
                if judge is not None:
                    judge.after_epoch(network, position)
                if checkpoint is not None:
                    write_checkpoint(checkpoint, identity, network, optimiser, position)
        finally:
            network.train(training)
    if position.best is not None:
        network.load_state_dict(position.best)
    elif position.average is not None:
        position.average.copy_to(network)
    return History(
        tuple(position.losses),
        metric,
        tuple(position.values),
        position.best_epoch or len(position.losses),
        len(position.losses) < settings.epochs,
    )


def _checked_labels(Y: Any, n_rows: int, in_part: bool) -> Any:
    if not in_part:
        return as_labels(Y, n_rows=n_rows)
    labels = as_features(Y, name="Y")
    if labels.shape[0] != n_rows:
        raise InvalidInput(f"Y has {labels.shape[0]} rows; the inputs have {n_rows}")
    if labels.nnz and not (labels.data.min() > 0 and labels.data.max() <= 1):
        raise InvalidInput("Y has values below 0 or above 1; expected 0 to 1")
    return labels


def _epoch(
    network: Network,
    rows: Rows,
    labels: Any,
    chosen: Array,
    settings: Settings,
    optimiser: Optimiser,
    position: Position,
    tell: Callable[[int, float], None],
) -> None:
    epoch = len(position.losses)
    order = chosen[epoch_order(len(chosen), settings.seed, epoch)]
    torch.manual_seed(int(np.random.SeedSequence((settings.seed, epoch, 1)).generate_state(1, np.uint64)[0]))
    batches = blocks(order, settings.batch_size)
    n_steps = settings.epochs * len(batches)
    averaged = round(settings.average * n_steps)
    between = max(1, averaged // _SNAPSHOTS)
    network.train()
    total, seen = 0.0, 0
    for step, batch in enumerate(batches, start=epoch * len(batches)):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=settings.autocast == "bf16"):
            loss = network.loss(rows.batch(batch), LabelRows.of(labels, batch, checked=True))
        value = loss.item()
        if not math.isfinite(value):
            raise Diverged(_diverged(f"the loss is {value}", epoch, settings))
        total += value * len(batch)
        loss.backward()  # type: ignore[no-untyped-call]
        factor = learning_rate_factor(settings.schedule, step, n_steps, settings.warmup)
        optimiser.step(factor, settings.clip)
        left = n_steps - 1 - step
        if left < averaged and left % between == 0:
            position.average = position.average or WeightAverage(network)
            position.average.add(network)
        seen += len(batch)
        tell(len(batch), total / seen)
    for name, parameter in network.named_parameters():
        if not bool(torch.isfinite(parameter).all()):
            raise Diverged(_diverged(f"{name} holds NaN or infinity", epoch, settings))
    position.losses.append(total / len(order))


def _held_out(
    rows: Rows, labels: Any, settings: Settings, held_out: tuple[Any, Any] | None, metric: str
) -> tuple[Array, Judge | None]:
    """The rows to train on, and the judge that evaluates on the others."""
    everything = np.arange(len(rows))
    if held_out is not None:
        given = as_rows(held_out[0])
        truth = as_labels(held_out[1], n_rows=len(given), name="the Y of held_out")
        if truth.shape[1] != labels.shape[1] or not len(given):
            raise InvalidInput(f"held_out has {truth.shape} rows and labels; expected some rows of {labels.shape[1]}")
        return everything, Judge(given, truth, np.arange(len(given)), metric, labels)
    size = round(settings.holdout * len(rows))
    if not size:
        if settings.patience is not None:
            raise InvalidInput("patience needs rows to evaluate on: set holdout, the share of the rows to hold out")
        return everything, None
    # A random stream of its own: the epochs use (seed, epoch).
    order = np.random.default_rng((settings.seed, 0, 2)).permutation(len(rows))
    return np.sort(order[size:]), Judge(rows, labels, np.sort(order[:size]), metric, labels)


def _out_of_patience(position: Position, settings: Settings) -> bool:
    return settings.patience is not None and len(position.values) - position.best_epoch >= settings.patience


def _digest(labels: Any, chosen: Array, judge: Judge | None) -> str:
    digest = sha256()
    parts = [(labels, chosen), *([(judge.labels, judge.chosen)] if judge else [])]
    for matrix, ids in parts:
        for array in (np.array(matrix.shape), matrix.indptr, matrix.indices, ids):
            digest.update(np.ascontiguousarray(array, dtype="<i8").data)
        digest.update(np.ascontiguousarray(matrix.data, dtype="<f4").data)
    return digest.hexdigest()


def _described(loss: float, settings: Settings, position: Position, metric: str) -> str:
    """The number and mean loss of the current epoch, and the metric of the last one."""
    text = f"epoch {len(position.losses) + 1} of {settings.epochs}, loss {loss:.4g}"
    return f"{text}, held-out {metric} {position.values[-1]:.4g}" if position.values else text


def _diverged(found: str, epoch: int, settings: Settings) -> str:
    return (
        f"{found} in epoch {epoch + 1}; lower learning_rate ({settings.learning_rate:g}), set warmup, "
        f"or limit gradients with clip ({settings.clip})"
    )


@contextmanager
def _deterministic() -> Iterator[None]:
    """Make torch sum in a fixed order inside the block."""
    before = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    memory: Any = torch.utils.deterministic
    fill = memory.fill_uninitialized_memory
    torch.use_deterministic_algorithms(True, warn_only=True)
    # Otherwise every new tensor is first filled with NaN, which only costs time here.
    memory.fill_uninitialized_memory = False
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before[0], warn_only=before[1])
        memory.fill_uninitialized_memory = fill
