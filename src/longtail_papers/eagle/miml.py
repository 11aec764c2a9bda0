"""`reproduce miml`: labels of single images, learned from bags of images (Shen et al., ICML 2020, table 3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch
from scipy import sparse

from longtail.aggregated import GroupRobustLabelVectors, aggregate_labels, random_groups
from longtail.arrays import Array
from longtail.data import data_set, load_data_set
from longtail.metrics import precision_at_k
from longtail.neural import (
    BagLabels,
    BagRows,
    BagScores,
    ConceptScores,
    DenseRows,
    Network,
    Settings,
    predict_rows,
    train,
)
from longtail.neural.encoders import Dense
from longtail.pictures import Line, Panel, Picture
from longtail.progress import task
from longtail_papers.common import (
    Cell,
    Claim,
    Column,
    Context,
    Experiment,
    Figures,
    Records,
    Section,
    Spread,
    Table,
    why_missing,
)

_NAMES = ("mnist", "fashion-mnist")
_HIDDEN, _CONCEPTS = 256, 5
_SIZES = (4, 50)
_TARGETS = ("set", "proportion")
_SEEDS = (0, 1, 2)
_VALIDATION = 5_000
_LEARNING_RATES = (3e-4, 1e-3)
_TAUS = (0.3, 1.0, 5.0)
_WAYS = ("Deep-MIML", "EAGLE-0", "EAGLE")
_PAPER = {
    ("mnist", 4): (94.70, 94.82, 94.82),
    ("mnist", 50): (33.33, 36.10, 38.46),
    ("fashion-mnist", 4): (84.70, 84.89, 85.09),
    ("fashion-mnist", 50): (19.00, 27.62, 28.65),
}


@dataclass(frozen=True)
class Images:
    """Centred pixels and classes of a data set: training, validation and test images."""

    name: str
    pixels: Array
    labels: Any
    validation: tuple[Array, Any]
    test: tuple[Array, Any]

    @classmethod
    def load(cls, name: str, n_train: int | None) -> Images:
        train_part, test_part = load_data_set(name, "train"), load_data_set(name, "test")
        pixels, test = train_part.features.toarray(), test_part.features.toarray()
        mean = pixels.mean(axis=0)
        order = np.random.default_rng(0).permutation(len(pixels))
        held, kept = order[:_VALIDATION], order[_VALIDATION:][:n_train]
        return cls(
            name,
            pixels[kept] - mean,
            train_part.labels[kept],
            (pixels[held] - mean, train_part.labels[held]),
            (test - mean, test_part.labels),
        )


@dataclass(frozen=True)
class Bagged:
    """Training images in bags, and the label counts of the bags."""

    images: Images
    groups: Any
    counts: Any
    size: int

    @classmethod
    def of(cls, images: Images, size: int, seed: int) -> Bagged:
        groups = random_groups(len(images.pixels), size, random_state=seed)
        counts = aggregate_labels(images.labels, groups, merge="list")
        return cls(images, groups, counts, size)

    @cached_property
    def vectors(self) -> dict[str, Array]:
        """The label vectors of each mask."""
        found = {}
        for way, n_iter in (("EAGLE-0", 0), ("EAGLE", 20)):
            vectors = GroupRobustLabelVectors(n_iter).fit(self.images.pixels, self.groups, self.counts).label_vectors_
            found[way] = vectors.toarray()
        return found

    def targets(self, kind: str) -> Any:
        amounts = sparse.csr_array(self.counts, dtype=np.float32)
        amounts.data = np.ones_like(amounts.data) if kind == "set" else np.minimum(1, amounts.data / self.size)
        return amounts


@dataclass(frozen=True)
class Training:
    """How a network is trained; the seed is used for the bags and the network."""

    targets: str
    way: str
    tau: float
    learning_rate: float
    seed: int


@dataclass(frozen=True)
class Choice:
    """The settings chosen on the validation images: one learning rate, and the hardness of each mask."""

    learning_rate: float
    taus: dict[str, float]


def image_sections(name: str, context: Context) -> Iterator[Section]:
    """The section of a data set, growing with the bag sizes and targets."""
    if why_missing(name) is not None:
        return
    images = Images.load(name, 4_000 if context.quick else None)
    records, seeds = context.records(name), _SEEDS[:1] if context.quick else _SEEDS
    found: dict[tuple[int, str], tuple[Choice, dict[str, list[float]]]] = {}
    title = data_set(images.name).title
    n_trainings = len(_SIZES) * len(_TARGETS) * (len(_LEARNING_RATES) + 2 * len(_TAUS) + len(_WAYS) * len(seeds))
    with task(f"bags of {title}", total=n_trainings) as advance:

        def one(bagged: Bagged, training: Training) -> Figures:
            figures = _measured(bagged, training, records, context.quick)
            advance(1)
            return figures

        for size in _SIZES:
            bagged = {seed: Bagged.of(images, size, seed) for seed in seeds}
            for targets in _TARGETS:
                choice = _chosen(bagged[0], targets, one)
                accuracies: dict[str, list[float]] = {way: [] for way in _WAYS}
                for seed in seeds:
                    for way in _WAYS:
                        training = Training(targets, way, choice.taus.get(way, 0.0), choice.learning_rate, seed)
                        accuracies[way].append(one(bagged[seed], training)["accuracy"])
                found[size, targets] = choice, accuracies
                yield _section(images, found, len(seeds))
    context.claims += [
        _claim(f"{title}, bags of {size}, {targets}", accuracies) for (size, targets), (_, accuracies) in found.items()
    ]


def _claim(where: str, accuracies: dict[str, list[float]]) -> Claim:
    """The order of the paper's table, where EAGLE-0 and EAGLE may tie."""
    plain, vectors, robust = (Spread.of(accuracies[way]).mean for way in _WAYS)
    return Claim(
        f"{where}: EAGLE is above Deep-MIML, and not below EAGLE-0",
        f"{plain:.2f}, {vectors:.2f}, {robust:.2f} (Deep-MIML, EAGLE-0, EAGLE)",
        robust > plain and robust >= vectors,
    )


