"""The options of `longtail train` that say what learns, and the learner they come to."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from longtail.cli.inputs import FiniteRange, called, check_file, is_blank
from longtail.cli.terminal import Terminal, counted
from longtail.errors import InvalidInput

if TYPE_CHECKING:
    from longtail.choice import Choice
    from longtail.data import Corpus

LEARNERS = ("auto", "tree", "one-vs-rest", "ridge", "network")
# The options that only some learners have, and the parameter each sets.
_PARAMETERS = {
    "trees": "n_trees",
    "leaf_size": "leaf_size",
    "branching": "branching",
    "beam": "beam",
    "negatives": "negatives",
    "taxonomy": "hierarchy",
    "loss": "loss",
    "c": "C",
    "prune": "prune",
    "alpha": "alpha",
    "solver": "solver",
    "intercept": "fit_intercept",
    "keep": "density",
    "top_features_per_label": "prune",
    "threshold": "prune",
    "updatable": "updatable",
    "weighting": "weighting",
}
_OF_NETWORKS = {
    "head": "head",
    "heads": "n_heads",
    "width": "width",
    "epochs": "epochs",
    "batch_size": "batch_size",
    "learning_rate": "learning_rate",
    "dropout": "dropout",
    "networks": "n_networks",
    "checkpoint": "checkpoint",
}


def _read_prune(ctx: click.Context, parameter: click.Parameter, value: str | None) -> int | float | None:
    if value is None:
        return None
    try:
        found = int(value) if value.isdigit() else float(value)
    except ValueError:
        found = -1
    if not 0 <= found < float("inf"):
        raise click.BadParameter("expected the smallest weight to keep such as 0.1, or a number of weights such as 200")
    return found


def learner_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options that say what learns to a command."""
    for option in reversed(
        (
            click.option(
                "--learner", type=click.Choice(LEARNERS), default="auto", help="What learns.  [default: auto]"
            ),
            click.option("--trees", type=click.IntRange(min=1), help="Tree: how many, to average.  [default: 1]"),
            click.option("--leaf-size", type=click.IntRange(min=1), help="Tree: labels of a node.  [default: 100]"),
            click.option("--branching", type=click.IntRange(min=2), help="Tree: nodes of a node.  [default: 64]"),
            click.option("--beam", type=click.IntRange(min=1), help="Tree: nodes to search per level.  [default: 10]"),
            click.option(
                "--negatives",
                type=click.Choice(["siblings", "beam"]),
                help="Tree: what nodes learn to refuse; beam is slower and better.  [default: beam where affordable]",
            ),
            click.option("--taxonomy", metavar="FILE", help="Tree: your own; lines of child, tab, parent."),
            click.option(
                "--missing",
                type=click.Choice(["error", "root", "drop"]),
                help="Tree: what to do with labels that are not in the taxonomy.  [default: error]",
            ),
            click.option(
                "--loss",
                type=click.Choice(["squared_hinge", "logistic"]),
                help="Tree, one-vs-rest: what classifiers minimise.",
            ),
            click.option("--C", type=FiniteRange(min=0, min_open=True), help="Tree, one-vs-rest: weight of the loss."),
            click.option(
                "--prune",
                callback=_read_prune,
                metavar="W",
                help="Tree, one-vs-rest: smallest weight to keep, or (1 and more) how many.",
            ),
            click.option("--alpha", type=FiniteRange(min=0), help="Ridge: the penalty, instead of a choice."),
            click.option(
                "--solver", type=click.Choice(["auto", "primal", "dual", "cg"]), help="Ridge: how to solve for weights."
            ),
            click.option("--intercept/--no-intercept", default=None, help="Ridge: a constant for each label."),
            click.option("--keep", type=FiniteRange(0, 1, min_open=True), help="Ridge: share of weights to keep."),
            click.option(
                "--top-features-per-label", type=click.IntRange(min=1), help="Ridge: weights to keep of each."
            ),
            click.option("--threshold", type=FiniteRange(min=0), help="Ridge: smallest weight to keep."),
            click.option("--updatable", is_flag=True, default=None, help="Ridge: keep what partial_fit needs."),
            click.option(
                "--weighting",
                type=click.Choice(["none", "loss", "target", "score"]),
                help="How to favour rare labels; target is of ridge, score of trees and one-vs-rest.",
            ),
            click.option(
                "--head",
                type=click.Choice(["cascade", "one-hot", "product", "sampling", "bottleneck", "dft"]),
                help="Network: the output layer.  [default: cascade]",
            ),
            click.option("--heads", type=click.IntRange(min=1), help="Network: heads of the layer.  [default: 2]"),
            click.option("--width", type=click.IntRange(min=1), help="Network: of its layer.  [default: 512]"),
            click.option("--epochs", type=click.IntRange(min=1), help="Network: passes over the rows.  [default: 20]"),
            click.option(
                "--batch-size",
                type=click.IntRange(min=1),
                help="Network: rows of a step.  [default: 128, fewer for few]",
            ),
            click.option(
                "--learning-rate",
                type=FiniteRange(min=0, min_open=True),
                help="Network: how far a step goes.  [default: 0.005]",
            ),
            click.option("--dropout", type=FiniteRange(0, 0.95), help="Network: share left out.  [default: 0]"),
            click.option("--networks", type=click.IntRange(min=1), help="Network: how many, to average.  [default: 1]"),
            click.option(
                "--checkpoint", metavar="DIR", help="Network: where an interrupted training can be taken up again."
            ),
        )
    ):
        function = option(function)
    return function


