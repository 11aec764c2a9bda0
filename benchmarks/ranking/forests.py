"""What three trees cost in comparison with one, in training and in prediction."""

from __future__ import annotations

from functools import partial

from benchmarks.child import processor_seconds
from benchmarks.data import features
from benchmarks.samples import Split
from benchmarks.timing import interleave
from longtail import LabelTree
from longtail_papers.common import Cell, Column, Table

PLACES = (5, 30)
SHAPES: dict[str, dict[str, int]] = {"default": {}, "wide": {"leaf_size": 400, "branching": 256}}
_ROUNDS = 5


def forests_rows(title: str, split: Split, threads: int, rounds: int = _ROUNDS) -> list[tuple[Cell, ...]]:
    """The seconds of one and of three trees, and their ratio, for training and for two sizes of the ranking."""
    X, X_test = features(split.train, split.test)
    Y = split.train.labels[:, : split.n_learnable]
    rows: list[tuple[Cell, ...]] = []
    for shape, settings in SHAPES.items():
        models, taken = {}, {}
        for n_trees in (1, 3):
            worked = processor_seconds()
            models[n_trees] = LabelTree(n_trees=n_trees, C=0.5, n_jobs=threads, **settings).fit(X, Y)
            taken[n_trees] = processor_seconds() - worked
        rows.append((title, shape, "training, CPU s", taken[1], taken[3], taken[3] / taken[1]))
        for k in PLACES:
            asked = {str(n_trees): partial(model.predict_topk, X_test, k) for n_trees, model in models.items()}
            seconds, _ = interleave(asked, rounds, clock=processor_seconds)
            one, three = seconds["1"].median, seconds["3"].median
            rows.append((title, shape, f"top {k} of {X_test.shape[0]:,} rows, CPU s", one, three, three / one))
    return rows


def forests_table(rows: list[tuple[Cell, ...]]) -> Table:
    columns = Column("data set"), Column("shape"), Column("what"), Column("1 tree", ".3f"), Column("3 trees", ".3f")
    return Table("Three trees and one", (*columns, Column("ratio", ".2f")), rows)
