"""How time, memory and size grow with the number of labels: ``python -m benchmarks.growth``.

Synthetic data of the shape of Amazon-670K, with rows in proportion to labels. Training is expected to grow as n log L
for n rows and L labels, because each row passes through a number of nodes that grows with the depth of the tree.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.arrays import read_matrix, write_matrix
from benchmarks.data import PARTS
from benchmarks.environments import interpreter
from benchmarks.learners import LEARNERS, Learner
from benchmarks.measure import ROOT, Conditions, run_learner
from benchmarks.synthetic import FULL_LABELS, synthesise
from longtail.arrays import Array
from longtail.metrics import precision_at_k
from longtail.pictures import Line, Panel, Picture
from longtail_papers.common import Cell, Column, Results, Section, Table

SIZES = (10_000, 30_000, 100_000, 300_000, FULL_LABELS)
# omikuji reads only files, and files of this size are not written.
GROWERS = tuple(learner for learner in LEARNERS if learner.environment not in ("omikuji", "annif"))

Grown = dict[int, dict[str, Any]]


def main(arguments: Sequence[str] | None = None) -> None:
    keys = [learner.key for learner in GROWERS]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="+", type=int, default=list(SIZES), help="numbers of labels")
    parser.add_argument("--learners", nargs="+", choices=keys, default=["tree"])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=4 * 3600, help="seconds after which a learner is stopped")
    parser.add_argument("--cache", default=str(ROOT / ".bench"))
    parser.add_argument("--out", help="folder for the results; default: results in the cache")
    options = parser.parse_args(arguments)
    cache = Path(options.cache).resolve()
    out = Path(options.out) if options.out else cache / "results"
    results = Results(out, "growth", "Growth with the number of labels", __doc__ or "")
    chosen = [learner for learner in GROWERS if learner.key in options.learners]
    conditions = Conditions(cache, options.threads, options.timeout)
    grown: dict[str, Grown] = {learner.key: {} for learner in chosen}
    for size in sorted(options.sizes):
        folder = cache / "growth" / str(size)
        facts = prepare(size, options.seed, folder)
        truth = read_matrix(folder / "test_labels")
        for learner in chosen:
            python = interpreter(learner.environment, cache / "venvs")
            judge = partial(judge_rankings, truth)
            grown[learner.key][size] = facts | run_learner(learner, python, folder, "growth", conditions, judge)
            print(json.dumps({"learner": learner.key, "labels": size} | grown[learner.key][size]), flush=True)
            results.put(section_of(chosen, grown))
        shutil.rmtree(folder)
    for path in results.finish():
        print(path)


def prepare(n_labels: int, seed: int, folder: Path) -> dict[str, Any]:
    """Write the matrices of one size and return their facts."""
    started = time.perf_counter()
    made = synthesise(n_labels, seed=seed)
    for part, matrix in zip(PARTS, (made.X, made.Y, made.X_test, made.Y_test), strict=True):
        write_matrix(folder / part, matrix)
    counts = np.bincount(made.Y.indices, minlength=n_labels)
    return {
        "rows": made.X.shape[0],
        "nonzeros_per_row": made.X.nnz / made.X.shape[0],
        "labels_per_row": made.Y.nnz / made.X.shape[0],
        "labels_without_rows": int(np.count_nonzero(counts == 0)),
        "seconds_to_make": time.perf_counter() - started,
    }


def judge_rankings(truth: Any, top: Array) -> dict[str, float]:
    return {"P@1": 100 * precision_at_k(truth, top, 1)}


def n_log_l(rows: int, n_labels: int) -> float:
    """The expected shape of the training time.

    >>> n_log_l(100, 1024)
    1000.0
    """
    return rows * math.log2(n_labels)


def relative_growth(grown: Grown, figure: str) -> dict[int, float]:
    """A figure divided by n log L at each size, relative to the smallest size; 1 everywhere is the expected growth.

    >>> grown = {4: {"rows": 8, "s": 2.0}, 16: {"rows": 32, "s": 32.0}}
    >>> relative_growth(grown, "s")
    {4: 1.0, 16: 2.0}
    """
    per_unit = {
        size: values[figure] / n_log_l(values["rows"], size) for size, values in grown.items() if figure in values
    }
    first = next(iter(per_unit.values()), 1.0)
    return {size: value / first for size, value in per_unit.items()}


def section_of(learners: Sequence[Learner], grown: Mapping[str, Grown]) -> Section:
    """A table and a picture of all measurements so far."""
    columns = (
        Column("learner"),
        *(Column(name, ",d") for name in ("labels", "rows")),
        *(Column(name, ".1f") for name in ("train s", "train CPU s")),
        Column("relative to n log L", ".2f"),
        *(Column(name, ",.0f") for name in ("peak MiB", "growth MiB", "model MiB", "rows/s")),
        *(Column(name, ".2f") for name in ("p99 ms", "P@1")),
        Column("status"),
    )
    lines: list[tuple[Cell, ...]] = []
    for learner in learners:
        relative = relative_growth(grown[learner.key], "train_seconds")
        for size, values in grown[learner.key].items():
            scaled = [
                values[name] * scale if name in values else None
                for name, scale in (("memory_peak", 2**-20), ("memory_growth", 2**-20), ("model_bytes", 2**-20))
            ]
            lines.append(
                (
                    *(learner.title, size, values["rows"]),
                    *(values.get("train_seconds"), values.get("train_cpu_seconds"), relative.get(size)),
                    *(*scaled, values.get("rows_per_second")),
                    *(values["latency_p99"] * 1e3 if "latency_p99" in values else None, values.get("P@1")),
                    " ".join(filter(None, (values["status"], values.get("reason")))),
                )
            )
    text = "The column *relative to n log L* is 1 if training grows as expected from the smallest size."
    return Section("Growth", text, [Table("Sizes", columns, lines)], [picture_of(learners, grown)])


def picture_of(learners: Sequence[Learner], grown: Mapping[str, Grown]) -> Picture:
    """Time, memory and model size against the number of labels; the dotted line is n log L from the smallest size."""
    figures = (
        ("train_seconds", "training time (s)", 1.0),
        ("memory_peak", "peak memory (GiB)", 2**-30),
        ("model_bytes", "model on disk (GiB)", 2**-30),
    )
    panels = []
    for figure, label, scale in figures:
        lines = []
        for style, learner in enumerate(learners):
            measured = {size: values for size, values in grown[learner.key].items() if figure in values}
            if not measured:
                continue
            sizes = list(measured)
            lines.append(Line(learner.title, sizes, [measured[size][figure] * scale for size in sizes], style))
            if figure == "train_seconds":
                relative = relative_growth(measured, figure)
                expected = [measured[size][figure] / relative[size] for size in sizes]
                name = "n log L" if style == 0 else ""
                lines.append(Line(name, sizes, expected, style, dash="dotted", marked=False))
        panels.append(Panel(label.split(" (")[0].capitalize(), "labels", label, lines, log_x=True, log_y=True))
    return Picture("growth.png", "Growth with the number of labels", [panels])


if __name__ == "__main__":
    main()
