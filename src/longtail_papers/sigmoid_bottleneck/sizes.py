"""Table 1 and section 5.1: how many parameters a DFT layer saves, counted."""

from __future__ import annotations

from collections.abc import Iterator

from longtail.audit import bottleneck_parameters, dft_parameters, slack_needed, slack_of_equal_size
from longtail_papers.common import Claim, Column, Context, Section, Table

# Table 1: labels n, largest label sets k, features e of the encoder.
SETUPS = {
    "MIMIC-III": (8921, 80, 500),
    "BioASQ task A": (20_000, 50, 768),
    "OpenImages v6": (8933, 50, 2432),
}
_BOTTLENECK, _DFT = 200, 100  # widths that the paper compares on BioASQ
_PAPER_COLUMNS = {"MIMIC-III": 10}
_PAPER_SHARE = {"BioASQ task A": 50.0}


def parameters(context: Context) -> Iterator[Section]:
    """Both output layers of the paper's tasks, counted by the formulas that the heads are tested against."""
    rows = []
    for name, (n, k, e) in SETUPS.items():
        narrow, fixed = bottleneck_parameters(n, _BOTTLENECK, e), dft_parameters(n, k, e, _DFT)
        counted = -(-e * (2 * k + 1) // n)
        rows.append(
            (
                *(name, n, k, e, narrow, fixed, _PAPER_SHARE.get(name), 100 * fixed / narrow),
                *(_PAPER_COLUMNS.get(name), counted, slack_of_equal_size(n, k, e), slack_needed(n, k)),
            )
        )
    columns = (
        *(Column("data"), Column("n", ",d"), Column("k", "d"), Column("e", ",d")),
        *(Column(f"bottleneck, d = {_BOTTLENECK}", ",d"), Column(f"DFT, d = {_DFT}", ",d")),
        *(Column("paper: share, about %", ".0f"), Column("computed: share, %", ".1f")),
        *(Column("paper: columns to give up", "d"), Column("computed as in the paper", "d")),
        *(Column("enough", "d"), Column("slack needed by float32", "d")),
    )
    share = 100 * dft_parameters(20_000, 50, 768, _DFT) / bottleneck_parameters(20_000, _BOTTLENECK, 768)
    context.claims.append(
        Claim(
            "The DFT layer that is as good on BioASQ has about 50% fewer trained parameters.",
            f"{100 - share:.1f}% fewer",
            45 < share < 55,
        )
    )
    context.claims.append(
        Claim(
            "On MIMIC-III, 10 slack columns fewer make up for the larger projection of the DFT layer.",
            f"{slack_of_equal_size(*SETUPS['MIMIC-III'])} are enough: each also saves {SETUPS['MIMIC-III'][2] + 1} "
            "parameters of the projection",
            slack_of_equal_size(*SETUPS["MIMIC-III"]) <= 10,
        )
    )
    yield Section(
        "Parameters of both layers",
        f"The tasks of the paper's table 1. A bottleneck of width {_BOTTLENECK} is compared with a DFT layer of "
        f"{_DFT} trained columns, projections and their biases included; on BioASQ the paper finds them equally good. "
        "The fixed columns of a DFT layer need a larger projection. The paper counts how many columns of labels hold "
        "as many weights as that. A column fewer also makes the projection smaller, so fewer columns may be enough.",
        [Table("Trained parameters", columns, rows)],
    )
