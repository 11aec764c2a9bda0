"""`reproduce ridge`: closed-form ridge (Onishi & Hayashi, ECIR 2025) on the benchmarks, and its cost."""

from __future__ import annotations

from longtail_papers.common import Experiment
from longtail_papers.ridge.curves import alpha_sweep, sparsification, tolerance
from longtail_papers.ridge.scaling import scaling
from longtail_papers.ridge.table import chosen_alpha, earlier_and_measured

EXPERIMENT = Experiment(
    name="ridge",
    module=__name__,
    title="Closed-form ridge",
    introduction=(
        "Ridge regression on 0/1 labels, solved in closed form for all labels at once (Onishi & Hayashi, ECIR 2025). "
        "Every figure was measured in this run, except in the columns named *earlier run*: the paper's own tables are "
        "not available, so these come from our own earlier runs of another implementation."
    ),
    data_sets=("bibtex", "delicious", "eurlex-4k"),
    quick_data_sets=("bibtex",),
    sections=(earlier_and_measured, chosen_alpha, alpha_sweep, sparsification, scaling, tolerance),
)
