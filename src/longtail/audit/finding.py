"""What an audit found: a verdict per label set, and the proof that comes with it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from longtail.arrays import Array
from longtail.audit.proofs import (
    certificate_exactly,
    certificate_is_sure,
    certificate_residual,
    check_witness_exactly,
    check_witnesses,
)
from longtail.audit.system import Layer
from longtail.parallel import split

ARGMAXABLE, UNDETERMINED, UNARGMAXABLE = 1, 0, -1
NAMES = {ARGMAXABLE: "argmaxable", UNDETERMINED: "undetermined", UNARGMAXABLE: "unargmaxable"}


@dataclass(frozen=True, eq=False)
class Certificate:
    """Why no input gives a label set: the scores of these labels cannot all have the sign they need.

    With s = +1 for labels in the set and -1 for the others, the weighted sum of s times each label's row of weights,
    scaled to length 1, is 0 for every input, so not every term can be positive.

    Attributes
    ----------
    labels : array of label ids, at most one more than the layer has dimensions
    weights : array of positive numbers that sum to 1
    residual : float
        What the sum leaves in float64: no input has a radius above it.
    """

    labels: Array
    weights: Array
    residual: float


@dataclass(frozen=True, eq=False)
class Audit:
    """Which label sets a linear output layer can give, each verdict with its proof.

    Attributes
    ----------
    verdicts : int8 array of shape (n_sets,)
        1 argmaxable, -1 unargmaxable, 0 undetermined; `names` holds the words.
    radii : float64 array of shape (n_sets,)
        The largest r such that some point of the box of half-width 1 keeps a distance of r from the wrong side of every
        label, the coordinates of a bias and of the cut of top-k sets included; 0 where no input gives the set, nan
        where nothing is known. Times 10,000 it is the radius of Grivas et al. (2024).
    radius_is_exact : bool array of shape (n_sets,)
        Elsewhere the radius is that of the witness: a lower bound.
    witnesses : float64 array of shape (n_sets, d)
        An input that gives the set; nan where there is none.
    certificates : tuple of `Certificate` or None
    methods : array of str
        Which step decided: "candidates", "samples", "reflection", "perceptron", "zero", "alternation", "nearest",
        "rows" or "program" (linear programs); "none" where undetermined.
    """

    verdicts: Array
    radii: Array
    radius_is_exact: Array
    witnesses: Array
    certificates: tuple[Certificate | None, ...]
    methods: Array
    layer: Layer = field(repr=False)
    label_sets: Any = field(repr=False)

    def __len__(self) -> int:
        return len(self.verdicts)

    @property
    def names(self) -> Array:
        """The verdicts in words."""
        return np.array([NAMES[int(verdict)] for verdict in self.verdicts], dtype=object)

    def count(self, verdict: int) -> int:
        """How many label sets have a verdict: 1, -1 or 0."""
        return int(np.count_nonzero(self.verdicts == verdict))

    def recheck(self, exact: bool = False) -> Array:
        """Which verdicts stand when their proofs are checked anew from the weights; False where undetermined.

        Parameters
        ----------
        exact : bool
            Decide signs and certificates in exact arithmetic on the weights as they are stored, not only where float64
            cannot tell. A certificate takes part of a second in 50 dimensions and several in 100.
        """
        stands = np.zeros(len(self), dtype=bool)
        for block in split(len(self), block_of_sets(self.layer)):
            members = dense_members(self.label_sets, block)
            reached = self.verdicts[block] == ARGMAXABLE
            if not exact:
                stands[block][reached] = check_witnesses(self.layer, members[reached], self.witnesses[block][reached])
            for place in np.flatnonzero((self.verdicts[block] != UNDETERMINED) & ~stands[block]).tolist():
                stands[block.start + place] = self._stands(block.start + place, members[place], exact)
        return stands

    def _stands(self, index: int, members: Array, exact: bool) -> bool:
        """Whether one proof holds; where float64 cannot tell, exact arithmetic is asked."""
        if self.verdicts[index] == ARGMAXABLE:
            return check_witness_exactly(self.layer, members, self.witnesses[index])
        certificate = self.certificates[index]
        if certificate is None:
            return False
        proof = (self.layer, members, certificate.labels, certificate.weights)
        if certificate_residual(*proof) > max(certificate.residual * (1 + 1e-9), 1e-15):
            return False
        return (not exact and certificate_is_sure(*proof)) or certificate_exactly(*proof) is not None

    def to_dict(self) -> dict[str, Any]:
        """Counts, methods and radii as plain values."""
        methods, counts = np.unique(self.methods.astype(str), return_counts=True)
        radii = self.radii[(self.verdicts == ARGMAXABLE) & np.isfinite(self.radii)]
        residuals = [certificate.residual for certificate in self.certificates if certificate is not None]
        return {
            "label_sets": len(self),
            "labels": self.layer.n_labels,
            "dimensions": self.layer.n_features,
            "semantics": self.layer.semantics,
            "argmaxable": self.count(ARGMAXABLE),
            "unargmaxable": self.count(UNARGMAXABLE),
            "undetermined": self.count(UNDETERMINED),
            "smallest_radius": float(radii.min()) if len(radii) else None,
            "median_radius": float(np.median(radii)) if len(radii) else None,
            "radii_are_exact": bool(self.radius_is_exact[self.verdicts == ARGMAXABLE].all()),
            "largest_residual": max(residuals, default=None),
            "methods": dict(zip(methods.tolist(), counts.tolist(), strict=True)),
        }

    def to_text(self) -> str:
        """A summary of a few lines."""
        facts = self.to_dict()
        total = max(1, len(self))
        lines = [f"{len(self):,} label sets, {facts['labels']:,} labels, {facts['dimensions']:,} dimensions"]
        for verdict in (ARGMAXABLE, UNARGMAXABLE, UNDETERMINED):
            count = self.count(verdict)
            lines.append(f"  {NAMES[verdict]:<13} {count:>9,}  {100 * count / total:5.1f}%")
        if facts["smallest_radius"] is not None:
            bound = "" if facts["radii_are_exact"] else " (of the witnesses found: lower bounds)"
            smallest, median = facts["smallest_radius"], facts["median_radius"]
            lines.append(f"  radius: smallest {smallest:.3g}, median {median:.3g}{bound}")
        lines.append("  decided by: " + ", ".join(f"{name} {count:,}" for name, count in facts["methods"].items()))
        return "\n".join(lines)


def block_of_sets(layer: Layer) -> int:
    """How many label sets to hold as dense rows at a time: about 64 MiB of float64."""
    return max(1, min(1024, (1 << 23) // max(1, layer.n_labels)))


def dense_members(label_sets: Any, block: slice) -> Array:
    """Rows of the sparse matrix of label sets as a boolean matrix."""
    return np.asarray(label_sets[block].toarray()) > 0
