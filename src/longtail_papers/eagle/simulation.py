"""The paper's two simulations: when it helps to assign the outputs of a group to its members."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product

import numpy as np

from longtail.arrays import Array
from longtail.pictures import Line, Panel, Picture
from longtail.progress import task
from longtail_papers.common.tables import Cell, Column, Section, Table
from longtail_papers.eagle.simulated_groups import Norm, classification_errors, regression_errors

SIGMAS = (0.0, 0.1, 1.0, 5.0, 10.0)
_SEEDS, _QUICK_SEEDS = 40, 5
# The mean over 40 seeds of the ratio to the oracle, from an independent implementation: the paper has curves only.
EARLIER: dict[str, tuple[float, ...]] = {
    "no_assignment": (1.00, 1.01, 1.43, 2.96, 3.27),
    "nearest": (1.00, 1.27, 1.93, 1.04, 1.00),
    "matched": (1.00, 1.20, 1.62, 1.00, 1.00),
}
_TITLES = {"no_assignment": "NoAS", "nearest": "AS, nearest", "matched": "AS, matched"}
_AGGREGATIONS: dict[str, Callable[[Array, Array], float]] = {
    "mean of ratios": lambda errors, oracle: float((errors / oracle).mean()),
    "ratio of root mean squares": lambda errors, oracle: float(np.sqrt((errors**2).mean() / (oracle**2).mean())),
}
# The paper's noise of rows, and one at which rows are mistaken often enough to count.
_NOISES = (0.1, 0.3)


def simulations(*, quick: bool) -> Iterator[Section]:
    """Both simulations; our own earlier runs are means of 40 seeds."""
    seeds = range(_QUICK_SEEDS if quick else _SEEDS)
    yield _regression(seeds)
    yield _classification(seeds)


def _regression(seeds: range) -> Section:
    norms: tuple[Norm, ...] = ("frobenius", "spectral")
    with task("simulated regression", total=len(SIGMAS) * len(norms) ** 2) as advance:
        errors: dict[tuple[Norm, Norm], list[dict[str, Array]]] = {}
        for norm, scale in product(norms, norms):
            errors[norm, scale] = []
            for sigma in SIGMAS:
                errors[norm, scale].append(regression_errors(sigma, seeds, norm, scale))
                advance(1)
    ratios = [{name: found[name] / found["oracle"] for name in EARLIER} for found in errors["frobenius", "spectral"]]
    columns = [Column("sigma2", "g")]
    for title in _TITLES.values():
        columns += [Column(f"{title}: {what}", ".2f") for what in ("earlier run", "measured", "±")]
    rows: list[tuple[Cell, ...]] = []
    for place, (sigma, found) in enumerate(zip(SIGMAS, ratios, strict=True)):
        cells = [(EARLIER[name][place], *_mean_and_spread(found[name])) for name in EARLIER]
        rows.append((sigma, *(cell for each in cells for cell in each)))
    choices = [
        (scale, norm, title, _largest_difference(errors[norm, scale], aggregate))
        for norm, scale in errors
        for title, aggregate in _AGGREGATIONS.items()
    ]
    choices.sort(key=lambda choice: choice[3])
    scale, norm, aggregation, difference = choices[0]
    return Section(
        "Simulated regression",
        "Section 5 of the paper: 100 groups of 10 rows, 10 features, 5 outputs; members lie around their group's "
        "centre with standard deviation sigma2, centres and the noise of outputs have standard deviation 1. NoAS "
        "fits sums of groups. AS gives each output to the member whose prediction by NoAS is nearest, to the letter of "
        "equation 3, or to one member each by the Hungarian method (matched). Errors of the coefficients are relative "
        f"to the oracle, which knows whose each output is: mean over {len(seeds)} seeds, ± standard deviation. The "
        "paper has curves only; beside it stand our own earlier runs over 40 seeds. The paper does not say in which "
        "norms or how seeds are averaged; of the choices in the second table, the earlier runs are met best with true "
        f"coefficients of {scale} norm 1, errors in the {norm} norm and the {aggregation}: the largest difference "
        f"over {len(SIGMAS) * len(EARLIER)} values is {difference:.3f}. The first table is with coefficients of "
        "spectral norm 1, errors in the Frobenius norm and the mean of ratios.",
        [
            Table("Error relative to the oracle", tuple(columns), rows),
            Table(
                "Largest difference from the earlier runs",
                (Column("coefficients of norm 1"), Column("norm of errors"), Column("seeds"), Column("largest", ".3f")),
                choices,
            ),
        ],
        [
            Picture(
                "eagle-regression.png",
                "Error of the coefficients relative to the oracle, against sigma2; dashed: earlier runs",
                [[Panel("Regression", "sigma2", "error / oracle's (dashed: earlier runs)", _lines(ratios, EARLIER))]],
            )
        ],
    )


def _largest_difference(found: list[dict[str, Array]], aggregate: Callable[[Array, Array], float]) -> float:
    return max(
        abs(aggregate(errors[name], errors["oracle"]) - earlier[place])
        for place, errors in enumerate(found)
        for name, earlier in EARLIER.items()
    )


def _classification(seeds: range) -> Section:
    tables: list[Table] = []
    panels: list[list[Panel]] = []
    gains: list[tuple[float, str, float | None, float | None]] = []
    columns = [Column("sigma2", "g")]
    for title in _TITLES.values():
        columns += [Column(f"{title}: {what}", ".3f") for what in ("distance", "±")]
    columns += [Column(f"{title}: wrong, %", ".3f") for title in ("oracle", *_TITLES.values())]
    with task("simulated classification", total=len(SIGMAS) * len(_NOISES)) as advance:
        for noise in _NOISES:
            found = []
            for sigma in SIGMAS:
                found.append(classification_errors(sigma, seeds, noise))
                advance(1)
            ratios = [{name: each.distance[name] / each.distance["oracle"] for name in _TITLES} for each in found]
            rows: list[tuple[Cell, ...]] = []
            for sigma, each, ratio in zip(SIGMAS, found, ratios, strict=True):
                distances = [cell for name in _TITLES for cell in _mean_and_spread(ratio[name])]
                rows.append((sigma, *distances, *(100 * float(wrong.mean()) for wrong in each.wrong.values())))
            tables.append(Table(f"Rows deviate from label vectors by {noise:g}", tuple(columns), rows))
            shares = [{name: 100 * each.wrong[name] for name in _TITLES} for each in found]
            panels.append(
                [
                    Panel(f"Distance, sigma1 {noise:g}", "sigma2", "distance / oracle's", _lines(ratios)),
                    Panel(f"Wrong labels, sigma1 {noise:g}", "sigma2", "percent of rows", _lines(shares)),
                ]
            )
            mixed, pure = found[0], found[-1]
            gains.append((noise, "distance", _gain(mixed.distance), _gain(pure.distance)))
            gains.append((noise, "wrong", _gain(mixed.wrong), _gain(pure.wrong)))
    holding = sum(first is not None and last is not None and first > last for *_, first, last in gains)
    gain_columns = (Column("sigma1", "g"), Column("error"), Column("mixed groups", ".1f"), Column("pure groups", ".1f"))
    tables.append(Table("Percent by which the error of AS, nearest is below that of NoAS", gain_columns, gains))
    return Section(
        "Simulated classification",
        "Appendix B.1 of the paper: 100 groups of 10 rows, 10 features, 5 labels whose vectors have length 1. A row is "
        "a label's vector and noise of standard deviation sigma1, and has the label whose vector has the largest "
        "product with it. One label of each group is exp(sigma2) times as likely as any other, so that groups are "
        "mixed where sigma2 is 0 and pure where it is large: the other way round than in the regression. The "
        "estimators are those of the regression on one-hot outputs. With the paper's sigma1 of 0.1 hardly any of "
        "10,000 test rows is labelled wrongly in any way, and a ratio of such errors says little. So the distance "
        "from the one-hot outputs (root mean square) is shown relative to the oracle's, mean over "
        f"{len(seeds)} seeds ± standard deviation, with the share of rows labelled wrongly beside it. A sigma1 of 0.3, "
        "at which labels are mistaken more often, is not in the paper. The paper has curves only, without figures; it "
        "says that assigning helps more the more mixed groups are. By the last table that is so in this run by "
        f"{holding} of the {len(gains)} ways to measure it.",
        tables,
        [
            Picture(
                "eagle-classification.png",
                "Distance from one-hot outputs relative to the oracle, and rows labelled wrongly, against sigma2",
                panels,
            )
        ],
    )


def _gain(errors: dict[str, Array]) -> float | None:
    """Percent by which assigning to the nearest lowers the mean error; None where there is none to lower."""
    whole, nearest = float(errors["no_assignment"].mean()), float(errors["nearest"].mean())
    return 100 * (1 - nearest / whole) if whole else None


def _mean_and_spread(values: Array) -> tuple[float, float]:
    return float(values.mean()), float(values.std(ddof=1))


def _lines(ratios: list[dict[str, Array]], earlier: dict[str, tuple[float, ...]] | None = None) -> list[Line]:
    lines = []
    for style, (name, title) in enumerate(_TITLES.items()):
        lines.append(Line(title, SIGMAS, [float(each[name].mean()) for each in ratios], style=style))
        if earlier:
            lines.append(Line("", SIGMAS, earlier[name], style=style, dash="dashed"))
    return lines
