"""Table 1 on data that are here: a row's label set as one class out of 2^101, against labels judged one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from longtail.arrays import Array
from longtail.neural import DenseRows, Network, Settings, train
from longtail.neural.encoders import Dense
from longtail.neural.heads import Head, OneHot, PowersetCascade, PowersetHead, PowersetProduct, PowersetSampling
from longtail_papers.common.benchmarks import Benchmark
from longtail_papers.common.claims import Claim, Spread
from longtail_papers.common.records import Figures, Records
from longtail_papers.common.tables import Cell, Column, Section, Table
from longtail_papers.multi_head.runs import SEEDS, seeded_network

_WIDTH, _DROPOUT, _BITS = 256, 0.2, 5
_LEARNING_RATES = (1e-3, 3e-3)
_EPOCHS, _BATCH = 6, 128
_VALIDATION = 3_000
_THRESHOLDS = tuple(step / 20 for step in range(4, 15))
_HEADS: dict[str, Callable[[int, int], Head]] = {
    "sigmoids": OneHot,
    "MHP": lambda width, n_labels: PowersetProduct(width, n_labels, _BITS),
    "MHC": lambda width, n_labels: PowersetCascade(width, n_labels, _BITS),
    "MHS": lambda width, n_labels: PowersetSampling(width, n_labels, _BITS),
}
# Table 1: chunks of 4 labels on VOC, 5 on COCO, ResNet-101.
_PAPER = {"sigmoids": (79.82, 46.62), "MHP": (80.13, 47.16), "MHC": (80.25, 47.21), "MHS": (80.34, 47.25)}


@dataclass(frozen=True)
class Rows:
    """Features, centred and scaled by the training rows, and labels; some of the rows choose settings."""

    train: tuple[Array, Any]
    validation: tuple[Array, Any]
    test: tuple[Array, Any]

    @classmethod
    def of(cls, benchmark: Benchmark, n_train: int | None = None) -> Rows:
        X, test = (part.features.toarray() for part in (benchmark.train, benchmark.test))
        order = np.random.default_rng(0).permutation(len(X))
        n_held = min(_VALIDATION, len(X) // 5)
        held, kept = order[:n_held], order[n_held:][:n_train]
        mean, scale = X[kept].mean(axis=0), X[kept].std(axis=0) + 1e-6
        X, test = (X - mean) / scale, (test - mean) / scale
        labels = benchmark.train.labels
        return cls((X[kept], labels[kept]), (X[held], labels[held]), (test, benchmark.test.labels))


def powersets(
    benchmarks: list[Benchmark], records: Records[Figures], claims: list[Claim], *, quick: bool
) -> Iterator[Section]:
    """A section for each data set, growing with the heads that are done."""
    seeds = SEEDS[:1] if quick else SEEDS
    for benchmark in benchmarks:
        rows = Rows.of(benchmark, 2_000 if quick else None)
        found: dict[str, list[Figures]] = {}
        for head in _HEADS:
            tried = {rate: _measured(benchmark, rows, head, rate, SEEDS[0], records, quick) for rate in _LEARNING_RATES}
            rate = max(tried, key=lambda each: tried[each]["validation"])
            found[head] = [_measured(benchmark, rows, head, rate, seed, records, quick) for seed in seeds]
            yield _section(benchmark, rows, found, len(seeds))
        claims += _claims(benchmark, found)


def _measured(
    benchmark: Benchmark, rows: Rows, head: str, rate: float, seed: int, records: Records[Figures], quick: bool
) -> Figures:
    settings = Settings(epochs=2 if quick else _EPOCHS, batch_size=_BATCH, learning_rate=rate, seed=seed)
    key = {
        "label sets": benchmark.name,
        "head": head,
        "learning rate": rate,
        "seed": seed,
        "rows": len(rows.train[0]),
        "epochs": settings.epochs,
    }
    return records.measured(key, lambda: trained(rows, head, settings))


def trained(rows: Rows, head: str, settings: Settings) -> Figures:
    """Subset accuracies of a network, in percent; a threshold of sigmoids is chosen by the validation rows."""
    n_labels = rows.train[1].shape[1]
    network = seeded_network(
        settings.seed,
        lambda: Dense(rows.train[0].shape[1], [_WIDTH], _DROPOUT),
        lambda width: _HEADS[head](width, n_labels),
    )
    train(
        network,
        DenseRows(rows.train[0]),
        rows.train[1],
        settings,
        held_out=(DenseRows(rows.validation[0]), rows.validation[1]),
        metric="loss",
    )
    if isinstance(network.head, PowersetHead):
        validated, tested = (_exact(_sets(network, X), Y) for X, Y in (rows.validation, rows.test))
        return {"validation": validated, "test": tested, "halves": tested, "threshold": 0.5}
    probabilities = _probabilities(network, rows.validation[0])
    judged = {threshold: _exact(probabilities > threshold, rows.validation[1]) for threshold in _THRESHOLDS}
    threshold = max(judged, key=lambda each: judged[each])
    probabilities = _probabilities(network, rows.test[0])
    return {
        "validation": judged[threshold],
        "test": _exact(probabilities > threshold, rows.test[1]),
        "halves": _exact(probabilities > 0.5, rows.test[1]),
        "threshold": threshold,
    }


def _features(network: Network, X: Array) -> torch.Tensor:
    network.eval()
    with torch.inference_mode():
        features: torch.Tensor = network.encoder(torch.from_numpy(X))
    return features


def _sets(network: Network, X: Array) -> Array:
    assert isinstance(network.head, PowersetHead)
    given: Array = network.head.predict_sets(_features(network, X)).toarray() > 0
    return given


def _probabilities(network: Network, X: Array) -> Array:
    assert isinstance(network.head, OneHot)
    with torch.inference_mode():
        return network.head.probabilities(_features(network, X)).numpy()


def _exact(given: Array, truth: Any) -> float:
    """The share of rows whose set is right to the last label, in percent."""
    return 100 * float((given == (truth.toarray() > 0)).all(axis=1).mean())


def _section(benchmark: Benchmark, rows: Rows, found: dict[str, list[Figures]], n_seeds: int) -> Section:
    columns = (
        *(Column("head"), Column("subset accuracy", ".2f"), Column("±", ".2f"), Column("- sigmoids", "+.2f")),
        *(
            Column("threshold", ".2f"),
            Column("at 0.5", ".2f"),
            Column("paper, VOC", ".2f"),
            Column("paper, COCO", ".2f"),
        ),
    )
    plain = Spread.of(run["test"] for run in found["sigmoids"]).mean
    cells: list[tuple[Cell, ...]] = []
    for head, runs in found.items():
        mean, deviation = Spread.of(run["test"] for run in runs)
        measured: tuple[Cell, ...] = (head, mean, deviation, None, Spread.of(run["threshold"] for run in runs).mean)
        measured = (*measured, Spread.of(run["halves"] for run in runs).mean)
        if head != "sigmoids":
            measured = (head, mean, deviation, mean - plain, None, None)
        cells.append((*measured, *_PAPER[head]))
    n_labels = benchmark.train.n_labels
    text = (
        f"A row is right if its whole label set is. {benchmark.title}'s {n_labels} labels make 2^{n_labels} sets; the "
        f"heads choose among the subsets of {_BITS} labels at a time, side by side (MHP), one after the other (MHC), "
        "or with half of the chunks trained in a step (MHS). Sigmoids judge each label by itself, with one threshold "
        f"for all. {len(rows.train[0]):,} rows to train on, {len(rows.validation[0]):,} others that choose threshold, "
        f"learning rate and epoch. Percent of {len(rows.test[0]):,} test rows, mean of {n_seeds} seeds, ± their "
        "standard deviation. The paper's figures (table 1) are of images through a ResNet-101, for their order alone."
    )
    return Section(f"Label sets of {benchmark.title}", text, [Table("Subset accuracy", columns, cells)])


def _claims(benchmark: Benchmark, found: dict[str, list[Figures]]) -> Iterator[Claim]:
    means = {head: Spread.of(run["test"] for run in runs).mean for head, runs in found.items()}
    for head in ("MHP", "MHC", "MHS"):
        yield Claim(
            f"{benchmark.title}: subset accuracy of {head} is above that of thresholded sigmoids",
            f"{means[head]:.2f}, {means['sigmoids']:.2f}",
            means[head] > means["sigmoids"],
        )
