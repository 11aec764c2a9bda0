"""What an audit found: a verdict for each label set, its proof, and the sentences for people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from longtail.arrays import Array
from longtail.audit.box import Box
from longtail.audit.conflicts import describe_conflict
from longtail.audit.cure import Remedy, lines_of, remedies
from longtail.audit.label_sets import LabelSets
from longtail.audit.proofs import (
    certificate_exactly,
    certificate_is_sure,
    certificate_residual,
    check_witness_exactly,
    check_witnesses,
)
from longtail.errors import InvalidInput
from longtail.estimator import OutputLayer, Rule
from longtail.parallel import blas_threads

ARGMAXABLE, UNDETERMINED, UNARGMAXABLE = 1, 0, -1
NAMES = {ARGMAXABLE: "argmaxable", UNARGMAXABLE: "unargmaxable", UNDETERMINED: "undetermined"}
CANCELLED = 1e-10  # what unit rows may leave of each other if only rounding keeps them from cancelling


@dataclass(frozen=True, eq=False)
class Certificate:
    """Why no input gets a label set: the scores of these labels cannot all have the sign they need.

    With s = +1 for labels in the set and -1 for the others, the weighted sum of s times each label's row of weights,
    scaled to length 1, is 0. So the same sum of scores is 0 for every input, and its terms cannot all be positive.

    Attributes
    ----------
    labels : array of label ids, at most one more than the layer has dimensions
    weights : array of positive numbers that sum to 1
    residual : float
        What the sum leaves in float64, in the sum of absolute values.
    """

    labels: Array
    weights: Array
    residual: float


@dataclass(frozen=True, eq=False)
class Finding:
    """The verdict on one label set with its proof."""

    verdict: int
    method: str
    witness: Array | None = None
    certificate: Certificate | None = None


NOT_KNOWN = Finding(UNDETERMINED, "none")


@dataclass(frozen=True, eq=False)
class Radii:
    """The radius of each label set for inputs of a box.

    The radius is that of the largest ball of inputs that all get the set, with its centre in the box: 0 if no input of
    the box gets it, infinity if every input does, nan if nothing is known.

    Attributes
    ----------
    values : float64 array of shape (n_sets,)
    exact : bool array of shape (n_sets,)
        Elsewhere the radius is a lower bound.
    box : Box
    """

    values: Array
    exact: Array
    box: Box


@dataclass(frozen=True, eq=False)
class Audit:
    """Which label sets a model can give, each verdict with its proof.

    Attributes
    ----------
    sets : LabelSets
    verdicts : int8 array of shape (n_sets,)
        1 some input gets it (argmaxable), -1 no input does (unargmaxable), 0 not known; `names` holds the words.
    room : Radii or None
        Radii for inputs whose features all lie between minus and plus the same number, 1 by default; with 10,000 they
        are the radii of Grivas et al. (2024). None for label trees.
    seen_room : Radii or None
        Radii for inputs whose features lie in the range of values seen in data; None if no data was given.
    witnesses : float64 array of shape (n_sets, n_inputs), or None
        An input that gets the set; nan if there is none. None if they would take too much memory.
    certificates : tuple of `Certificate` or None
        Of the sets that no input gets.
    methods : array of str
        Which step decided: "candidates", "samples", "weights" (those of a class), "reflection", "perceptron", "zero",
        "alternation", "nearest", "rows" or "program" (linear programs), "constant", "twins", "algebra", "origin" or
        "tree". Of sets that are not known: "ties" if only inputs with equal scores could get it, else "none".
    n_labels, n_features : int
    layer : OutputLayer or None
        None for label trees, which have no such layer.
    rank : int or None
        The rank of the weights of the labels that differ, for rankings that of their differences; None if not known.
    reasons : tuple of str
        What is known without looking at single sets, in sentences.
    """

    sets: LabelSets
    verdicts: Array
    witnesses: Array | None = field(repr=False)
    certificates: tuple[Certificate | None, ...] = field(repr=False)
    methods: Array
    n_labels: int
    n_features: int
    layer: OutputLayer | None = field(default=None, repr=False)
    rank: int | None = None
    reasons: tuple[str, ...] = ()
    room: Radii | None = None
    seen_room: Radii | None = None

    @classmethod
    def of(cls, sets: LabelSets, findings: Sequence[Finding], n_labels: int, n_features: int, **facts: Any) -> Audit:
        """Collect findings, one for each set. The witnesses are kept if every argmaxable set has one."""
        witnesses = None
        layer = facts.get("layer")
        if layer is not None and all(f.witness is not None for f in findings if f.verdict == ARGMAXABLE):
            witnesses = np.full((len(findings), layer.n_inputs), np.nan)
            for place, finding in enumerate(findings):
                if finding.witness is not None:
                    witnesses[place] = finding.witness
        return cls(
            sets=sets,
            verdicts=np.array([finding.verdict for finding in findings], dtype=np.int8),
            witnesses=witnesses,
            certificates=tuple(finding.certificate for finding in findings),
            methods=np.array([finding.method for finding in findings], dtype=object),
            n_labels=n_labels,
            n_features=n_features,
            **facts,
        )

    def __len__(self) -> int:
        return len(self.verdicts)

    @property
    def names(self) -> Array:
        """The verdicts in words."""
        return np.array([NAMES[int(verdict)] for verdict in self.verdicts], dtype=object)

    @property
    def rule(self) -> Rule:
        return "predict" if self.layer is None else self.layer.rule

    def count(self, verdict: int) -> int:
        """How many label sets have a verdict: 1, -1 or 0."""
        return int(np.count_nonzero(self.verdicts == verdict))

    def count_rows(self, verdict: int) -> int:
        """How many rows have a label set with this verdict."""
        return int(self.sets.rows[self.verdicts == verdict].sum())

    @property
    def radii(self) -> Array:
        """The radius of each set in the fixed box, see `room`; nan for label trees."""
        return np.full(len(self), np.nan) if self.room is None else self.room.values

    @property
    def radius_is_exact(self) -> Array:
        """Where `radii` are exact; elsewhere they are lower bounds."""
        return np.zeros(len(self), dtype=bool) if self.room is None else self.room.exact

    def share(self, radius: float = 0.0, *, seen: bool = False) -> float:
        """The share of the sets that some input gets, with a radius of at least `radius`.

        A lower bound if some sets are not known or have only a lower bound of their radius.

        Parameters
        ----------
        radius : float
        seen : bool
            Use the radii for inputs in the range seen in data.
        """
        room = self.seen_room if seen else self.room
        if not len(self):
            raise InvalidInput("there are no label sets, so there is no share of them")
        if radius <= 0:
            return self.count(ARGMAXABLE) / len(self)
        if room is None:
            raise InvalidInput("these radii were not measured: give `seen`, or a model with a linear layer")
        return float(np.mean((self.verdicts == ARGMAXABLE) & (np.nan_to_num(room.values) >= radius)))

    def smallest_radius(self, *, seen: bool = False) -> float | None:
        """The smallest radius of a set that some input gets; None if there is none, or only infinite ones."""
        radii = self._known_radii(seen)
        return float(radii.min()) if len(radii) else None

    @property
    def radii_are_exact(self) -> bool:
        """Whether there are radii of argmaxable sets, and all of them are exact."""
        return self.are_exact()

    def are_exact(self, *, seen: bool = False) -> bool:
        """Whether all radii of argmaxable sets are exact, in the fixed box or the one seen in data."""
        room = self.seen_room if seen else self.room
        reached = self.verdicts == ARGMAXABLE
        return room is not None and bool(reached.any() and room.exact[reached].all())

    def _known_radii(self, seen: bool = False) -> Array:
        room = self.seen_room if seen else self.room
        if room is None:
            return np.zeros(0)
        return np.asarray(room.values[(self.verdicts == ARGMAXABLE) & np.isfinite(room.values)])

    def recheck(self, exact: bool = False) -> Array:
        """Check the proofs again from the weights: which verdicts stand? False for sets that are not known.

        Parameters
        ----------
        exact : bool
            Decide signs and certificates in exact arithmetic on the weights as they are stored, not only where float64
            cannot tell. A certificate takes part of a second in 50 dimensions and several in 100.

        Raises
        ------
        InvalidInput
            If there is no layer, or the witnesses were too large to keep.
        """
        if self.layer is None or self.witnesses is None:
            raise InvalidInput("there are no proofs to check: label trees have none, and large witnesses are not kept")
        stands = np.zeros(len(self), dtype=bool)
        with blas_threads(1):  # the matrices of certificates are small
            for block in self.sets.blocks():
                members = self.sets.dense(block)
                reached = self.verdicts[block] == ARGMAXABLE
                if not exact:
                    inputs = self.witnesses[block][reached]
                    stands[block][reached] = check_witnesses(self.layer, members[reached], inputs)
                for place in np.flatnonzero((self.verdicts[block] != UNDETERMINED) & ~stands[block]).tolist():
                    stands[block.start + place] = self._stands(self.layer, block.start + place, members[place], exact)
        return stands

    def _stands(self, layer: OutputLayer, index: int, members: Array, exact: bool) -> bool:
        """Whether one proof holds; where float64 cannot tell, exact arithmetic decides."""
        if self.verdicts[index] == ARGMAXABLE:
            assert self.witnesses is not None
            return check_witness_exactly(layer, members, self.witnesses[index])
        certificate = self.certificates[index]
        if certificate is None:
            return False
        proof = (layer, members, certificate.labels, certificate.weights)
        if certificate_residual(*proof) > max(certificate.residual * (1 + 1e-9), 1e-15):
            return False
        # A layer with a rule for ties may have been reduced to its rank, where rows cancel but for rounding.
        sure = not exact and (layer.at_least is not None or certificate_is_sure(*proof))
        return sure or certificate_exactly(*proof) is not None

    def remedies(self, fed_by: int | None = None) -> tuple[Remedy, ...]:
        """What would help with the sets that no input gets; nothing if there are none, or the model is a label tree.

        Parameters
        ----------
        fed_by : int or None
            The number of features of which the inputs of the layer are a projection, if the layer does not know it.
        """
        if self.layer is None or not self.count(UNARGMAXABLE):
            return ()
        return remedies(self.layer, int(np.diff(self.sets.members.indptr).max(initial=0)), fed_by)

    def examples(self, label_names: Sequence[str], most: int) -> list[dict[str, Any]]:
        """Sets that no input gets, shortest proofs first: their labels, and the labels that conflict."""
        found = [(len(proof.labels), place) for place, proof in enumerate(self.certificates) if proof is not None]
        found.sort(key=lambda each: (each[0], self.sets.first_row[each[1]]))
        return [self.example(place, label_names) for _, place in found[:most]]

    def example(self, place: int, label_names: Sequence[str]) -> dict[str, Any]:
        """One set that no input gets, with the names of its labels."""
        certificate = self.certificates[place]
        assert certificate is not None
        ids = self.sets.ids(place)
        named = [label_names[label] for label in certificate.labels.tolist()]
        inside = np.isin(certificate.labels, ids).tolist()
        with_labels = [name for name, is_in in zip(named, inside, strict=True) if is_in]
        without = [name for name, is_in in zip(named, inside, strict=True) if not is_in]
        return {
            "row": int(self.sets.first_row[place]) + 1,
            "rows": int(self.sets.rows[place]),
            "labels": [label_names[label] for label in ids.tolist()],
            "conflict": {"with": with_labels, "without": without},
            "weights": dict(zip(named, certificate.weights.tolist(), strict=True)),
            "residual": certificate.residual,
            "says": describe_conflict(with_labels, without, self.rule),
        }

    def to_dict(self, label_names: Sequence[str] | None = None, most_examples: int | None = None) -> dict[str, Any]:
        """Everything as plain values.

        Parameters
        ----------
        label_names : sequence of str or None
            Without them there are no examples.
        most_examples : int or None
            By default every set that no input gets is an example.
        """
        methods, counts = np.unique(self.methods.astype(str), return_counts=True)
        radii, seen = self._known_radii(), self._known_radii(seen=True)
        residuals = [certificate.residual for certificate in self.certificates if certificate is not None]
        most = len(self) if most_examples is None else most_examples
        return {
            "labels": self.n_labels,
            "features": self.n_features,
            "rank": self.rank,
            "label_sets": len(self),
            "rows": int(self.sets.rows.sum()),
            "argmaxable": self.count(ARGMAXABLE),
            "unargmaxable": self.count(UNARGMAXABLE),
            "undetermined": self.count(UNDETERMINED),
            "rows_unargmaxable": self.count_rows(UNARGMAXABLE),
            "smallest_radius": self.smallest_radius(),
            "median_radius": float(np.median(radii)) if len(radii) else None,
            "radii_are_exact": self.radii_are_exact,
            "smallest_radius_seen": self.smallest_radius(seen=True),
            "median_radius_seen": float(np.median(seen)) if len(seen) else None,
            "radii_seen_are_exact": self.are_exact(seen=True),
            "largest_residual": max(residuals, default=None),
            "methods": dict(zip(methods.tolist(), counts.tolist(), strict=True)),
            "reasons": list(self.reasons),
            "remedies": [remedy.to_dict() for remedy in self.remedies()],
            "examples": [] if label_names is None else self.examples(label_names, most),
        }

    def to_text(self) -> str:
        """A summary of a few lines."""
        facts = self.to_dict()
        lines = [f"{len(self):,} label sets, {self.n_labels:,} labels, {self.n_features:,} dimensions"]
        for verdict, name in NAMES.items():
            count = self.count(verdict)
            lines.append(f"  {name:<13} {count:>9,}  {100 * count / max(1, len(self)):5.1f}%")
        if facts["smallest_radius"] is not None:
            bound = "" if facts["radii_are_exact"] else " (lower bounds: radii of the witnesses found)"
            smallest, median = facts["smallest_radius"], facts["median_radius"]
            lines.append(f"  radius: smallest {smallest:.3g}, median {median:.3g}{bound}")
        if facts["smallest_radius_seen"] is not None:
            bound = "" if facts["radii_seen_are_exact"] else " (lower bounds)"
            smallest, median = facts["smallest_radius_seen"], facts["median_radius_seen"]
            lines.append(f"  radius in the range of the data: smallest {smallest:.3g}, median {median:.3g}{bound}")
        lines.append("  decided by: " + ", ".join(f"{name} {count:,}" for name, count in facts["methods"].items()))
        lines += [f"  would help: {line}" for line in lines_of(self.remedies())]
        return "\n".join(lines)
