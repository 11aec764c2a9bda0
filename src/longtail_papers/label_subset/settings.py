"""The settings of each method, chosen on a part of the training rows, never on test rows.

Ridge is solved label by label, so one fit on the other training rows gives the scores of every subset.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from sklearn.kernel_approximation import RBFSampler

from longtail.arrays import Array
from longtail.metrics import ndcg_at_k
from longtail.native import kernels
from longtail.ridge import RidgeCV, label_predictability
from longtail.subset import Decoding, label_affinity, ridge_decoding, select_labels, sparse_decoder, sparse_decoding
from longtail.validation import as_labels
from longtail_papers.common import SCALINGS, Benchmark

HELD = 0.2
_SEED = 0
PLACES = 5

# The candidates. With many labels the affinity is computed for one alpha only, because it takes long.
_AFFINITY_ALPHAS = (5.0, 20.0)
_ONE_AFFINITY_ALPHA = (10.0,)
_MANY_LABELS = 1000
_PENALTIES = (0.1, 1.0)
_SCORE_WEIGHTS = (None, 1.0, 3.0, 10.0)
_RIDGE_DECODERS = (1.0, 10.0, 100.0)
_SPARSE_DECODERS = (10.0, 30.0)
# Gaussian kernels of dense features: the exponent at the mean squared distance of two rows.
_COSINES = {"cosines, wide kernel": 0.25, "cosines, narrow kernel": 1.0}
_N_COSINES = 500


@dataclass(frozen=True)
class Choice:
    """How a subset is chosen and decoded."""

    criterion: str
    affinity_alpha: float | None = None
    penalty: float = 0.1
    score_weight: float | None = None
    decoder: str = "ridge"
    decoder_alpha: float = 1.0

    def describe(self) -> str:
        """The settings that matter for the criterion, for a table."""
        parts = []
        if self.affinity_alpha is not None:
            parts += [f"affinity alpha {self.affinity_alpha:g}", f"penalty {self.penalty:g}"]
        if self.criterion == "predictable cut":
            parts.append("a relative" if self.score_weight is None else f"a {self.score_weight:g}")
        return ", ".join([*parts, f"{self.decoder} decoder {self.decoder_alpha:g}"])


class Labels:
    """Labels with the predictabilities and affinities that subsets are chosen by, each computed once.

    Parameters
    ----------
    X, Y : features and labels of the training rows
    """

    def __init__(self, X: Any, Y: Any) -> None:
        self.X, self.Y = X, as_labels(Y)
        self._affinities: dict[float, Any] = {}

    @cached_property
    def scores(self) -> Array:
        return label_predictability(self.X, self.Y)

    def affinity(self, alpha: float) -> Any:
        if alpha not in self._affinities:
            self._affinities[alpha] = label_affinity(self.Y, alpha=alpha)
        return self._affinities[alpha]

    def select(self, choice: Choice, n_labels: int) -> Array:
        """The subset of a choice."""
        affinity = None if choice.affinity_alpha is None else self.affinity(choice.affinity_alpha)
        found = select_labels(
            self.Y,
            n_labels,
            criterion=choice.criterion,
            affinity=affinity,
            penalty=choice.penalty,
            score_weight=choice.score_weight,
            scores=self.scores if choice.criterion in ("predictable cut", "score") else None,
            random_state=_SEED,
        )
        return np.asarray(found.labels, dtype=np.int64)

    def decoding(self, choice: Choice, subset: Array) -> Decoding:
        """The decoder of a choice."""
        if choice.decoder == "ridge":
            return ridge_decoding(self.Y, subset, choice.decoder_alpha)[0]
        found = sparse_decoder(self.Y, subset, alpha=choice.decoder_alpha)
        return sparse_decoding(found.coefficients, subset, self.Y.indices.dtype)


@dataclass(frozen=True)
class Held:
    """Held-out training rows, and ridge fitted to the others.

    `scores` are those of every label for the held-out rows.
    """

    scaling: str
    alpha: float
    labels: Labels
    X: Any
    truth: Any
    scores: Array

    def quality(self, scores: Array) -> float:
        """nDCG@5 of scores of the held-out rows."""
        return self.judge(rank(scores, PLACES))

    def judge(self, top_labels: Array) -> float:
        """nDCG@5 of a ranking of the held-out rows."""
        return ndcg_at_k(self.truth, top_labels, PLACES)

    def decoded(self, choice: Choice, subset: Array) -> Array:
        """Scores of every label from those of the subset."""
        decoding = self.labels.decoding(choice, subset)
        return decoding.decode(decoding.mix(self.scores[:, subset]), slice(0, decoding.n_labels)).T


def hold_out(benchmark: Benchmark, *, quick: bool) -> Held:
    """Hold out some training rows and choose the scaling on them; leave-one-out on the others chooses alpha."""
    rows = benchmark.train.n_rows
    held = np.zeros(rows, dtype=bool)
    held[np.random.default_rng(_SEED).permutation(rows)[: round(HELD * rows)]] = True
    Y, best = benchmark.train.labels, None
    for scaling in _scalings(benchmark, quick):
        X, _ = features(benchmark, scaling)
        model = RidgeCV(fit_intercept=True).fit(X[~held], Y[~held])
        scores = model.decision_function(X[held])
        found = Held(scaling, model.alpha_, Labels(X[~held], Y[~held]), X[held], Y[held], scores)
        if best is None or found.quality(scores) > best.quality(best.scores):
            best = found
    assert best is not None
    return best


def features(benchmark: Benchmark, scaling: str) -> tuple[Any, Any]:
    """The training and test rows, scaled, or as random cosines whose products approximate a Gaussian kernel."""
    if scaling in SCALINGS:
        return benchmark.features(scaling)
    train, test = benchmark.features("as published")
    variance = float(train.multiply(train).mean(axis=0).sum() - (train.mean(axis=0) ** 2).sum())
    # The mean squared distance of two rows is twice the sum of the variances of the features.
    kernel = RBFSampler(gamma=_COSINES[scaling] / (2 * variance), n_components=_N_COSINES, random_state=_SEED)
    return kernel.fit_transform(train), kernel.transform(test)


def _scalings(benchmark: Benchmark, quick: bool) -> Iterable[str]:
    rows = benchmark.train.features
    names = [name for name in SCALINGS if not name.startswith("log") or not rows.data.size or rows.data.min() >= 0]
    if quick:
        return names[1:2]
    # Few dense features hold more than a linear map can use.
    return [*names, *_COSINES] if rows.nnz == rows.shape[0] * rows.shape[1] else names


def choose(held: Held, criterion: str, n_labels: int, *, quick: bool) -> Choice:
    """The settings of a criterion that rank the held-out rows best without outliers; then those of the decoder."""
    best = max(
        _candidates(criterion, held.labels.Y.shape[1], quick), key=lambda choice: _quality(held, choice, n_labels)
    )
    if quick:
        return best
    decoders = [("ridge", alpha) for alpha in _RIDGE_DECODERS] + [("l1", alpha) for alpha in _SPARSE_DECODERS]
    options = [replace(best, decoder=name, decoder_alpha=alpha) for name, alpha in decoders]
    return max(options, key=lambda choice: _quality(held, choice, n_labels))


def _quality(held: Held, choice: Choice, n_labels: int) -> float:
    return held.quality(held.decoded(choice, held.labels.select(choice, n_labels)))


def _candidates(criterion: str, n_labels: int, quick: bool) -> list[Choice]:
    if "cut" not in criterion:
        return [Choice(criterion)]
    alphas = _ONE_AFFINITY_ALPHA if quick or n_labels > _MANY_LABELS else _AFFINITY_ALPHAS
    weights: tuple[float | None, ...] = _SCORE_WEIGHTS if criterion == "predictable cut" else (None,)
    penalties = _PENALTIES[:1] if quick else _PENALTIES
    return [Choice(criterion, *values) for values in product(alphas, penalties, weights)]


def rank(scores: Array, k: int) -> Array:
    """The k best labels of each row of dense scores."""
    labels = np.full((len(scores), k), -1, dtype=np.int64)
    best = np.full((len(scores), k), -np.inf, dtype=np.float32)
    kernels.update_topk(np.ascontiguousarray(scores, dtype=np.float32), 0, None, labels, best)
    return labels
