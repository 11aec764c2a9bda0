"""The question that a model's own rule asks: which label sets does it give, ties included?

Proofs are about scores strictly on one side of the threshold. At the threshold itself, and between equal scores, the
rule of the layer decides. Labels without weights, labels with the same weights, and linearly independent weights need
no search; the search gets what is left, reduced to the rank of the weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import linalg, sparse

from longtail.arrays import Array
from longtail.audit.finding import (
    ARGMAXABLE,
    CANCELLED,
    NOT_KNOWN,
    UNARGMAXABLE,
    UNDETERMINED,
    Certificate,
    Finding,
)
from longtail.audit.label_sets import LabelSets
from longtail.audit.proofs import certificate_residual, check_witness_exactly, check_witnesses
from longtail.audit.ruler import Ruler
from longtail.audit.search import Search
from longtail.audit.system import unit_rows
from longtail.audit.wide import WideLayer
from longtail.estimator import OutputLayer
from longtail.parallel import split
from longtail.progress import Advance, task

MOST_DIMENSIONS = 1_500  # beyond it a single linear program may take minutes
_SETS_AT_ONCE = 500  # whose proofs are checked together
_CELLS = 2**24  # scores that are checked together
_MOST_KEPT = 2**24  # entries of witnesses
_TIES = Finding(UNDETERMINED, "ties")
_BELOW_ZERO = -1e-12  # the offsets of unit rows must sum to less than this to be negative beyond rounding


class Question:
    """The label sets of a layer with a rule for ties, and the findings so far.

    Attributes
    ----------
    kinds : int array
        The first label of each kind; labels of one kind have the same weights and offset.
    members : csr_array of shape (n_sets, n_kinds)
        The kinds that are in each set with all their labels.
    shared : int array of shape (n_sets,)
        The kind that a ranked set has only in part, or -1.
    """

    def __init__(self, layer: OutputLayer, sets: LabelSets, search: Search, rulers: Sequence[Ruler] = ()) -> None:
        self.layer = layer
        self.sets = sets
        self.search = search
        self.rulers = rulers
        self.findings: list[Finding] = [NOT_KNOWN] * len(sets)
        self.reasons: list[str] = []
        self.kinds = np.arange(layer.n_labels)
        self.members: Any = sets.members
        self.shared = np.full(len(sets), -1, dtype=np.int64)
        # For a ranked set that has a kind in part: the last label of that kind inside, and the first outside.
        self._parted: dict[int, tuple[int, int]] = {}
        self._keeps_witnesses = len(sets) * layer.n_inputs <= _MOST_KEPT

    def decide(self) -> dict[str, Any]:
        """Decide every set that can be decided; the facts about the layer. The verdicts are in `findings`."""
        rank = self._settle()
        self._settle_origin()
        tied = sum(finding is _TIES for finding in self.findings)
        if tied:
            self.reasons.append(
                f"{'1 set needs' if tied == 1 else f'{tied:,} sets need'} inputs with scores that are equal or exactly "
                f"at the threshold: not known."
            )
        return {"rank": rank, "reasons": tuple(self.reasons)}

    def _open(self) -> Array:
        """Sets that are not decided yet."""
        return np.flatnonzero([finding is NOT_KNOWN for finding in self.findings])

    def _accept(self, places: Array, method: Any, witnesses: Array) -> None:
        """Note sets that inputs get, one per row."""
        ids = places.tolist()
        for place, name, witness in zip(ids, np.broadcast_to(method, len(ids)).tolist(), witnesses, strict=True):
            self.findings[place] = Finding(ARGMAXABLE, name, witness if self._keeps_witnesses else None)
        for ruler in self.rulers:
            ruler.note(ids, witnesses)

    def _refuse(self, place: int, labels: Array, weights: Array, method: str, residual: float = 0.0) -> None:
        """Note a set that no input gets, and why."""
        order = np.argsort(labels)
        proof = Certificate(np.asarray(labels)[order], weights[order], residual)
        self.findings[place] = Finding(UNARGMAXABLE, method, certificate=proof)

    def _settle(self) -> int | None:
        """Decide what can be decided without looking at the input of zeros; return the rank of the weights."""
        layer = self.layer
        ranked = layer.rule == "topk"
        self._settle_twins(np.arange(layer.n_labels) if ranked else self._settle_constant_labels())
        n_kinds = len(self.kinds)
        if not n_kinds:
            left = self._open()
            self._accept(left, "constant", np.zeros((len(left), layer.n_inputs)))
            return 0
        chosen = layer.part(self.kinds)
        # No verdict depends on the lengths of rows, and short rows would be lost beside long ones.
        part = chosen.with_cut(layer.cut) if ranked else chosen.unit()
        width, rank = part.n_features, part.rank()
        # The cut is a dimension of the system, but not of the layer.
        features, known_rank = width - ranked, None if rank is None else rank - ranked
        if rank is None and width >= n_kinds:
            self.reasons.append(
                f"There are {features:,} features for {n_kinds:,} labels, so the width is no limit. Whether the "
                f"weights of the labels are linearly independent is not known: it would take too long to compute."
            )
            return None
        about = f"The {'differences between the ' if ranked else ''}weights of {n_kinds:,} labels"
        if rank == n_kinds:
            outcome = (
                "any order of scores is possible, so every set of these labels can come first"
                if ranked
                else "any scores are possible, so every set of these labels has an input"
            )
            self.reasons.append(
                f"{about} are linearly independent (rank {known_rank:,}, over {features:,} features): {outcome}."
            )
            self._settle_by_algebra(part, rank)
            return known_rank
        dimensions = width if rank is None else min(width, rank)
        self.reasons.append(
            f"{about} have {'at most ' if rank is None else ''}rank {dimensions - ranked:,}: "
            + ("not every label set can come first." if ranked else "not every label set has an input.")
        )
        if dimensions <= MOST_DIMENSIONS:
            self._settle_by_search(part, dimensions)
            return known_rank
        if rank is not None and width >= n_kinds:
            self._settle_by_algebra(part, rank)
        if len(self._open()):
            self.reasons.append(
                f"A linear program in {dimensions:,} dimensions takes too long; without one, {len(self._open()):,} "
                f"sets remain not known."
            )
        return known_rank

    def _settle_constant_labels(self) -> Array:
        """Refuse sets with a label that is never given, or without one that always is; return the other labels."""
        constant = self.layer.constant_labels()
        always = constant[self._gives(self.layer.offsets[constant])]
        for place in range(len(self.sets)) if len(constant) else ():
            wrong = np.setxor1d(np.intersect1d(self.sets.ids(place), constant), always)
            if len(wrong):
                self._refuse(place, wrong[:1], np.ones(1), "constant")
        for count, when in ((len(constant) - len(always), "never"), (len(always), "always")):
            if count:
                have = "1 label has no weights and is" if count == 1 else f"{count:,} labels have no weights and are"
                self.reasons.append(f"{have} {when} given.")
        return np.setdiff1d(np.arange(self.layer.n_labels), constant)

    def _gives(self, scores: Array) -> Array:
        return np.asarray(scores >= 0 if self.layer.at_least else scores > 0)

    def _settle_twins(self, rest: Array) -> None:
        """Refuse sets that separate labels of one kind in a way that no input can; then one label stands for each kind.

        Labels of one kind come together. In a ranking they come one after the other, lowest first, so the last place
        may separate the labels of one kind, but not of two.
        """
        _, first, kind, sizes = np.unique(
            self.layer.part(rest).first_twins(), return_index=True, return_inverse=True, return_counts=True
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
            if self.findings[place].verdict == UNDETERMINED:
                twins = labels_of[which]
                self._part(place, which, twins, np.isin(twins, self.sets.ids(place)))
        alike = len(rest) - int(np.count_nonzero(sizes == 1))
        self.reasons.append(
            f"{alike:,} labels have the same weights as another one: "
            + ("no input tells these apart." if self.layer.rule == "predict" else "the lowest always comes first.")
        )

    def _part(self, place: int, kind: int, twins: Array, inside: Array) -> None:
        """Note that a set has some of the labels of a kind, but not all."""
        if self.layer.rule == "predict":
            self._refuse(place, np.array([twins[inside][0], twins[~inside][0]]), np.full(2, 0.5), "twins")
        elif inside.argmin() < (last := int(np.flatnonzero(inside)[-1])):
            self._refuse(place, np.array([twins[last], twins[inside.argmin()]]), np.full(2, 0.5), "twins")
        elif self.shared[place] >= 0:
            # If any input gets the set, both kinds have the score of the cut.
            pairs = np.array([*self._parted[place], twins[last], twins[last + 1]])
            if self._may_tie(pairs, np.array([True, False, True, False])):
                self.findings[place] = _TIES
            else:
                self._refuse(place, pairs, np.full(4, 0.25), "twins")
        else:
            self.shared[place] = kind
            self._parted[place] = int(twins[last]), int(twins[last + 1])

    def _may_tie(self, labels: Array, inside: Array) -> bool:
        """Whether the layer's rule gives exactly the inside labels if all are at the threshold or have equal scores."""
        if self.layer.rule == "topk":
            return bool(labels[inside].max(initial=-1) < labels[~inside].min(initial=self.layer.n_labels))
        return bool((inside == self.layer.at_least).all())

    def _check(self, places: Array, inputs: Array) -> Array:
        """Which inputs, one per row, get their sets from the layer."""
        members = self.sets.dense(places)
        right = check_witnesses(self.layer, members, inputs)
        # Labels of one kind have equal scores, inside the set and outside.
        for i in np.flatnonzero(~right & (self.shared[places] >= 0)).tolist():
            right[i] = check_witness_exactly(self.layer, members[i], inputs[i])
        return right

    def _settle_by_algebra(self, part: OutputLayer, rank: int) -> None:
        """Look for inputs by solving for scores."""
        try:
            wide = WideLayer(part, rank)
        except linalg.LinAlgError:
            self.reasons.append("But only just: the inputs are too large to be checked in 64-bit floats.")
            return
        places = self._open()
        with task("auditing label sets", total=len(places)) as advance:
            for block in split(len(places), max(1, 2**24 // max(part.weights.shape))):
                some = places[block]
                wanted = 2.0 * self.members[some].toarray().T - 1
                shared = np.flatnonzero(self.shared[some] >= 0)
                wanted[self.shared[some][shared], shared] = 0
                inputs = wide.inputs(wanted).T[:, : self.layer.n_inputs]
                right = self._check(some, inputs)
                self._accept(some[right], "algebra", inputs[right])
                advance(len(some))

    def _settle_by_search(self, part: OutputLayer, dimensions: int) -> None:
        """Search in the layer cut down to its rank, and check the proofs on the whole layer."""
        used = part.used_features
        if dimensions == len(used):
            weights, directions = part.dense(), np.eye(dimensions)
        else:
            truncations = part.truncations(dimensions)
            weights, directions = truncations(dimensions), truncations.directions
        left = self._open()
        doubted = 0
        with task("auditing label sets", total=len(left)) as advance:
            for kind in np.unique(self.shared[left]).tolist():
                same = left[self.shared[left] == kind]
                rows = np.arange(len(weights))
                system = OutputLayer(weights, part.offsets, "predict", "")
                if kind >= 0:
                    # The cut runs through the labels of one kind: the others are above or below their score.
                    rows = np.delete(rows, kind)
                    differences = weights[rows] - weights[kind], part.offsets[rows] - part.offsets[kind]
                    system = OutputLayer(*differences, "predict", "")
                # Classes of a softmax are decided faster by the layer itself.
                as_classes = self.layer.rule == "topk" and kind < 0 and dimensions == len(used)
                as_classes = as_classes and bool((np.diff(self.members.indptr)[same] == 1).all())
                searched = self.layer.part(self.kinds) if as_classes else system
                width = self.layer.n_inputs if as_classes else dimensions
                for block in split(len(same), min(_SETS_AT_ONCE, max(1, _CELLS // self.layer.n_labels))):
                    places = same[block]
                    findings = self._search(places, searched, rows, advance)
                    inputs = np.array([np.zeros(width) if f.witness is None else f.witness for f in findings])
                    if not as_classes:
                        points, inputs = inputs, np.zeros((len(places), part.n_inputs))
                        inputs[:, used] = points @ directions
                        inputs = inputs[:, : self.layer.n_inputs]
                    reached = np.array([finding.verdict == ARGMAXABLE for finding in findings])
                    right = reached & self._check(places, inputs)
                    methods = np.array([finding.method for finding in findings])
                    self._accept(places[right], methods[right], inputs[right])
                    for i in np.flatnonzero(~right).tolist():
                        if reached[i] or not self._take(int(places[i]), findings[i], system, rows):
                            doubted += 1
        if doubted:
            self.reasons.append(
                f"The proofs of {doubted:,} sets hold only without directions so small that they were taken for "
                f"rounding: they count as not known."
            )

    def _search(self, places: Array, system: OutputLayer, rows: Array, advance: Advance) -> list[Finding]:
        """Search for proofs in a layer whose rows stand for the kinds `rows`."""
        if not len(rows):
            advance(len(places))
            return [Finding(ARGMAXABLE, "twins")] * len(places)
        return self.search.decide(system, LabelSets.each(self.members[places][:, rows]), advance)

    def _take(self, place: int, finding: Finding, system: OutputLayer, rows: Array) -> bool:
        """Note a certificate, if there is one and no tie gets around it; False if it fails on the whole layer."""
        found = finding.certificate
        if found is None:
            return True
        labels, weights = self.kinds[rows[found.labels]], found.weights
        inside = np.isin(labels, self.sets.ids(place))
        parted = self._parted.get(place, ())
        tied = np.array([*labels, *parted]), np.array([*inside, True, False][: len(labels) + len(parted)])
        dimensions = system.n_inputs - bool(parted)
        if self._may_tie(*tied) and _leaves_ties(system, found, inside, dimensions):
            self.findings[place] = _TIES
            return True
        if parted:
            raw = weights / unit_rows(system, found.labels)[1]
            excess = float(raw[inside].sum() - raw[~inside].sum())
            # The rows are differences to a kind's score: one of that kind's labels makes up for the excess.
            labels, raw = np.append(labels, parted[excess > 0]), np.append(raw, abs(excess))
            weights = raw * unit_rows(self.layer, labels)[1]
            labels, weights = labels[weights > 0], weights[weights > 0]
            weights = weights / weights.sum()
        members = np.zeros(self.layer.n_labels, dtype=bool)
        members[self.sets.ids(place)] = True
        residual = certificate_residual(self.layer, members, labels, weights)
        if residual > CANCELLED:
            return False
        self._refuse(place, labels, weights, finding.method, residual)
        return True

    def _settle_origin(self) -> None:
        """The set of the input of zeros: its scores are the offsets, and the rule decides between equal scores."""
        offsets = self.layer.offsets
        order = np.lexsort((np.arange(len(offsets)), -offsets))
        count = int(np.count_nonzero(self._gives(offsets)))
        for place, finding in enumerate(self.findings):
            ids = self.sets.ids(place)
            first = len(ids) if self.layer.rule == "topk" else count
            if finding.verdict == ARGMAXABLE or len(ids) != first:
                continue
            if np.array_equal(np.sort(order[:first]), np.sort(ids)):
                if finding is not NOT_KNOWN:
                    self.reasons.append(
                        f"The input of zeros gets the set of row {int(self.sets.first_row[place]) + 1}: its scores are "
                        f"equal or at the threshold."
                    )
                self._accept(np.array([place]), "origin", np.zeros((1, self.layer.n_inputs)))


def _leaves_ties(system: OutputLayer, found: Certificate, inside: Array, dimensions: int) -> bool:
    """Whether inputs other than 0 may put the scores of all labels of the certificate exactly where it says.

    Not if the offsets contradict it, nor if the rows span all dimensions, that of the offsets included.
    """
    if system.empty[found.labels].any():
        return True
    rows = unit_rows(system, found.labels)[0]
    if system.has_offsets and (found.weights * np.where(inside, 1.0, -1.0)) @ rows[:, -1] < _BELOW_ZERO:
        return False
    dimensions += system.has_offsets
    return len(found.labels) <= dimensions and bool(np.linalg.matrix_rank(rows) < dimensions)
