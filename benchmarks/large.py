"""A synthetic data set of the shape of Amazon-3M, of any size, written to a file without holding it in memory.

Labels come in topics of forty. A row is about one topic, with other labels that are popular everywhere. Half of its
features tell its labels; the others are common words.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from longtail.arrays import Array

TOPIC = 40
FEATURES_OF_A_LABEL = 4
SHARE_OF_TOPIC = 0.6
# Labels and features that are drawn twice count once, so more must be drawn.
DRAWN_LABELS, DRAWN_FEATURES = 1.32, 1.15
BLOCK_ROWS = 20_000


@dataclass(frozen=True)
class Shape:
    """The size of a data set.

    >>> AMAZON_3M.scaled(0.1).labels
    280000
    """

    rows: int
    features: int
    labels: int
    features_per_row: int
    labels_per_row: int

    def scaled(self, share: float) -> Shape:
        """A data set with fewer rows and labels."""
        rows, labels = round(self.rows * share), round(self.labels * share)
        return Shape(rows, self.features, labels, self.features_per_row, self.labels_per_row)


AMAZON_3M = Shape(1_700_000, 337_000, 2_800_000, 50, 36)


def write_rows(path: Path, shape: Shape, n_rows: int, *, seed: int = 0, covering: bool = True) -> None:
    """Write texts as JSON lines, or features in the repository text format, by the ending of `path`.

    `covering` rows have every label at least once, all together.
    """
    rng = np.random.default_rng(seed)
    is_text = path.suffix == ".jsonl"
    label_texts = [f'"label {label}"' if is_text else str(label) for label in range(shape.labels)]
    feature_texts = [f"w{feature}" if is_text else f"{feature}:1" for feature in range(shape.features)]
    line = '{{"labels": [{}], "text": "{}"}}\n' if is_text else "{} {}\n"
    places = rng.permutation(n_rows) if covering else rng.integers(0, shape.rows, n_rows)
    total = n_rows if covering else shape.rows
    with open(path, "w", encoding="ascii", buffering=2**22) as file:
        if not is_text:
            file.write(f"{n_rows} {shape.features} {shape.labels}\n")
        for start in range(0, n_rows, BLOCK_ROWS):
            homes = places[start : start + BLOCK_ROWS]
            for labels, features in _rows(rng, shape, homes, total, covering):
                named = ",".join(map(label_texts.__getitem__, labels))
                file.write(line.format(named, " ".join(map(feature_texts.__getitem__, features))))


def _rows(rng: np.random.Generator, shape: Shape, homes: Array, total: int, covering: bool):  # type: ignore[no-untyped-def]
    first = homes * shape.labels // total
    last = np.maximum((homes + 1) * shape.labels // total, first + 1)
    count = (len(homes), round(DRAWN_LABELS * shape.labels_per_row))
    drawn_features = round(DRAWN_FEATURES * shape.features_per_row)
    topics = first[:, None] // TOPIC * TOPIC + _power_law(rng, TOPIC, count)
    labels = np.where(rng.random(count) < SHARE_OF_TOPIC, topics, _power_law(rng, shape.labels, count))
    labels = np.minimum(labels, shape.labels - 1)
    telling = rng.integers(0, count[1], (len(homes), drawn_features // 2))
    chosen = np.take_along_axis(labels, telling, axis=1)
    which = rng.integers(0, FEATURES_OF_A_LABEL, chosen.shape)
    own = _scrambled(chosen * FEATURES_OF_A_LABEL + which) % shape.features
    common = _power_law(rng, shape.features, (len(homes), drawn_features - own.shape[1]))
    features = np.concatenate([own, common], axis=1)
    for row, (some, others) in enumerate(zip(labels.tolist(), features.tolist(), strict=True)):
        covered = range(int(first[row]), int(last[row])) if covering else ()
        yield sorted({*some, *covered}), sorted(set(others))


def _power_law(rng: np.random.Generator, n: int, shape: tuple[int, int]) -> Array:
    """Random numbers below `n`; number r has a probability proportional to about 1 / (r + 1)."""
    drawn: Array = np.exp(rng.random(shape) * np.log(n + 1)).astype(np.int64) - 1
    return np.minimum(drawn, n - 1, out=drawn)


def _scrambled(numbers: Array) -> Array:
    """Numbers that look random but are always the same: SplitMix64."""
    mixed = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    return ((mixed ^ (mixed >> np.uint64(27))) >> np.uint64(1)).astype(np.int64)
