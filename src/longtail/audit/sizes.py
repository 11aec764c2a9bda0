"""Label sets by their size: which share of those with up to k labels some input gets, and up to which k all of them.

Where the sets are few, all are audited. Else a random sample gives the share with a 95% confidence interval.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from scipy.special import betaincinv

from longtail.audit.auditing import audit
from longtail.audit.finding import ARGMAXABLE, UNARGMAXABLE, UNDETERMINED, Audit
from longtail.audit.label_sets import of_ids
from longtail.audit.models.objects import bare_weights, output_layer
from longtail.errors import InvalidInput
from longtail.estimator import OutputLayer
from longtail.validation import check_whole

_ERROR = 0.05  # of the confidence interval


@dataclass(frozen=True, eq=False)
class SizeAudit:
    """The audit of label sets with a number of labels from `least` to `most`.

    Attributes
    ----------
    least, most : int
    n_sets : int
        How many such sets there are.
    found : Audit
        Of all of them, or of a random sample.
    is_complete : bool
        Whether all sets were audited.
    """

    least: int
    most: int
    n_sets: int
    found: Audit
    is_complete: bool

    @property
    def share(self) -> float:
        """The share of the audited sets that some input gets."""
        return self.found.share()

    @property
    def interval(self) -> tuple[float, float]:
        """The share of all sets that some input gets: with 95% confidence (Clopper and Pearson, 1934), or exact.

        Sets that are not known widen the interval.
        """
        n, least = len(self.found), self.found.count(ARGMAXABLE)
        most = least + self.found.count(UNDETERMINED)
        if self.is_complete:
            return least / n, most / n
        low = 0.0 if least == 0 else float(betaincinv(least, n - least + 1, _ERROR / 2))
        high = 1.0 if most == n else float(betaincinv(most + 1, n - most, 1 - _ERROR / 2))
        return low, high

    def says(self) -> str:
        """The result in a sentence."""
        low, high = self.interval
        about = f"{self.least} to {self.most} labels" if self.least < self.most else f"{self.most} labels"
        about = "1 label" if about == "1 labels" else about
        if self.is_complete:
            shown = f"{100 * low:.1f}%" if low == high else f"{100 * low:.1f}% to {100 * high:.1f}%"
            return f"Some input gets {shown} of all {self.n_sets:,} sets of {about}."
        return (
            f"Some input gets {100 * low:.1f}% to {100 * high:.1f}% of the {_number(self.n_sets)} sets of {about} (95% "
            f"confidence, from {len(self.found):,} random ones)."
        )


@dataclass(frozen=True, eq=False)
class SafeSize:
    """The largest k such that every audited set of 1 to k labels has an input.

    Attributes
    ----------
    k : int
        0 if some set of one label has none.
    is_proved : bool
        Whether all sets of 1 to k labels were audited, so that each has a proof. Else random samples were.
    sizes : tuple of SizeAudit
        One for each size from 1, up to the first with a set that no input gets or that is not known.
    """

    k: int
    is_proved: bool
    sizes: tuple[SizeAudit, ...]

    def says(self) -> str:
        """The result in one or two sentences."""
        how = "as proofs for all of them show" if self.is_proved else "as far as random samples of them show"
        labels = "1 label" if self.k == 1 else f"up to {self.k} labels"
        first = f"Every set of {labels} has an input, {how}." if self.k else "Not every single label has an input."
        last = self.sizes[-1].found
        if self.sizes[-1].most == self.k:
            return first
        without = "without an input" if last.count(UNARGMAXABLE) else "that could not be decided"
        noun = "1 label" if self.k == 0 else f"{self.k + 1} labels"
        return f"{first} There are sets of {noun} {without}."


def audit_sizes(
    layer: Any, most: int, *, least: int = 1, limit: int = 1000, random_state: int = 0, **options: Any
) -> SizeAudit:
    """Audit all label sets of `least` to `most` labels, or a random sample of `limit` of them.

    Parameters
    ----------
    layer : OutputLayer, fitted model or array-like of shape (n_labels, n_inputs)
        As for `audit`.
    most, least : int
        Number of labels in a set. The empty set is left out by default.
    limit : int
        Maximum number of sets to audit.
    random_state : int
        Random seed of the sample.
    **options
        Those of `audit`.

    Examples
    --------
    >>> found = audit_sizes([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], 2)
    >>> found.is_complete, found.interval
    (True, (0.6666666666666666, 0.6666666666666666))
    >>> found.says()
    'Some input gets 66.7% of all 6 sets of 1 to 2 labels.'
    """
    weights = bare_weights(layer)
    whole = output_layer(layer) if weights is None else None
    n_labels = whole.n_labels if whole is not None else OutputLayer.of(weights).n_labels
    check_whole("limit", limit, 1)
    check_whole("least", least, 0)
    check_whole("most", most, least)
    if least > n_labels:
        raise InvalidInput(f"least is {least}, but the layer has only {n_labels} labels, so there are no such sets")
    most = min(most, n_labels)
    counts = [math.comb(n_labels, size) for size in range(least, most + 1)]
    total = sum(counts)
    rows: Iterator[tuple[int, ...]] | list[list[int]]
    if total <= limit:
        rows = (each for size in range(least, most + 1) for each in combinations(range(n_labels), size))
    else:
        rows = _sample(n_labels, least, counts, limit, random_state)
    found = audit(layer if whole is None else whole, of_ids(rows, n_labels), random_state=random_state, **options)
    return SizeAudit(least, most, total, found, total <= limit)


def find_safe_size(layer: Any, most: int = 10, *, limit: int = 1000, **options: Any) -> SafeSize:
    """Find the largest k up to `most` such that every set of 1 to k labels has an input.

    Where there are more than `limit` sets of a size, a random sample stands for them, and the result is no proof.

    Parameters
    ----------
    layer, limit, **options
        As for `audit_sizes`.
    most : int

    Examples
    --------
    >>> from longtail.audit import dft_matrix
    >>> safe = find_safe_size(dft_matrix(9, 2))
    >>> safe.k, safe.is_proved
    (2, True)
    """
    check_whole("most", most, 1)
    sizes: list[SizeAudit] = []
    for size in range(1, most + 1):
        sizes.append(audit_sizes(layer, size, least=size, limit=limit, **options))
        if sizes[-1].found.count(ARGMAXABLE) < len(sizes[-1].found) or size >= sizes[-1].found.n_labels:
            break
    safe = [each for each in sizes if each.found.count(ARGMAXABLE) == len(each.found)]
    return SafeSize(len(safe), all(each.is_complete for each in safe), tuple(sizes))


def _sample(n_labels: int, least: int, counts: list[int], limit: int, random_state: int) -> list[list[int]]:
    """Random sets, all equally likely; the same one may come twice."""
    draw = random.Random(random_state)
    sizes = draw.choices(range(least, least + len(counts)), weights=_shares(counts), k=limit)
    return [draw.sample(range(n_labels), size) for size in sizes]


def _shares(counts: list[int]) -> list[float]:
    """Counts as floats, which they may be too large for."""
    shift = max(0, max(counts).bit_length() - 900)
    return [float(count >> shift) for count in counts]


def _number(count: int) -> str:
    if count < 10**9:
        return f"{count:,}"
    digits = len(str(count)) if count < 10**4000 else round(math.log10(count))
    return f"10^{digits - 1}"
