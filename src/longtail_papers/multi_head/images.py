"""Images with one class each: digits, clothes, and three digits side by side; every head on the same network."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor, nn

from longtail.arrays import Array
from longtail.data import data_set, load_data_set
from longtail.labels import label_order
from longtail.metrics import precision_at_k
from longtail.neural import DenseRows, Rows, Settings, predict_rows, train
from longtail.neural.encoders import Dense
from longtail.neural.heads import Cascade, Head, OneHot, Product, Sampling
from longtail_papers.common import (
    Cell,
    Claim,
    Column,
    Context,
    Figures,
    Records,
    Section,
    Spread,
    Table,
    means,
    why_missing,
)
from longtail_papers.multi_head.runs import SEEDS, head_figures, lengths, n_heads, recorded, seeded_network

Part = tuple[Rows, Any]

_VALIDATION = 5_000
_WIDTH, _DIGIT_WIDTH, _EMBEDDING = 256, 64, 64
LEARNING_RATES = (3e-3, 1e-2)
BATCH, _EPOCHS, SINGLE_EPOCHS = 256, 6, 12
SINGLE = 20_000  # training images of single things
_MOSAICS = 12_000, 5_000, 10_000  # training, validation, test
_SIDE = 28
_BLOCKS = 4  # blocks for each row in MHS with few classes, as in the authors' code for CIFAR
_FEW = 100
_ORDER_ROWS = 8_000
_MOSAIC_TITLE = "Mosaics of three MNIST digits"
# Table 7: CIFAR-10 {5;2} after 400 epochs of ResNet, ImageNet {40;25}.
_PAPER = {
    (5, 2): {"one-hot": 95.73, "MHP": 95.31, "MHC": 95.55, "MHS": 95.28},
    (40, 25): {"one-hot": 73.16, "MHP": 70.34, "MHC": 72.06, "MHS": 73.51},
}


@dataclass(frozen=True)
class Images:
    """Training, validation and test images with one class each."""

    title: str
    n_classes: int
    encoder: Callable[[], nn.Module]
    train: Part
    validation: Part
    test: Part


@dataclass(frozen=True)
class Variant:
    """A head with its lengths and the order of the classes."""

    head: str
    radices: tuple[int, ...] = ()
    order: str = "given"

    @property
    def name(self) -> str:
        return f"{self.head} {lengths(self.radices)}" if self.radices else self.head


_ONE_HOT = Variant("one-hot")
_PAIR = tuple(Variant(head, (5, 2)) for head in ("MHP", "MHC", "MHS"))
_LONG = tuple(Variant(head, (40, 25)) for head in ("MHP", "MHC", "MHS"))
_DIGITS = (Variant("MHP", (10, 10, 10)), Variant("MHC", (10, 10, 10)), Variant("MHS", (250, 4)))
_LENGTHS = (Variant("MHP", (32, 32)), Variant("MHC", (32, 32)), Variant("MHC", (100, 10)))
_ORDERS = tuple(Variant(head, (40, 25), order) for order in ("clustered", "random") for head in ("MHP", "MHC"))


class Mosaics:
    """Images side by side, put together batch by batch.

    Parameters
    ----------
    images : array of shape (n_images, height, width)
    places : int array of shape (n_rows, n_side_by_side)
        The images of each row, from left to right.
    """

    def __init__(self, images: Array, places: Array) -> None:
        self.images = images
        self.places = places

    def __len__(self) -> int:
        return len(self.places)

    def batch(self, rows: Array) -> Tensor:
        return torch.from_numpy(np.concatenate(self.images[self.places[rows]].swapaxes(0, 1), axis=2))


class SideBySide(nn.Module):
    """One layer that reads each square of a row of squares, and one that reads the features of all of them."""

    def __init__(self, side: int, n_squares: int, square_width: int, width: int) -> None:
        super().__init__()
        self.side = side
        self.square = Dense(side * side, [square_width])
        self.all = Dense(n_squares * square_width, [width])
        self.n_features = width

    def forward(self, images: Tensor) -> Tensor:
        squares = torch.stack(torch.split(images, self.side, dim=2), 1)
        features: Tensor = self.all(self.square(squares.flatten(0, 1)).view(len(images), -1))
        return features


def single_images(name: str, n_train: int | None = None) -> Images:
    """A data set of images, unchanged."""
    training, test = load_data_set(name, "train"), load_data_set(name, "test")
    pixels = training.features.toarray()
    held, kept = _split(len(pixels))
    kept = kept[:n_train]
    return Images(
        data_set(name).title,
        training.n_labels,
        lambda: Dense(pixels.shape[1], [_WIDTH]),
        (DenseRows(pixels[kept]), training.labels[kept]),
        (DenseRows(pixels[held]), training.labels[held]),
        (DenseRows(test.features.toarray()), test.labels),
    )


def mosaics(name: str = "mnist", sizes: tuple[int, int, int] = _MOSAICS) -> Images:
    """Three random digits side by side; the class is the number they form, 0 to 999."""
    training, test = load_data_set(name, "train"), load_data_set(name, "test")
    held, kept = _split(training.n_rows)
    generator = np.random.default_rng(0)
    parts = []
    for corpus, rows, size in ((training, kept, sizes[0]), (training, held, sizes[1]), (test, None, sizes[2])):
        chosen = np.arange(corpus.n_rows) if rows is None else rows
        digits = corpus.features.toarray().reshape(-1, _SIDE, _SIDE)
        places = chosen[generator.integers(len(chosen), size=(size, 3))]
        numbers = corpus.labels.indices[places] @ np.array([100, 10, 1])
        parts.append((Mosaics(digits, places), _one_each(numbers, 1000)))
    return Images(_MOSAIC_TITLE, 1000, lambda: SideBySide(_SIDE, 3, _DIGIT_WIDTH, _WIDTH), *parts)


def _split(n_images: int) -> tuple[Array, Array]:
    order = np.random.default_rng(0).permutation(n_images)
    held = min(_VALIDATION, n_images // 5)
    return order[:held], order[held:]


def _one_each(classes: Array, n_classes: int) -> Any:
    ones = np.ones(len(classes), dtype=np.float32)
    return sparse.csr_array((ones, classes, np.arange(len(classes) + 1)), shape=(len(classes), n_classes))


def image_sections(part: str, context: Context) -> Iterator[Section]:
    """The section of mnist, fashion-mnist or mosaics, growing with the heads."""
    name = "mnist" if part == "mosaics" else part
    if why_missing(name) is not None:
        return
    if part == "mosaics":
        images = mosaics(name, (2_000, 500, 500) if context.quick else _MOSAICS)
        variants = (_ONE_HOT, *_LONG, *_DIGITS, *_LENGTHS, *_ORDERS)
    else:
        images = single_images(name, 2_000 if context.quick else SINGLE)
        variants = (_ONE_HOT, *_PAIR)
    yield from compared(images, variants[:4] if context.quick else variants, context.records(part), context)


def compared(
    images: Images, variants: tuple[Variant, ...], records: Records[Figures], context: Context
) -> Iterator[Section]:
    """The table after each variant; the one-hot head comes first and chooses the learning rate."""
    seeds = SEEDS[:1] if context.quick else SEEDS
    epochs = 2 if context.quick else SINGLE_EPOCHS if images.n_classes <= _FEW else _EPOCHS

    def measured(variant: Variant, rate: float, seed: int) -> Figures:
        settings = Settings(epochs=epochs, batch_size=BATCH, learning_rate=rate, seed=seed)
        what = {"images": images.title, "head": variant.name, "order": variant.order}
        return recorded(records, what, len(images.train[0]), settings, lambda: _trained(images, variant, settings))

    rate = max(LEARNING_RATES, key=lambda rate: measured(_ONE_HOT, rate, SEEDS[0])["validation"])
    found: dict[Variant, list[Figures]] = {}
    for variant in variants:
        found[variant] = [measured(variant, rate, seed) for seed in seeds]
        yield _section(images, found, rate, len(seeds))
    context.claims += _claims(images, found)


def _trained(images: Images, variant: Variant, settings: Settings) -> Figures:
    order = _order(images, variant, settings.seed)
    network = seeded_network(
        settings.seed, images.encoder, lambda width: _head(variant, width, images.n_classes, order)
    )
    history = train(network, *images.train, settings, held_out=images.validation)
    rows, labels = images.test
    accuracy = precision_at_k(labels, predict_rows(network, rows, k=1)[0], 1)
    return {
        "accuracy": 100 * accuracy,
        "validation": 100 * history.values[history.best_epoch - 1],
        "weights": float(network.head.n_parameters()),
        **head_figures(network, rows, labels),
    }


def _order(images: Images, variant: Variant, seed: int) -> Array | None:
    if variant.order == "given":
        return None
    rows, labels = images.train
    some = np.arange(min(_ORDER_ROWS, len(rows)))
    X = sparse.csr_array(rows.batch(some).flatten(1).numpy())
    return label_order(variant.order, images.n_classes, X, labels[some], random_state=seed)


def _head(variant: Variant, width: int, n_classes: int, order: Array | None) -> Head:
    if variant.head == "MHP":
        return Product(width, n_classes, variant.radices, task="single-label", order=order)
    if variant.head == "MHC":
        return Cascade(width, n_classes, variant.radices, _EMBEDDING, task="single-label", order=order)
    if variant.head == "MHS":
        # Separate candidates for each row are gathered row by row, which is slower than all logits for many classes.
        own: dict[str, Any] = {"sampled": _BLOCKS, "fast": False} if n_classes <= _FEW else {}
        return Sampling(width, n_classes, variant.radices[0], task="single-label", **own)
    return OneHot(width, n_classes, task="single-label")


def _section(images: Images, found: dict[Variant, list[Figures]], rate: float, n_seeds: int) -> Section:
    columns = (
        *(Column("head"), Column("order"), Column("accuracy", ".2f"), Column("±", ".2f"), Column("- one-hot", "+.2f")),
        *(Column("weights of the head", ",d"), Column("paper, other images", ".2f"), Column("- its one-hot", "+.2f")),
    )
    plain = means(found, "accuracy")[_ONE_HOT]
    reference = _PAPER.get((5, 2) if images.n_classes == 10 else (40, 25), {})
    rows: list[tuple[Cell, ...]] = []
    for variant, runs in found.items():
        mean, deviation = Spread.of(run["accuracy"] for run in runs)
        told = variant.order == "given" and variant.radices in ((), *_PAPER)
        paper = reference.get(variant.head) if told else None
        gap = None if paper is None or variant == _ONE_HOT else paper - reference["one-hot"]
        difference = None if variant == _ONE_HOT else mean - plain
        rows.append((variant.name, variant.order, mean, deviation, difference, int(runs[0]["weights"]), paper, gap))
    other = "CIFAR-10, 400 epochs of a ResNet" if images.n_classes == 10 else "ImageNet"
    sampled = (
        f"{_BLOCKS} blocks for each row"
        if images.n_classes <= _FEW
        else f"the blocks of a batch of {BATCH}, which are nearly all, so it is close to one-hot"
    )
    text = (
        f"{len(images.train[0]):,} training images, {len(images.validation[0]):,} validation images that choose the "
        f"learning rate (by the one-hot head, for all heads: {rate:g}) and the epoch, {len(images.test[0]):,} test "
        f"images. Accuracy in percent, mean of {n_seeds} seeds, ± the standard deviation. MHS trains {sampled}. "
        f"The paper's figures (table 7) are for {other}; only their differences can be compared. The second table has "
        "the accuracy of each head, where the heads of MHC are given the right values of those before them, and of all "
        "heads together. Where it is above the product of the accuracies, heads err on the same images."
    )
    return Section(images.title, text, [Table(f"{images.title}: accuracy", columns, rows), *_of_heads(images, found)])


def _of_heads(images: Images, found: dict[Variant, list[Figures]]) -> Iterator[Table]:
    """The accuracy of each head and of all together, as in Fig. 6."""
    judged = {variant: runs for variant, runs in found.items() if n_heads(runs[0])}
    if not judged:
        return
    most = max(n_heads(runs[0]) for runs in judged.values())
    columns = [Column("head"), Column("order"), *(Column(f"head {number + 1}", ".2f") for number in range(most))]
    rows: list[tuple[Cell, ...]] = []
    for variant, runs in judged.items():
        n = n_heads(runs[0])
        alone = [Spread.of(run[f"head {number + 1}"] for run in runs).mean for number in range(n)]
        product = 100 * math.prod(accuracy / 100 for accuracy in alone)
        together = Spread.of(run[f"up to {n}"] for run in runs).mean
        rows.append((variant.name, variant.order, *alone, *[None] * (most - n), together, product))
    columns += [Column("all heads", ".2f"), Column("product", ".2f")]
    yield Table(f"{images.title}: accuracy of each head", tuple(columns), rows)


def _claims(images: Images, found: dict[Variant, list[Figures]]) -> Iterator[Claim]:
    accuracy = means(found, "accuracy")
    plain = accuracy[_ONE_HOT]
    for variant in (*_PAIR, *_LONG, *_DIGITS):
        if variant in accuracy:
            yield Claim(
                f"{images.title}: {variant.name} is at most 1 point below one-hot",
                f"{accuracy[variant]:.2f}, one-hot {plain:.2f}",
                accuracy[variant] >= plain - 1,
            )
    descending, equal = Variant("MHC", (40, 25)), Variant("MHC", (32, 32))
    if equal in accuracy:
        yield Claim(
            f"{images.title}: {descending.name} is above {equal.name}",
            f"{accuracy[descending]:.2f}, {accuracy[equal]:.2f}",
            accuracy[descending] > accuracy[equal],
        )
    for head in ("MHP", "MHC"):
        clustered, drawn = (accuracy.get(Variant(head, (40, 25), order)) for order in ("clustered", "random"))
        if clustered is not None and drawn is not None:
            yield Claim(
                f"{images.title}: {head} {lengths((40, 25))} with clustered and random classes differ by at most 0.6",
                f"{clustered:.2f}, {drawn:.2f}",
                abs(clustered - drawn) <= 0.6,
            )
