"""The audit of a model: which of the label sets that people use can it never give, and why, in words.

What needs no linear program is settled first: labels without weights, and weights that are linearly independent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import linalg, sparse

from longtail.audit.models import OutputLayer, Rule
from longtail.audit.result import ARGMAXABLE, UNARGMAXABLE, UNDETERMINED, Certificate
from longtail.audit.verification import verify
from longtail.audit.wide import WideLayer, first_twins
from longtail.errors import InvalidInput
from longtail.parallel import split
from longtail.progress import task
from longtail.validation import as_labels

Array = np.ndarray[Any, np.dtype[Any]]

MOST_DIMENSIONS = 1_500  # beyond it a single linear program may take minutes
_NAMES_SHOWN = 8
_SETS_AT_ONCE = 100  # between two reports of progress


@dataclass(frozen=True, eq=False)
class LabelSets:
    """Different label sets and how many rows have each.

    Examples
    --------
    >>> sets = LabelSets.of([[1, 0], [0, 1], [1, 0]])
    >>> sets.members.toarray().tolist(), sets.rows.tolist(), sets.first_row.tolist()
    ([[1.0, 0.0], [0.0, 1.0]], [2, 1], [0, 1])
    """

    members: Any
    rows: Array
    first_row: Array

    @classmethod
    def of(cls, labels: Any, limit: int | None = None, random_state: int = 0) -> LabelSets:
        """The different rows of a 0/1 matrix, or `limit` of them drawn at random."""
        matrix = as_labels(labels, name="labels")
        places: dict[bytes, int] = {}
        indices, indptr = matrix.indices, matrix.indptr.tolist()
        number = np.array(
            [places.setdefault(indices[a:b].tobytes(), len(places)) for a, b in pairwise(indptr)],
            dtype=np.int64,
        )
        rows = np.bincount(number, minlength=len(places))
        first_row = np.full(len(places), matrix.shape[0])
        np.minimum.at(first_row, number, np.arange(matrix.shape[0]))
        if limit is not None and limit < len(rows):
            chosen = np.sort(np.random.default_rng(random_state).choice(len(rows), size=limit, replace=False))
            rows, first_row = rows[chosen], first_row[chosen]
        return cls(matrix[first_row], rows, first_row)

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True, eq=False)
class Findings:
    """What is known of each label set.

    Attributes
    ----------
    sets : LabelSets
    verdicts : int8 array
        1 some input gets it, -1 no input does, 0 not known.
    radii : float64 array
        As of `Audit`; nan where no linear program was needed.
    certificates : tuple of Certificate or None
        Of the sets that no input gets.
    n_labels, n_features : int
    rank : int or None
    reasons : tuple of str
        What the layer alone says, in sentences.
    radii_are_exact : bool
    rule : {"predict", "topk"}
        As of the layer.
    """

    sets: LabelSets
    verdicts: Array
    radii: Array
    certificates: tuple[Certificate | None, ...]
    n_labels: int
    n_features: int
    rank: int | None
    reasons: tuple[str, ...] = field(default=())
    radii_are_exact: bool = False
    rule: Rule = "predict"

    def count(self, verdict: int) -> int:
        return int(np.count_nonzero(self.verdicts == verdict))

    def count_rows(self, verdict: int) -> int:
        """Rows whose label set has a verdict."""
        return int(self.sets.rows[self.verdicts == verdict].sum())

    def smallest_radius(self) -> float | None:
        known = self.radii[(self.verdicts == ARGMAXABLE) & ~np.isnan(self.radii)]
        return float(known.min()) if len(known) else None

    def examples(self, label_names: Sequence[str], most: int) -> list[dict[str, Any]]:
        """Sets that no input gets, those with the shortest proofs first: their labels, and the labels that conflict."""
        found = [p for p in np.flatnonzero(self.verdicts == UNARGMAXABLE).tolist() if self.certificates[p] is not None]
        found.sort(key=lambda place: (len(self._certificate(place).labels), self.sets.first_row[place]))
        return [self.example(place, label_names) for place in found[:most]]

    def _certificate(self, place: int) -> Certificate:
        found = self.certificates[place]
        assert found is not None
        return found

    def example(self, place: int, label_names: Sequence[str]) -> dict[str, Any]:
        """One set that no input gets, by the names of labels."""
        members = self.sets.members
        ids = members.indices[members.indptr[place] : members.indptr[place + 1]]
        certificate = self._certificate(place)
        inside = np.isin(certificate.labels, ids)
        with_labels = [label_names[label] for label in certificate.labels[inside].tolist()]
        without = [label_names[label] for label in certificate.labels[~inside].tolist()]
        return {
            "row": int(self.sets.first_row[place]) + 1,
            "rows": int(self.sets.rows[place]),
            "labels": [label_names[label] for label in ids.tolist()],
            "conflict": {"with": with_labels, "without": without},
            "weights": dict(
                zip([label_names[i] for i in certificate.labels.tolist()], certificate.weights.tolist(), strict=True)
            ),
            "residual": certificate.residual,
            "says": describe_conflict(with_labels, without, self.rule),
        }

    def to_dict(self, label_names: Sequence[str], most_examples: int | None = None) -> dict[str, Any]:
        """Everything as plain values; every set that no input gets is an example unless `most_examples` is given."""
        most = len(self.sets) if most_examples is None else most_examples
        return {
            "labels": self.n_labels,
            "features": self.n_features,
            "rank": self.rank,
            "label_sets": len(self.sets),
            "rows": int(self.sets.rows.sum()),
            "argmaxable": self.count(ARGMAXABLE),
            "unargmaxable": self.count(UNARGMAXABLE),
            "undetermined": self.count(UNDETERMINED),
            "rows_unargmaxable": self.count_rows(UNARGMAXABLE),
            "smallest_radius": self.smallest_radius(),
            "radii_are_exact": self.radii_are_exact,
            "reasons": list(self.reasons),
            "examples": self.examples(label_names, most),
        }


def describe_conflict(
    with_labels: Sequence[str], without: Sequence[str], rule: Rule = "predict", most: int = _NAMES_SHOWN
) -> str:
    """A certificate in words: labels that cannot all be given while none of the others is.

    Examples
    --------
    >>> describe_conflict(["A", "B"], ["C"])
    'no input can have A and B without C'
    >>> describe_conflict(["A"], ["B", "C"])
    'no input can have A without one of B and C'
    >>> describe_conflict([], ["B", "C"])
    'every input has one of B and C'
    >>> describe_conflict(["A", "B"], ["C", "D"], "topk")
    'no input ranks A and B above C and D'
    """
    if rule == "topk":
        return f"no input ranks {_listed(with_labels, most)} above {_listed(without, most)}"
    if not with_labels:
        return f"every input has {'' if len(without) == 1 else 'one of '}{_listed(without, most)}"
    if not without:
        together = " together" if len(with_labels) > 1 else ""
        return f"no input can have {_listed(with_labels, most)}{together}"
    one_of = "" if len(without) == 1 else "one of "
    return f"no input can have {_listed(with_labels, most)} without {one_of}{_listed(without, most)}"


def _listed(names: Sequence[str], most: int) -> str:
    if len(names) == 1:
        return names[0]
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most} others"
    return f"{', '.join(names[:-1])} and {names[-1]}"


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

    Examples
    --------
    >>> from longtail.audit.models import OutputLayer, Rule
    >>> W = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> found = audit_layer(OutputLayer(W, np.zeros(3), "predict", ""), LabelSets.of([[1, 1, 0], [1, 0, 1]]))
    >>> found.verdicts.tolist(), found.examples("ABC", 1)[0]["says"]
    ([-1, 1], 'no input can have A and B without C')
    """
    if sets.members.shape[1] != layer.n_labels:
        raise InvalidInput(f"the label sets have {sets.members.shape[1]} labels, the layer has {layer.n_labels}")
    draft = _Draft(layer, sets)
    rest = np.arange(layer.n_labels)
    if layer.rule == "predict":
        rest = draft.settle_twins(draft.settle_constant_labels())
    if not len(rest):
        draft.verdicts[draft.open()] = ARGMAXABLE
        return draft.finish(0)
    part = OutputLayer(layer.weights[rest], layer.offsets[rest], layer.rule, layer.description)
    width, rank = part.n_features, part.rank()
    if rank is None and width >= len(rest):
        draft.reasons.append(
            f"There are {width:,} features for {len(rest):,} labels, so the width is no limit; whether the weights of "
            f"the labels are linearly independent would take long to find out, and is not known."
        )
        return draft.finish(None)
    if rank == len(rest):
        draft.reasons.append(
            f"The weights of {len(rest):,} labels are linearly independent (rank {rank:,}, over {width:,} features): "
            f"any scores can be had, so every set of these labels has an input."
        )
        draft.settle_by_algebra(part, rest, rank)
        return draft.finish(rank)
    dimensions = width if rank is None else min(width, rank)
    draft.reasons.append(
        f"The weights of {len(rest):,} labels have {'at most ' if rank is None else ''}rank {dimensions:,}: "
        f"not every label set can have an input."
    )
    if dimensions <= MOST_DIMENSIONS:
        weights = part.dense() if dimensions == width else part.truncations(dimensions)(dimensions)
        draft.settle_by_programs(weights, part, rest, exact_radii, n_jobs, random_state)
        return draft.finish(rank)
    if rank is not None and width >= len(rest):
        draft.settle_by_algebra(part, rest, rank)
    if len(draft.open()):
        draft.reasons.append(
            f"A linear program in {dimensions:,} dimensions takes long, and without one {len(draft.open()):,} sets "
            f"remain not known."
        )
    return draft.finish(rank)


