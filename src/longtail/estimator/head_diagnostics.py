"""`HeadDiagnostics`: how often each digit of a model's codes is right, alone and together, and what is mixed up."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from longtail.pictures import Line, Panel, Picture
from longtail.printable import align, counted, printable


@dataclass(frozen=True)
class LabelGroup:
    """The labels that share a value of a digit, or the label set that is a value of a chunk.

    Parameters
    ----------
    labels : tuple of int
        The most frequent of them in the judged rows, at most as many as were asked for.
    names : tuple of str
        Their names.
    n_labels : int
        The number of all of them.
    """

    labels: tuple[int, ...]
    names: tuple[str, ...]
    n_labels: int

    def __str__(self) -> str:
        if not self.n_labels:
            return "(no label)"
        more = self.n_labels - len(self.names)
        return ", ".join(self.names) + (f" and {more:,} more" if more else "")


@dataclass(frozen=True)
class ConfusedGroups:
    """A group that a head missed, and the group that it preferred.

    Parameters
    ----------
    missed, preferred : LabelGroup
    count : int
        Rows where `missed` is right and the head prefers `preferred`, which is wrong.
    share : float
        Share of the rows where `missed` is right.
    """

    missed: LabelGroup
    preferred: LabelGroup
    count: int
    share: float


@dataclass(frozen=True)
class HeadScores:
    """One head: a digit of a label's code, or a chunk of labels.

    Parameters
    ----------
    length : int
        Number of its values.
    accuracy : float
        Share of the rows for which it prefers a right value. A head that builds on those before it is given their
        right values.
    together : float
        Share of the rows for which this head and all before it are right together.
    confusions : tuple of ConfusedGroups
        The most frequent ones.
    """

    length: int
    accuracy: float
    together: float
    confusions: tuple[ConfusedGroups, ...]


@dataclass(frozen=True)
class Survival:
    """Which labels remain when a stage keeps only the best groups.

    Parameters
    ----------
    sizes : tuple of int
        Numbers of groups that are kept.
    shares : tuple of tuples of float
        For each stage but the last, the share of all pairs of a row and one of its labels that remain, by size.
    in_use : int
        The number of groups that the model keeps.
    """

    sizes: tuple[int, ...]
    shares: tuple[tuple[float, ...], ...]
    in_use: int


@dataclass(frozen=True)
class HeadDiagnostics:
    """How well the heads of a model do, alone and together.

    Parameters
    ----------
    n_rows : int
        Number of judged rows.
    n_rows_left_out : int
        Rows without a label that the model knows. Heads over label sets judge them too: their set is empty.
    n_labels_left_out : int
        Pairs of a row and a label that the model does not know, such as one without training rows.
    heads : tuple of HeadScores
        In the order of the code.
    predicted : float
        Share of the rows for which the model's first label, or its label set, is right.
    survival : Survival or None
        None if no stage drops labels.
    n_networks : int
        Number of networks of the model, of which the first was judged.
    """

    n_rows: int
    n_rows_left_out: int
    n_labels_left_out: int
    heads: tuple[HeadScores, ...]
    predicted: float
    survival: Survival | None
    n_networks: int = 1

    @property
    def together(self) -> float:
        """Share of the rows for which all heads are right together."""
        return self.heads[-1].together

    @property
    def if_independent(self) -> float:
        """Share of the rows for which all heads would be right if they erred independently of each other."""
        product = 1.0
        for head in self.heads:
            product *= head.accuracy
        return product

    def to_dict(self) -> dict[str, Any]:
        """The diagnostics as plain values."""
        return {**asdict(self), "if_independent": self.if_independent}

    def to_text(self) -> str:
        """The diagnostics as aligned tables, values in percent."""
        return "\n\n".join([self._about_rows(), self._accuracies(), *self._survivors(), *self._confusions()])

    def _about_rows(self) -> str:
        said = f"{counted(self.n_rows, 'row')}; values in percent"
        if self.n_rows_left_out:
            said += f"\n{counted(self.n_rows_left_out, 'row')} without a label that the model knows: not judged"
        if self.n_labels_left_out:
            said += f"\n{counted(self.n_labels_left_out, 'label')} of rows unknown to the model: not judged"
        if self.n_networks > 1:
            said += f"\nthe first of {self.n_networks} networks, whose probabilities the model averages"
        return said

    def _accuracies(self) -> str:
        rows = [["head", "values", "alone", "together with those before"]]
        rows += [
            [f"{number}", f"{head.length:,}", _percent(head.accuracy), _percent(head.together)]
            for number, head in enumerate(self.heads, start=1)
        ]
        independent = f"if they erred independently: {_percent(self.if_independent)}"
        return (
            f"{align(rows)}\nall heads right: {_percent(self.together)}; {independent}\n"
            f"prediction right: {_percent(self.predicted)}"
        )

    def _survivors(self) -> list[str]:
        if self.survival is None:
            return []
        rows = [["labels that remain, by groups kept", *(f"{size:,}" for size in self.survival.sizes)]]
        rows += [
            [f"after head {number}", *map(_percent, shares)] for number, shares in enumerate(self.survival.shares, 1)
        ]
        return [f"{align(rows)}\ngroups kept by the model: at most {self.survival.in_use:,}"]

    def _confusions(self) -> list[str]:
        told = []
        for number, head in enumerate(self.heads, start=1):
            lines = [
                f"{pair.count:>7,}  {_percent(pair.share):>6}  {printable(f'{pair.missed} -> {pair.preferred}')}"
                for pair in head.confusions
            ]
            if lines:
                heading = f"head {number}: right value -> preferred value, most frequent first"
                told.append("\n".join([heading, f"{'rows':>7}  {'share':>6}", *lines]))
        return told

    def picture(self, file_name: str = "heads.png") -> Picture:
        """The accuracy of the heads, and the labels that remain, for `longtail.pictures.draw`."""
        numbers = list(range(1, len(self.heads) + 1))
        lines = [
            Line("each head alone", numbers, [100 * head.accuracy for head in self.heads], 0),
            Line("together with those before", numbers, [100 * head.together for head in self.heads], 1),
            Line("prediction", [numbers[0], numbers[-1]], [100 * self.predicted] * 2, 6, "dotted", marked=False),
        ]
        ticks = numbers if len(numbers) <= 10 else ()
        panels = [Panel("Accuracy of the heads", "head", "rows, percent", lines, x_ticks=ticks)]
        if self.survival is not None:
            remaining = [
                Line(f"after head {number}", self.survival.sizes, [100 * share for share in shares], number + 1)
                for number, shares in enumerate(self.survival.shares, start=1)
            ]
            sizes = self.survival.sizes
            panels.append(
                Panel("Labels that remain", "groups kept", "labels, percent", remaining, log_x=True, x_ticks=sizes)
            )
        return Picture(file_name, "Accuracy of each head and of all together", [panels])


def _percent(share: float) -> str:
    return f"{100 * share:.2f}"
