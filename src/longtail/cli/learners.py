"""The options of `longtail train` that say what to train."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import partial
from typing import TYPE_CHECKING

import click

from longtail.cli.inputs import check_file, is_blank
from longtail.cli.options import FiniteRange, flag_of, option
from longtail.errors import InvalidInput

if TYPE_CHECKING:
    from longtail.choice import LearnerOptions

# As in `longtail.choice`, which would take long to load for a page of help.
LEARNERS = ("auto", "tree", "one-vs-rest", "ridge", "network")
_TREES, _ONE_VS_REST, _RIDGE, _NETWORK = "Trees", "Trees and one-vs-rest", "Ridge", "Network"
_POSITIVE = FiniteRange(min=0, min_open=True)
_AT_LEAST_1 = click.IntRange(min=1)


def _pruning(value: str) -> int | float:
    try:
        found = int(value) if value.isdigit() else float(value)
    except ValueError:
        found = -1
    if not 0 <= found < float("inf"):
        raise click.BadParameter("expected the smallest weight to keep such as 0.1, or a number of weights such as 200")
    return found


@dataclass(frozen=True)
class LearnerFlags:
    """What to train; the fields are those of `longtail.choice.LearnerOptions`."""

    section = "Learner"

    learner: str = option(
        type=click.Choice(LEARNERS), default="auto", show_default=True, help="Learner; auto chooses by data size."
    )
    prune: float | None = option(
        parse=_pruning,
        metavar="W",
        help="All but networks: drop weights below W, or keep the W largest of each classifier (W = 1, 2, ...).",
    )
    weighting: str | None = option(
        type=click.Choice(["none", "loss", "target", "score"]),
        parse=lambda value: None if value == "none" else value,
        help="Favour rare labels; target is for ridge, score for trees and one-vs-rest.",
    )

    n_trees: int | None = option(
        "--trees", section=_TREES, type=_AT_LEAST_1, help="Number of trees to average.  [default: 1]"
    )
    leaf_size: int | None = option(
        section=_TREES, type=_AT_LEAST_1, help="Maximum number of labels in a leaf.  [default: 100]"
    )
    branching: int | None = option(
        section=_TREES, type=click.IntRange(min=2), help="Maximum number of children of a node.  [default: 64]"
    )
    beam: int | None = option(
        section=_TREES, type=_AT_LEAST_1, help="Number of nodes to search per level.  [default: 10]"
    )
    negatives: str | None = option(
        section=_TREES,
        type=click.Choice(["siblings", "beam"]),
        help="Negative examples of a node; beam is slower and more accurate.  [default: beam where affordable]",
    )
    taxonomy: str | None = option(section=_TREES, metavar="FILE", help="Your own tree: lines of child, tab, parent.")
    missing: str | None = option(
        section=_TREES,
        type=click.Choice(["error", "root", "drop"]),
        help="What to do with labels that are not in the taxonomy.  [default: error]",
    )

    loss: str | None = option(
        section=_ONE_VS_REST,
        type=click.Choice(["squared_hinge", "logistic"]),
        help="Loss of the classifiers.  [default: squared-hinge]",
    )
    C: float | None = option("--C", section=_ONE_VS_REST, type=_POSITIVE, help="Weight of the loss.  [default: 1]")

    alpha: float | None = option(section=_RIDGE, type=FiniteRange(min=0), help="Penalty.  [default: chosen]")
    solver: str | None = option(
        section=_RIDGE, type=click.Choice(["auto", "primal", "dual", "cg"]), help="Solver.  [default: auto]"
    )
    fit_intercept: bool | None = option(
        "--intercept/--no-intercept", section=_RIDGE, help="Fit a constant for each label.  [default: no]"
    )
    density: float | None = option(
        section=_RIDGE, type=FiniteRange(0, 1, min_open=True), help="Share of all weights to keep."
    )
    updatable: bool | None = option(section=_RIDGE, is_flag=True, help="Also save what partial_fit needs.")

    head: str | None = option(
        section=_NETWORK,
        type=click.Choice(["cascade", "one-hot", "product", "sampling", "bottleneck", "dft"]),
        help="Output layer.  [default: cascade]",
    )
    n_heads: int | None = option(
        "--heads", section=_NETWORK, type=_AT_LEAST_1, help="Number of heads of the output layer.  [default: 2]"
    )
    width: int | None = option(section=_NETWORK, type=_AT_LEAST_1, help="Width of the hidden layer.  [default: 512]")
    epochs: int | None = option(section=_NETWORK, type=_AT_LEAST_1, help="Number of epochs.  [default: 20]")
    batch_size: int | None = option(
        section=_NETWORK, type=_AT_LEAST_1, help="Rows per step.  [default: 128, less for small data]"
    )
    learning_rate: float | None = option(section=_NETWORK, type=_POSITIVE, help="Learning rate.  [default: 0.005]")
    dropout: float | None = option(section=_NETWORK, type=FiniteRange(0, 0.95), help="Dropout rate.  [default: 0]")
    n_networks: int | None = option(
        "--networks", section=_NETWORK, type=_AT_LEAST_1, help="Number of networks to average.  [default: 1]"
    )
    checkpoint: str | None = option(
        section=_NETWORK, metavar="DIR", help="Save progress here and, if interrupted, resume from here."
    )

    def options(self, seed: int, jobs: int | None) -> LearnerOptions:
        """The options as the library takes them; options that contradict each other are refused."""
        from longtail.choice import LearnerOptions

        options = LearnerOptions(
            **{each.name: getattr(self, each.name) for each in fields(self)}, random_state=seed, n_jobs=jobs
        )
        if options.taxonomy is not None:
            check_file(options.taxonomy)
            if is_blank(options.taxonomy):
                raise InvalidInput(f"{options.taxonomy} is empty; write lines of child, tab, parent")
        options.candidates(spell=partial(flag_of, LearnerFlags))
        if options.learner == "network":
            import longtail.neural  # noqa: F401 (if torch is missing, say so before reading the data)
        return options
