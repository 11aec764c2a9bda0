"""`select_labels`: a few labels that represent all, in order of selection, and how much of the others they cover.

The selected labels explain many others, do not explain each other, and can be predicted from the features (Barezi et
al., NAACL 2019). Frequency, random choice and leverage scores (Bi & Kwok, ICML 2013) are baselines.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from longtail.arrays import Array
from longtail.errors import InvalidInput
from longtail.memory import MemoryPlan
from longtail.parameters import Number
from longtail.subset.affinity import Affinity, label_affinity
from longtail.subset.greedy import gains_of, lazy_greedy, stochastic_greedy
from longtail.subset.pairwise import PairwiseObjective, curvature, greedy_fraction, upper_bound
from longtail.validation import as_labels, check_whole

NEED_SCORES = ("score", "predictable cut")
_BASELINES = ("frequency", "random", "leverage")
CRITERIA = ("cut", "penalised cut", *NEED_SCORES, *_BASELINES)
SPELLINGS = tuple(dict.fromkeys([*CRITERIA, *(name.replace(" ", "-") for name in CRITERIA)]))
METHODS = ("auto", "lazy", "stochastic")
_HEAVIEST = 1e9  # largest penalty and score weight; larger ones would round the other terms of the objective to 0
_ROUNDING = 1e-12  # relative rounding error of a value and a bound
_SMALL = 2000  # up to this many labels an exact eigendecomposition is affordable


@dataclass(frozen=True)
class LabelSubset:
    """Selected labels, and what is known about them.

    Parameters
    ----------
    labels : int64 array of n_labels
        In order of selection: the first m labels are the selection of m labels.
    gains : array of n_labels
        How much each label changes the value of the labels before it.
    value : float
        The value of the whole set by the criterion; by the penalised cut for "frequency", "random" and "leverage".
    bound : float
        An upper bound on the value of any set of as many labels in which labels without rows come last.
    guarantee : float
        The proved fraction of the best possible value; 0 if nothing is proved.
    coverage : array of n_labels
        After each selection, the mean covered share over all labels with rows. A selected label is covered fully, any
        other by the share of its affinity that goes to selected labels.
    criterion : str
    """

    labels: Array
    gains: Array
    value: float
    bound: float
    guarantee: float
    coverage: Array
    criterion: str

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def measure(self) -> str:
        """The criterion that `value`, `bound` and `guarantee` refer to."""
        return "penalised cut" if self.criterion in _BASELINES else self.criterion


def select_labels(
    Y: Any,
    n_labels: int,
    *,
    criterion: str | None = None,
    affinity: Affinity | None = None,
    penalty: float = 0.1,
    score_weight: float | None = None,
    scores: Any = None,
    method: str = "auto",
    random_state: int | None = 0,
) -> LabelSubset:
    """Select labels that represent all.

    Parameters
    ----------
    Y : sparse or dense 0/1 matrix of shape (n_rows, n_all_labels)
    n_labels : int
        How many to select. Labels without rows are selected last; ties go to the lowest label.
    criterion : str or None
        What to maximise. A hyphen may replace the space.

        - "cut": how much the selected labels explain of the others.
        - "penalised cut": the cut minus `penalty` times how much selected labels explain each other.
        - "score": the sum of `scores`.
        - "predictable cut": the penalised cut plus `score_weight` times the score. The default with `scores`; without
          them it is "penalised cut".
        - "frequency": the number of rows.
        - "random": nothing.
        - "leverage": nothing; labels are drawn without replacement, with probabilities proportional to their leverage
          scores in the `n_labels` leading right singular vectors of Y.
    affinity : Affinity or None
        How much labels explain each other, from `label_affinity`; None uses its "co-occurrence".
    penalty : float
        At most 1e9.
    score_weight : float or None
        At most 1e9. None balances scores and affinity: the sums of their `n_labels` largest values become equal.
    scores : array of n_all_labels or None
        How well each label can be predicted, such as `longtail.ridge.label_predictability`.
    method : {"auto", "lazy", "stochastic"}
        "lazy" compares all labels at each step, "stochastic" only a sample, for very many labels; its guarantee is
        weaker. "auto" is "lazy".
    random_state : int or None
        Seed of the stochastic method and of "random" and "leverage"; None gives a different result each time.

    Returns
    -------
    LabelSubset

    Notes
    -----
    All criteria need the affinity for value, bound and coverage, so the pairs of labels that share rows are held in
    memory.

    Examples
    --------
    Labels 0 and 1 are seen with label 2, and label 4 with label 3:

    >>> Y = [[1, 0, 1, 0, 0], [0, 1, 1, 0, 0], [0, 0, 0, 1, 1], [0, 0, 0, 1, 1], [0, 0, 0, 1, 0]]
    >>> subset = select_labels(Y, 2)
    >>> subset.labels.tolist(), subset.coverage.tolist(), subset.guarantee
    ([2, 3], [0.6, 1.0], 1.0)
    """
    Y = as_labels(Y)
    n_labels = check_whole("n_labels", n_labels)
    if n_labels > Y.shape[1]:
        raise InvalidInput(f"n_labels is {n_labels}, but there are only {Y.shape[1]} labels", code="too_many_labels")
    if criterion is None:
        criterion = "penalised cut" if scores is None else "predictable cut"
    criterion = check_criterion(criterion)
    if criterion in NEED_SCORES and scores is None:
        raise InvalidInput(
            f"the criterion {criterion!r} needs scores: compute longtail.ridge.label_predictability(X, Y), or use "
            f"'penalised cut'"
        )
    _check_number("penalty", penalty, Number(low=0, high=_HEAVIEST))
    _check_number("score_weight", score_weight, Number(low=0, high=_HEAVIEST, optional=True))
    if method not in METHODS:
        raise InvalidInput(f"method is {method!r}; expected one of {', '.join(map(repr, METHODS))}")
    if random_state is not None:
        random_state = check_whole("random_state", random_state, 0)
    scores = None if criterion not in NEED_SCORES else _check_scores(scores, Y.shape[1])
    weights = _weights(affinity, Y)
    generator = np.random.default_rng(random_state)
    last = np.bincount(Y.indices, minlength=Y.shape[1]) == 0
    objective = _objective(criterion, weights, n_labels, penalty, scores, score_weight)
    if criterion in _BASELINES:
        labels = _ranked(criterion, Y, n_labels, generator)
        gains = gains_of(objective, labels)
    elif method == "stochastic":
        labels, gains = stochastic_greedy(objective, n_labels, last, generator)
    else:
        labels, gains = lazy_greedy(objective, n_labels, last)
    is_greedy = criterion not in _BASELINES and method != "stochastic"
    value, bound, guarantee = _proved(objective, labels[~last[labels]], np.flatnonzero(~last), is_greedy)
    # Labels without rows come last, but a given affinity may still give them a gain.
    rest = float(gains[last[labels]].sum())
    return LabelSubset(
        labels, gains, value + rest, bound + rest, guarantee, _coverage(weights, labels, last), criterion
    )


def check_criterion(criterion: str) -> str:
    """The name of a criterion, without hyphens, or `InvalidInput`."""
    if criterion not in SPELLINGS:
        raise InvalidInput(f"criterion is {criterion!r}; expected one of {', '.join(map(repr, CRITERIA))}")
    return criterion.replace("-", " ")


def _check_number(name: str, value: Any, constraint: Number) -> None:
    if not constraint.accepts(value):
        raise InvalidInput(f"{name} is {value!r}; expected {constraint.describe()}")


def _check_scores(scores: Any, n_labels: int) -> Array:
    try:
        scores = np.asarray(scores, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(f"scores cannot be converted to numbers; expected {n_labels} numbers") from None
    if scores.shape != (n_labels,):
        raise InvalidInput(f"scores has shape {scores.shape}; expected one number for each of the {n_labels} labels")
    if not np.isfinite(scores).all():
        raise InvalidInput("scores contains NaN or infinity; expected finite numbers")
    return np.asarray(scores)


def _weights(affinity: Affinity | None, Y: Any) -> Any:
    weights = (label_affinity(Y, "co-occurrence") if affinity is None else affinity).weights
    if weights.shape != (Y.shape[1], Y.shape[1]):
        raise InvalidInput(
            f"the affinity has {weights.shape[0]} labels and Y has {Y.shape[1]}; compute the affinity from this Y"
        )
    # Non-negative weights make the objective submodular.
    if not (np.isfinite(weights.data) & (weights.data >= 0)).all() or weights.diagonal().any():
        raise InvalidInput("the weights of an affinity must be finite, at least 0, and 0 on the diagonal")
    return weights


def _objective(
    criterion: str, weights: Any, n_labels: int, penalty: float, scores: Array | None, score_weight: float | None
) -> PairwiseObjective:
    if criterion == "score":
        return PairwiseObjective.of(0 * weights, 0.0, scores)
    if criterion == "cut":
        return PairwiseObjective.of(weights)
    if scores is not None and score_weight is None:
        explained = np.bincount(weights.indices, weights=weights.data, minlength=len(scores))
        most_explained, most_predicted = (float(np.sort(values)[-n_labels:].sum()) for values in (explained, scores))
        score_weight = most_explained / most_predicted if most_explained > 0 and most_predicted > 0 else 1.0
    return PairwiseObjective.of(weights, penalty, scores, 1.0 if score_weight is None else score_weight)


def _proved(
    objective: PairwiseObjective, labels: Array, candidates: Array, is_greedy: bool
) -> tuple[float, float, float]:
    """The value of the selected labels with rows, an upper bound on the optimum, and the proved fraction of it."""
    if len(labels) == 0:
        return 0.0, 0.0, 1.0
    if len(candidates) < objective.n_labels:
        objective = objective.select(candidates)
        labels = np.searchsorted(candidates, labels)
    value, bound = objective.value(labels), upper_bound(objective, labels)
    if value >= bound - _ROUNDING * abs(bound):
        return value, value, 1.0
    if value <= 0:
        return value, bound, 0.0
    fraction = greedy_fraction(curvature(objective, labels), len(labels)) if is_greedy else 0.0
    bound = min(bound, value / fraction) if fraction else bound
    return value, bound, value / bound


def _coverage(weights: Any, labels: Array, last: Array) -> Array:
    """The mean covered share of the labels with rows, after each selection."""
    n_with_rows = int(np.count_nonzero(~last))
    if n_with_rows == 0:
        return np.ones(len(labels))
    mass = np.asarray(weights.sum(axis=1), dtype=np.float64)
    order = np.full(len(last), len(labels))
    order[labels] = np.arange(len(labels))
    explained, by = np.repeat(np.arange(len(last)), np.diff(weights.indptr)), weights.indices
    # A selected label covers a share of another, unless that one was selected before.
    when = order[by]
    counts = (when < order[explained]) & ~last[explained] & (mass[explained] > 0)
    explained, when, shares = explained[counts], when[counts], weights.data[counts]
    shares = shares / mass[explained]
    added = np.bincount(when, shares, len(labels)).astype(np.float64)  # bincount of nothing gives integers
    before = np.bincount(explained, shares, len(last))[labels]
    added += np.where(last[labels], 0.0, 1 - before)
    return np.minimum(np.cumsum(added) / n_with_rows, 1.0)


def _ranked(criterion: str, Y: Any, n_labels: int, generator: np.random.Generator) -> Array:
    """The selection of a baseline."""
    counts = np.bincount(Y.indices, minlength=Y.shape[1])
    if criterion == "frequency":
        keys = counts.astype(np.float64)
    elif criterion == "random":
        keys = generator.random(Y.shape[1])
    else:
        leverage = _leverage(Y, n_labels)
        # Taking the largest of log p plus Gumbel noise draws without replacement, in proportion to p.
        keys = np.log(np.maximum(leverage, np.finfo(np.float64).tiny)) + generator.gumbel(size=Y.shape[1])
    return np.lexsort((-keys, counts == 0))[:n_labels].astype(np.int64, copy=False)


def _leverage(Y: Any, rank: int) -> Array:
    """Leverage scores: squared norms of the labels in the leading right singular vectors of Y."""
    rank = min(rank, *Y.shape)
    if Y.nnz == 0:
        return np.ones(Y.shape[1])
    if Y.shape[1] <= _SMALL:
        values, vectors = np.linalg.eigh((Y.T @ Y).toarray().astype(np.float64))
        kept = np.flatnonzero(values > values[-1] * Y.shape[1] * np.finfo(np.float32).eps)[-rank:]
        return np.asarray((vectors[:, kept] ** 2).sum(axis=1))
    from sklearn.utils.extmath import randomized_svd

    MemoryPlan(
        "leverage scores",
        {"singular vectors": 4 * 3 * (rank + 10) * sum(Y.shape)},
        "Select fewer labels, or use another criterion.",
    ).check()
    _, _, vectors = randomized_svd(Y, rank, n_iter=4, random_state=0)
    return np.asarray((vectors.astype(np.float64) ** 2).sum(axis=0))
