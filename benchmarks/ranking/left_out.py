"""What the scores that a forest leaves out change: ``python -m benchmarks.ranking.left_out``.

To save time, a tree leaves out labels with low scores. The figures compare `predict_topk` with the ranking by the mean
of all scores that the beam reaches. The rule was chosen by them, so they are measured by cross-validation on the
training rows; the test rows are not used.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.compare import sample_name
from benchmarks.data import features
from benchmarks.ranking.forests import SHAPES
from benchmarks.samples import load_sample
from longtail import LabelTree
from longtail.arrays import Array
from longtail.data import Corpus
from longtail.metrics import ndcg_at_k, precision_at_k
from longtail_papers.common import Cell, Column, Table

DATA = ("eurlex-4k", "yso-sv-30k", "eurlex57k-10k", "eurlex57k-15-words-10k", "bibtex", "delicious")
METRICS = {"P@1": (precision_at_k, 1), "P@3": (precision_at_k, 3), "P@5": (precision_at_k, 5), "nDCG@5": (ndcg_at_k, 5)}
PLACES = (1, 5, 30)
_FOLDS = 8
_ROWS = 500  # at once


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", type=sample_name, default=list(DATA), help=f"default: {' '.join(DATA)}")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args(arguments)
    for name in options.data:
        print(left_out_table(name, load_sample(name).train, options.threads).to_markdown(), end="\n\n", flush=True)


def left_out_table(
    title: str, corpus: Corpus, threads: int, folds: int = _FOLDS, places: Sequence[int] = PLACES
) -> Table:
    """The changes of the metrics in points: means over the folds."""
    rows: list[tuple[Cell, ...]] = []
    held_out = np.array_split(np.random.default_rng(0).permutation(corpus.n_rows), folds)
    for shape, settings in SHAPES.items():
        model = LabelTree(n_trees=3, C=0.5, n_jobs=threads, **settings)
        means = np.mean([changes(corpus, rows_held, model, places) for rows_held in held_out], axis=0)
        rows += [(shape, k, *(None if np.isnan(x) else float(x) for x in means[i])) for i, k in enumerate(places)]
    return Table(title, (Column("shape"), Column("k", "d"), *(Column(name, "+.3f") for name in METRICS)), rows)


def changes(corpus: Corpus, held_out: Array, model: LabelTree, places: Sequence[int]) -> Array:
    """Places x metrics, on the held-out rows."""
    held, rest = corpus.select(held_out), corpus.select(np.setdiff1d(np.arange(corpus.n_rows), held_out))
    X, X_held = features(rest, held)
    model.fit(X, rest.labels)
    every, truth = by_all_scores(model, X_held, max(places)), held.labels
    return np.array([judge(truth, model.predict_topk(X_held, k)[0]) - judge(truth, every[:, :k]) for k in places])


def by_all_scores(model: LabelTree, X: Any, k: int) -> Array:
    """The k best labels of each row by the mean score, whatever a tree would leave out."""
    found = []
    for first in range(0, X.shape[0], _ROWS):
        # With a place for every label, no tree leaves out any.
        found.append(model.predict_topk(X[first : first + _ROWS], model.n_labels_)[0][:, :k])
    return np.vstack(found)


def judge(truth: Any, top: Array) -> Array:
    """The metrics in percent; NaN if the ranking is too short for a metric."""
    return np.array([100 * metric(truth, top, n) if n <= top.shape[1] else np.nan for metric, n in METRICS.values()])


if __name__ == "__main__":
    main()
