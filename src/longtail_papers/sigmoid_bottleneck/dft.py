"""`reproduce dft`: a narrow output layer against one of sines and cosines (Grivas et al., AAAI 2024, figure 5)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from longtail.progress import task
from longtail_papers.common import Column, Context, Experiment, Records, Section, Table, load_benchmarks
from longtail_papers.sigmoid_bottleneck.dft_findings import Findings
from longtail_papers.sigmoid_bottleneck.dft_runs import HEADS, METRIC_K, Plan, Run, Split, chosen_rate, measured
from longtail_papers.sigmoid_bottleneck.dft_steps import Steps, steps

_WIDTHS = (5, 10, 20, 50, 100, 200)
_LEARNING_RATES = (3e-3, 1e-2, 3e-2)
# The largest data set has fewer widths, because an epoch takes several times as long.
_PLANS = {
    "bibtex": Plan(_WIDTHS, 50, _LEARNING_RATES, n_sets=500),
    "delicious": Plan(_WIDTHS, 50, _LEARNING_RATES, n_sets=200),
    "eurlex-4k": Plan((5, 20, 50, 200), 50, _LEARNING_RATES, epochs=12, patience=2, n_sets=200),
}


def measurements(context: Context) -> Iterator[Section]:
    """The sections of all data sets, and the claims on top of them."""
    found: dict[str, Findings] = {}
    for name in context.data_sets:
        for findings in findings_on(name, context):
            found[name] = findings
            yield _claims(list(found.values()))
            yield findings.section()


def findings_on(name: str, context: Context) -> Iterator[Findings]:
    """The findings on a data set after each seed; none if it is not installed."""
    plan = _PLANS[name]
    if context.quick:
        plan = replace(plan, widths=(5, 50), learning_rates=(1e-2, 3e-2), seeds=(0,), epochs=4, n_sets=50)
    for benchmark in load_benchmarks((name,)):
        train, test = benchmark.features("rows normalised")
        labelled = (train, benchmark.train.labels), (test, benchmark.test.labels)
        split = Split.of(name, benchmark.title, *labelled, plan.n_sets)
        yield from compared(split, plan, context.records(name))


def compared(split: Split, plan: Plan, runs: Records[Run]) -> Iterator[Findings]:
    """Train both heads at every width; yield all findings so far after each seed.

    Seeds come one after the other, so an interrupted run has measured every width rather than a few of them well.
    """
    choices: list[Run] = []
    done: list[Run] = []
    amount = len(HEADS) * (len(plan.learning_rates) + len(plan.widths) * len(plan.seeds))
    with task(f"output layers on {split.title}", total=amount) as advance:

        def one(head: str, width: int, rate: float, seed: int) -> Run:
            found = measured(split, plan, head, width, rate, seed, runs)
            advance(1)
            return found

        rates = {}
        for head in HEADS:
            tried = [one(head, plan.chosen_at, rate, plan.seeds[0]) for rate in plan.learning_rates]
            rates[head] = chosen_rate(tried)
            choices += tried
        for seed in plan.seeds:
            done += [one(head, width, rates[head], seed) for width in plan.widths for head in HEADS]
            yield Findings(split, plan, choices, list(done))


def _claims(found: list[Findings]) -> Section:
    columns = Column("data"), Column("of what"), Column("paper"), Column("measured")
    text = (
        "The paper's figures are for other data and larger networks, so only the direction can agree. Epochs depend on "
        "the learning rate, which is chosen for each head separately. A bottleneck with as many parameters as a DFT is "
        "interpolated between the trained ones."
    )
    rows = [row for findings in found for row in findings.claims()]
    return Section("What the paper says, and what was found", text, [Table("Claims", columns, rows)])


def _record(**fields: Any) -> Run | Steps:
    return Steps(**fields) if "faster" in fields else Run(**fields)


EXPERIMENT = Experiment(
    name="dft",
    module=__name__,
    title="Narrow output layers",
    introduction=(
        "Two output layers without biases for labels, on top of one linear layer with ReLU and 256 outputs, are "
        "trained on the same rows by binary cross-entropy (Grivas et al., AAAI 2024, figure 5). The bottleneck "
        "projects to d numbers, and every label has d weights. The DFT projects to 2k + 1 + d numbers: labels have "
        "2k + 1 fixed weights, sines and cosines, and d trained ones, the slack. As in the paper, k is the largest "
        "number of labels of a row, and layers with the same number d of trained columns are compared; the tables "
        "call it the width. So the DFT has 2k + 1 more columns, and the parameters of their projection. It starts "
        "from the probability k / n for each of n labels, the bottleneck from about one half. The learning rate is "
        f"constant, training stops when F1@{METRIC_K} on validation rows no longer rises, and the weights of the best "
        "epoch are judged. A label set counts as unargmaxable only with a proof that no input gets exactly these "
        "labels, at scores above 0. The paper's networks and data (MIMIC-III, BioASQ, OpenImages) are not available, "
        "and it gives its results only as figures, so a description of these stands beside the measurements."
    ),
    data_sets=tuple(_PLANS),
    quick_data_sets=("bibtex",),
    sections=(steps, measurements),
    # Steps are timed while nothing else runs.
    parts={**{name: partial(findings_on, name) for name in reversed(_PLANS)}, "steps": None},
    record=_record,
)
