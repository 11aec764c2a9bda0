"""`reproduce multi-head`: short heads in place of one output per label (Liang et al., TPAMI 2025)."""

from __future__ import annotations

from functools import partial

from longtail_papers.common import Experiment
from longtail_papers.multi_head.choices import choice_sections
from longtail_papers.multi_head.costs import costs
from longtail_papers.multi_head.images import image_sections
from longtail_papers.multi_head.powersets import powersets
from longtail_papers.multi_head.pretrained import pretrained_sections
from longtail_papers.multi_head.rank_one import rank_one
from longtail_papers.multi_head.texts import text_sections

_IMAGES = {part: partial(image_sections, part) for part in ("mnist", "fashion-mnist", "mosaics")}

EXPERIMENT = Experiment(
    name="multi-head",
    module=__name__,
    title="Short heads for many labels",
    introduction=(
        "Multi-head encoding writes a label as a number of a few digits and gives each digit its own short layer "
        "(Liang et al., TPAMI 2025): in parallel, where the outputs multiply (MHP), in sequence, where each head "
        "chooses among the remaining labels (MHC), or as blocks of labels of which a batch trains some (MHS). {40;25} "
        "are the lengths of two heads for 1,000 labels. Every figure was measured in this run, or in an earlier one "
        "that it continues, except in the columns named *paper*. Settings are chosen on held-out training rows, never "
        "on test rows."
    ),
    data_sets=("mnist", "fashion-mnist", "eurlex-4k", "eurlex57k", "mediamill"),
    sections=(*_IMAGES.values(), text_sections, choice_sections, pretrained_sections, powersets, rank_one, costs),
    parts={
        "mosaics": _IMAGES["mosaics"],
        "texts": text_sections,
        "choices": choice_sections,
        "pretrained": pretrained_sections,
        "powersets": powersets,
        "mnist": _IMAGES["mnist"],
        "fashion-mnist": _IMAGES["fashion-mnist"],
        "costs": None,
    },
)
