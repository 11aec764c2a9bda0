"""`calibrate`: the costs of this machine, from the real training of small synthetic data.

Its features are as many as those of large data, so that the weights of a node leave the cache as they do there. Every
cost is the processor time of a stage, divided by its units of work as `longtail.planning.stages` counts them.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import nnls

from longtail import progress
from longtail.arrays import Array
from longtail.data import Corpus, write_corpus
from longtail.estimator import column_counts
from longtail.labels import LabelHierarchy, members_by_label
from longtail.planning.costs import Costs
from longtail.planning.stages import (
    bisections,
    classifier_features,
    searching_units,
    training_units,
    vector_entries,
)
from longtail.planning.workload import Level, Workload
from longtail.prepared import prepare
from longtail.trees import LabelTree, OneVsRest, TreeModel
from longtail.work import begin, in_pieces

_TOPIC = 40
_SHARE_OF_TOPIC = 0.6
_FEATURES_OF_A_LABEL = 4
_FLAT = 64  # labels that one-vs-rest learns
_SMALLEST = 1e-15  # seconds; a cost that is too small to measure is not 0


def calibrate(rows: tuple[int, int] = (4_000, 12_000), features: int = 300_000) -> Costs:
    """Measure the costs of this machine; takes 10 to 20 seconds with the default sizes.

    Parameters
    ----------
    rows : pair of int
        The rows of a smaller and a larger training.
    features : int
    """
    with progress.task("measuring this machine", total=5) as advance, tempfile.TemporaryDirectory() as name:
        folder, runs = Path(name), []
        for number, n_rows in enumerate(rows):
            X, Y = power_law_data(n_rows, _labels(n_rows), features, number)
            runs.append(_Run(LabelTree(), X, Y, folder / f"tree{number}"))
            advance(1)
        few = rows[0], _labels(rows[0]), features, 0
        beam = _Run(LabelTree(negatives="beam"), *power_law_data(*few), folder / "beam")
        short = _Run(LabelTree(), *power_law_data(*few, per_row=6), folder / "short")
        advance(1)
        frequent = np.argsort(-column_counts(Y), kind="stable")[:_FLAT]
        flat = _Run(OneVsRest(), X, sparse.csr_array(Y[:, frequent]), folder / "flat")
        advance(1)
        train, train_row = _fitted([*runs, flat, short])
        large, load = runs[-1], runs[-1].load
        costs = {
            "prepare": _preparing(X, Y, folder),
            "sort": _sorting(rows[1], folder / "members"),
            "add": large.seconds["label vectors"] / (Y.nnz * load.per_row),
            "cluster": large.clustering / (vector_entries(load) * bisections(load)),
            "train": train,
            "train_row": train_row,
            "again": beam.seconds["training classifiers again"] / beam.seconds["training classifiers"],
            "search": _typical(run.predicting / run.searched for run in runs),
            "score": flat.predicting / (flat.load.per_row * _FLAT),
            "join": large.joining / large.model_bytes,
            "model": large.model_bytes / classifier_features(load),
        }
        advance(1)
    return Costs(**{name: max(_SMALLEST, float(value)) for name, value in costs.items()})


def _labels(n_rows: int) -> int:
    return n_rows * 5 // 3


class _Run:
    """A training in pieces, and the processor time of its stages."""

    def __init__(self, learner: TreeModel, X: Any, Y: Any, folder: Path) -> None:
        self.load = Workload.of(X, Y, learner="one-vs-rest" if isinstance(learner, OneVsRest) else "tree")
        with in_pieces(folder / "unfinished"):
            with measured_stages() as spent:
                begun = time.process_time()
                learner.fit(X, Y)
                learner.save(folder / "model")
                whole = time.process_time() - begun
            self.seconds = {name: each.cpu for name, each in spent.items()}
            self.joining = whole - sum(spent for name, spent in self.seconds.items() if not name.startswith("joining"))
            self.model_bytes = learner.trees_[0].n_bytes
            self.units = _measured_units(self.load, learner.trees_[0].hierarchy, Y)
            self.searched = searching_units(self.load, len(self.load.levels), self.model_bytes)
            begun = time.process_time()
            learner.predict_topk(X[:2000], k=10)
            self.predicting = (time.process_time() - begun) / min(2000, X.shape[0])

    @property
    def clustering(self) -> float:
        names = "bisecting labels", "sampling labels", "dividing labels", "clustering labels"
        return sum(self.seconds.get(name, 0) for name in names)


class Spent(NamedTuple):
    """Processor time of the process, and wall time."""

    cpu: float
    wall: float

    @classmethod
    def now(cls) -> Spent:
        return cls(time.process_time(), time.perf_counter())


@contextmanager
def measured_stages() -> Iterator[dict[str, Spent]]:
    """Fill a mapping with the time of each stage of the trainings inside the block."""
    found: dict[str, Spent] = {}

    @contextmanager
    def listener(description: str, total: int | None) -> Iterator[progress.Advance]:
        before, begun = found.get(description, Spent(0, 0)), Spent.now()
        try:
            yield lambda amount, note="": None
        finally:
            found[description] = Spent(*(a + b - c for a, b, c in zip(before, Spent.now(), begun, strict=True)))

    with progress.listening(listener):
        yield found


def _measured_units(load: Workload, hierarchy: LabelHierarchy, Y: Any) -> Array:
    """The units of training of a tree, from the rows that its nodes have."""
    order, bounds = hierarchy.label_order()
    rows = np.repeat(np.arange(Y.shape[0]), np.diff(Y.indptr))
    children = np.diff(hierarchy.pointers)
    depths = np.zeros(hierarchy.n_nodes, dtype=np.int64)
    for node in range(hierarchy.n_nodes):
        own = hierarchy.children[hierarchy.pointers[node] : hierarchy.pointers[node + 1]]
        depths[own[own >= 0]] = depths[node] + 1
    units = np.zeros(2)
    for depth in range(int(depths.max()) + 1):
        owner = np.full(Y.shape[1], -1)
        for node in np.flatnonzero(depths == depth).tolist():
            owner[order[slice(*bounds[node].tolist())]] = node
        keys = np.unique(rows.astype(np.int64) * hierarchy.n_nodes + owner[Y.indices])
        counts = np.bincount(keys % hierarchy.n_nodes, minlength=hierarchy.n_nodes)
        for width in np.unique(children[depths == depth]).tolist():
            nodes = (depths == depth) & (children == width)
            own_rows = np.where(depth == 0, Y.shape[0], counts[nodes]).astype(np.float64)
            units += [each.sum() for each in training_units(load, Level(width, own_rows, own_rows))]
    return units


def _typical(costs: Iterable[float]) -> float:
    """The geometric mean: every measurement counts equally, however long it took."""
    return float(np.exp(np.mean(np.log([*costs]))))


def _fitted(runs: list[_Run]) -> Array:
    """The costs of the two units of training; every run counts equally, however long it took."""
    shares = np.array([run.units / run.seconds["training classifiers"] for run in runs])
    scales = shares.max(axis=0)
    found, _ = nnls(shares / scales, np.ones(len(runs)))
    return np.asarray(found / scales)


def _sorting(n_rows: int, folder: Path) -> float:
    """The cost of a label of a row in the two stages that find the rows of labels."""
    Y = power_law_labels(np.random.default_rng(0), 2 * n_rows, 10 * n_rows, 36)
    with measured_stages() as found, in_pieces(folder):
        members_by_label(begin({}, None, labels=Y), column_counts(Y))
    return sum(spent.cpu for spent in found.values()) / Y.nnz


def _preparing(X: Any, Y: Any, folder: Path) -> float:
    names = [str(label) for label in range(Y.shape[1])]
    write_corpus(Corpus(Y, names, features=X), folder / "rows.txt")
    begun = time.process_time()
    prepare([folder / "rows.txt"], folder / "prepared")
    return (time.process_time() - begun) / (X.nnz + Y.nnz)


def power_law_data(n_rows: int, n_labels: int, n_features: int, seed: int, per_row: int = 52) -> tuple[Any, Any]:
    """Features and labels: most labels of a row belong to its topic, the others are popular; half of its features tell
    its labels, the others are common words.
    """
    rng = np.random.default_rng(seed)
    Y = power_law_labels(rng, n_rows, n_labels, 36)
    count = np.diff(Y.indptr)
    each = per_row // 2
    told = Y.indices[(Y.indptr[:-1, None] + rng.integers(0, count[:, None], (n_rows, each)))]
    own = (told * _FEATURES_OF_A_LABEL + rng.integers(0, _FEATURES_OF_A_LABEL, told.shape)) * 2_654_435_761 % n_features
    X = _matrix(np.concatenate([own, _by_rank(rng, n_features, (n_rows, each))], axis=1), n_features)
    X.data = np.repeat(np.diff(X.indptr) ** -0.5, np.diff(X.indptr)).astype(np.float32)
    return X, Y


def power_law_labels(rng: np.random.Generator, n_rows: int, n_labels: int, per_row: int) -> Any:
    """Labels of rows, about `per_row` of each."""
    shape = (n_rows, round(1.3 * per_row))  # some are drawn twice
    topics = rng.integers(0, n_labels, (n_rows, 1)) // _TOPIC * _TOPIC + _by_rank(rng, _TOPIC, shape)
    labels = np.where(rng.random(shape) < _SHARE_OF_TOPIC, topics, _by_rank(rng, n_labels, shape))
    return _matrix(np.minimum(labels, n_labels - 1), n_labels)


def _by_rank(rng: np.random.Generator, n: int, shape: tuple[int, int]) -> Array:
    """Random numbers below `n`; number r has a probability proportional to about 1 / (r + 1)."""
    return np.minimum(np.exp(rng.random(shape) * np.log(n + 1)).astype(np.int64) - 1, n - 1)


def _matrix(columns: Array, n_columns: int) -> Any:
    indptr = np.arange(len(columns) + 1) * columns.shape[1]
    matrix = sparse.csr_array((np.ones(columns.size, np.float32), columns.ravel(), indptr), (len(columns), n_columns))
    matrix.sum_duplicates()
    matrix.data[:] = 1
    return matrix
