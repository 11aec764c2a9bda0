"""Ten daily updates against training on everything: ``python -m benchmarks.update``.

A model is trained on a part of the rows of a data set and then updated with ten equal portions of the others. Each
update loads the model, learns and saves it. A second comparison leaves out some labels, updates the model with five
rows of each, and looks for these labels in the next rows.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from longtail import LabelTree, Tagger, load
from longtail.arrays import Array
from longtail.data import Corpus, load_data_set
from longtail.store import inspect_model

LEARNERS: dict[str, Callable[[], Any]] = {"default": lambda: None, "tree": LabelTree}
KS = (1, 3, 5)
_FIVE = 5  # rows of a new label
_NEXT = (3, 20)  # rows of a new label after these five


class Clock:
    """Seconds on the wall and of the processor."""

    def __init__(self) -> None:
        self.wall: list[float] = []
        self.cpu: list[float] = []

    @contextmanager
    def running(self) -> Iterator[None]:
        wall, cpu = time.perf_counter(), time.process_time()
        yield
        self.wall.append(time.perf_counter() - wall)
        self.cpu.append(time.process_time() - cpu)

    def told(self) -> dict[str, Any]:
        return {"wall": round(sum(self.wall), 1), "cpu": round(sum(self.cpu), 1)}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="yso-sv", help="a data set of texts")
    parser.add_argument("--learners", nargs="+", choices=list(LEARNERS), default=list(LEARNERS))
    parser.add_argument("--portions", type=int, default=10)
    parser.add_argument("--start", type=float, default=0.5, help="share of the rows that the first model learns from")
    parser.add_argument("--rows", type=int, help="use only this many rows")
    parser.add_argument("--new-labels", type=int, default=200, help="labels to leave out; 0 skips this comparison")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    train, test = (load_data_set(options.data, part) for part in ("train", "test"))
    order = np.random.default_rng(options.seed).permutation(train.n_rows)[: options.rows]
    train = train.select(order)
    for name in options.learners:
        found: dict[str, Any] = {"learner": name, "rows": train.n_rows, "labels": train.n_labels}
        found |= by_portions(LEARNERS[name], train, test, options.portions, options.start)
        print(json.dumps(found), flush=True)
        if options.new_labels:
            print(json.dumps({"learner": name} | new_labels(LEARNERS[name], train, options.new_labels)), flush=True)


def by_portions(learner: Callable[[], Any], train: Corpus, test: Corpus, portions: int, start: float) -> dict[str, Any]:
    """Updates with one portion after another, and a training on everything."""
    full, updates = Clock(), Clock()
    bounds = np.linspace(start * train.n_rows, train.n_rows, portions + 1).astype(int)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        base = Tagger(estimator=learner(), updatable=True).fit_corpus(train.select(np.arange(bounds[0])))
        base.save(path)
        before = measured(base, test)
        summary: Any = None
        for first, last in pairwise(bounds.tolist()):
            with updates.running():
                tagger = load(path)
                tagger.update(train.select(np.arange(first, last)))
                tagger.save(path)
            summary = tagger.update_
        after = measured(load(path), test)
        size = sum(each["bytes"] for each in inspect_model(path)["arrays"] if each["name"].startswith("rows."))
        with full.running():
            everything = Tagger(estimator=learner(), updatable=True).fit_corpus(train)
            everything.save(Path(folder) / "full")
        return {
            "first": before,
            "updated": after,
            "full": measured(everything, test),
            "updates": updates.told(),
            "training": full.told(),
            "trainings": {name: round(updates.told()[name] / full.told()[name], 2) for name in ("wall", "cpu")},
            "each_update": [round(seconds, 1) for seconds in updates.wall],
            "rows_MiB": round(size / 2**20, 1),
            "model_MiB": round(inspect_model(path)["bytes"] / 2**20, 1),
            "due": list(summary.due),
        }


def new_labels(learner: Callable[[], Any], train: Corpus, count: int) -> dict[str, Any]:
    """How often new labels with five rows each are among the first five tags of their next rows."""
    chosen = chosen_labels(train, count)
    rows = {label: train.labels[:, [label]].nonzero()[0] for label in chosen.tolist()}
    first = np.unique(np.concatenate([each[:_FIVE] for each in rows.values()]))
    any_row = np.unique(np.concatenate(list(rows.values())))
    rest = np.setdiff1d(np.arange(train.n_rows), any_row)
    tests = np.setdiff1d(any_row, first)
    model = Tagger(estimator=learner(), updatable=True).fit_corpus(train.select(rest))
    model.update(train.select(first))
    everything = Tagger(estimator=learner()).fit_corpus(train.select(np.concatenate([rest, first])))
    names = {train.label_names[label] for label in chosen.tolist()}
    return {
        "new_labels": len(chosen),
        "next_rows": len(tests),
        **{
            name: round(100 * recall_of(tagger, train.select(tests), names), 2)
            for name, tagger in (("updated", model), ("full", everything))
        },
    }


def chosen_labels(train: Corpus, count: int) -> Array:
    """Labels with enough rows for five and some next ones, evenly over their numbers."""
    least, most = _NEXT
    fitting = np.flatnonzero((train.label_counts >= _FIVE + least) & (train.label_counts <= _FIVE + most))
    return fitting[:: max(1, len(fitting) // count)][:count]


def recall_of(tagger: Tagger, corpus: Corpus, names: set[str]) -> float:
    """The share of the true labels among `names` that are among the first five tags."""
    found = total = 0
    tags = tagger.predict(corpus.texts or (), k=5)
    for row, given in enumerate(tags):
        start, stop = corpus.labels.indptr[row : row + 2].tolist()
        wanted = {corpus.label_names[label] for label in corpus.labels.indices[start:stop].tolist()} & names
        found += len(wanted & {tag.label for tag in given})
        total += len(wanted)
    return found / max(1, total)


def measured(tagger: Tagger, test: Corpus) -> dict[str, float]:
    values = tagger.evaluate(test, ks=KS).to_dict()["metrics"]
    return {f"P@{k}": round(100 * values[f"P@{k}"], 2) for k in KS}


if __name__ == "__main__":
    main()
