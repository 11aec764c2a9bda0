"""Ridge at fixed settings beside our own earlier runs, and with alpha chosen without the test set."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from longtail.ridge import Ridge, RidgeCV
from longtail_papers.common import METRICS, Benchmark, Cell, Column, Context, Section, Table, tracked


@dataclass(frozen=True)
class Setting:
    """Parameters of ridge, and the metrics of an earlier run in the order of `METRICS` (or only the first of them)."""

    scaling: str
    alpha: float
    earlier: tuple[float, ...]
    weighting: str | None = None
    fit_intercept: bool = False

    def describe(self) -> str:
        parts = [self.scaling]
        if self.fit_intercept:
            parts.append("intercept")
        if self.weighting:
            parts.append("weighted targets")
        return ", ".join(parts)


_PUBLISHED, _UNIT, _LOG = "as published", "rows normalised", "log(1+v), rows normalised"

# Our own earlier runs of another implementation at these settings (propensities with A = 0.55 and B = 1.5). The
# paper's own tables of P@k are not available. Alpha 0.877 gives the values listed for 0.88.
EARLIER: dict[str, tuple[Setting, ...]] = {
    "bibtex": (
        Setting(_PUBLISHED, 92, (63.10, 39.76, 29.15, 48.28, 53.28, 58.97)),
        Setting(_PUBLISHED, 93, (65.92, 41.06, 29.73, 52.40, 56.28, 61.05), weighting="target"),
        Setting(_PUBLISHED, 30, (64.02, 39.62, 28.79, 49.71, 53.46, 58.43)),
        Setting(_PUBLISHED, 30, (64.45, 39.62, 28.76, 50.18, 53.47, 58.36), fit_intercept=True),
        Setting(_UNIT, 0.88, (65.37, 40.16, 29.26, 50.85, 54.21, 59.53), fit_intercept=True),
    ),
    "delicious": (
        Setting(_PUBLISHED, 50, (61.63, 57.16, 52.95, 30.58, 32.08, 32.73)),
        Setting(_PUBLISHED, 50, (59.12, 54.70, 51.10, 31.72, 32.57, 33.08), weighting="target"),
        Setting(_UNIT, 2.7, (66.34, 60.43, 55.77, 31.65, 32.73, 33.41), fit_intercept=True),
    ),
    "eurlex-4k": (
        Setting(_UNIT, 0.1, (80.81, 67.45, 56.45)),
        Setting(_UNIT, 0.3, (80.97, 67.46, 56.51)),
        Setting(_UNIT, 0.5, (81.02, 67.29, 56.30)),
        Setting(_UNIT, 1, (80.34, 66.82, 55.57)),
        Setting(_UNIT, 4, (78.42, 64.26, 53.68)),
        Setting(_LOG, 0.1, (82.52, 68.81, 57.18)),
        Setting(_LOG, 0.3, (82.57, 68.65, 57.21)),
        Setting(_LOG, 0.5, (82.28, 68.28, 56.89)),
        Setting(_LOG, 1, (81.94, 67.52, 56.14)),
        Setting(_LOG, 4, (78.50, 63.82, 52.88)),
    ),
}

# Data set, scaling, intercept.
_CHOSEN = (
    ("bibtex", _PUBLISHED, False),
    ("bibtex", _UNIT, True),
    ("delicious", _UNIT, True),
    ("eurlex-4k", _UNIT, False),
    ("eurlex-4k", _LOG, False),
)


def earlier_and_measured(context: Context) -> Iterator[Section]:
    """Every setting of `EARLIER`; the section grows by one data set at a time."""
    tables: list[Table] = []
    differences: list[float] = []
    columns = (
        *(Column("features"), Column("alpha", "g"), Column("metric")),
        *(Column("earlier run", ".2f"), Column("measured", ".2f"), Column("difference", "+.2f")),
    )
    for benchmark in context.benchmarks:
        rows: list[tuple[Cell, ...]] = []
        for setting in tracked(f"ridge at fixed settings on {benchmark.title}", EARLIER[benchmark.name]):
            measured = _measure(benchmark, setting)
            for metric, earlier in zip(METRICS, setting.earlier, strict=False):
                difference = round(measured[metric], 2) - earlier
                differences.append(abs(difference))
                rows.append((setting.describe(), setting.alpha, metric, earlier, measured[metric], difference))
        tables.append(Table(benchmark.title, columns, rows))
        yield Section(
            "Earlier runs and this one",
            "Percent on the test set, beside our own earlier runs of another implementation at the same settings; the "
            "paper's own tables of P@k are not available. Ridge is deterministic, so there are no seeds and no spread. "
            "The alpha 0.88 may be rounded in its source, which would explain the differences there. "
            f"The largest difference over {len(differences)} values is {max(differences):.2f} points.",
            list(tables),
        )


def _measure(benchmark: Benchmark, setting: Setting) -> dict[str, float]:
    train, test = benchmark.features(setting.scaling)
    model = Ridge(setting.alpha, fit_intercept=setting.fit_intercept, weighting=setting.weighting)
    return benchmark.judge(model.fit(train, benchmark.train.labels).predict_topk(test)[0])


def chosen_alpha(context: Context) -> Iterator[Section]:
    """Ridge with alpha from leave-one-out on the training rows."""
    rows: list[tuple[Cell, ...]] = []
    present = {benchmark.name: benchmark for benchmark in context.benchmarks}
    chosen = [choice for choice in _CHOSEN if choice[0] in present]
    columns = (
        *(Column("data set"), Column("features"), Column("chosen alpha", ".4g")),
        *(Column(metric, ".2f") for metric in METRICS),
    )
    for name, scaling, fit_intercept in tracked("choosing alpha", chosen[:1] if context.quick else chosen):
        benchmark = present[name]
        train, test = benchmark.features(scaling)
        model = RidgeCV(fit_intercept=fit_intercept).fit(train, benchmark.train.labels)
        measured = benchmark.judge(model.predict_topk(test)[0])
        features = f"{scaling}, intercept" if fit_intercept else scaling
        rows.append((benchmark.title, features, model.alpha_, *(measured[metric] for metric in METRICS)))
        yield Section(
            "Alpha chosen without the test set",
            "`RidgeCV` with its default path of seven alphas, chosen by the exact leave-one-out nDCG@5 of at most "
            "2,000 training rows. Percent on the test set, which plays no part in the choice.",
            [Table("Measured", columns, list(rows))],
        )
