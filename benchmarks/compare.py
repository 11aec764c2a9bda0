"""longtail side by side with its peers in one run: ``python -m benchmarks.compare`` or ``make bench``.

`docs/benchmarks.md` explains what is measured and how to read it.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from benchmarks.data import DATA_SETS, Prepared, prepare
from benchmarks.learners import LEARNERS
from benchmarks.measure import ROOT, Conditions, Measurement, measure_rounds, with_warning
from benchmarks.report import accuracy_section, bars_section, figures_in_a_line, section_of
from benchmarks.samples import Sample
from benchmarks.summary import summarise
from longtail.errors import InvalidInput, Unavailable
from longtail.files import whole_file
from longtail_papers.common import Results, Section

INTRODUCTION = (
    "Each learner ran in its own process on the same prepared files, rows of unit length, with {threads} threads; the "
    "rounds of all learners were interleaved. Training time is from arrays in memory to a model in memory. The lines "
    "`longtail train` and Annif start from texts instead, in training and in prediction, so their times include making "
    "features and those of the other learners do not; they also know the texts of labels. All rankings were judged by "
    "longtail's metrics. Labels without training rows count as missed. Peers have their documented defaults."
)


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse(arguments)
    cache = Path(options.cache)
    out = Path(options.out) if options.out else cache / "results"
    rounds = options.rounds or (1 if options.quick else 3)
    raw = out / "measurements.json"
    measurements = read_measurements(options.read or raw) if options.read or options.resume else []
    told = INTRODUCTION.format(threads=options.threads)
    introduction = with_warning(told, "times are inflated, CPU seconds less so")
    results = Results(out, "compare", "longtail and its peers", introduction, quick=rounds < 3)
    conditions = Conditions(cache, options.threads, options.timeout, options.everything)
    learners = [learner for learner in LEARNERS if learner.key in options.learners]
    by_title = {}
    for data in available(options.data, cache, results):
        if not options.read:
            print(f"{data.title}: {len(learners)} learners, {rounds} rounds", flush=True)
            measurements = [
                kept for kept in measurements if not (kept.data_set == data.name and kept.learner in options.learners)
            ]
            for measurement in measure_rounds(learners, data, rounds, conditions):
                measurements.append(measurement)
                write_measurements(raw, measurements)
                print(tell(measurement), flush=True)
        rows = summarise(measurements, data.name)
        if rows:
            by_title[data.title] = rows
            results.put(section_of(data, rows))
    results.put(accuracy_section(by_title))
    bars = bars_section(by_title)
    results.put(bars)
    print("\n\n".join(table.to_markdown() for table in bars.tables))
    for path in results.finish():
        print(path)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    keys = [learner.key for learner in LEARNERS]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    told = f"data sets, or samples such as yso-sv-30k or eurlex57k-15-words-10k; default: {' '.join(DATA_SETS)}"
    parser.add_argument("--data", nargs="+", type=sample_name, default=list(DATA_SETS), help=told)
    usual = [learner.key for learner in LEARNERS if learner.by_default]
    parser.add_argument("--learners", nargs="+", choices=keys, default=usual)
    parser.add_argument("--rounds", type=int, help="runs of every learner; default 3, or 1 with --quick")
    parser.add_argument("--quick", action="store_true", help="one round")
    parser.add_argument("--threads", type=int, default=2, help="threads of every learner")
    parser.add_argument("--timeout", type=float, default=1800, help="seconds after which a learner is stopped")
    parser.add_argument("--everything", action="store_true", help="also run learners that take too long")
    parser.add_argument("--cache", default=str(ROOT / ".bench"), help="folder for environments and prepared data")
    parser.add_argument("--out", help="folder for the results; default: results in the cache")
    parser.add_argument("--resume", action="store_true", help="keep earlier measurements of other learners")
    parser.add_argument("--read", type=Path, help="only write the report of this measurements.json")
    return parser.parse_args(arguments)


def sample_name(name: str) -> str:
    """A name of the command line that `benchmarks.samples` knows."""
    try:
        return Sample.named(name).name
    except InvalidInput as unknown:
        raise argparse.ArgumentTypeError(str(unknown)) from None


def available(names: Iterable[str], cache: Path, results: Results) -> Iterable[Prepared]:
    """Prepare the data sets that are installed; name the others in the results."""
    for name in names:
        try:
            yield prepare(name, cache / "data")
        except Unavailable as missing:
            print(f"{name}: {missing}", flush=True)
            results.put(Section(name, f"Not measured: {missing}"))


def tell(measurement: Measurement) -> str:
    ok = measurement.status == "ok"
    told = figures_in_a_line(measurement.figures) if ok else f"{measurement.status}: {measurement.reason}"
    return f"  round {measurement.round}  {measurement.learner:<12}  {told}"


def write_measurements(path: Path, measurements: Iterable[Measurement]) -> None:
    """Write all rounds so far; the file is complete at any moment."""
    content = {"measurements": [measurement.to_dict() for measurement in measurements]}
    with whole_file(path, parents=True) as file:
        file.write((json.dumps(content, indent=1, allow_nan=False) + "\n").encode())


def read_measurements(path: Path) -> list[Measurement]:
    """Read the file of `write_measurements`; an empty list if there is none."""
    if not path.is_file():
        return []
    content = json.loads(path.read_text(encoding="utf-8"))
    return [Measurement.from_dict(values) for values in content["measurements"]]


if __name__ == "__main__":
    main()
