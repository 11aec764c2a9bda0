"""Trainings on labels of groups: one record for each grouping, seed and strategy, and their means over seeds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from hashlib import blake2b
from typing import Any, Literal, Self

import numpy as np

from longtail.aggregated import AggregatedClassifier, aggregate_labels, clustered_groups, random_groups
from longtail.trees import LabelTree
from longtail_papers.common import PRECISIONS, Benchmark, Records, Spread, precisions, tracked


@dataclass(frozen=True)
class Grouping:
    """How rows are grouped: at random with a group size, or by clustering to a depth."""

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
    """Parameters of `AggregatedClassifier`."""

    name: str
    strategy: str
    rule: str = "joint"
    once: bool = False  # measured with the first seed only, because it trains all the others


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
    """The result of one training.

    Parameters
    ----------
    data_set, grouping, seed, way
        What was trained; the oracle has no grouping.
    precision : dict
        P@k on the test rows, in percent.
    placed : float
        Share of the labels trained on that are true, in percent.
    chosen : str
        The strategy that was used.
    """

    data_set: str
    grouping: str
    seed: int
    way: str
    precision: dict[str, float]
    placed: float
    chosen: str


class TreeTrainedOnce(LabelTree):
    """A label tree that returns its earlier model when it is trained on the same rows and labels again."""

    _trained: dict[bytes, LabelTree]

    def __sklearn_clone__(self) -> Self:
        return self

    def fit(self, X: Any, Y: Any, sample_weight: Any = None) -> LabelTree:
        """Return a trained `LabelTree`, which is another object."""
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
    ways: Sequence[Way] = WAYS,
    n_trees: int = 3,
    feature_name: str = "",
) -> Iterator[list[Run]]:
    """Train in every way on every grouping; yield all records so far after each grouping.

    Seeds come one after the other, so an interrupted run has measured every grouping rather than a few of them well.

    Parameters
    ----------
    benchmark : Benchmark
    features : pair of csr_array
        Scaled training and test rows.
    groupings, seeds, ways
        A seed is used for the grouping, the tree and the division of groups.
    runs : Records
        The records kept so far.
    n_trees : int
    feature_name : str
        Distinguishes other features of the same data set in the records.
    """
    groupings, seeds = list(groupings), list(seeds)
    (train, test), truth = features, benchmark.train.labels
    title = f"{benchmark.name} {feature_name}".strip()
    done: list[Run] = []

    def add(grouping: str, seed: int, way: str, estimators: Sequence[Any], fit: Callable[[], tuple[Any, str]]) -> None:
        def trained() -> Run:
            labels, chosen = fit()
            judged = precisions(benchmark.test.labels, estimators[0].predict_topk(test)[0])
            return Run(title, grouping, seed, way, judged, true_share(labels, truth), chosen)

        settings = {"data": title, "grouping": grouping, "seed": seed, "way": way}
        settings["parameters"] = list(map(_parameters, estimators))
        done.append(runs.measured(settings, trained, f"{grouping or 'true labels'}, seed {seed}, {way}"))

    def fit_oracle(tree: LabelTree) -> tuple[Any, str]:
        tree.fit(train, truth)
        return truth, ORACLE

    def fit_aggregated(model: AggregatedClassifier, groups: Callable[[], Any]) -> tuple[Any, str]:
        model.fit(train, groups(), aggregate_labels(truth, groups(), merge="list"))
        return model.row_labels_, model.strategy_

    jobs = [(seed, grouping) for seed in seeds for grouping in groupings]
    for seed, grouping in tracked(f"labels of groups on {title}", jobs):
        if grouping is groupings[0]:
            oracle = LabelTree(n_trees=n_trees, random_state=seed)
            add("", seed, ORACLE, [oracle], partial(fit_oracle, oracle))
        tree = TreeTrainedOnce(n_trees=n_trees, random_state=seed)
        groups = cache(partial(grouping.memberships, train, seed))
        for way in ways:
            if not way.once or seed == seeds[0]:
                model = AggregatedClassifier(tree, strategy=way.strategy, rule=way.rule, random_state=seed)
                add(grouping.name, seed, way.name, [model, tree], partial(fit_aggregated, model, groups))
        yield list(done)


def true_share(labels: Any, truth: Any) -> float:
    """The percentage of row-label pairs that are true.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> true_share(csr_array([[1.0, 1.0], [0.0, 1.0]]), csr_array([[1.0, 0.0], [0.0, 1.0]]))
    66.66...
    """
    return 100 * float(labels.multiply(truth).sum()) / max(1, labels.nnz)


def _parameters(estimator: Any) -> dict[str, Any]:
    """Every parameter that a record depends on."""
    parameters = estimator.get_params(deep=False)
    return {name: value for name, value in parameters.items() if name not in ("estimator", "n_jobs")}


@dataclass(frozen=True)
class Summary:
    """The runs of one way on one grouping, summarised over seeds."""

    seeds: int
    precision: dict[str, Spread]
    placed: float
    chosen: str

    @classmethod
    def of(cls, runs: Sequence[Run]) -> Summary:
        counts = Counter(run.chosen for run in runs)
        return cls(
            len(runs),
            {name: Spread.of(run.precision[name] for run in runs) for name in PRECISIONS},
            Spread.of(run.placed for run in runs).mean,
            ", ".join(f"{name} ({count})" if len(counts) > 1 else name for name, count in counts.most_common()),
        )

    def mean(self, metric: str) -> float:
        return self.precision[metric].mean


@dataclass(frozen=True)
class Findings:
    """Summaries of the oracle, and of each grouping and way."""

    oracle: Summary
    ways: dict[Grouping, dict[str, Summary]] = field(default_factory=dict)

    @classmethod
    def of(cls, runs: Sequence[Run], groupings: Sequence[Grouping]) -> Findings:
        found: dict[tuple[str, str], list[Run]] = {}
        for run in runs:
            found.setdefault((run.grouping, run.way), []).append(run)
        ways = {
            grouping: {way.name: Summary.of(found[key]) for way in WAYS if (key := (grouping.name, way.name)) in found}
            for grouping in groupings
        }
        return cls(Summary.of(found["", ORACLE]), {grouping: each for grouping, each in ways.items() if each})

    def of_kind(self, kind: str) -> dict[Grouping, dict[str, Summary]]:
        return {grouping: each for grouping, each in self.ways.items() if grouping.kind == kind}
