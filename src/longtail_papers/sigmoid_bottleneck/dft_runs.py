"""Trains and audits a narrow output layer or one of sines and cosines; one record for each training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch

from longtail.arrays import Array
from longtail.audit import UNARGMAXABLE, UNDETERMINED, Audit, audit, dft_witness
from longtail.metrics import f1_at_k
from longtail.neural import History, Network, Settings, predict_rows, train
from longtail.neural.encoders import BagOfWords
from longtail.neural.heads import DFT, Bottleneck
from longtail_papers.common import Records

HEADS = ("Bottleneck", "DFT")
METRIC_K = 5


@dataclass(frozen=True)
class Plan:
    """The trainings on a data set.

    Parameters
    ----------
    widths : tuple of int
        Trained columns of the output layer.
    chosen_at : int
        The width at which the learning rate of a head is chosen, by validation F1.
    learning_rates : tuple of float
    seeds : tuple of int
        The first one chooses the learning rate.
    epochs, patience, batch_size, features : int
        Used in every training; features are the outputs of the encoder.
    n_sets : int
        The number of audited label sets of test rows.
    """

    widths: tuple[int, ...]
    chosen_at: int
    learning_rates: tuple[float, ...]
    seeds: tuple[int, ...] = (0, 1, 2)
    epochs: int = 40
    patience: int = 3
    batch_size: int = 128
    features: int = 256
    n_sets: int = 100

    def settings(self, rate: float, seed: int) -> Settings:
        return Settings(
            epochs=self.epochs,
            batch_size=self.batch_size,
            learning_rate=rate,
            weight_decay=0,
            schedule="constant",
            patience=self.patience,
            seed=seed,
        )


@dataclass(frozen=True)
class Run:
    """The result of one training.

    Parameters
    ----------
    data_set, head, width, rate, seed
        What was trained; the width is the number of trained columns of the output layer.
    values : list of float
        F1 on the validation rows after each epoch, in percent.
    best_epoch : int
        The epoch whose weights were judged, counted from 1.
    f1 : float
        On the test rows, in percent.
    columns, parameters : int
        All columns of the output layer, and the trained parameters after the encoder.
    sets, unargmaxable, undetermined, failed : int
        The audited label sets, those with a proof that no input gets them, those without any proof, and the proofs
        that failed when they were checked again.
    """

    data_set: str
    head: str
    width: int
    rate: float
    seed: int
    values: list[float]
    best_epoch: int
    f1: float
    columns: int
    parameters: int
    sets: int
    unargmaxable: int
    undetermined: int
    failed: int

    @property
    def validated(self) -> float:
        """The best F1 on the validation rows."""
        return self.values[self.best_epoch - 1]


@dataclass(frozen=True)
class Split:
    """Training, validation and test rows, and the label sets to audit.

    Parameters
    ----------
    name, title : str
    train, validation, test : pair of csr_array
        Features and labels.
    sets : csr_array
        Label sets of random test rows; all their labels have training rows.
    """

    name: str
    title: str
    train: tuple[Any, Any]
    validation: tuple[Any, Any]
    test: tuple[Any, Any]
    sets: Any

    @classmethod
    def of(cls, name: str, title: str, train: tuple[Any, Any], test: tuple[Any, Any], n_sets: int) -> Split:
        """Hold out a tenth of the training rows, at most 1,000, and draw label sets; the same for every seed."""
        rng = np.random.default_rng(0)
        n_rows = train[0].shape[0]
        order = rng.permutation(n_rows)
        held, kept = (np.sort(part) for part in np.split(order, [min(1000, n_rows // 10)]))
        learned, met = train[1][kept], test[1]
        unknown = np.bincount(learned.indices, minlength=learned.shape[1]) == 0
        fit = np.flatnonzero((met @ unknown.astype(np.float64) == 0) & (np.diff(met.indptr) > 0))
        drawn = np.sort(rng.choice(fit, size=min(n_sets, len(fit)), replace=False))
        return cls(name, title, (train[0][kept], learned), (train[0][held], train[1][held]), test, met[drawn])

    @property
    def n_labels(self) -> int:
        return int(self.train[1].shape[1])

    @cached_property
    def k(self) -> int:
        """The largest number of labels of a training or validation row."""
        return int(max(np.diff(labels.indptr).max() for _, labels in (self.train, self.validation)))

    @cached_property
    def witnesses(self) -> Array:
        """Closed-form inputs that get the label sets from sines and cosines alone, for the sets that have one."""
        few = self.sets[np.diff(self.sets.indptr) <= self.k]
        found = [dft_witness(few[[place]].toarray()[0], self.k) for place in range(few.shape[0])]
        known = [x for x in found if x is not None]
        return np.array(known).reshape(len(known), 2 * self.k + 1)


def measured(split: Split, plan: Plan, head: str, width: int, rate: float, seed: int, runs: Records[Run]) -> Run:
    """Return the record of a training; train and audit if there is none."""

    def measure() -> Run:
        network, history = _trained(split, plan, head, width, rate, seed)
        top, _ = predict_rows(network, split.test[0], METRIC_K)
        found = _audited(split, network.head)
        return Run(
            *(split.name, head, width, rate, seed),
            values=[100 * value for value in history.values],
            best_epoch=history.best_epoch,
            f1=100 * f1_at_k(split.test[1], top, METRIC_K),
            columns=found.n_features,
            parameters=network.head.n_parameters(),
            sets=len(found),
            unargmaxable=found.count(UNARGMAXABLE),
            undetermined=found.count(UNDETERMINED),
            failed=int(np.count_nonzero((found.verdicts != UNDETERMINED) & ~found.recheck())),
        )

    # The other trainings of the plan do not matter.
    settings = {
        "data": split.name,
        "head": head,
        "width": width,
        "training": asdict(plan.settings(rate, seed)),
        "features": plan.features,
        "sets": plan.n_sets,
        "k": split.k,
        "shapes": [part[0].shape for part in (split.train, split.validation, split.test)],
    }
    return runs.measured(settings, measure, f"{head}, width {width}, learning rate {rate:g}, seed {seed}")


def chosen_rate(candidates: Sequence[Run]) -> float:
    """The learning rate of the training with the best validation F1; the lowest if several are equal."""
    return min(candidates, key=lambda run: (-run.validated, run.rate)).rate


def _trained(split: Split, plan: Plan, head: str, width: int, rate: float, seed: int) -> tuple[Network, History]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        encoder = BagOfWords(split.train[0].shape[1], plan.features)
        sizes = plan.features, split.n_labels
        layer = Bottleneck(*sizes, width) if head == "Bottleneck" else DFT(*sizes, split.k, slack=width)
        network = Network(encoder, layer)
    settings = plan.settings(rate, seed)
    return network, train(network, *split.train, settings, held_out=split.validation, metric=f"F1@{METRIC_K}")


def _audited(split: Split, head: Any) -> Audit:
    """The verdicts on the label sets. Neither head has biases, so a label is given if its score is above 0."""
    weights, _ = head.output_layer()
    candidates = None
    if isinstance(head, DFT):
        candidates = np.pad(split.witnesses, ((0, 0), (0, head.slack)))
    return audit(weights, split.sets, candidates=candidates)
