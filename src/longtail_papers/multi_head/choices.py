"""What the paper's own losses and samples cost or gain beside ours, on EURLex-4K and MNIST."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch

from longtail.arrays import Array
from longtail.labels import label_order, plan_heads
from longtail.neural import Network, Settings, SparseRows, predict_rows, train
from longtail.neural.heads import Cascade, Head, Kronecker, OneHot, Product, Sampling
from longtail_papers.common import (
    KS,
    PRECISIONS,
    Cell,
    Claim,
    Column,
    Context,
    Figures,
    Records,
    Section,
    Spread,
    Table,
    load_benchmarks,
    precisions,
    spread_columns,
    spreads,
    why_missing,
)
from longtail_papers.multi_head import images, texts
from longtail_papers.multi_head.runs import SEEDS, recorded, seeded_network

Make = Callable[..., Head]

_SINGLE: dict[str, Any] = {"task": "single-label"}
_ROWS = 512  # of a batch of prediction
_ALONE = tuple(f"{name} without groups" for name in PRECISIONS)
_PRODUCTS, _STAGES = "cascade, loss of the products", "cascade, loss of the stages"


@dataclass(frozen=True)
class Alternative:
    """A head with a loss, and where the loss is from.

    Parameters
    ----------
    source : str
        "paper" with the place, or "ours".
    make : callable
        Maps the width of the features, the number of labels, the lengths of the heads and the positions of the labels
        to the head.
    """

    source: str
    make: Make


def _plain(head: Callable[..., Head], **options: Any) -> Make:
    return lambda width, n_labels, radices, order: head(width, n_labels, **options)


def _coded(head: Callable[..., Head], **options: Any) -> Make:
    return lambda width, n_labels, radices, order: head(width, n_labels, radices=radices, order=order, **options)


def _cascade(loss: str) -> Make:
    return _coded(Cascade, width=None, survivors=texts.SURVIVORS, loss=loss)


OF_TEXTS: Mapping[str, Alternative] = {
    "one-hot": Alternative("", _plain(OneHot)),
    _PRODUCTS: Alternative("ours", _cascade("product")),
    _STAGES: Alternative("paper, algorithm 3", _cascade("stages")),
    "product, digits one by one": Alternative("paper, algorithm 2", _coded(Product)),
    "product, 4 groups of softmaxes": Alternative("ours", _coded(Product, groups=4, loss="softmax")),
    "kronecker, 4 products": Alternative("paper, eq. 16, with sigmoids", _coded(Kronecker, groups=4)),
    "kronecker, 16 products": Alternative("paper, eq. 16, with sigmoids", _coded(Kronecker, groups=16)),
    "sampling, blocks of the batch": Alternative("paper, FastSampling", _plain(Sampling)),
}
OF_IMAGES: Mapping[str, Alternative] = {
    "one-hot": Alternative("", _plain(OneHot, **_SINGLE)),
    "product, binary": Alternative("paper, algorithm 2", _coded(Product, **_SINGLE)),
    "product, softmax per digit": Alternative("paper's code, option", _coded(Product, loss="softmax", **_SINGLE)),
    "kronecker, 1 product": Alternative("paper, eq. 16", _coded(Kronecker, **_SINGLE)),
    "kronecker, 2 products": Alternative("paper, eq. 16", _coded(Kronecker, groups=2, **_SINGLE)),
    "kronecker, 4 products": Alternative("paper, eq. 16", _coded(Kronecker, groups=4, **_SINGLE)),
    "cascade": Alternative("paper, algorithm 3", _coded(Cascade, width=64, **_SINGLE)),
    "sampling, 1 block of the row": Alternative(
        "paper, MHS-1", _plain(Sampling, n_heads=5, sampled=1, fast=False, **_SINGLE)
    ),
    "sampling, 2 blocks of the row": Alternative(
        "paper, MHS-2", _plain(Sampling, n_heads=5, sampled=2, fast=False, **_SINGLE)
    ),
    "sampling, blocks of the batch": Alternative("paper, FastSampling", _plain(Sampling, n_heads=5, **_SINGLE)),
    "one block, margin 0.5": Alternative("paper, ArcFace", _plain(Sampling, n_heads=1, margin=0.5, **_SINGLE)),
}


def choice_sections(context: Context) -> Iterator[Section]:
    """The sections on EURLex-4K and MNIST, growing with the alternatives."""
    records = context.records("choices")
    seeds = SEEDS[:1] if context.quick else SEEDS
    for benchmark in load_benchmarks(("eurlex-4k",)):
        yield from of_texts(texts.Texts.of(benchmark, 1_000 if context.quick else None), records, seeds, context)
    if why_missing("mnist") is None:
        digits = images.single_images("mnist", 2_000 if context.quick else images.SINGLE)
        yield from of_images(digits, records, seeds, context)


def of_texts(
    data: texts.Texts, records: Records[Figures], seeds: tuple[int, ...], context: Context
) -> Iterator[Section]:
    n_epochs, trial = (2, 2) if context.quick else (texts.EPOCHS, texts.TRIAL_EPOCHS)

    def measured(part: texts.Texts, name: str, rate: float, seed: int, epochs: int) -> Figures:
        settings = Settings(epochs=epochs, batch_size=texts.BATCH, learning_rate=rate, seed=seed)
        what = {"choice for texts": name, "texts": part.title}
        return recorded(records, what, part.n_rows, settings, lambda: trained_on_texts(part, OF_TEXTS[name], settings))

    held, found = data.held_out(), {}
    for name in OF_TEXTS:

        def quality(rate: float, name: str = name) -> float:
            figures = measured(held, name, rate, SEEDS[0], trial)
            return figures["P@1"] + figures["P@5"]

        rate = max(texts.LEARNING_RATES, key=quality)
        found[name] = [measured(data, name, rate, seed, n_epochs) for seed in seeds]
        yield _section_of_texts(data, found, len(seeds))
    context.claims += _claims_of_texts(data, found)


def trained_on_texts(data: texts.Texts, alternative: Alternative, settings: Settings) -> Figures:
    """Precisions on the test rows and the mean score of the first label, in percent.

    For heads of several stages also the precisions of rankings by the last stage alone.
    """
    X, Y = data.train
    n_labels = Y.shape[1]
    order = label_order("clustered", n_labels, X, Y, random_state=settings.seed)
    radices = plan_heads(n_labels, first=min(texts.FIRST, n_labels)).radices
    network = texts.fitted(X, Y, lambda width: alternative.make(width, n_labels, radices, order), settings)
    labels, scores = predict_rows(network, data.test[0], max(KS))
    found = precisions(data.test[1], labels) | {
        "score": 100 * float(scores[:, 0].mean()),
        "weights": float(network.head.n_parameters()),
    }
    if isinstance(network.head, Cascade):
        alone = precisions(data.test[1], _by_last_stage(network, data.test[0], max(KS)))
        found |= dict(zip(_ALONE, alone.values(), strict=True))
    return found


def _by_last_stage(network: Network, X: Any, k: int) -> Array:
    """The k labels with the highest logits of the last stage, among all labels."""
    rows, head, found = SparseRows(X), network.head, []
    network.eval()
    with torch.inference_mode():
        for start in range(0, len(rows), _ROWS):
            block = np.arange(start, min(start + _ROWS, len(rows)))
            logits = head(network.encoder(rows.batch(block)))[-1]
            position = getattr(head, "position", None)
            found.append((logits if position is None else logits[:, position]).topk(k, dim=1).indices.numpy())
    return np.concatenate(found)


def _section_of_texts(data: texts.Texts, found: Mapping[str, list[Figures]], n_seeds: int) -> Section:
    columns = (
        *(Column("head and loss"), Column("source"), *spread_columns(PRECISIONS)),
        *(Column("score of the first label", ".1f"), Column("weights of the head", ",d")),
        *(Column(name, ".2f") for name in _ALONE),
    )
    rows: list[tuple[Cell, ...]] = []
    for name, runs in found.items():
        alone: list[Cell] = [_mean(runs, each) if each in runs[0] else None for each in _ALONE]
        weights = int(runs[0]["weights"])
        figures = (*spreads(runs, PRECISIONS), _mean(runs, "score"), weights)
        rows.append((name, OF_TEXTS[name].source, *figures, *alone))
    text = (
        "The same bag of words with each head and each loss that the paper or we define for it. For each line the "
        f"learning rate is chosen on {data.n_held:,} training rows; then {n_seeds} networks, one for each seed, learn "
        f"from {data.n_rows:,} rows. Percent on the test rows, ± the standard deviation. *Score of the first label* is "
        "the mean probability that the head gives to its first label: it should equal P@1. *Without groups* ranks all "
        "labels by the last stage of a cascade alone, as if the score of its group counted for nothing."
    )
    return Section(f"{data.title}: losses", text, [Table(f"{data.title}: losses", columns, rows)])


def _claims_of_texts(data: texts.Texts, found: Mapping[str, list[Figures]]) -> Iterator[Claim]:
    """Whether training stage by stage counts a group twice: then the score of the group only does harm."""
    ours, theirs = found[_PRODUCTS], found[_STAGES]
    yield Claim(
        f"{data.title}: a cascade trained on the products has a P@5 of at least that of one trained in stages",
        f"{_mean(ours, 'P@5'):.2f}, {_mean(theirs, 'P@5'):.2f}",
        _mean(ours, "P@5") >= _mean(theirs, "P@5"),
    )
    gaps = [abs(_mean(runs, "score") - _mean(runs, "P@1")) for runs in (ours, theirs)]
    yield Claim(
        f"{data.title}: the first score of a cascade trained on the products is nearer to P@1",
        f"{gaps[0]:.1f} points off, in stages {gaps[1]:.1f}",
        gaps[0] < gaps[1],
    )


def of_images(
    data: images.Images, records: Records[Figures], seeds: tuple[int, ...], context: Context
) -> Iterator[Section]:
    epochs = 2 if context.quick else images.SINGLE_EPOCHS

    def measured(name: str, rate: float, seed: int) -> Figures:
        settings = Settings(epochs=epochs, batch_size=images.BATCH, learning_rate=rate, seed=seed)
        what = {"choice for images": name, "images": data.title}
        measure = partial(trained_on_images, data, OF_IMAGES[name], settings)
        return recorded(records, what, len(data.train[0]), settings, measure)

    found = {}
    for name in OF_IMAGES:

        def quality(rate: float, name: str = name) -> float:
            return measured(name, rate, SEEDS[0])["validation"]

        rate = max(images.LEARNING_RATES, key=quality)
        found[name] = [measured(name, rate, seed) for seed in seeds]
        yield _section_of_images(data, found, len(seeds))


def trained_on_images(data: images.Images, alternative: Alternative, settings: Settings) -> Figures:
    """The accuracy on validation and test images, in percent."""
    n, radices = data.n_classes, (data.n_classes // 2, 2)
    network = seeded_network(settings.seed, data.encoder, lambda width: alternative.make(width, n, radices, None))
    history = train(network, *data.train, settings, held_out=data.validation)
    rows, labels = data.test
    accuracy = precisions(labels, predict_rows(network, rows, max(KS))[0])["P@1"]
    weights = float(network.head.n_parameters())
    return {"accuracy": accuracy, "validation": 100 * history.values[history.best_epoch - 1], "weights": weights}


def _section_of_images(data: images.Images, found: Mapping[str, list[Figures]], n_seeds: int) -> Section:
    columns = (
        *(Column("head and loss"), Column("source"), *spread_columns(("accuracy",))),
        *(Column("- one-hot", "+.2f"), Column("weights of the head", ",d")),
    )
    plain = _mean(found["one-hot"], "accuracy")
    rows: list[tuple[Cell, ...]] = []
    for name, runs in found.items():
        difference = None if name == "one-hot" else _mean(runs, "accuracy") - plain
        figures = (*spreads(runs, ("accuracy",)), difference, int(runs[0]["weights"]))
        rows.append((name, OF_IMAGES[name].source, *figures))
    text = (
        f"{len(data.train[0]):,} training images, {len(data.validation[0]):,} that choose the learning rate of each "
        f"line and the epoch, {len(data.test[0]):,} test images. Accuracy in percent, mean of {n_seeds} seeds, ± the "
        f"standard deviation. Heads of {data.n_classes // 2} and 2 outputs, or {data.n_classes // 2} blocks of 2 "
        "classes; the last line has one block, so every class competes."
    )
    return Section(f"{data.title}: losses", text, [Table(f"{data.title}: losses", columns, rows)])


def _mean(runs: list[Figures], name: str) -> float:
    return Spread.of(run[name] for run in runs).mean
