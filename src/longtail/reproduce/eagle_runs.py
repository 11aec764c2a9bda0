"""Learning from labels of groups, measured: one record for each grouping, seed and way to place labels.

Records are kept in a file, so that a run that was interrupted goes on where it stopped.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np

from longtail.aggregated import AggregatedClassifier, aggregate_labels, clustered_groups, random_groups
from longtail.data.cache import written_whole
from longtail.errors import InvalidInput
from longtail.linear import LabelTree
from longtail.progress import stage, task
from longtail.reproduce.benchmarks import KS, Benchmark
from longtail.version import __version__

Array = np.ndarray[Any, np.dtype[Any]]

PRECISIONS = tuple(f"P@{k}" for k in KS)


@dataclass(frozen=True)
class Grouping:
    """How rows are put into groups: at random by the size of a group, or by clustering by its depth."""

    kind: Literal["random", "clustered"]
    amount: int

    @property
    def name(self) -> str:
        return f"random groups of {self.amount}" if self.kind == "random" else f"clusters of depth {self.amount}"

    def memberships(self, X: Any, seed: int) -> Any:
        if self.kind == "random":
            return random_groups(X.shape[0], self.amount, random_state=seed)
        return clustered_groups(X, self.amount, random_state=seed)


@dataclass(frozen=True)
class Way:
    """A way to learn from labels of groups, as `AggregatedClassifier` knows it."""

    name: str
    strategy: str
    rule: str = "joint"
    once: bool = False  # measured with the first seed only: it trains all others


ORACLE = "oracle"
WAYS = (
    Way("all", "all"),
    Way("EAGLE-0, argmax", "eagle-0", "argmax"),
    Way("EAGLE, argmax", "eagle", "argmax"),
    Way("EAGLE, count", "eagle", "count"),
    Way("EAGLE-0, joint", "eagle-0"),
    Way("EAGLE, joint", "eagle"),
    Way("iterate, joint", "iterate"),
    Way("auto", "auto", once=True),
)


@dataclass(frozen=True)
class Run:
    """What one training led to.

    Parameters
    ----------
    data_set, grouping, seed, way
        What was measured; the oracle has no grouping.
    settings : str
        A fingerprint of every parameter that the figures depend on.
    precision : dict
        P@k on the test rows, in percent.
    placed : float
        Share of the labels trained on that are true, in percent.
    chosen : str
        The strategy that was followed.
    """

    data_set: str
    grouping: str
    seed: int
    way: str
    settings: str
    precision: dict[str, float]
    placed: float
    chosen: str

    @property
    def key(self) -> tuple[str, str, int, str, str]:
        return self.data_set, self.grouping, self.seed, self.way, self.settings


class Runs:
    """The records of a file, and those added to it.

    Parameters
    ----------
    path : path
        Need not exist. What was measured with other settings or by another version is not found again.

    Attributes
    ----------
    kept : int
        Records that the file had before.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._runs: dict[tuple[str, str, int, str, str], Run] = {}
        if path.is_file():
            try:
                known = [Run(**record) for record in json.loads(path.read_text(encoding="utf-8"))]
            except (ValueError, TypeError) as error:
                raise InvalidInput(
                    f"{path} does not hold the runs of an experiment: {error}; remove it to measure anew"
                ) from None
            self._runs = {run.key: run for run in known}
        self.kept = len(self._runs)

    def find(self, key: tuple[str, str, int, str, str]) -> Run | None:
        return self._runs.get(key)

    def add(self, run: Run) -> None:
        """Add a record and write the file."""
        self._runs[run.key] = run
        text = json.dumps([asdict(each) for each in self._runs.values()], indent=1)
        with written_whole(self.path) as file:
            file.write(f"{text}\n".encode())


class TreeTrainedOnce(LabelTree):
    """A label tree that gives back the model it has where it is trained on the same rows and labels again."""

    _trained: dict[bytes, LabelTree]

    def __sklearn_clone__(self) -> Self:
        return self

    def fit(self, X: Any, Y: Any) -> LabelTree:
        """A trained tree, which is not this one."""
        digest = blake2b(repr((X.shape, Y.shape)).encode(), digest_size=16)
        for part in (X.indptr, X.indices, X.data, Y.indptr, Y.indices):
            digest.update(np.ascontiguousarray(part).view(np.uint8).data)
        trained = self.__dict__.setdefault("_trained", {})
        key = digest.digest()
        if key not in trained:
            trained[key] = LabelTree(**self.get_params()).fit(X, Y)
        model: LabelTree = trained[key]
        return model


