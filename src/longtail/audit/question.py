"""The audit of an output layer: which of the label sets that people use can it never give?

What needs no linear program is settled first: labels without weights, labels with the same weights, and weights that
are linearly independent. Scores that are equal are decided as the model decides them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import linalg

from longtail.arrays import Array
from longtail.audit.auditing import verify
from longtail.audit.draft import Draft
from longtail.audit.finding import ARGMAXABLE, UNARGMAXABLE
from longtail.audit.findings import Findings, LabelSets
from longtail.audit.program import require_highspy
from longtail.audit.wide import WideLayer
from longtail.errors import InvalidInput
from longtail.estimator.output_layer import OutputLayer, row_lengths
from longtail.parallel import split
from longtail.progress import task

MOST_DIMENSIONS = 1_500  # beyond it a single linear program may take minutes
_SETS_AT_ONCE = 100  # between two reports of progress
_CANCELLED = 1e-10  # what rows of length 1 may leave of each other where they cancel but for rounding


def audit_layer(
    layer: OutputLayer,
    sets: LabelSets,
    *,
    exact_radii: bool = False,
    n_jobs: int | None = None,
    random_state: int = 0,
) -> Findings:
    """Find the label sets that no input gets from a layer.

    Parameters
    ----------
    layer : OutputLayer
    sets : LabelSets
    exact_radii : bool
        Solve a linear program for every set, so that each radius is the largest there is.
    n_jobs, random_state
        As for `verify`.

    Returns
    -------
    Findings

    Raises
    ------
    InvalidInput
        Where the sets are not of the labels of the layer.
    NotEnoughMemory
        Where the weights, made dense, do not fit.
    Unavailable
        Where exact radii are asked for and highspy is not installed.

    Examples
    --------
    >>> from longtail.estimator.output_layer import OutputLayer
    >>> W = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> found = audit_layer(OutputLayer(W, np.zeros(3), "predict", ""), LabelSets.of([[1, 1, 0], [1, 0, 1]]))
    >>> found.verdicts.tolist(), found.examples("ABC", 1)[0]["says"]
    ([-1, 1], 'no input can have A and B without C')
    """
    if sets.members.shape[1] != layer.n_labels:
        raise InvalidInput(f"the label sets have {sets.members.shape[1]} labels, the layer has {layer.n_labels}")
    if exact_radii:
        require_highspy()
    draft = Draft(layer, sets)
    rank = _settle(draft, exact_radii, n_jobs, random_state)
    draft.settle_origin()
    return draft.finish(rank)


def _settle(draft: Draft, exact_radii: bool, n_jobs: int | None, random_state: int) -> int | None:
    """Settle what can be, and return the rank of what was looked at."""
    layer = draft.layer
    ranked = layer.rule == "topk"
    draft.settle_twins(np.arange(layer.n_labels) if ranked else draft.settle_constant_labels())
    n_kinds = len(draft.kinds)
    if not n_kinds:
        draft.verdicts[draft.open()] = ARGMAXABLE
        return 0
    chosen = replace(layer, weights=layer.weights[draft.kinds], offsets=layer.offsets[draft.kinds])
    # No verdict depends on the lengths of rows, and short ones would be lost beside long ones.
    part = chosen.with_cut() if ranked else chosen.unit()
    width, rank = part.n_features, part.rank()
    # The cut is a dimension of the system, but not one of the layer.
    features, known_rank = width - ranked, None if rank is None else rank - ranked
    if rank is None and width >= n_kinds:
        draft.reasons.append(
            f"There are {features:,} features for {n_kinds:,} labels, so the width is no limit; whether the weights of "
            f"the labels are linearly independent would take long to find out, and is not known."
        )
        return None
    about = f"The {'differences between the ' if ranked else ''}weights of {n_kinds:,} labels"
    if rank == n_kinds:
        outcome = (
            "any order of scores can be had, so every set of these labels can come first"
            if ranked
            else "any scores can be had, so every set of these labels has an input"
        )
        draft.reasons.append(
            f"{about} are linearly independent (rank {known_rank:,}, over {features:,} features): {outcome}."
        )
        _settle_by_algebra(draft, part, rank)
        return known_rank
    dimensions = width if rank is None else min(width, rank)
    draft.reasons.append(
        f"{about} have {'at most ' if rank is None else ''}rank {dimensions - ranked:,}: "
        + ("not every label set can come first." if ranked else "not every label set can have an input.")
    )
    if dimensions <= MOST_DIMENSIONS:
        weights = part.dense() if dimensions == width else part.truncations(dimensions)(dimensions)
        settled = draft.open()
        _settle_by_programs(draft, weights, part.offsets, exact_radii, n_jobs, random_state)
        if dimensions < width:
            _doubt_what_truncation_made(draft, settled, float(part.dense()[0, -1]) if ranked else 0.0)
        return known_rank
    if rank is not None and width >= n_kinds:
        _settle_by_algebra(draft, part, rank)
    if len(draft.open()):
        draft.reasons.append(
            f"A linear program in {dimensions:,} dimensions takes long, and without one {len(draft.open()):,} sets "
            f"remain not known."
        )
    return known_rank


def _doubt_what_truncation_made(draft: Draft, places: Array, cut: float) -> None:
    """Take back refusals whose rows cancel only without the directions that were taken for rounding.

    An input that is found needs no such check: the largest directions of the weights are directions of inputs.
    """
    layer, doubted = draft.layer, 0
    for place in places[draft.verdicts[places] == UNARGMAXABLE].tolist():
        found = draft.certificates[place]
        assert found is not None
        some = replace(layer, weights=layer.weights[found.labels], offsets=layer.offsets[found.labels])
        some = some if layer.rule == "topk" else some.unit()
        rows = np.column_stack([some.dense(), np.full(len(found.labels), cut)])
        lengths = np.hypot(row_lengths(rows), some.offsets)
        signs = np.where(np.isin(found.labels, draft.ids(place)), 1.0, -1.0)
        if np.abs((found.weights * signs / lengths) @ rows).sum() > _CANCELLED:
            draft.reopen(place)
            doubted += 1
    if doubted:
        draft.reasons.append(
            f"For {doubted:,} sets the weights rule inputs out only without directions so small that they were taken "
            f"for rounding: they count as not known."
        )


def _settle_by_algebra(draft: Draft, part: OutputLayer, rank: int) -> None:
    """Sets that an input is found for by solving for scores; the signs that the input leads to are checked."""
    try:
        wide = WideLayer(part, rank)
    except linalg.LinAlgError:
        draft.reasons.append("But only just so: the inputs are too large to be checked in 64-bit floats.")
        return
    places = draft.open()
    with task("auditing label sets", total=len(places)) as advance:
        for block in split(len(places), max(1, 2**24 // max(part.weights.shape))):
            some = places[block]
            wanted = 2.0 * draft.members[some].toarray().T - 1
            shared = np.flatnonzero(draft.shared[some] >= 0)
            wanted[draft.shared[some][shared], shared] = 0
            draft.verdicts[some[wide.reaches(wanted)]] = ARGMAXABLE
            advance(len(some))


def _settle_by_programs(
    draft: Draft, weights: Array, offsets: Array, exact_radii: bool, n_jobs: int | None, random_state: int
) -> None:
    draft.radii_are_exact = True
    left = draft.open()
    lengths = np.hypot(row_lengths(weights), offsets)
    with task("auditing label sets", total=len(left)) as advance:
        for kind in np.unique(draft.shared[left]).tolist():
            same = left[draft.shared[left] == kind]
            rows = np.arange(len(weights))
            system, added = weights, offsets
            if kind >= 0:
                # The cut runs through the labels of one kind: the others are above or below their score.
                rows = np.delete(rows, kind)
                system, added = weights[rows] - weights[kind], offsets[rows] - offsets[kind]
            if not len(rows):
                draft.verdicts[same] = ARGMAXABLE
                draft.radii_are_exact = False
                continue
            for block in split(len(same), _SETS_AT_ONCE):
                places = same[block]
                audit = verify(
                    system,
                    draft.members[places][:, rows],
                    added if added.any() else None,
                    exact_radii=exact_radii,
                    n_jobs=n_jobs,
                    random_state=random_state,
                )
                draft.take(places, rows, audit, system.shape[1] - (kind >= 0), lengths)
                advance(len(places))
