"""From `LearnerOptions` and a corpus to a learner: chosen by size, a network, or a tree that follows a taxonomy."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

from longtail.choice import NETWORK, Choice, LearnerOptions, check_learner, choose_learner
from longtail.data import Corpus
from longtail.errors import InvalidInput
from longtail.labels import LabelHierarchy, label_vectors, read_taxonomy, split_wide
from longtail.printable import counted
from longtail.tagger.encoding import encoder_folder
from longtail.tagger.preparation import FEWEST_ROWS
from longtail.trees import LabelTree
from longtail.work import is_in_pieces

_log = logging.getLogger(__name__)

# Parameters of networks for labels of groups, which differ from the defaults of `longtail.neural.DeepMIML`: rectified
# scores, as in the paper, do not learn hundreds of labels.
_OF_GROUPS = {"hidden": 512, "learning_rate": 5e-3, "tau": 5.0, "rectified": False}
# Epochs of a pretrained encoder are few, as they take long. In so few steps, a head that starts from nothing needs a
# high rate, and one-hot learns most. It costs little beside the encoder.
_FINE_TUNING = {
    "encoder": "pretrained",
    "head": "one-hot",
    "epochs": 4,
    "batch_size": 16,
    "learning_rate": 0.02,
    "warmup": 0.1,
}
_NAMES_OF_GROUPS = {"width": "hidden"}


def check_estimator_parameter(estimator: Any, of_groups: bool = False) -> None:
    """Refuse what is neither a learner, nor None, nor options that a learner can have.

    With `of_groups`, labels belong to groups of rows.
    """
    if isinstance(estimator, LearnerOptions):
        estimator.candidates()
        if of_groups:
            estimator.check_groups()
    elif estimator is not None:
        check_learner(estimator, "Tagger", of_groups)


def races(estimator: Any, corpus: Corpus) -> bool:
    """Whether the learner is chosen by a race: nothing is decided yet, and there are rows enough to measure.

    In pieces there is no race, which needs the rows in memory.
    """
    options = LearnerOptions() if estimator is None else estimator
    undecided = isinstance(options, LearnerOptions) and options.learner == "auto" and not options.given()
    return undecided and corpus.n_rows >= FEWEST_ROWS and not is_in_pieces()


def learner_for(estimator: Any, X: Any, corpus: Corpus) -> Choice:
    """A learner that is not fitted: a copy of `estimator`, or one chosen for the data by these options."""
    if estimator is not None and not isinstance(estimator, LearnerOptions):
        return Choice(clone(estimator), [])
    options = estimator or LearnerOptions()
    if is_in_pieces() and options.learner == "auto" and not options.given():
        options = replace(options, learner="tree")
    if options.learner == NETWORK:
        choice = _network(options, corpus)
    else:
        if options.taxonomy is not None:
            hierarchy = _hierarchy(options, X, corpus)
            options = replace(options, taxonomy=None, missing=None, hierarchy=hierarchy)
        choice = choose_learner(X, corpus.labels, options)
    for reason in choice.reasons:
        _log.info(reason)
    return choice


def _network(options: LearnerOptions, corpus: Corpus) -> Choice:
    from longtail.neural import MultiHeadClassifier

    if options.task is None and corpus.is_single_label:
        options = replace(options, task="single-label")
    given, of_encoder = options.given(), {}
    if given.pop("fine_tune", False):
        of_encoder = {**_FINE_TUNING, "encoder_folder": encoder_folder(options)}
    network = MultiHeadClassifier(**{**of_encoder, **given}, random_state=options.random_state, n_jobs=options.n_jobs)
    layer = "an encoder that is trained, too" if of_encoder else f"width {network.width}"
    size = f"{network.head} head, {layer}, {counted(network.epochs, 'epoch')}"
    return Choice(network, [f"learner: network with {size}"])


def network_of_groups(estimator: Any, strategy: str, parameters: dict[str, Any]) -> Choice | None:
    """A network that learns from the labels of groups itself, if `estimator` is one or asks for one.

    Parameters
    ----------
    estimator : Estimator, LearnerOptions or None
    strategy : str
        Only "auto" is accepted: such a network does not assign labels to rows.
    parameters : dict
        Further parameters of `longtail.neural.DeepMIML`.
    """
    if isinstance(estimator, LearnerOptions) and estimator.learner == NETWORK:
        from longtail.neural import DeepMIML

        given = {_NAMES_OF_GROUPS.get(name, name): value for name, value in estimator.given().items()}
        seed = {"random_state": estimator.random_state, "n_jobs": estimator.n_jobs}
        network: Any = DeepMIML(**{**_OF_GROUPS, **given, **seed})
    elif estimator is not None and getattr(estimator, "learns_from_groups", False):
        network = clone(estimator)
    else:
        return None
    unknown = sorted(set(parameters) - set(network.get_params()))
    if strategy != "auto" or unknown:
        name = unknown[0] if unknown else "strategy"
        raise InvalidInput(
            f"{name} is for learners of rows; a network learns from the labels of groups without assigning them to "
            "rows",
            code="idle_parameter",
            name=name,
            advice="to train a network on assigned labels, run `longtail assign` first and train on its output",
        )
    network.set_params(**parameters)
    size = f"width {network.hidden}, {counted(network.epochs, 'epoch')}"
    return Choice(network, [f"learner: network that learns from groups, with {size}"])


def _hierarchy(options: LearnerOptions, X: Any, corpus: Corpus) -> LabelHierarchy:
    """The taxonomy of the labels that occur; classes too wide to train at once are split into learned nodes."""
    taxonomy = str(options.taxonomy)
    found = read_taxonomy(taxonomy, corpus.label_names, options.missing or "error")
    hierarchy = found.restricted_to(corpus.label_counts > 0)
    if not len(hierarchy.labels):
        message = f"{taxonomy} has none of the labels of the corpus; there is nothing to learn"
        raise InvalidInput(message, code="no_labels_in_taxonomy", path=taxonomy)
    classes, labels = counted(hierarchy.n_nodes, "class", "classes"), counted(len(hierarchy.labels), "label")
    _log.info("%s: %s, %s", taxonomy, classes, labels)
    tree = LabelTree()
    leaf_size, branching = options.leaf_size or tree.leaf_size, options.branching or tree.branching
    wide = int(np.count_nonzero(np.diff(hierarchy.pointers) > leaf_size))
    if not wide:
        return hierarchy
    wide_classes = counted(wide, "class", "classes")
    _log.info("%s with more than %d members: split into learned groups", wide_classes, leaf_size)
    return split_wide(
        hierarchy,
        label_vectors(X, corpus.labels),
        leaf_size=leaf_size,
        branching=branching,
        random_state=options.random_state,
        n_jobs=options.n_jobs,
    )
