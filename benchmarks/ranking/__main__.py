"""What the parts of the default training contribute: ``python -m benchmarks.ranking``.

`docs/benchmarks.md` explains the parts and how long they take.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.compare import sample_name
from benchmarks.measure import ROOT, with_warning
from benchmarks.ranking.default import train_default
from benchmarks.ranking.forests import forests_rows, forests_table
from benchmarks.ranking.hidden import measure_hidden
from benchmarks.ranking.race import Outcome, candidates_table, race_table, train_candidates
from benchmarks.ranking.sources import ablate, sources_table
from benchmarks.ranking.vectors import vectors_rows, vectors_table
from benchmarks.samples import Sample, Split, load_sample
from longtail.errors import Unavailable
from longtail_papers.common import Cell, Results, Section, Table

DATA = ("yso-sv-30k", "eurlex57k-10k", "python-api")
HIDDEN_DATA = ("yso-sv",)
VECTORS_DATA = ("eurlex57k-15-words-10k", "eurlex57k-15-words", "python-api")
PARTS = ("sources", "race", "forests", "hidden", "vectors")
_K = 5
_TEXTS = {
    "sources": "Each learner alone, and two stages over some of the sources. Test rows, in percent.",
    "race": (
        "Every candidate was trained on all training rows and judged on the test rows. The race sees only the training "
        "rows. The announced time is that of the whole training on these threads."
    ),
    "forests": "Processor seconds; of prediction, the medians of interleaved rounds.",
    "hidden": (
        "A share of the labels was removed from the training rows. Their names stayed in the vocabulary, and the names "
        "of all labels compete. The other model learned from the same rows without these names."
    ),
    "vectors": "Test rows, in percent. Encoding is measured on one batch of test texts, in processor time.",
}


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse(arguments)
    out = Path(options.out) if options.out else Path(options.cache) / "results"
    told = f"Measured with {options.threads} threads. Nothing is chosen by these figures."
    results = Results(out, "ranking", "Parts of the default", with_warning(told, "times are inflated"))
    if set(options.parts) & {"sources", "race", "forests"}:
        compare_parts(options, results)
    for name in options.hidden_data if "hidden" in options.parts else ():
        try:
            found = measure_hidden(load_sample(name), options.threads).table()
        except Unavailable as missing:
            results.put(Section(name, f"Not measured: {missing}"))
            continue
        show(found)
        results.put(Section(f"Hidden labels: {Sample.named(name).title}", _TEXTS["hidden"], [found]))
    if "vectors" in options.parts:
        compare_vectors(options, results)
    for path in results.finish():
        print(path)


def compare_vectors(options: argparse.Namespace, results: Results) -> None:
    """The default with and without an encoder; the table is written after each data set."""
    rows: list[tuple[Cell, ...]] = []
    for name in options.vectors_data:
        try:
            rows += vectors_rows(name, Sample.named(name).title, load_sample(name), options.threads)
        except Unavailable as missing:
            results.put(Section(f"Sentence vectors: {Sample.named(name).title}", f"Not measured: {missing}"))
            continue
        results.put(Section("Sentence vectors", _TEXTS["vectors"], [show(vectors_table(rows))]))


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--data", nargs="+", type=sample_name, default=list(DATA), help=f"default: {' '.join(DATA)}")
    parser.add_argument("--hidden-data", nargs="+", type=sample_name, default=list(HIDDEN_DATA), help="with vocabulary")
    parser.add_argument("--vectors-data", nargs="+", type=sample_name, default=list(VECTORS_DATA), help="with texts")
    parser.add_argument("--threads", type=int, default=2)
    told = "expected processor seconds beyond which a candidate of the race is not trained"
    parser.add_argument("--most-seconds", type=float, default=600, help=told)
    parser.add_argument("--cache", default=str(ROOT / ".bench"))
    parser.add_argument("--out", help="folder for the results; default: results in the cache")
    return parser.parse_args(arguments)


@dataclass
class Collected:
    """What was measured on the data sets so far."""

    sources: list[Table] = field(default_factory=list)
    candidates: list[Table] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    forests: list[tuple[Cell, ...]] = field(default_factory=list)

    def sections(self) -> Iterator[Section]:
        if self.sources:
            yield Section("Sources", _TEXTS["sources"], self.sources)
        if self.outcomes:
            yield Section("Race", _TEXTS["race"], [race_table(self.outcomes), *self.candidates])
        if self.forests:
            yield Section("Forests", _TEXTS["forests"], [forests_table(self.forests)])


def compare_parts(options: argparse.Namespace, results: Results) -> None:
    """The sources, the race and the forests on each data set; the results are written after each of them."""
    collected = Collected()
    for name in options.data:
        try:
            split = load_sample(name)
        except Unavailable as missing:
            results.put(Section(Sample.named(name).title, f"Not measured: {missing}"))
            continue
        measure_parts(name, split, options, collected)
        for section in collected.sections():
            results.put(section)
    for section in collected.sections():
        show(section.tables[0])


def measure_parts(name: str, split: Split, options: argparse.Namespace, collected: Collected) -> None:
    """Measure the chosen parts on one data set; the default is trained once for all of them."""
    title = Sample.named(name).title
    if {"sources", "race"} & set(options.parts):
        run = train_default(split.train, options.threads)
    if "sources" in options.parts:
        found = []
        for line, figures in ablate(name, split, run, options.threads):
            print(f"{title}: {line}: nDCG@5 {figures['nDCG@5']:.2f}", flush=True)
            found.append((line, figures))
        collected.sources.append(show(sources_table(title, found)))
    if "race" in options.parts:
        candidates = list(train_candidates(name, split, run, options.threads, options.most_seconds))
        collected.candidates.append(show(candidates_table(title, candidates, run)))
        rows = split.test.texts if run.tagger.takes_texts else split.test.features
        default = run.judge(name, split, run.tagger.predict_topk(rows, _K)[0])
        collected.outcomes.append(Outcome(title, run, candidates, default))
    if "forests" in options.parts:
        collected.forests += forests_rows(title, split, options.threads)


def show(table: Table) -> Table:
    print(table.to_markdown(), end="\n\n", flush=True)
    return table


if __name__ == "__main__":
    main()
