"""Shared by commands that evaluate a model: their options, and reading rows with known labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from longtail.cli.inputs import Data, called, is_number, read, takes_columns
from longtail.cli.options import option
from longtail.cli.reading import ReaderOptions
from longtail.errors import InvalidInput

if TYPE_CHECKING:
    from longtail.data import Corpus

_GROUPED = (
    "evaluation needs labels of rows, even if the model was trained on groups; label some texts by hand, "
    '{"text": "...", "labels": [...]} in each line, and use that file (`longtail assign` only guesses)'
)


def _cutoffs(value: str) -> tuple[int, ...]:
    cutoffs = value.split(",")
    if not all(is_number(k.strip()) and int(k) > 0 for k in cutoffs):
        raise click.BadParameter("expected whole numbers such as 1,3,5")
    return tuple(sorted({int(k) for k in cutoffs}))


def _constants(value: str) -> tuple[float, float]:
    try:
        a, b = map(float, value.split(","))
    except ValueError:
        raise click.BadParameter("expected two numbers such as 0.55,1.5") from None
    return a, b


@dataclass(frozen=True)
class MeasuringOptions:
    """Which metrics to compute."""

    ks: tuple[int, ...] = option(
        "-k", default="1,3,5", show_default=True, parse=_cutoffs, help="Evaluate the top k labels, e.g. 1,3,5."
    )
    propensity: tuple[float, float] | None = option(
        metavar="A,B",
        parse=_constants,
        help="Constants A and B of the propensity model.  [default: published values of the data set, else 0.55,1.5]",
    )


def read_measured(data: Data, reader: ReaderOptions) -> Corpus:
    """The rows of DATA to evaluate on; if none has a label, an error says what to do."""
    corpus = read(data, "test", reader, grouped=_GROUPED)
    name = called(data)
    if corpus.n_rows == 0:
        raise InvalidInput(f"{name} has no rows; there is nothing to evaluate on")
    if corpus.labels.nnz == 0:
        rows = "its only row has no label" if corpus.n_rows == 1 else f"none of its {corpus.n_rows:,} rows has a label"
        advice = "; if the labels are under another key or in another column, name it: --label-column"
        raise InvalidInput(
            f"{name}: {rows}; evaluation needs rows with labels{advice if takes_columns(data, reader.format) else ''}"
        )
    return corpus