def measure(
    benchmark: Benchmark,
    features: tuple[Any, Any],
    groupings: Iterable[Grouping],
    seeds: Iterable[int],
    runs: Runs,
    *,
    ways: Iterable[Way] = WAYS,
    n_trees: int = 3,
    feature_name: str = "",
) -> Iterator[list[Run]]:
    """Train in every way on every grouping; all records so far after each grouping.

    Seeds come one after the other, so that an early end leaves every grouping measured rather than few of them well.

    Parameters
    ----------
    benchmark : Benchmark
    features : pair of csr_array
        Scaled training and test rows.
    groupings, seeds, ways
        A seed serves for the grouping, the tree and the division of groups alike.
    runs : Runs
        Where records are kept and found again.
    n_trees : int
    feature_name : str
        Told apart in the records where other features of the same data set are measured.
    """
    groupings, seeds, ways = list(groupings), list(seeds), list(ways)
    title = f"{benchmark.name} {feature_name}".strip()
    done: list[Run] = []
    with task(f"labels of groups on {title}", total=_amount(len(seeds), len(groupings), ways)) as advance:
        for seed in seeds:
            done.append(_oracle(benchmark, features, title, LabelTree(n_trees=n_trees, random_state=seed), runs))
            advance(1)
            for grouping in groupings:
                # Models are kept while they may be wanted again, which ends with the grouping.
                tree = TreeTrainedOnce(n_trees=n_trees, random_state=seed)
                aggregated = None
                for way in ways:
                    if way.once and seed != seeds[0]:
                        continue
                    model = AggregatedClassifier(tree, strategy=way.strategy, rule=way.rule, random_state=seed)
                    key = (title, grouping.name, seed, way.name, _fingerprint(model, tree))
                    run = runs.find(key)
                    if run is None:
                        if aggregated is None:
                            groups = grouping.memberships(features[0], seed)
                            aggregated = groups, aggregate_labels(benchmark.train.labels, groups, merge="list")
                        with stage(f"{grouping.name}, seed {seed}, {way.name}"):
                            model.fit(features[0], *aggregated)
                        run = _judged(benchmark, features[1], model, model.row_labels_, key, model.strategy_)
                        runs.add(run)
                    done.append(run)
                    advance(1)
                yield list(done)


def _amount(n_seeds: int, n_groupings: int, ways: list[Way]) -> int:
    return n_seeds + n_groupings * sum(1 if way.once else n_seeds for way in ways)


def _oracle(benchmark: Benchmark, features: tuple[Any, Any], title: str, tree: LabelTree, runs: Runs) -> Run:
    key = (title, "", int(tree.random_state or 0), ORACLE, _fingerprint(tree))
    run = runs.find(key)
    if run is None:
        labels = benchmark.train.labels
        with stage(f"true labels, seed {tree.random_state}"):
            tree.fit(features[0], labels)
        run = _judged(benchmark, features[1], tree, labels, key, ORACLE)
        runs.add(run)
    return run


def _judged(
    benchmark: Benchmark, test: Any, model: Any, labels: Any, key: tuple[str, str, int, str, str], chosen: str
) -> Run:
    judged = benchmark.judge(model.predict_topk(test)[0])
    precision = {name: judged[name] for name in PRECISIONS}
    return Run(*key, precision, true_share(labels, benchmark.train.labels), chosen)


def true_share(labels: Any, truth: Any) -> float:
    """The share of pairs of row and label that are true, in percent.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> true_share(csr_array([[1.0, 1.0], [0.0, 1.0]]), csr_array([[1.0, 0.0], [0.0, 1.0]]))
    66.66...
    """
    return 100 * float(labels.multiply(truth).sum()) / max(1, labels.nnz)


def _fingerprint(*estimators: Any) -> str:
    parameters = [
        {name: value for name, value in estimator.get_params(deep=False).items() if name not in ("estimator", "n_jobs")}
        for estimator in estimators
    ]
    text = json.dumps([__version__, parameters], sort_keys=True, default=repr)
    return blake2b(text.encode(), digest_size=6).hexdigest()
