"""`Judge`: evaluates a network on held-out rows after each epoch, and keeps the best weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from longtail.arrays import Array
from longtail.errors import InvalidInput
from longtail.metrics import MEASURES, Judgement, inverse_propensity
from longtail.neural.batches import Rows, blocks
from longtail.neural.checkpoint import Position
from longtail.neural.network import Network, predict_rows
from longtail.neural.targets import LabelRows

_METRICS = ("P", "R", "F1", "nDCG", "PSP")


class Judge:
    """Evaluates a network on the rows `chosen`, with the true labels `labels`, by a metric as in `train`.

    The propensities of PSP come from `training_labels`.
    """

    def __init__(self, rows: Rows, labels: Any, chosen: Array, metric: str, training_labels: Any) -> None:
        name, _, k = metric.rpartition("@")
        if metric != "loss" and (name not in _METRICS or not k.isdecimal() or int(k) < 1):
            raise InvalidInput(f'metric is {metric!r}; expected "loss", or {", ".join(_METRICS)} at some k: "P@1"')
        self.metric = metric
        self.rows, self.labels, self.chosen = rows, labels, chosen
        self._measure = MEASURES.get(name)
        self._k = int(k) if self._measure else 0
        self._weights = None
        if name == "PSP":
            counts = np.bincount(training_labels.indices, minlength=training_labels.shape[1])
            self._weights = inverse_propensity(counts, training_labels.shape[0])

    def after_epoch(self, network: Network, position: Position) -> None:
        """Add the metric to `position`, and keep a copy of the weights if they are the best so far."""
        if position.average is None:
            self._keep_if_best(network, position)
        else:
            with position.average.applied(network):
                self._keep_if_best(network, position)

    def _keep_if_best(self, network: Network, position: Position) -> None:
        value = self._loss(network) if self._measure is None else self._ranked(network)
        sign = -1 if self._measure is None else 1
        if not position.values or sign * value > sign * position.values[position.best_epoch - 1]:
            position.best = {name: tensor.detach().clone() for name, tensor in network.state_dict().items()}
            position.best_epoch = len(position.losses)
        position.values.append(value)

    def _ranked(self, network: Network) -> float:
        top, _ = predict_rows(network, self.rows, self._k, rows=self.chosen)
        assert self._measure is not None
        return float(self._measure(Judgement.of(self.labels[self.chosen], top, self._weights), self._k))

    def _loss(self, network: Network) -> float:
        network.eval()
        total = 0.0
        with torch.inference_mode():
            for batch in blocks(self.chosen, 512):
                targets = LabelRows.of(self.labels, batch, checked=True)
                total += network.loss(self.rows.batch(batch), targets).item() * len(batch)
        return total / len(self.chosen)
