"""What an audit of a model has found: label sets of rows, what is known of each, and why, in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from longtail.arrays import Array
from longtail.audit.finding import ARGMAXABLE, UNARGMAXABLE, UNDETERMINED, Certificate
from longtail.estimator.output_layer import Rule
from longtail.validation import as_labels

_NAMES_SHOWN = 8


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
        Of the weights of the labels that differ, for rankings of the differences between them; None where not known.
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