class _Draft:
    """Verdicts while they are being found."""

    def __init__(self, layer: OutputLayer, sets: LabelSets) -> None:
        self.layer = layer
        self.sets = sets
        self.verdicts = np.zeros(len(sets), dtype=np.int8)
        self.radii = np.full(len(sets), np.nan)
        self.certificates: list[Certificate | None] = [None] * len(sets)
        self.reasons: list[str] = []
        self.radii_are_exact = False

    def open(self) -> Array:
        return np.flatnonzero(self.verdicts == UNDETERMINED)

    def settle_constant_labels(self) -> Array:
        """Sets with a label that is never given, or without one that always is; the labels that have weights."""
        constant = self.layer.constant_labels()
        always = constant[self.layer.offsets[constant] > 0]
        never = np.setdiff1d(constant, always)
        members = self.sets.members
        in_set = np.asarray(members[:, constant].sum(axis=1)).ravel() if len(constant) else np.zeros(len(self.sets))
        missing = len(always) - np.asarray(members[:, always].sum(axis=1)).ravel() if len(always) else 0
        has_always = len(always) - missing
        for place in np.flatnonzero((in_set > has_always) | (np.asarray(missing) > 0)):
            ids = members.indices[members.indptr[place] : members.indptr[place + 1]]
            wrong = np.concatenate([np.intersect1d(never, ids), np.setdiff1d(always, ids)])
            self.verdicts[place] = UNARGMAXABLE
            self.radii[place] = 0.0
            self.certificates[place] = Certificate(wrong[:1], np.ones(1), 0.0)
        for some, when in ((never, "never"), (always, "always")):
            if len(some) == 1:
                self.reasons.append(f"1 label has no weights and is {when} given.")
            elif len(some):
                self.reasons.append(f"{len(some):,} labels have no weights and are {when} given.")
        return np.setdiff1d(np.arange(self.layer.n_labels), constant)

    def settle_twins(self, rest: Array) -> Array:
        """Sets that have one of several labels with the same weights and not the others; one label of each kind."""
        part = OutputLayer(self.layer.weights[rest], self.layer.offsets[rest], "predict", "")
        kinds, first, kind, sizes = np.unique(
            first_twins(part), return_index=True, return_inverse=True, return_counts=True
        )
        if len(kinds) == len(rest):
            return rest
        members = self.sets.members[:, rest]
        by_kind = sparse.csr_array((np.ones(len(rest)), (np.arange(len(rest)), kind)), shape=(len(rest), len(kinds)))
        found = sparse.coo_array(members @ by_kind)
        parted = (found.data < sizes[found.col]) & (self.verdicts[found.row] == UNDETERMINED)
        for place, which in zip(found.row[parted].tolist(), found.col[parted].tolist(), strict=True):
            if self.certificates[place] is not None:
                continue
            twins = np.flatnonzero(kind == which)
            inside = np.isin(twins, members.indices[members.indptr[place] : members.indptr[place + 1]])
            pair = np.sort(rest[[twins[inside][0], twins[~inside][0]]])
            self.verdicts[place], self.radii[place] = UNARGMAXABLE, 0.0
            self.certificates[place] = Certificate(pair, np.full(2, 0.5), 0.0)
        alike = len(rest) - int(np.count_nonzero(sizes == 1))
        self.reasons.append(f"{alike:,} labels have the same weights as another one: no input tells these apart.")
        return np.asarray(rest[np.sort(first)])

    def settle_by_algebra(self, part: OutputLayer, rest: Array, rank: int) -> None:
        """Sets that an input is found for by solving for scores; the signs that the input leads to are checked."""
        try:
            wide = WideLayer(part, rank)
        except linalg.LinAlgError:
            self.reasons.append("But only just so: the inputs are too large to be checked in 64-bit floats.")
            return
        places = self.open()
        with task("auditing label sets", total=len(places)) as advance:
            for block in split(len(places), max(1, 2**24 // max(part.weights.shape))):
                some = places[block]
                wanted = 2.0 * self.sets.members[some][:, rest].toarray().T - 1
                self.verdicts[some[wide.reaches(wanted)]] = ARGMAXABLE
                advance(len(some))

    def settle_by_programs(
        self, weights: Array, part: OutputLayer, rest: Array, exact_radii: bool, n_jobs: int | None, random_state: int
    ) -> None:
        self.radii_are_exact = True
        left = self.open()
        with task("auditing label sets", total=len(left)) as advance:
            for block in split(len(left), _SETS_AT_ONCE):
                places = left[block]
                audit = verify(
                    weights,
                    self.sets.members[places][:, rest],
                    part.offsets if part.offsets.any() else None,
                    semantics="sign" if part.rule == "predict" else "topk",
                    exact_radii=exact_radii,
                    n_jobs=n_jobs,
                    random_state=random_state,
                )
                self.verdicts[places] = audit.verdicts
                self.radii[places] = audit.radii
                for place, found in zip(places.tolist(), audit.certificates, strict=True):
                    if found is not None:
                        self.certificates[place] = Certificate(rest[found.labels], found.weights, found.residual)
                reached = audit.verdicts == ARGMAXABLE
                self.radii_are_exact &= bool(audit.radius_is_exact[reached].all())
                advance(len(places))

    def finish(self, rank: int | None) -> Findings:
        return Findings(
            self.sets,
            self.verdicts,
            self.radii,
            tuple(self.certificates),
            self.layer.n_labels,
            self.layer.n_features,
            rank,
            tuple(self.reasons),
            self.radii_are_exact,
            self.layer.rule,
        )