def check_learner_options(given: dict[str, Any]) -> None:
    """Refuse, before anything is read, options that do not belong to the learner or not to one another."""
    from longtail.choice import learners_taking

    if given["taxonomy"] is not None:
        check_file(given["taxonomy"])
        if is_blank(given["taxonomy"]):
            raise InvalidInput(f"{given['taxonomy']} is empty; write lines of child, tab, parent")
    of_networks = [name for name in _OF_NETWORKS if given[name] is not None]
    if given["learner"] == "network":
        _check_network_options(given)
        return
    if of_networks:
        raise InvalidInput(f"{_flag(of_networks[0])} is for --learner network")
    linear = [learner for learner in LEARNERS[1:] if learner != "network"]
    left: list[str] = linear if given["learner"] == "auto" else [given["learner"]]
    decided = f"--learner {given['learner']}"
    for name, value in _settings(given).items():
        flag = _flag(name)
        if name == "weighting":
            flag += f" {value}"
        owners = learners_taking(_PARAMETERS[name], value)
        fitting = [learner for learner in left if learner in owners]
        if not fitting:
            raise InvalidInput(f"{flag} is for {' and '.join(owners)}; it does not go with {decided}")
        if len(fitting) < len(left):
            left, decided = fitting, flag
    if given["missing"] and not given["taxonomy"]:
        raise InvalidInput("--missing only has a meaning with --taxonomy")


def _check_network_options(given: dict[str, Any]) -> None:
    for name, value in _settings(given).items():
        if name != "weighting":
            raise InvalidInput(f"{_flag(name)} does not go with --learner network")
        if value != "loss":
            raise InvalidInput(f"--weighting {value} does not go with --learner network; loss does")
    import longtail.neural  # noqa: F401 (says now, and not after reading, that torch is missing)


def _flag(name: str) -> str:
    return "--C" if name == "c" else f"--{name.replace('_', '-')}"


def _settings(given: dict[str, Any]) -> dict[str, Any]:
    """The options of learners that are given."""
    found = {name: given[name] for name in _PARAMETERS if given[name] is not None and given[name] is not False}
    if found.get("weighting") == "none":
        del found["weighting"]
    return found


def learner(given: dict[str, Any], X: Any, corpus: Corpus, terminal: Terminal) -> Choice:
    """The estimator that the options, and the size of the data, come to; why is told."""
    from longtail.choice import choose_learner

    settings = {_PARAMETERS[name]: value for name, value in _settings(given).items()}
    if given["learner"] == "network":
        return _network(given, settings, terminal)
    if given["taxonomy"]:
        settings["hierarchy"] = _hierarchy(given, X, corpus, terminal)
    choice = choose_learner(
        X, corpus.labels, given["learner"], **settings, n_jobs=given["jobs"], random_state=given["seed"]
    )
    for reason in choice.reasons:
        terminal.say(reason)
    return choice


def _network(given: dict[str, Any], settings: dict[str, Any], terminal: Terminal) -> Choice:
    from longtail.choice import Choice
    from longtail.neural import MultiHeadClassifier

    settings |= {_OF_NETWORKS[name]: given[name] for name in _OF_NETWORKS if given[name] is not None}
    network = MultiHeadClassifier(**settings, random_state=given["seed"], n_jobs=given["jobs"])
    reason = f"learning with a network: {network.head} head, width {network.width}, {counted(network.epochs, 'epoch')}"
    terminal.say(reason)
    return Choice(network, [reason])


def _hierarchy(given: dict[str, Any], X: Any, corpus: Corpus, terminal: Terminal) -> Any:
    """The taxonomy of the labels that occur, with learned nodes in classes too wide to train at once."""
    import numpy as np

    from longtail.labels import label_vectors, read_taxonomy, split_wide
    from longtail.trees import LabelTree

    found = read_taxonomy(given["taxonomy"], corpus.label_names, given["missing"] or "error")
    hierarchy = found.restricted_to(corpus.label_counts > 0)
    if not len(hierarchy.labels):
        raise InvalidInput(
            f"{given['taxonomy']} has none of the labels of {called(given['data'])}; there is nothing to learn"
        )
    terminal.say(f"{given['taxonomy']}: classes {hierarchy.n_nodes:,}, labels {len(hierarchy.labels):,}")
    sizes = {name: given[name] or getattr(LabelTree(), name) for name in ("leaf_size", "branching")}
    widest = sizes["leaf_size"]
    wide = int(np.count_nonzero(np.diff(hierarchy.pointers) > widest))
    if not wide:
        return hierarchy
    terminal.say(f"{wide:,} of the classes have more than {widest} members, which are put into learned groups")
    vectors = label_vectors(X, corpus.labels)
    return split_wide(hierarchy, vectors, random_state=given["seed"], n_jobs=given["jobs"], **sizes)
