"""The trainings of both output layers on a data set: means over seeds, pictures, and the paper's claims."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from longtail.pictures import Line, Panel, Picture
from longtail_papers.common import Cell, Column, Section, Spread, Table
from longtail_papers.sigmoid_bottleneck.dft_runs import HEADS, METRIC_K, Plan, Run, Split

# An epoch with this share of the best validation F1 counts as the end of a training.
NEAR = 0.95


def epochs_near_the_best(run: Run) -> float:
    """The first epoch whose validation F1 is near the best."""
    return next(epoch for epoch, value in enumerate(run.values, start=1) if value >= NEAR * run.validated)


def _unargmaxable(run: Run) -> float:
    return 100 * run.unargmaxable / run.sets


@dataclass(frozen=True)
class Summary:
    """The trainings of one head and width, with several seeds."""

    runs: Sequence[Run]

    def spread(self, of: Callable[[Run], float]) -> Spread:
        return Spread.of(map(of, self.runs))

    @property
    def f1(self) -> float:
        return self.spread(lambda run: run.f1).mean

    @property
    def unargmaxable(self) -> float:
        """Percent of the audited label sets."""
        return self.spread(_unargmaxable).mean

    @property
    def epochs(self) -> float:
        """The epochs until the validation F1 is near its best."""
        return self.spread(epochs_near_the_best).mean

    @property
    def parameters(self) -> int:
        return self.runs[0].parameters

    def row(self) -> tuple[Cell, ...]:
        one = self.runs[0]
        return (
            *(one.head, one.width, one.columns, one.parameters, one.rate),
            *self.spread(lambda run: run.f1),
            *self.spread(_unargmaxable),
            self.spread(lambda run: 100 * run.undetermined / run.sets).mean,
            *(self.spread(lambda run: run.best_epoch).mean, self.epochs),
        )


@dataclass(frozen=True)
class Findings:
    """Everything measured on one data set.

    Parameters
    ----------
    split : Split
    plan : Plan
    choices : sequence of Run
        The trainings that chose learning rates.
    runs : sequence of Run
        The trainings at the chosen rates.
    """

    split: Split
    plan: Plan
    choices: Sequence[Run]
    runs: Sequence[Run]

    def summaries(self, head: str) -> dict[int, Summary]:
        """The summaries of a head by width."""
        by_width = {
            width: [run for run in self.runs if (run.head, run.width) == (head, width)] for width in self.plan.widths
        }
        return {width: Summary(runs) for width, runs in by_width.items() if runs}

    def section(self) -> Section:
        split = self.split
        seeds = len({run.seed for run in self.runs})
        failed = sum(run.failed for run in self.runs)
        larger = int(np.count_nonzero(np.diff(split.test[1].indptr) > split.k))
        text = (
            f"{split.train[0].shape[0]:,} training rows, {split.validation[0].shape[0]:,} validation rows to choose "
            f"the learning rate and the epoch, {split.test[0].shape[0]:,} test rows; {split.n_labels:,} labels. "
            f"Training and validation rows have at most k = {split.k} labels, so the DFT has {2 * split.k + 1} fixed "
            f"columns beside the trained ones; {larger or 'no'} test rows have more labels. Training ran for at most "
            f"{self.plan.epochs} epochs and stopped after {self.plan.patience} without improvement. Means over "
            f"{seeds} seeds, ± the standard deviation. {split.sets.shape[0]} label sets of random test rows were "
            "audited; all their labels have training rows. "
            + (f"{failed} proofs fail when checked again." if failed else "All proofs hold when checked again.")
        )
        return Section(split.title, text, [self._results(), self._rates()], [self._picture()])

    def _results(self) -> Table:
        columns = (
            *(Column("head"), Column("width", "d"), Column("columns in all", "d"), Column("parameters", ",d")),
            *(Column("learning rate", "g"), Column(f"F1@{METRIC_K}", ".2f"), Column("±", ".2f")),
            *(Column("unargmaxable, %", ".1f"), Column("± of it", ".1f"), Column("undetermined, %", ".1f")),
            *(Column("epochs to the best", ".1f"), Column(f"epochs to {100 * NEAR:.0f}% of it", ".1f")),
        )
        rows = [summary.row() for head in HEADS for summary in self.summaries(head).values()]
        return Table(f"{self.split.title}: both output layers", columns, rows)

    def _rates(self) -> Table:
        columns = (
            *(Column("head"), Column("learning rate", "g"), Column(f"validation F1@{METRIC_K}", ".2f")),
            Column("epochs to the best", "d"),
        )
        rows = [(run.head, run.rate, run.validated, run.best_epoch) for run in self.choices]
        title = f"{self.split.title}: learning rates tried at width {self.plan.chosen_at}, one seed"
        return Table(title, columns, rows)

    def _picture(self) -> Picture:
        f1, share = f"F1@{METRIC_K}, percent", "unargmaxable, percent of label sets"
        by_width, shares, by_size, curves = [], [], [], []
        for style, head in enumerate(HEADS):
            found = self.summaries(head)
            widths, means = list(found), [each.f1 for each in found.values()]
            by_width.append(Line(head, widths, means, style=style))
            shares.append(Line(head, widths, [each.unargmaxable for each in found.values()], style=style))
            by_size.append(Line(head, [each.parameters for each in found.values()], means, style=style))
            for run in found[self.plan.chosen_at].runs[:1] if self.plan.chosen_at in found else ():
                curves.append(Line(head, range(1, 1 + len(run.values)), run.values, style=style, marked=False))
        panels = [
            [
                Panel(self.split.title, "width", f1, by_width, log_x=True),
                Panel("Label sets out of reach", "width", share, shares, log_x=True),
            ],
            [
                Panel("The same by size", "parameters", f1, by_size, log_x=True),
                Panel(f"Training at width {self.plan.chosen_at}", "epoch", f"validation {f1}", curves),
            ],
        ]
        caption = f"F1 and share of unargmaxable label sets on {self.split.title}"
        return Picture(f"dft-{self.split.name}.png", caption, panels)

    def claims(self) -> list[tuple[Cell, ...]]:
        """What the paper says about its data, and what was found on these."""
        narrow, fixed = (self.summaries(head) for head in HEADS)
        both = [width for width in narrow if width in fixed]
        of_fixed = [run for each in fixed.values() for run in each.runs]
        without = sum(run.unargmaxable for run in of_fixed), sum(run.undetermined for run in of_fixed)
        gaps = {width: fixed[width].f1 - narrow[width].f1 for width in both}
        best = max(narrow.values(), key=lambda each: each.f1)
        enough = next((each for each in fixed.values() if each.f1 >= best.f1), None)
        better, comparable = self._at_equal_size(narrow, fixed)
        sooner = {width: narrow[width].epochs - fixed[width].epochs for width in both}
        told = [
            (
                *("test label sets out of reach of the DFT", "none, except for a handful at width 25"),
                f"{without[0]} unargmaxable, {without[1]} undetermined, of {sum(run.sets for run in of_fixed):,}",
            ),
            (
                *("test label sets out of reach of the bottleneck", "more if it is narrower, none above 200"),
                ", ".join(f"{each.unargmaxable:.1f}% at {width}" for width, each in narrow.items()),
            ),
            (
                *(f"F1@{METRIC_K} of the DFT minus that of the bottleneck", "above 0 below width 200"),
                ", ".join(f"{gap:+.2f} at {width}" for width, gap in gaps.items()),
            ),
            (
                *("parameters of the DFT that is as good as the best bottleneck", "about half, on BioASQ"),
                f"{enough.parameters / best.parameters:.0%} (width {enough.runs[0].width} for {best.runs[0].width})"
                if enough
                else "no width is as good",
            ),
            (
                *("DFT better than a bottleneck with as many parameters", "mostly"),
                f"at {better} of {comparable} widths",
            ),
            (
                *(f"epochs to {100 * NEAR:.0f}% of the best that the DFT saves", "above 0"),
                ", ".join(f"{saved:+.1f} at {width}" for width, saved in sooner.items()),
            ),
        ]
        return [(self.split.title, *each) for each in told]

    def _at_equal_size(self, narrow: dict[int, Summary], fixed: dict[int, Summary]) -> tuple[int, int]:
        """How many DFTs are above the line between the bottlenecks, out of those within its range of parameters."""
        sizes = [each.parameters for each in narrow.values()]
        means = [each.f1 for each in narrow.values()]
        within = [each for each in fixed.values() if min(sizes) <= each.parameters <= max(sizes)]
        return sum(each.f1 > float(np.interp(each.parameters, sizes, means)) for each in within), len(within)
