"""How well `longtail plan` predicts: ``python -m benchmarks.plan``.

The costs of this machine are measured first, on small data of other sizes. Then each data set is prepared, trained in
pieces by two threads, saved and searched, and every stage is compared with its plan. Processor time divided by the
number of threads is the wall time on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.large import AMAZON_3M, write_rows
from benchmarks.measure import ROOT
from longtail import LabelTree, in_pieces
from longtail.data import find_data_set
from longtail.planning import Costs, Plan, Spent, Workload, calibrate, measured_stages, plan
from longtail.prepared import open_prepared, prepare
from longtail_papers.common import Column, Results, Section, Table

SHARES = ("amazon-3m:0.015", "amazon-3m:0.04", "amazon-3m:0.1")
PREDICTED_ROWS = 5000


@dataclass(frozen=True)
class Compared:
    """A figure of one stage or of the whole training; seconds of processor time, or bytes."""

    data: str
    what: str
    planned: float
    measured: float
    planned_wall: float | None = None
    measured_wall: float | None = None

    @property
    def error(self) -> float:
        """The difference, in percent of what was measured.

        >>> Compared("", "", 3.0, 2.0).error
        50.0
        """
        return 100 * (self.planned / self.measured - 1) if self.measured else float("nan")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=list(SHARES), help="amazon-3m:share, or a named data set")
    parser.add_argument("--negatives", choices=("siblings", "beam"), default="siblings")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--costs", help="a file of `longtail plan --costs`; without it, this machine is measured")
    parser.add_argument("--cache", default=str(ROOT / ".bench"))
    parser.add_argument("--out", help="folder for the results; default: results in the cache")
    options = parser.parse_args(arguments)
    cache = Path(options.cache).resolve()
    out = Path(options.out) if options.out else cache / "results"
    results = Results(out, "plan", "Plans and measurements", __doc__ or "")
    costs = Costs.load(options.costs) if options.costs else calibrate()
    print(json.dumps({"costs": asdict(costs)}), flush=True)
    found: list[Compared] = []
    for name in options.data:
        with tempfile.TemporaryDirectory(dir=cache) as folder:
            for each in compare(name, costs, options.negatives, options.threads, Path(folder)):
                print(json.dumps(asdict(each) | {"error": round(each.error, 1)}), flush=True)
                found.append(each)
        results.put(section_of(found))
    for path in results.finish():
        print(path)


def compare(name: str, costs: Costs, negatives: str, threads: int, folder: Path) -> list[Compared]:
    """Prepare, train, save and predict one data set, and compare with its plan."""
    file = file_of(name, folder)
    with measured_stages() as stages:
        begun = Spent.now()
        corpus = prepare([file], folder / "prepared")
        preparing = since(begun)
        load = workload_of(name, folder, negatives)
        tree = LabelTree(negatives=negatives, n_jobs=threads)
        begun = Spent.now()
        with in_pieces(folder / "unfinished"):
            tree.fit(corpus.features, corpus.labels)
            tree.save(folder / "model")
            training = since(begun)
            pieces = size_of(folder / "unfinished")
    stages = {stage: spent for stage, spent in stages.items() if stage in STAGES}
    planned = plan(load, costs, cores=threads)
    rest = Spent(*(whole - sum(each[place] for each in stages.values()) for place, whole in enumerate(training)))
    spent = {"preparing": preparing, **merged(stages), "joining": rest}
    begun = Spent.now()
    tree.predict_topk(corpus.features[:PREDICTED_ROWS], k=10)
    predicting = since(begun).cpu / min(PREDICTED_ROWS, corpus.n_rows)
    return [
        *stages_compared(name, planned, spent),
        Compared(name, "predicting 1000 rows", 1000 / planned.rows_per_second, 1000 * predicting),
        Compared(name, "bytes: prepared", planned.prepared_bytes, size_of(folder / "prepared")),
        Compared(name, "bytes: unfinished", planned.pieces_bytes, pieces),
        Compared(name, "bytes: model", planned.model_bytes, size_of(folder / "model")),
    ]


STAGES = {
    "labels of rows": "rows of labels",
    "rows of labels": "rows of labels",
    "label vectors": "label vectors",
    "bisecting labels": "clustering labels",
    "sampling labels": "clustering labels",
    "dividing labels": "clustering labels",
    "clustering labels": "clustering labels",
    "training classifiers": "training classifiers",
    "searching for negatives": "searching for negatives",
    "training classifiers again": "training classifiers again",
}


def merged(stages: dict[str, Spent]) -> dict[str, Spent]:
    """The time of the stages of a plan; clustering has several in a training."""
    found: dict[str, Spent] = {}
    for stage, spent in stages.items():
        before = found.get(STAGES[stage], Spent(0, 0))
        found[STAGES[stage]] = Spent(before.cpu + spent.cpu, before.wall + spent.wall)
    return found


def stages_compared(name: str, planned: Plan, spent: dict[str, Spent]) -> list[Compared]:
    """Every stage, and all of them together."""
    cpu = dict.fromkeys(spent, 0.0)
    wall = dict.fromkeys(spent, 0.0)
    for stage, timed in zip(planned.stages, planned.machine.stages, strict=True):
        cpu[stage.name] += stage.cpu_seconds
        wall[stage.name] += timed.seconds
    lines = [Compared(name, stage, cpu[stage], spent[stage].cpu, wall[stage], spent[stage].wall) for stage in spent]
    total = Compared(name, "in all", *(sum(values) for values in zip(*map(figures_of, lines), strict=True)))
    return [*lines, total]


def figures_of(line: Compared) -> tuple[float, ...]:
    return line.planned, line.measured, line.planned_wall or 0.0, line.measured_wall or 0.0


def file_of(name: str, folder: Path) -> Path:
    """The training file of a data set; a synthetic one is written."""
    if not name.startswith("amazon-3m"):
        return find_data_set(name) / "train.jsonl.gz"
    shape = AMAZON_3M.scaled(float(name.partition(":")[2] or 1))
    write_rows(folder / "train.txt", shape, shape.rows)
    return folder / "train.txt"


def workload_of(name: str, folder: Path, negatives: str) -> Workload:
    """The size of a data set: of a synthetic one as in a command line, of another one from its counts."""
    if name.startswith("amazon-3m"):
        shape = AMAZON_3M.scaled(float(name.partition(":")[2] or 1))
        sizes = shape.rows, shape.labels, shape.features, shape.features_per_row, shape.labels_per_row
        return Workload(*sizes, negatives=negatives)
    corpus = open_prepared(folder / "prepared")
    return Workload.of(corpus.features, corpus.labels, negatives=negatives)


def since(begun: Spent) -> Spent:
    return Spent(*(now - before for now, before in zip(Spent.now(), begun, strict=True)))


def size_of(folder: Path) -> int:
    """The bytes of all files of a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def section_of(found: list[Compared]) -> Section:
    """A table of all comparisons so far."""
    seconds = ("planned CPU s", "measured CPU s", "error %", "planned s", "measured s")
    columns = (Column("data"), Column("stage"), *(Column(name, ".1f") for name in seconds))
    lines = [
        (each.data, each.what, each.planned, each.measured, each.error, each.planned_wall, each.measured_wall)
        for each in found
        if not each.what.startswith("bytes")
    ]
    sizes = (Column(name, ",.0f") for name in ("planned MiB", "measured MiB", "error %"))
    disk = [
        (each.data, each.what.partition(": ")[2], each.planned / 2**20, each.measured / 2**20, each.error)
        for each in found
        if each.what.startswith("bytes")
    ]
    tables = [Table("Time", columns, lines), Table("Disk", (Column("data"), Column("what"), *sizes), disk)]
    return Section("Plan", "Errors are relative to the measurement.", tables, [])


if __name__ == "__main__":
    main()
