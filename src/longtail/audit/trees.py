"""The audit of label trees, which have no linear output layer: which labels and sets are out of reach?"""

from __future__ import annotations

import numpy as np

from longtail.arrays import Array
from longtail.audit.finding import NOT_KNOWN, UNARGMAXABLE, Audit, Certificate, Finding, LabelSets
from longtail.trees import LabelTree


def audit_tree(model: LabelTree, sets: LabelSets) -> Audit:
    """Find label sets that a label tree never gives.

    A tree never gives a label that was never trained, nor one whose threshold is above the best possible score. A
    single tree gives labels of at most `beam` nodes of a level.

    Parameters
    ----------
    model : LabelTree
        A fitted label tree.
    sets : LabelSets

    Returns
    -------
    Audit
        Sets that are not ruled out have the verdict 0, not known.
    """
    findings: list[Finding] = []
    parents = np.stack([hierarchy.parents()[1] for hierarchy in model.hierarchies_])
    untrained: Array = np.all(parents < 0, axis=0)
    out_of_reach = (_best_scores(model, parents >= 0) < model._thresholds()) & ~untrained
    beam = model._beam()
    beyond = 0
    for place in range(len(sets)):
        ids = sets.ids(place)
        wrong = ids[untrained[ids] | out_of_reach[ids]][:1]
        if not len(wrong) and len(parents) == 1:
            wrong = _beyond_the_beam(model, parents[0], ids, beam)
            beyond += bool(len(wrong))
        finding = NOT_KNOWN
        if len(wrong):
            proof = Certificate(wrong, np.full(len(wrong), 1 / len(wrong)), 0.0)
            finding = Finding(UNARGMAXABLE, "tree", certificate=proof)
        findings.append(finding)
    wide = model.n_features_in_ >= model.n_labels_
    reasons = [
        f"A label tree has no linear output layer: the score of a label is a product of several classifiers, each over "
        f"all {model.n_features_in_:,} features. "
        + (
            "There is no narrow layer between features and labels, so this audit has no limit to look for."
            if wide
            else f"There are fewer features than the {model.n_labels_:,} labels, so some sets have no input. But the "
            f"inputs of a set are not bounded by planes, and linear programs cannot tell which sets these are."
        )
    ]
    if untrained.any():
        reasons.append(f"{int(untrained.sum()):,} labels were never trained and are never given.")
    if out_of_reach.any():
        reasons.append(
            f"{int(out_of_reach.sum()):,} labels are never given, because their threshold is above the best score they "
            f"can have."
        )
    if beyond:
        reasons.append(
            f"{beyond:,} sets are never given, because their labels lie in more nodes of one level than the beam of "
            f"{beam} visits. A wider beam reaches them."
        )
    return Audit.of(sets, findings, model.n_labels_, model.n_features_in_, reasons=tuple(reasons))


def _best_scores(model: LabelTree, trained: Array) -> Array:
    """The score of each label if every classifier on its path is certain, summed as `predict` sums it."""
    certain = [float(each.probability(np.zeros(1))[0]) for each in model.calibrations_] or [1.0] * len(trained)
    scores = (trained * np.array(certain, dtype=np.float32)[:, None]).sum(axis=0) / np.float32(len(trained))
    factors = model._label_factors()
    return np.asarray(scores if factors is None else scores * factors, dtype=np.float32)


def _beyond_the_beam(model: LabelTree, parents: Array, ids: Array, beam: int) -> Array:
    """Labels of a set, one for each node, if they lie in more nodes of one level than the beam visits."""
    nodes, first = np.unique(parents[ids], return_index=True)
    levels = np.array([len(model.hierarchies_[0].path(int(ids[place]))) for place in first], dtype=np.int64)
    crowded = np.flatnonzero(np.bincount(levels, minlength=1)[levels] > beam) if len(nodes) else np.zeros(0, np.int64)
    if not len(crowded):
        return np.zeros(0, dtype=np.int64)
    return np.asarray(ids[first[levels == levels[crowded[0]]]])