def _chosen(bagged: Bagged, targets: str, measure: Callable[[Bagged, Training], Figures]) -> Choice:
    """Choose the learning rate by the plain network, as in the paper, then the hardness of each mask at that rate."""

    def validated(way: str, tau: float, rate: float) -> float:
        return measure(bagged, Training(targets, way, tau, rate, 0))["validation"]

    rate = max(_LEARNING_RATES, key=lambda rate: validated("Deep-MIML", 0.0, rate))
    return Choice(rate, {way: max(_TAUS, key=lambda tau: validated(way, tau, rate)) for way in _WAYS[1:]})


def _measured(bagged: Bagged, training: Training, records: Records[Figures], quick: bool) -> Figures:
    """Accuracy of the weights of the best epoch on validation and test images, in percent."""
    images = bagged.images
    epochs = 2 if quick else 6 if bagged.size < 10 else 12

    def measure() -> Figures:
        network, validated = _trained(bagged, training, epochs)
        pixels, labels = images.test
        top, _ = predict_rows(network, _alone(pixels), k=1)
        return {"validation": 100 * validated, "accuracy": 100 * precision_at_k(labels, top, 1)}

    key = {"images": images.name, "bags of": bagged.size, **asdict(training), "rows": len(images.pixels)}
    return records.measured({**key, "epochs": epochs}, measure)


