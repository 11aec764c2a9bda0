"""The lengths of output heads: their product must cover the labels, and their sum should be small.

Codes beyond the last label are padding and never correct. A plan without padding is preferred unless it is much wider
than the narrowest plan. Section 4.4 of the paper on multi-head encoding says what else makes a good plan.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np

from longtail.errors import InvalidInput
from longtail.labels.codes import check_radices
from longtail.validation import check_whole

_MOST_LABELS = 2**40  # finding divisors takes time proportional to the square root
_MOST_HEADS = 64
_WIDEST_EXACT = {"descending": 4.0, "equal": 1.25}


@dataclass(frozen=True)
class HeadPlan:
    """The lengths of the heads for a number of labels, as from `plan_heads`.

    Parameters
    ----------
    n_labels : int
    radices : tuple of int
        The length of each head. Their product is at least `n_labels`.
    order : {"descending", "equal"}
        Whether the heads form a sequence or are parallel.
    """

    n_labels: int
    radices: tuple[int, ...]
    order: str = "descending"

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_labels", check_whole("n_labels", self.n_labels))
        object.__setattr__(self, "radices", check_radices(self.radices))
        _check_order(self.order, tuple(_WIDEST_EXACT))
        if self.padding < 0:
            raise InvalidInput(
                f"heads of lengths {self.radices} have {math.prod(self.radices)} codes, fewer than the {self.n_labels} "
                f"labels"
            )

    @property
    def padding(self) -> int:
        """The number of codes without a label."""
        return math.prod(self.radices) - self.n_labels

    @property
    def width(self) -> int:
        """The number of outputs of all heads together."""
        return sum(self.radices)

    @property
    def confusion(self) -> float:
        """`confusion_degree` in the given order, or in the worst order if the heads are parallel."""
        return confusion_degree(self.radices, "worst" if self.order == "equal" else "given")

    def parameters(self, n_features: int, bias: bool = True) -> int:
        """The number of parameters of linear heads on `n_features` features, all heads together.

        Examples
        --------
        >>> plan_heads(1000).parameters(512), 1000 * (512 + 1)
        (33345, 513000)
        """
        return self.width * (check_whole("n_features", n_features) + int(bias))

    def describe(self) -> str:
        """A summary of the plan in one line.

        Examples
        --------
        >>> plan_heads(3956).describe()
        '3,956 labels in 2 heads of 86 x 46: 132 outputs, no padding, confusion 0.535'
        """
        lengths = " x ".join(f"{radix:,}" for radix in self.radices)
        heads = f"1 head of {lengths}" if len(self.radices) == 1 else f"{len(self.radices)} heads of {lengths}"
        padding = f"{self.padding:,} codes of padding" if self.padding else "no padding"
        return f"{self.n_labels:,} labels in {heads}: {self.width:,} outputs, {padding}, confusion {self.confusion:.3g}"


def plan_heads(n_labels: int, n_heads: int = 2, first: int | None = None, order: str = "descending") -> HeadPlan:
    """Choose the lengths of heads.

    The plan is the narrowest one without padding, unless that has more than 4 times the outputs of the narrowest plan
    of all (1.25 times for ``order="equal"``); then it is the narrowest plan of all. With two heads, this allows a long
    head of about 60 times the short one (4 times for "equal"). Of plans with equal sums, the one with the lower
    confusion degree is taken. No head has length 1, unless there are too few labels for the number of heads.

    Parameters
    ----------
    n_labels : int
        From 1 to 2^40.
    n_heads : int
        As few as the training time allows, since each head adds errors of its own.
    first : int or None
        The length of the first head, if it should be longer than in the default plan. It shrinks to what the other
        heads leave to cover. With two heads, the padding is then less than the length of the second head, and 0 if
        `first` divides `n_labels`. The other heads are planned as above, for the labels that share an output of the
        first.
    order : {"descending", "equal"}
        "descending" for a sequence in which each head refines the one before; the first may be much longer than the
        others. "equal" for parallel heads of about equal length.

    Examples
    --------
    >>> plan_heads(30_938).radices
    (499, 62)
    >>> plan_heads(3956, first=172).radices
    (172, 23)
    >>> plan = plan_heads(670_091, first=8400)
    >>> plan.radices, plan.padding
    ((8377, 80), 69)
    >>> plan_heads(983).radices, plan_heads(983, order="equal").radices
    ((34, 29), (32, 31))
    """
    n_labels = check_whole("n_labels", n_labels, 1, _MOST_LABELS)
    n_heads = check_whole("n_heads", n_heads, 1, _MOST_HEADS)
    _check_order(order, tuple(_WIDEST_EXACT))
    if first is None:
        return HeadPlan(n_labels, _lengths(n_labels, n_heads, order), order)
    first = check_whole("first", first, 1, n_labels)
    if n_heads == 1:
        raise InvalidInput("first is given, but a single head has length n_labels; omit first or plan more heads")
    others = _lengths(-(-n_labels // first), n_heads - 1, order)
    return HeadPlan(n_labels, (-(-n_labels // math.prod(others)), *others), order)


def confusion_degree(radices: tuple[int, ...], order: str = "given") -> float:
    """How much labels are confused because they share outputs: the product over h >= 2 of prod_{k>=h} n_k / n_{h-1}.

    This is Eq. 15 of the paper on multi-head encoding, with the index in the denominator corrected.

    Parameters
    ----------
    radices : tuple of int
        The lengths n_1, ..., n_H of the heads.
    order : {"given", "worst"}
        "given" for a sequence of heads; "worst" is the maximum over all orders, for parallel heads.

    Returns
    -------
    float
        0 for a single head, which shares no outputs; infinity if the value exceeds a float.

    Examples
    --------
    >>> round(confusion_degree((172, 23)), 3), round(confusion_degree((86, 46)), 3)
    (0.134, 0.535)
    >>> confusion_degree((20, 5)), confusion_degree((20, 5), "worst")
    (0.25, 4.0)
    """
    lengths = check_radices(radices)
    _check_order(order, ("given", "worst"))
    if len(lengths) == 1:
        return 0.0
    if order == "worst":  # the later a head comes, the more it counts
        lengths = tuple(sorted(lengths))
    shared = math.prod(length**head for head, length in enumerate(lengths))
    try:
        return shared / math.prod(lengths[:-1])
    except OverflowError:
        return math.inf


def _check_order(order: str, known: tuple[str, ...]) -> None:
    if order not in known:
        raise InvalidInput(f"order is {order!r}; expected {' or '.join(repr(name) for name in known)}")


def _lengths(n_labels: int, n_heads: int, order: str) -> tuple[int, ...]:
    """The lengths of a plan, descending."""
    n_useful = max(1, min(n_heads, (n_labels - 1).bit_length()))
    padded = _balanced_cover(n_labels, n_useful)
    limit = math.floor(_WIDEST_EXACT[order] * sum(padded))
    ranking = "given" if order == "descending" else "worst"
    choices = _narrowest_products(n_labels, n_useful, limit)
    if not choices:
        choices = list(_covers(sum(padded), n_labels, n_useful, n_labels)) if order == "descending" else [padded]
    best = min(choices, key=lambda lengths: (confusion_degree(lengths, ranking), lengths))
    return best + (1,) * (n_heads - n_useful)


def _balanced_cover(n_labels: int, n_heads: int) -> tuple[int, ...]:
    """The narrowest lengths that cover the labels: for a given sum, equal lengths have the largest product."""
    short = _root(n_labels, n_heads)
    for n_longer in range(n_heads):
        lengths = (short + 1,) * n_longer + (short,) * (n_heads - n_longer)
        if math.prod(lengths) >= n_labels:
            return lengths
    return (short + 1,) * n_heads


def _root(number: int, degree: int) -> int:
    """The largest integer whose `degree`-th power is at most `number`."""
    root = round(number ** (1 / degree))
    while root**degree > number:
        root -= 1
    while (root + 1) ** degree <= number:
        root += 1
    return root


def _covers(width: int, n_labels: int, n_heads: int, longest: int) -> Iterator[tuple[int, ...]]:
    """Descending lengths from 2 to `longest` with this sum that cover the labels, the last as short as possible."""
    if n_heads == 1:
        if n_labels <= width <= longest:
            yield (width,)
    elif n_heads == 2:
        spread = width * width - 4 * n_labels
        if spread >= 0:
            long = min((width + math.isqrt(spread)) // 2, longest, width - 2)
            if long >= width - long and long * (width - long) >= n_labels:
                yield long, width - long
    else:
        for first in range(-(-width // n_heads), longest + 1):
            small, larger = divmod(width - first, n_heads - 1)
            needed = -(-n_labels // first)
            if small < 2 or (small + 1) ** larger * small ** (n_heads - 1 - larger) < needed:
                break
            for rest in _covers(width - first, needed, n_heads - 1, first):
                yield first, *rest


def _narrowest_products(number: int, n_heads: int, limit: int) -> Collection[tuple[int, ...]]:
    """The descending lengths of at least 2 with this product and the smallest sum, if it is at most `limit`.

    Several may have the same sum. Some head is a multiple of the largest prime factor, so its length is tried first.
    """
    if n_heads == 1:
        return [(number,)]
    divisors = _divisors(number)
    primes: list[int] = []
    for divisor in divisors[1:]:
        if all(divisor % prime for prime in primes):
            primes.append(divisor)
    lengths = [divisor for divisor in divisors[1:] if divisor <= limit]

    @cache
    def narrowest(rest: int, n_others: int) -> Collection[tuple[int, ...]]:
        if n_others == 0:
            return [(rest,)]
        largest = next(prime for prime in reversed(primes) if rest % prime == 0)
        # The other heads are narrowest if they are equal.
        bounds = sorted(
            (length + n_others * (rest / length) ** (1 / n_others), length)
            for length in lengths
            if length % largest == 0 and rest % length == 0 and rest // length >= 2**n_others
        )
        width = limit
        found: set[tuple[int, ...]] = set()
        for bound, length in bounds:
            if bound > width + 1e-6:
                break
            for others in narrowest(rest // length, n_others - 1):
                found_width = length + sum(others)
                if found_width < width:
                    width, found = found_width, set()
                if found_width == width:
                    found.add(tuple(sorted((length, *others), reverse=True)))
        return found

    return narrowest(number, n_heads - 1)


def _divisors(number: int) -> list[int]:
    """All divisors of a number, ascending."""
    tried = np.arange(1, math.isqrt(number) + 1, dtype=np.int64)
    small = tried[number % tried == 0]
    return np.unique(np.concatenate([small, number // small])).tolist()
