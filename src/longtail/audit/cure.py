"""What would bring label sets into reach that a layer cannot give, and how many parameters each remedy costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from longtail.audit.counting import dimensions_needed
from longtail.audit.margins import SLACK, slack_needed
from longtail.audit.parameter_counts import bottleneck_parameters, dft_parameters, plain_parameters
from longtail.estimator import OutputLayer
from longtail.printable import counted
from longtail.validation import check_whole

Kind = Literal["bias", "width", "dft", "slack", "labels"]


@dataclass(frozen=True)
class Remedy:
    """One thing that would help.

    Attributes
    ----------
    kind : {"bias", "width", "dft", "slack", "labels"}
        An offset for each label, more dimensions, a layer of sines and cosines, that layer with free columns beside
        the fixed ones, or other labels and rows.
    columns : int
        The number of columns of weights that each label has with it.
    parameters : int
        Trained parameters of the output layer with it, and of the projection in front of it.
    more : int
        How many more that is than today.
    guaranteed : bool
        Whether all sets of the size that was asked have an input then, in exact arithmetic.
    says : str
        The remedy in a sentence or two.
    """

    kind: Kind
    columns: int
    parameters: int
    more: int
    guaranteed: bool
    says: str

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values."""
        return {
            "kind": self.kind,
            "columns": self.columns,
            "parameters": self.parameters,
            "more_parameters": self.more,
            "guaranteed": self.guaranteed,
            "says": self.says,
        }


def remedies(layer: OutputLayer, largest: int, fed_by: int | None = None) -> tuple[Remedy, ...]:
    """What would help if a layer cannot give sets of up to `largest` labels.

    Parameters
    ----------
    layer : OutputLayer
    largest : int
        The size of the largest label set that was asked for.
    fed_by : int or None
        The number of features that are projected to the inputs of the layer. None is what the layer knows about this.
        If that is nothing, the inputs count as the features: a narrower or wider layer then projects them.

    Returns
    -------
    remedies : tuple of Remedy
        The cheapest first.

    Examples
    --------
    >>> layer = OutputLayer.of([[0.0, 1.0]] * 100)
    >>> [(each.kind, each.parameters) for each in remedies(layer, largest=3, fed_by=64)]
    [('bias', 430), ('dft', 455), ('width', 660), ('slack', 3095)]
    """
    n, d = layer.n_labels, layer.n_inputs
    if fed_by is not None:
        check_whole("fed_by", fed_by, 1)
    fed_by = layer.fed_by if fed_by is None else fed_by
    e = d if fed_by is None else fed_by
    of_labels = n * layer.has_offsets
    today = of_labels + (n * d if fed_by is None else bottleneck_parameters(n, d, e))
    if layer.n_features >= n:
        says = (
            "The layer is wide enough, but the weights of some labels depend on each other. Merge labels that no row "
            "tells apart, or add rows that do."
        )
        return (Remedy("labels", d, today, 0, False, says),)
    found = [_wider(n, d, fed_by, of_labels, today), *_fixed(n, e, largest, today)]
    if not layer.has_offsets:
        says = "Give each label a bias or a threshold. It counts as one more dimension, of which one half is of use."
        found.append(Remedy("bias", d, today + n, n, False, says))
    return tuple(sorted(found, key=lambda each: each.parameters))


def _wider(n: int, d: int, fed_by: int | None, of_labels: int, today: int) -> Remedy:
    columns = min(2 * d, n)
    if fed_by is None:
        parameters, one = plain_parameters(n, columns, bias=False), n
        where = "Give the layer more features"
    else:
        parameters, one = bottleneck_parameters(n, columns, fed_by), n + fed_by + 1
        where = "Widen the layer"
    parameters += of_labels
    says = (
        f"{where}, for example {columns:,} instead of {d:,}, and audit again. Each of them costs {one:,} parameters. "
        f"Trained weights guarantee all label sets only with {n:,}."
    )
    if fed_by is not None and columns > fed_by:
        says += f" What feeds it has only {counted(fed_by, 'output')}, so widen that too."
    return Remedy("width", columns, parameters, parameters - today, columns >= n, says)


def _fixed(n: int, e: int, k: int, today: int) -> list[Remedy]:
    """A layer of sines and cosines, without and with slack; none if the sets are too large for one."""
    columns = dimensions_needed(k)
    if columns >= n or k < 1:
        return []
    enough = e >= columns
    needed = (
        ""
        if enough
        else f" What feeds it has {counted(e, 'output')} and needs at least {columns:,}, or else its projection cannot "
        "pass on all inputs."
    )
    plain, wide = dft_parameters(n, k, e), dft_parameters(n, k, e, SLACK)
    says = (
        f"Use a DFT layer with k = {k:,}: its {columns:,} fixed columns give every set of up to {k:,} labels an input."
    )
    why = (
        "Rounding errors of 32-bit floats hide some of its sets, so it needs them."
        if slack_needed(n, k)
        else "They make the regions of its sets larger."
    )
    beside = f"Give the DFT layer {SLACK} slack columns, which are trained. {why}"
    return [
        Remedy("dft", columns, plain, plain - today, enough, says + needed),
        Remedy("slack", columns + SLACK, wide, wide - today, enough, beside + needed),
    ]


def lines_of(found: Sequence[Remedy]) -> list[str]:
    """The remedies as lines of text.

    Examples
    --------
    >>> lines_of([Remedy("bias", 2, 6, 2, False, "Give each label a bias.")])
    ['bias (2 more parameters): Give each label a bias.']
    """
    return [f"{each.kind} ({_difference(each.more)}): {each.says}" for each in found]


def _difference(more: int) -> str:
    if not more:
        return "no more parameters"
    return f"{abs(more):,} {'more' if more > 0 else 'fewer'} parameters"