def _trained(bagged: Bagged, training: Training, epochs: int) -> tuple[Network, float]:
    images = bagged.images
    n_labels = images.labels.shape[1]
    vectors = torch.from_numpy(bagged.vectors[training.way]) if training.tau else None
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(training.seed)
        scores = ConceptScores(_HIDDEN, n_labels, _CONCEPTS, rectified=training.targets == "set")
        network = Network(
            BagScores(Dense(images.pixels.shape[1], [_HIDDEN]), scores, vectors, training.tau), BagLabels(n_labels)
        )
    settings = Settings(
        epochs=epochs, batch_size=max(8, 256 // bagged.size), learning_rate=training.learning_rate, seed=training.seed
    )
    bags = BagRows(DenseRows(images.pixels), sparse.csr_array(bagged.groups.T))
    history = train(
        network,
        bags,
        bagged.targets(training.targets),
        settings,
        held_out=(_alone(images.validation[0]), images.validation[1]),
    )
    return network, history.values[history.best_epoch - 1]


def _alone(pixels: Array) -> BagRows:
    return BagRows(DenseRows(pixels), sparse.eye_array(len(pixels), format="csr", dtype=np.float32))


def _section(images: Images, found: dict[tuple[int, str], tuple[Choice, dict[str, list[float]]]], n: int) -> Section:
    title = data_set(images.name).title
    columns = (
        *(Column("bag size", "d"), Column("targets"), Column("network")),
        *(Column("paper", ".2f"), Column("accuracy", ".2f"), Column("±", ".2f"), Column("- Deep-MIML", "+.2f")),
        *(Column("learning rate", "g"), Column("tau", "g")),
    )
    rows: list[tuple[Cell, ...]] = []
    for (size, targets), (choice, accuracies) in found.items():
        plain = float(np.mean(accuracies["Deep-MIML"]))
        for way, paper in zip(_WAYS, _PAPER[images.name, size], strict=True):
            mean, deviation = Spread.of(accuracies[way])
            cells: tuple[Cell, ...] = (size, targets, way, paper, mean, deviation, mean - plain)
            rows.append((*cells, choice.learning_rate, choice.taus.get(way)))
    text = (
        f"{len(images.pixels):,} training images in bags. {_VALIDATION:,} validation images choose the learning rate "
        "(by Deep-MIML, for all networks), the hardness tau of each mask and the epoch. Accuracy on "
        f"{len(images.test[0]):,} single test images in percent, mean of {n} seeds, ± the standard deviation; a seed "
        "is used for the bags and for the network."
    )
    panels = []
    for targets in _TARGETS:
        lines = []
        for style, way in enumerate(_WAYS):
            means = {size: float(np.mean(found[size, targets][1][way])) for size in _SIZES if (size, targets) in found}
            paper_values = [_PAPER[images.name, size][style] for size in means]
            if means:
                lines.append(Line(way, list(means), list(means.values()), style=style))
                lines.append(Line(f"{way}, paper", list(means), paper_values, style=style, dash="dashed"))
        panels.append(Panel(f"{title}, {targets}", "images in a bag", "accuracy, percent", lines, x_ticks=_SIZES))
    picture = Picture(f"miml-{images.name}.png", f"Accuracy on single images of {title}", [panels])
    return Section(title, text, [Table(f"{title}: accuracy", columns, rows)], [picture])


EXPERIMENT = Experiment(
    name="miml",
    module=__name__,
    title="Labels of bags of images",
    introduction=(
        "Images are put into bags at random, and only the labels of a bag are known. The network then predicts the "
        "label of single test images (Shen et al., ICML 2020, table 3). Features are the 784 pixels minus the mean of "
        "the training images. The network has one layer of 256 and five concepts for each label; the best concept and "
        "the best instance of the bag count. EAGLE-0 and EAGLE multiply the scores of a bag by the soft assignments "
        "of its instances to label vectors, plain means or group-robust ones. The paper does not say how labels that "
        "occur several times in a bag enter the loss: `set` trains on whether a bag has a label, `proportion` on the "
        "share of its images that have it, both by binary cross-entropy. Scores are rectified, as in the paper, for "
        "`set` only: a rectified score is a probability of at least one half, and few labels have such a share of a "
        "bag. The mask is used in training only, not for single images."
    ),
    data_sets=_NAMES,
    sections=tuple(partial(image_sections, name) for name in _NAMES),
    parts={name: partial(image_sections, name) for name in _NAMES},
)
