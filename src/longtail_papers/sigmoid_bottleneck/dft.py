"""`reproduce dft`: a narrow output layer against one of sines and cosines (Grivas et al., AAAI 2024, figure 5)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from longtail.progress import task
from longtail_papers.common.benchmarks import Benchmark, left_out, load_benchmarks
from longtail_papers.common.records import Records, about
from longtail_papers.common.side_by_side import measure_parts
from longtail_papers.common.tables import Column, Results, Section, Table
from longtail_papers.sigmoid_bottleneck.dft_findings import Findings
from longtail_papers.sigmoid_bottleneck.dft_runs import HEADS, METRIC_K, Plan, Run, Split, chosen_rate, measured

_WIDTHS = (5, 10, 20, 50, 100, 200)
_LEARNING_RATES = (3e-3, 1e-2, 3e-2)
# The largest data set is trained on at fewer widths: an epoch takes several times as long.
_PLANS = {
    "bibtex": Plan(_WIDTHS, 50, _LEARNING_RATES, n_sets=500),
    "delicious": Plan(_WIDTHS, 50, _LEARNING_RATES, n_sets=200),
    "eurlex-4k": Plan((5, 20, 50, 200), 50, _LEARNING_RATES, epochs=12, patience=2, n_sets=200),
}
_INTRODUCTION = (
    "Two output layers without offsets for labels, on top of one linear layer with ReLU and 256 outputs, are trained "
    "on the same rows by binary cross-entropy (Grivas et al., AAAI 2024, figure 5). The bottleneck projects to d "
    "numbers, and every label has d weights. The DFT projects to 2k + 1 + d numbers: labels have 2k + 1 fixed weights, "
    "sines and cosines, and d trained ones, the slack. As in the paper, k is the largest number of labels that a row "
    "has, and layers of the same number d of trained columns are compared, which is the width below; so the DFT has "
    "2k + 1 columns more, and the parameters of their projection. It starts from the probability k / n of every one "
    "of n labels, the bottleneck from about a half. The learning rate is constant and training stops when "
    f"F1@{METRIC_K} on validation rows no longer rises; the weights of the best epoch are judged. A label set counts "
    "as unargmaxable only with a proof that no input gets exactly these labels, at scores above 0. The paper's "
    "networks and data (MIMIC-III, BioASQ, OpenImages) are not here, and it gives its results as figures only: what "
    "they show stands in words beside what was measured."
)


def data_sets(*, quick: bool) -> tuple[str, ...]:
    """The data sets that are measured on, where they are here."""
    return ("bibtex",) if quick else tuple(_PLANS)


def run(out_directory: Path, *, quick: bool = False) -> list[Path]:
    """Write ``dft.md``, ``dft.json``, records of trainings and pictures; see `longtail_papers.run`."""
    benchmarks = load_benchmarks(data_sets(quick=quick))
    names = [benchmark.name for benchmark in benchmarks]
    introduction = f"{_INTRODUCTION} {about([_records(out_directory, name, quick) for name in names])}"
    introduction += left_out(data_sets(quick=quick))
    results = Results(out_directory, "dft", "Narrow output layers", introduction, quick=quick)
    if not quick and names:
        measure_parts("longtail_papers.sigmoid_bottleneck.dft:measure", names[::-1], out_directory)
    found: dict[str, Findings] = {}
    for benchmark in benchmarks:
        plan = _PLANS[benchmark.name]
        if quick:
            plan = replace(plan, widths=(5, 50), learning_rates=(1e-2, 3e-2), seeds=(0,), epochs=4, n_sets=50)
        for findings in compared(_split(benchmark, plan), plan, _records(out_directory, benchmark.name, quick)):
            found[benchmark.name] = findings
            results.put(_claims(list(found.values())))
            results.put(findings.section())
    return [*results.finish(), *(_records(out_directory, name, quick).path for name in names)]


def measure(part: str, directory: str) -> None:
    """Train and audit all layers on the data set called `part`."""
    [benchmark] = load_benchmarks((part,))
    plan = _PLANS[part]
    for _ in compared(_split(benchmark, plan), plan, _records(Path(directory), part, quick=False)):
        pass


def _records(directory: Path, name: str, quick: bool) -> Records[Run]:
    return Records.of(directory, f"dft-{name}", Run, quick=quick)


def compared(split: Split, plan: Plan, runs: Records[Run]) -> Iterator[Findings]:
    """Train both heads at every width; all that was found so far after each seed.

    Seeds come one after the other, so that an early end leaves every width measured rather than few of them well.
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


def _split(benchmark: Benchmark, plan: Plan) -> Split:
    train, test = benchmark.features("rows normalised")
    labelled = (train, benchmark.train.labels), (test, benchmark.test.labels)
    return Split.of(benchmark.name, benchmark.title, *labelled, plan.n_sets)


def _claims(found: list[Findings]) -> Section:
    columns = Column("data"), Column("of what"), Column("paper"), Column("measured")
    text = (
        "The paper's figures are of other data and larger networks, so they can agree in direction only. Epochs depend "
        "on the learning rate, which is chosen for each head apart. A bottleneck of as many parameters as a DFT is "
        "read off the line between those trained."
    )
    rows = [row for findings in found for row in findings.claims()]
    return Section("What the paper says, and what was found", text, [Table("Claims", columns, rows)])
