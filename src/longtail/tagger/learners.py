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
from longtail.tagger.preparation import FEWEST_ROWS
from longtail.trees import LabelTree
from longtail.work import is_in_pieces

_log = logging.getLogger(__name__)


def check_estimator_parameter(estimator: Any) -> None:
    """Refuse what is neither a learner, nor None, nor options that a learner can have."""
    if isinstance(estimator, LearnerOptions):
        estimator.candidates()
    elif estimator is not None:
        check_learner(estimator, "Tagger")


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
    network = MultiHeadClassifier(**options.given(), random_state=options.random_state, n_jobs=options.n_jobs)
    size = f"{network.head} head, width {network.width}, {counted(network.epochs, 'epoch')}"
    return Choice(network, [f"learner: network with {size}"])


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
