"""Learning from labels of groups, measured: one record for each grouping, seed and way to place labels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any, Literal, Self

import numpy as np

from longtail.aggregated import AggregatedClassifier, aggregate_labels, clustered_groups, random_groups
from longtail.progress import task
from longtail.trees import LabelTree
from longtail_papers.common.benchmarks import KS, Benchmark
from longtail_papers.common.records import Records

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
    precision: dict[str, float]
    placed: float
    chosen: str


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
    runs: Records[Run],
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
    runs : Records
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
                aggregated = _Aggregated(benchmark, features, title, grouping, seed, n_trees)
                for way in ways:
                    if way.once and seed != seeds[0]:
                        continue
                    done.append(aggregated.measured(way, runs))
                    advance(1)
                yield list(done)


def _amount(n_seeds: int, n_groupings: int, ways: list[Way]) -> int:
    return n_seeds + n_groupings * sum(1 if way.once else n_seeds for way in ways)


class _Aggregated:
    """Rows in groups of one seed, made when they are first wanted.

    The models that were trained are kept while they may be wanted again, which ends with the grouping.
    """

    def __init__(
        self, benchmark: Benchmark, features: tuple[Any, Any], title: str, grouping: Grouping, seed: int, n_trees: int
    ) -> None:
        self._benchmark = benchmark
        self._features = features
        self._place = title, grouping.name, seed
        self._grouping = grouping
        self._tree = TreeTrainedOnce(n_trees=n_trees, random_state=seed)

    @cached_property
    def _labelled(self) -> tuple[Any, Any]:
        groups = self._grouping.memberships(self._features[0], self._place[-1])
        return groups, aggregate_labels(self._benchmark.train.labels, groups, merge="list")

    def measured(self, way: Way, runs: Records[Run]) -> Run:
        title, grouping, seed = self._place
        model = AggregatedClassifier(self._tree, strategy=way.strategy, rule=way.rule, random_state=seed)

        def measure() -> Run:
            model.fit(self._features[0], *self._labelled)
            judged = _judged(self._benchmark, self._features[1], model, model.row_labels_)
            return Run(title, grouping, seed, way.name, *judged, model.strategy_)

        settings = _settings(title, grouping, seed, way.name, model, self._tree)
        return runs.measured(settings, measure, f"{grouping}, seed {seed}, {way.name}")


def _oracle(benchmark: Benchmark, features: tuple[Any, Any], title: str, tree: LabelTree, runs: Records[Run]) -> Run:
    labels, seed = benchmark.train.labels, int(tree.random_state or 0)

    def measure() -> Run:
        tree.fit(features[0], labels)
        return Run(title, "", seed, ORACLE, *_judged(benchmark, features[1], tree, labels), ORACLE)

    return runs.measured(_settings(title, "", seed, ORACLE, tree), measure, f"true labels, seed {seed}")


def _judged(benchmark: Benchmark, test: Any, model: Any, labels: Any) -> tuple[dict[str, float], float]:
    judged = benchmark.judge(model.predict_topk(test)[0])
    return {name: judged[name] for name in PRECISIONS}, true_share(labels, benchmark.train.labels)


def true_share(labels: Any, truth: Any) -> float:
    """The share of pairs of row and label that are true, in percent.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> true_share(csr_array([[1.0, 1.0], [0.0, 1.0]]), csr_array([[1.0, 0.0], [0.0, 1.0]]))
    66.66...
    """
    return 100 * float(labels.multiply(truth).sum()) / max(1, labels.nnz)


def _settings(title: str, grouping: str, seed: int, way: str, *estimators: Any) -> dict[str, Any]:
    """All that a record depends on: what was measured, and every parameter besides the number of processes."""
    parameters = [
        {name: value for name, value in estimator.get_params(deep=False).items() if name not in ("estimator", "n_jobs")}
        for estimator in estimators
    ]
    return {"data": title, "grouping": grouping, "seed": seed, "way": way, "parameters": parameters}
