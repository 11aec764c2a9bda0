"""What an audit can say of label trees, which have no linear output layer."""

from __future__ import annotations

import numpy as np

from longtail.arrays import Array
from longtail.audit.finding import UNARGMAXABLE, Certificate
from longtail.audit.findings import Findings, LabelSets
from longtail.trees import TreeModel


def audit_tree(model: TreeModel, sets: LabelSets) -> Findings:
    """What can be said of label trees, which have no linear output layer: labels out of reach.

    A label that was never trained is never given, nor is one whose threshold is above the best score there is, and a
    single tree gives labels of at most `beam` nodes of a level.

    Parameters
    ----------
    model : TreeModel
        A fitted label tree.
    sets : LabelSets

    Returns
    -------
    Findings
        Of sets that are not ruled out nothing is known: their verdict is 0.
    """
    verdicts = np.zeros(len(sets), dtype=np.int8)
    certificates: list[Certificate | None] = [None] * len(sets)
    parents = np.stack([hierarchy.parents()[1] for hierarchy in model.hierarchies_])
    untrained: Array = np.all(parents < 0, axis=0)
    out_of_reach = (_best_scores(model, parents >= 0) < _thresholds(model)) & ~untrained
    members = sets.members
    beam = model._beam()
    beyond = 0
    for place in range(len(sets)):
        ids = members.indices[members.indptr[place] : members.indptr[place + 1]]
        wrong = ids[untrained[ids] | out_of_reach[ids]][:1]
        if not len(wrong) and len(parents) == 1:
            wrong = _beyond_the_beam(model, parents[0], ids, beam)
            beyond += bool(len(wrong))
        if len(wrong):
            verdicts[place] = UNARGMAXABLE
            certificates[place] = Certificate(wrong, np.full(len(wrong), 1 / len(wrong)), 0.0)
    wide = model.n_features_in_ >= model.n_labels_
    reasons = [
        f"A label tree has no linear output layer: the score of a label is a product of classifiers of its own, each "
        f"over all {model.n_features_in_:,} features. "
        + (
            "There is no narrow layer between features and labels, so the limit that this audit looks for is not there."
            if wide
            else f"These are fewer than the {model.n_labels_:,} labels, so some sets have no input; but planes do not "
            f"bound the inputs of a set, and linear programs cannot tell which."
        )
    ]
    if untrained.any():
        reasons.append(f"Labels that were never trained are never given; there are {int(untrained.sum()):,}.")
    if out_of_reach.any():
        reasons.append(
            f"Labels whose threshold is above the best score they can have are never given; there are "
            f"{int(out_of_reach.sum()):,}."
        )
    if beyond:
        reasons.append(
            f"Sets that lie in more nodes of one level than the beam of {beam} visits are never given; there are "
            f"{beyond:,}. A wider beam reaches them."
        )
    return Findings(
        sets,
        verdicts,
        np.full(len(sets), np.nan),
        tuple(certificates),
        model.n_labels_,
        model.n_features_in_,
        None,
        tuple(reasons),
    )


def _best_scores(model: TreeModel, trained: Array) -> Array:
    """What a label scores where every classifier on its way is certain, as `predict` adds it up."""
    certain = [float(each.probability(np.zeros(1))[0]) for each in model.calibrations_] or [1.0] * len(trained)
    scores = (trained * np.array(certain, dtype=np.float32)[:, None]).sum(axis=0) / np.float32(len(trained))
    factors = model._label_factors()
    return np.asarray(scores if factors is None else scores * factors, dtype=np.float32)


def _thresholds(model: TreeModel) -> Array:
    return np.broadcast_to(np.asarray(model._thresholds(), dtype=np.float32), model.n_labels_)


def _beyond_the_beam(model: TreeModel, parents: Array, ids: Array, beam: int) -> Array:
    """Labels of a set, one of each node, that lie in more nodes of one level than are visited."""
    nodes, first = np.unique(parents[ids], return_index=True)
    levels = np.array([len(model.hierarchies_[0].path(int(ids[place]))) for place in first], dtype=np.int64)
    crowded = np.flatnonzero(np.bincount(levels, minlength=1)[levels] > beam) if len(nodes) else np.zeros(0, np.int64)
    if not len(crowded):
        return np.zeros(0, dtype=np.int64)
    level = levels[crowded[0]]
    return np.asarray(ids[first[levels == level]])
