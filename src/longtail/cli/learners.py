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
_TREES = "Label trees (--learner tree)"
_ONE_VS_REST = "Label trees and one-vs-rest (--learner tree, one-vs-rest)"
_RIDGE = "Ridge (--learner ridge)"
_NETWORK = "Networks (--learner network)"
_POSITIVE = FiniteRange(min=0, min_open=True)
_AT_LEAST_1 = click.IntRange(min=1)


def _pruning(value: str) -> int | float:
    try:
        found = int(value) if value.isdigit() else float(value)
    except ValueError:
        found = -1
    if not 0 <= found < float("inf"):
        raise click.BadParameter(
            "expected a limit such as 0.1, up to which weights are dropped, or a number of weights to keep, such as 200"
        )
    return found


@dataclass(frozen=True)
class LearnerFlags:
    """What to train; the fields are those of `longtail.choice.LearnerOptions`."""

    section = "Learner"

    learner: str = option(
        type=click.Choice(LEARNERS),
        default="auto",
        show_default=True,
        help="What to train; auto tries several learners on held-out rows and keeps the best.",
    )
    fast: bool = option(
        is_flag=True, default=False, help="With auto: skip the second stage, which ranks the best labels again."
    )
    patience: float | None = option(
        type=_POSITIVE,
        metavar="SECONDS",
        help="With auto: longest training time, by an estimate.  [default: about 12 times as long as one label tree, "
        "at least 50 s of processor time, plus the second stage]",
    )
    encoder: str | None = option(
        metavar="DIR|auto",
        help="With auto: also compare texts by sentence vectors, if that helps. With network: use them beside the "
        "words. DIR holds the encoder; auto takes the installed one.",
    )
    encoder_cache: str | None = option(metavar="DIR", help="Keep the vectors of texts in DIR for the next training.")
    prune: float | None = option(
        parse=_pruning,
        metavar="W",
        help="Drop weights up to W, or keep the W largest of each classifier if W is whole; not for networks.",
    )
    weighting: str | None = option(
        type=click.Choice(["none", "loss", "target", "score"]),
        parse=lambda value: None if value == "none" else value,
        help="Give rare labels more weight; target is for ridge, score for trees and one-vs-rest.  [default: none]",
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
        help="How to find negative examples; beam is slower and more accurate.  [default: beam if affordable]",
    )
    taxonomy: str | None = option(
        section=_TREES, metavar="FILE", help="Use your own tree: a file with lines of child, tab, parent."
    )
    missing: str | None = option(
        section=_TREES,
        type=click.Choice(["error", "root", "drop"]),
        help="Labels that are not in the taxonomy: stop, put them below the root, or drop them.  [default: error]",
    )

    loss: str | None = option(
        section=_ONE_VS_REST,
        type=click.Choice(["squared_hinge", "logistic", "product", "stages", "binary", "softmax"]),
        help="Loss function of the classifiers: squared_hinge or logistic. Of networks: product or stages with --head "
        "cascade, binary or softmax with --head product.  [default: squared_hinge; cascade: product; product: binary]",
    )
    C: float | None = option(
        "--C",
        section=_ONE_VS_REST,
        type=_POSITIVE,
        help="Weight of the loss; smaller values regularise more.  [default: 1]",
    )

    alpha: float | None = option(
        section=_RIDGE,
        type=FiniteRange(min=0),
        help="Strength of the penalty.  [default: chosen by leave-one-out if affordable]",
    )
    solver: str | None = option(
        section=_RIDGE, type=click.Choice(["auto", "primal", "dual", "cg"]), help="Solver.  [default: auto]"
    )
    fit_intercept: bool | None = option(
        "--intercept/--no-intercept", section=_RIDGE, help="Fit an intercept for each label.  [default: no]"
    )
    density: float | None = option(
        section=_RIDGE, type=FiniteRange(0, 1, min_open=True), help="Keep only this share of all weights, the largest."
    )

    head: str | None = option(
        section=_NETWORK,
        type=click.Choice(["cascade", "one-hot", "product", "kronecker", "sampling", "bottleneck", "dft"]),
        help="Output layer.  [default: cascade; with --fine-tune: one-hot]",
    )
    n_heads: int | None = option(
        "--heads",
        section=_NETWORK,
        type=_AT_LEAST_1,
        help="Number of heads of the output layer.  [default: 2; sampling: many]",
    )
    task: str | None = option(
        section=_NETWORK,
        type=click.Choice(["multi-label", "single-label"]),
        help="Whether a row has any number of labels, or exactly one.  [default: as in the training data]",
    )
    products: int | None = option(
        section=_NETWORK,
        type=_AT_LEAST_1,
        help="Products to add up with --head product or kronecker.  [default: 1]",
    )
    sampled: int | None = option(
        section=_NETWORK, type=_AT_LEAST_1, help="Blocks of labels per row with --head sampling.  [default: 1]"
    )
    own_blocks: bool | None = option(
        section=_NETWORK,
        is_flag=True,
        help="With --head sampling and one label per row: draw other blocks for each row, not for each batch.",
    )
    margin: float | None = option(
        section=_NETWORK,
        type=FiniteRange(0, 3.14),
        help="With --head sampling and one label per row: angle by which a row's label must win, such as 0.5.",
    )
    sparse_gradients: bool | None = option(
        section=_NETWORK,
        is_flag=True,
        help="With --head cascade or sampling: compute gradients only for labels in use; faster for very many labels.",
    )
    head_width: int | None = option(
        section=_NETWORK,
        type=_AT_LEAST_1,
        help="Width of the layer before the labels with --head bottleneck, or of the queries of --head cascade.  "
        "[default: 100; cascade: none]",
    )
    active: int | None = option(
        section=_NETWORK,
        type=_AT_LEAST_1,
        metavar="K",
        help="With --head dft: every set of up to K labels can be predicted.  [default: the most labels of a row]",
    )
    slack: int | None = option(
        section=_NETWORK,
        type=click.IntRange(min=0),
        help="With --head dft: number of trained columns beside the fixed ones.  [default: 16 if rounding errors would "
        "hide label sets, else 0]",
    )
    width: int | None = option(section=_NETWORK, type=_AT_LEAST_1, help="Width of the hidden layer.  [default: 512]")
    epochs: int | None = option(
        section=_NETWORK, type=_AT_LEAST_1, help="Number of epochs.  [default: 20; with --fine-tune: 4]"
    )
    batch_size: int | None = option(
        section=_NETWORK,
        type=_AT_LEAST_1,
        help="Rows per training step.  [default: 128, less for small data; with --fine-tune: 16]",
    )
    learning_rate: float | None = option(
        section=_NETWORK, type=_POSITIVE, help="Learning rate.  [default: 0.005; with --fine-tune: 0.02]"
    )
    dropout: float | None = option(section=_NETWORK, type=FiniteRange(0, 0.95), help="Dropout rate.  [default: 0]")
    n_networks: int | None = option(
        "--networks", section=_NETWORK, type=_AT_LEAST_1, help="Number of networks to average.  [default: 1]"
    )
    checkpoint: str | None = option(
        section=_NETWORK, metavar="DIR", help="Save progress in DIR, and resume from there after an interruption."
    )
    fine_tune: bool | None = option(
        section=_NETWORK,
        is_flag=True,
        help="With --encoder: read texts with the encoder alone and train its weights, too; takes long.",
    )
    encoder_learning_rate: float | None = option(
        section=_NETWORK, type=_POSITIVE, help="With --fine-tune: learning rate of the encoder.  [default: 0.00003]"
    )
    max_tokens: int | None = option(
        section=_NETWORK,
        type=_AT_LEAST_1,
        help="With --encoder: read only the first N tokens of a text.  [default: 128; with --fine-tune: 64]",
        metavar="N",
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
        if options.encoder not in (None, "auto"):
            from longtail.text import check_encoder_folder, require_encoder_packages

            check_encoder_folder(options.encoder)
            require_encoder_packages()
        if options.learner == "network":
            import longtail.neural  # noqa: F401 (if torch is missing, say so before reading the data)
        return options
