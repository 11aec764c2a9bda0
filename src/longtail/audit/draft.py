"""Verdicts on label sets while they are being found, and what the layer's own rule makes of scores that are equal.

Proofs are about scores strictly on one side or the other. At the very threshold, and between equal scores, the rule of
the model decides: a proof that does not rule such inputs out is none.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from longtail.arrays import Array
from longtail.audit.finding import ARGMAXABLE, UNARGMAXABLE, UNDETERMINED, Audit, Certificate
from longtail.audit.findings import Findings, LabelSets
from longtail.estimator.output_layer import OutputLayer
from longtail.estimator.twins import first_twins

# What the offsets of unit rows must sum to, to be below 0 beyond rounding.
_BELOW_ZERO = -1e-12


class Draft:
    """Label sets and what is known of them so far.

    Attributes
    ----------
    kinds : int array
        One label, the first, of each kind of labels with the same weights and offset.
    members : csr_array of shape (n_sets, n_kinds)
        The kinds that are in each set with all their labels.
    shared : int array of n_sets
        The kind of which a set of first places has some labels and not others, or -1.
    """

    def __init__(self, layer: OutputLayer, sets: LabelSets) -> None:
        self.layer = layer
        self.sets = sets
        self.verdicts = np.zeros(len(sets), dtype=np.int8)
        self.radii = np.full(len(sets), np.nan)
        self.certificates: list[Certificate | None] = [None] * len(sets)
        self.reasons: list[str] = []
        self.radii_are_exact = False
        self.kinds = np.arange(layer.n_labels)
        self.members: Any = sets.members
        self.shared = np.full(len(sets), -1, dtype=np.int64)
        # For a set of first places that parts labels of one kind: the last of them inside, the first outside.
        self._parted: dict[int, tuple[int, int]] = {}
        self._only_at_ties = np.zeros(len(sets), dtype=bool)

    def open(self) -> Array:
        """Sets that more may yet be found out about."""
        return np.flatnonzero((self.verdicts == UNDETERMINED) & ~self._only_at_ties)

    def refuse(self, place: int, labels: Array, weights: Array, residual: float = 0.0) -> None:
        """Note a set that no input gets, and why."""
        order = np.argsort(labels)
        self._only_at_ties[place] = False
        self.verdicts[place], self.radii[place] = UNARGMAXABLE, 0.0
        self.certificates[place] = Certificate(np.asarray(labels)[order], weights[order], residual)

    def reopen(self, place: int) -> None:
        """Take a refusal back."""
        self.verdicts[place], self.radii[place] = UNDETERMINED, np.nan
        self.certificates[place] = None

    def ids(self, place: int) -> Array:
        """The labels of a set."""
        members = self.sets.members
        return np.asarray(members.indices[members.indptr[place] : members.indptr[place + 1]])

    def settle_constant_labels(self) -> Array:
        """Sets with a label that is never given, or without one that always is; the labels that have weights."""
        constant = self.layer.constant_labels()
        always = constant[self._gives(self.layer.offsets[constant])]
        never = np.setdiff1d(constant, always)
        held = np.zeros(self.layer.n_labels)
        held[never], held[always] = 1, -1
        wrong = np.asarray(abs(self.sets.members) @ np.maximum(held, 0)).ravel()
        missing = len(always) - np.asarray(abs(self.sets.members) @ np.maximum(-held, 0)).ravel()
        for place in np.flatnonzero((wrong > 0) | (missing > 0)).tolist():
            ids = self.ids(place)
            found = np.concatenate([np.intersect1d(never, ids), np.setdiff1d(always, ids)])
            self.refuse(place, found[:1], np.ones(1))
        for some, when in ((never, "never"), (always, "always")):
            if len(some) == 1:
                self.reasons.append(f"1 label has no weights and is {when} given.")
            elif len(some):
                self.reasons.append(f"{len(some):,} labels have no weights and are {when} given.")
        return np.setdiff1d(np.arange(self.layer.n_labels), constant)

    def _gives(self, scores: Array) -> Array:
        """Whether scores that no input changes give their labels."""
        return np.asarray(scores >= 0 if self.layer.at_least else scores > 0)

    def settle_twins(self, rest: Array) -> None:
        """Sets that part labels with the same weights in a way that no input does; then one label stands for a kind.

        Such labels come together. In a ranking they come one after the other, the lowest first, so that the last place
        may part them, but those of one kind only.
        """
        _, first, kind, sizes = np.unique(
            first_twins(self.layer.weights[rest], self.layer.offsets[rest]),
            return_index=True,
            return_inverse=True,
            return_counts=True,
        )
        self.kinds = np.asarray(rest[first])
        members = self.sets.members[:, rest]
        if len(first) == len(rest):
            self.members = members
            return
        by_kind = sparse.csr_array((np.ones(len(rest)), (np.arange(len(rest)), kind)), shape=(len(rest), len(first)))
        counts = sparse.coo_array(members @ by_kind)
        whole = counts.data == sizes[counts.col]
        self.members = sparse.csr_array(
            (np.ones(np.count_nonzero(whole)), (counts.row[whole], counts.col[whole])), shape=counts.shape
        )
        labels_of = np.split(rest[np.argsort(kind, kind="stable")], np.cumsum(sizes)[:-1])
        for place, which in zip(counts.row[~whole].tolist(), counts.col[~whole].tolist(), strict=True):
            if self.verdicts[place] == UNDETERMINED:
                twins = labels_of[which]
                self._part(place, which, twins, np.isin(twins, self.ids(place)))
        alike = len(rest) - int(np.count_nonzero(sizes == 1))
        self.reasons.append(
            f"{alike:,} labels have the same weights as another one: "
            + ("no input tells these apart." if self.layer.rule == "predict" else "the lowest always comes first.")
        )

    def _part(self, place: int, kind: int, twins: Array, inside: Array) -> None:
        """Note that a set has some and not all of the labels of a kind."""
        if self.layer.rule == "predict":
            self.refuse(place, np.array([twins[inside][0], twins[~inside][0]]), np.full(2, 0.5))
        elif inside.argmin() < (last := int(np.flatnonzero(inside)[-1])):
            self.refuse(place, np.array([twins[last], twins[inside.argmin()]]), np.full(2, 0.5))
        elif self.shared[place] >= 0:
            # Both kinds have the score of the cut, if any input gets the set.
            pairs = np.array([*self._parted[place], twins[last], twins[last + 1]])
            if self._may_tie(pairs, np.array([True, False, True, False])):
                self._only_at_ties[place] = True
            else:
                self.refuse(place, pairs, np.full(4, 0.25))
        else:
            self.shared[place] = kind
            self._parted[place] = int(twins[last]), int(twins[last + 1])

    def _may_tie(self, labels: Array, inside: Array) -> bool:
        """Whether the layer's rule gives these of the labels where all are at the threshold, or have equal scores."""
        if self.layer.rule == "topk":
            return bool(labels[inside].max(initial=-1) < labels[~inside].min(initial=self.layer.n_labels))
        return bool((inside == self.layer.at_least).all())

    def take(self, places: Array, rows: Array, audit: Audit, dimensions: int, lengths: Array) -> None:
        """Note what `verify` found of sets of kinds.

        Parameters
        ----------
        places : int array
            The sets.
        rows : int array
            The kinds that the rows of the audited layer stand for.
        audit : Audit
        dimensions : int
            Of the inputs that change scores.
        lengths : array
            Of the row of each kind, with its offset.
        """
        reached = audit.verdicts == ARGMAXABLE
        self.verdicts[places[reached]] = ARGMAXABLE
        self.radii[places] = audit.radii
        self.radii_are_exact &= bool(audit.radius_is_exact[reached].all())
        for place, found in zip(places.tolist(), audit.certificates, strict=True):
            if found is None:
                continue
            labels = self.kinds[rows[found.labels]]
            inside = np.isin(labels, self.ids(place))
            parted = self._parted.get(place, ())
            cut = np.array([*labels, *parted]), np.array([*inside, True, False][: len(labels) + len(parted)])
            if self._may_tie(*cut) and _leaves_ties(audit, found, inside, dimensions):
                self._only_at_ties[place] = True
                self.radii[place] = np.nan
            elif parted:
                raw = found.weights / audit.layer.lengths[found.labels]
                left = float(raw[inside].sum() - raw[~inside].sum())
                # Differences to the score of a kind, as scores: whichever of its labels makes up for the rest.
                labels, raw = np.append(labels, parted[left > 0]), np.append(raw, abs(left))
                weights = raw * lengths[np.append(rows[found.labels], self.shared[place])]
                kept = weights > 0
                self.refuse(place, labels[kept], weights[kept] / weights.sum(), found.residual)
            else:
                self.refuse(place, labels, found.weights, found.residual)

    def settle_origin(self) -> None:
        """The set of the input of zeros: its scores are the offsets, and where they are equal the rule decides."""
        offsets = self.layer.offsets
        order = np.lexsort((np.arange(len(offsets)), -offsets))
        count = int(np.count_nonzero(self._gives(offsets)))
        for place in np.flatnonzero(self.verdicts != ARGMAXABLE).tolist():
            ids = self.ids(place)
            first = len(ids) if self.layer.rule == "topk" else count
            if len(ids) == first and np.array_equal(np.sort(order[:first]), np.sort(ids)):
                if self._only_at_ties[place] or self.verdicts[place] == UNARGMAXABLE:
                    self.radii[place] = np.nan
                    self.reasons.append(
                        f"The set of row {int(self.sets.first_row[place]) + 1} goes to the input of zeros, whose "
                        f"scores are equal or at the threshold."
                    )
                self.verdicts[place], self.certificates[place] = ARGMAXABLE, None
                self._only_at_ties[place] = False

    def finish(self, rank: int | None) -> Findings:
        if self._only_at_ties.any():
            self.reasons.append(
                f"{np.count_nonzero(self._only_at_ties):,} sets could be had only by inputs with scores that are equal "
                f"or at the very threshold; they count as not known."
            )
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


def _leaves_ties(audit: Audit, found: Certificate, inside: Array, dimensions: int) -> bool:
    """Whether inputs other than 0 may put the scores of all labels of the certificate exactly where it says.

    Not where the offsets contradict it, nor where the rows span all dimensions, that of the offsets included.
    """
    layer = audit.layer
    if layer.empty[found.labels].any():
        return True
    if layer.has_offsets:
        offsets = layer.offsets[found.labels] / layer.lengths[found.labels]
        if (found.weights * np.where(inside, 1.0, -1.0)) @ offsets < _BELOW_ZERO:
            return False
    dimensions += layer.has_offsets
    if len(found.labels) > dimensions:
        return False
    places = np.searchsorted(layer.labels[: len(layer.labels) - layer.has_offsets], found.labels)
    return bool(np.linalg.matrix_rank(layer.rows[places]) < dimensions)
