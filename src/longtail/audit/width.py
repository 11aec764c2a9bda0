"""How many dimensions does a layer need to reach given label sets? Bounds with proofs, for any layer and for this one.

The smallest width of any layer that reaches the sets is the sign rank of their matrix. No fast method finds it, but a
lower bound follows from counting, and any layer that reaches them is an upper bound.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from longtail.arrays import Array
from longtail.audit.auditing import audit
from longtail.audit.dft import dft_matrix
from longtail.audit.finding import ARGMAXABLE, UNARGMAXABLE, Audit
from longtail.audit.fitting import fit_layer
from longtail.audit.label_sets import LabelSets
from longtail.audit.proofs import check_witnesses
from longtail.audit.shattering import Crowd, count_patterns, crowd, narrowest
from longtail.errors import InvalidInput
from longtail.estimator import OutputLayer, check_memory
from longtail.labels import label_order

_MOST_SEARCHED = 4_000_000  # label sets times labels of a search for weights


@dataclass(frozen=True, eq=False)
class Width:
    """What is proved about the smallest width of a layer, without a bias, that reaches some label sets.

    Attributes
    ----------
    lower : int
        No layer that is narrower reaches all the sets, whatever its weights. With a bias, none of width ``lower - 2``.
    upper : int
        A layer of this width reaches all of them: `weights`.
    crowd : Crowd
        The proof of `lower`: labels on which the sets have too many patterns for a narrower layer.
    how : {"found", "sines and cosines", "identity"}
        The proof of `upper`. "found": `inputs` has an input for each set. "sines and cosines": the sets change between
        active and inactive at most ``upper - 1`` times around the circle, in the order of the labels that `order`
        gives. This holds in exact arithmetic; floats may not resolve all regions. "identity": a column for each label.
    weights : array of shape (n_labels, upper)
    inputs : array of shape (n_sets, upper) or None
    order : array of shape (n_labels,) or None
        For "sines and cosines": the point of each label on the circle, as the head `DFT` takes it.
    """

    lower: int
    upper: int
    crowd: Crowd
    how: Literal["found", "sines and cosines", "identity"]
    weights: Array
    inputs: Array | None = None
    order: Array | None = None

    def to_text(self) -> str:
        """The bounds and what proves them, in two sentences."""
        labels = len(self.crowd.labels)
        below = (
            f"No layer of width {self.lower - 1} reaches all of these sets: on {labels} labels they have "
            f"{self.crowd.patterns} patterns, where a pattern and its complement count as one."
            if self.lower > 1
            else "Counting rules out no width."
        )
        ways = {
            "found": "weights and an input for each set were found",
            "sines and cosines": f"sines and cosines up to frequency {self.upper // 2}, in exact arithmetic",
            "identity": "a column for each label",
        }
        return f"{below} A layer of width {self.upper} reaches them: {ways[self.how]}."

    def to_dict(self) -> dict[str, Any]:
        """The bounds and how they are proved, as plain values."""
        proof = {"labels": self.crowd.labels.tolist(), "patterns": self.crowd.patterns}
        return {"lower": self.lower, "upper": self.upper, "how": self.how, "crowd": proof}

    def recheck(self, label_sets: Any) -> bool:
        """Whether both proofs hold for these label sets."""
        sets = LabelSets.each(label_sets)
        if sets.members.shape[1] != len(self.weights):
            raise InvalidInput(f"the label sets have {sets.members.shape[1]} labels; expected {len(self.weights)}")
        labels = self.crowd.labels
        patterns = count_patterns(sets.members, labels)
        stands = patterns >= self.crowd.patterns and narrowest(len(labels), patterns) >= self.lower
        if self.how == "identity":
            return stands and np.array_equal(self.weights, np.eye(len(self.weights)))
        if self.inputs is not None:
            checked = check_witnesses(OutputLayer.of(self.weights), sets.dense(slice(None)), self.inputs)
            return stands and bool(checked.all())
        return stands and _turns(sets.dense(slice(None)), self.order) < self.upper


def width_needed(label_sets: Any, *, search: bool = True) -> Width:
    """Bounds on the width of a layer that reaches all of these label sets, each with its proof.

    Parameters
    ----------
    label_sets : LabelSets, sparse matrix or array-like of shape (n_sets, n_labels)
    search : bool
        Also search for weights by gradients, if there are at most four million pairs of a set and a label. That usually
        finds layers much narrower than sines and cosines, which reach all sets of their size.

    Examples
    --------
    All sets of up to two of seven labels need five dimensions, and five are enough:

    >>> from itertools import combinations
    >>> sets = [np.isin(range(7), chosen) for size in range(3) for chosen in combinations(range(7), size)]
    >>> found = width_needed(np.array(sets))
    >>> found.lower, found.upper, found.recheck(np.array(sets))
    (5, 5, True)
    """
    given = label_sets if isinstance(label_sets, LabelSets) else LabelSets.each(label_sets)
    if not len(given):
        raise InvalidInput("there are no label sets to reach")
    n_labels = given.members.shape[1]
    check_memory({"label sets, made dense, twice": 2 * len(given) * n_labels})
    members = given.dense(slice(None))
    # Labels that occur in the same sets have the same weights.
    _, kept, back = np.unique(members, axis=1, return_index=True, return_inverse=True)
    part = members[:, kept]
    proof = crowd(given.members)
    best = Width(proof.width, n_labels, proof, "identity", np.zeros((n_labels, 0)))
    for order in (np.arange(n_labels), label_order("clustered", n_labels, given.members, given.members)):
        width = 1 + _turns(members, order)
        if width < best.upper:
            best = replace(best, upper=width, how="sines and cosines", order=order)
    low = best.lower
    while search and part.size <= _MOST_SEARCHED and low < best.upper:
        middle = (low + best.upper) // 2
        found = fit_layer(part, middle)
        if found is None:
            low = middle + 1
        else:
            weights, inputs = found
            best = replace(best, upper=middle, how="found", weights=weights[back.ravel()], inputs=inputs, order=None)
    if best.how == "found":
        return best
    # Only now, because they are as large as the number of labels times the width.
    check_memory({"weights of all labels, twice": 16 * n_labels * best.upper})
    weights = np.eye(n_labels) if best.order is None else dft_matrix(n_labels, best.upper // 2)[best.order]
    return replace(best, weights=weights)


def _turns(members: Array, order: Array | None) -> int:
    """How often a set changes between active and inactive around the circle of labels, at most."""
    assert order is not None
    around = members[:, np.argsort(order)]
    return int(np.count_nonzero(around != np.roll(around, 1, axis=1), axis=1).max(initial=0))


@dataclass(frozen=True, eq=False)
class Truncation:
    """Down to which rank a layer can be cut and still reach some label sets.

    Attributes
    ----------
    reaches : int or None
        The smallest rank that is known to reach all the sets; None if the whole layer does not, as far as we know.
    fails : int
        The largest rank at which a set is proved to be out of reach; 0 if there is none. It says nothing about other
        layers of this rank.
    whole : int
        The largest rank that the layer can have.
    proof : Audit or None
        The audit at the rank `fails`, of sets among which some are out of reach.
    """

    reaches: int | None
    fails: int
    whole: int
    proof: Audit | None

    def to_dict(self) -> dict[str, Any]:
        """Both ranks as plain values."""
        return {"reaches": self.reaches, "fails": self.fails}

    def to_text(self) -> str:
        """What was found, in a sentence."""
        if self.fails == self.whole:
            return "This layer does not reach all sets, whatever rank it is cut down to."
        below = f"Cut down to rank {self.fails}, this layer does not reach all sets" if self.fails else "No rank fails"
        above = "higher ranks are not known" if self.reaches is None else f"at rank {self.reaches} it does"
        return f"{below}; {above}."


def truncation_needed(layer: OutputLayer, label_sets: Any, n_jobs: int | None = None) -> Truncation:
    """The smallest rank to which a layer can be cut and still reach all of these label sets.

    A rank more is a column more, which loses no label set. So a search by halves is enough.

    Parameters
    ----------
    layer : OutputLayer
    label_sets : LabelSets, sparse matrix or array-like of shape (n_sets, n_labels)
    n_jobs : int or None

    Examples
    --------
    >>> layer = OutputLayer.of(np.diag([3.0, 2.0, 1.0]))
    >>> truncation_needed(layer, [[1, 0, 1], [0, 1, 0]]).to_text()
    'Cut down to rank 2, this layer does not reach all sets; at rank 3 it does.'
    """
    sets = label_sets if isinstance(label_sets, LabelSets) else LabelSets.each(label_sets)
    most = min(layer.n_labels, layer.n_features)
    truncate = layer.truncations(most)
    reaches, fails, proof = None, 0, None
    low, high = 1, most
    while low <= high:
        # The whole layer first: often no set is out of its reach, or one is.
        rank = high if reaches is None and proof is None else (low + high) // 2
        found = audit(replace(layer, weights=truncate(rank)), sets, n_jobs=n_jobs)
        if found.count(UNARGMAXABLE):
            fails, proof, low = rank, found, rank + 1
            left = np.flatnonzero(found.verdicts != ARGMAXABLE)
            sets = LabelSets(sets.members[left], sets.rows[left], sets.first_row[left])
        elif found.count(ARGMAXABLE) == len(found):
            reaches, high = rank, rank - 1
        else:
            # Some sets are not known: such a rank is neither a proof nor good enough.
            return Truncation(reaches, fails, most, proof)
    return Truncation(reaches, fails, most, proof)
