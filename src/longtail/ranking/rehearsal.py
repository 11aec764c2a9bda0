"""The rehearsal: sources that did not see some held-out rows propose labels for them, and boosted trees learn to rank.

It also calibrates the scores of the trees and measures whether they rank better than each learner alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import expit

from longtail import progress
from longtail.arrays import Array
from longtail.choice import PLACES, HeldOut, folds, quietly
from longtail.estimator import Estimator, column_counts
from longtail.metrics import ndcg_at_k
from longtail.ranking.boosting import BoostedTrees
from longtail.ranking.candidates import Candidates, Recipe, Views, describe, find, key_of, take_part
from longtail.ranking.sources import Found, Learner, Source
from longtail.trees import fit_sigmoid, is_true
from longtail.validation import own

BOTH = "two stages"  # the key of both stages together in the gains
_PAIRS_PER_LEAF = 200  # with few pairs, a leaf may hold one of this many
_MOST_PAIRS_PER_LEAF = 200
_HIDDEN = 0.08  # share of labels that are hidden from all sources but their texts, if there are labels without rows
_FREQUENT = 0.75  # quantile of the labels, by their rows, above which none is hidden
_K = 5  # places that nDCG judges


class Part(NamedTuple):
    """Sources that did not see some held-out rows, and what they found for them."""

    sources: tuple[Source, ...]
    found: tuple[Found, ...]

    def by_key(self) -> dict[str, Found]:
        return {key_of(source): found for source, found in zip(*self, strict=True)}


@dataclass(frozen=True)
class Rehearsal:
    """What held-out rows taught.

    Parameters
    ----------
    parts : tuple of Part
        One for each part of the rows that was held out.
    ranker : BoostedTrees or None
        None if there were too few rows to hold any out.
    calibration : pair of float
        Slope and offset of the sigmoid that turns a raw score of the ranker into a probability.
    gains : dict of str to float
        nDCG@5 of each learner alone and, with the key `BOTH`, of both stages together.
    held_out : HeldOut or None
        The rankings of both stages together, by probability. Labels that were hidden are left out.
    """

    parts: tuple[Part, ...]
    ranker: BoostedTrees | None
    calibration: tuple[float, float]
    gains: dict[str, float]
    held_out: HeldOut | None


def rehearse(
    recipe: Recipe,
    X: Any,
    Y: Any,
    Z: list[Any],
    settings: dict[str, Any],
    fitted: list[Estimator] | None = None,
    like: Rehearsal | None = None,
    weights: Array | None = None,
) -> Rehearsal:
    """Fit the sources without the held-out rows, and learn from what they find for these.

    Parameters
    ----------
    recipe : Recipe
    X, Y, Z
        Checked rows, their labels, and the readings of the label texts.
    settings : dict
        Parameters of `BoostedTrees.fit`; the seed is also that of the held-out rows.
    fitted, like, weights
        As for `TwoStage.rehearse`; the weights are those of rows.
    """
    with_texts = {"names", "sentences"} & set(take_part(recipe.others, recipe.layout, bool(Z)))
    is_open = bool(Z) and bool(with_texts) and _has_new_labels(Y, Z)
    hidden = _hidden_labels(Y, settings["seed"]) if is_open else np.zeros(Y.shape[1], dtype=bool)
    learners = [] if fitted is None else list(zip(recipe.learners, fitted, strict=True))
    parts, judged = [], []
    for number, (held, rest) in enumerate(folds(X.shape[0], settings["seed"])):
        with quietly(), progress.stage(f"held-out rows, part {number + 1}"):
            known = [Learner(model, name) for (name, _), model in learners] if number == 0 else []
            before = Part((), ()) if like is None else like.parts[number]
            learned = _without(Y[rest], hidden)
            rest_weights = None if weights is None else weights[rest]
            sources = recipe.fit(X[rest], learned, Z, [*known, *before.sources], rest_weights)
            views = recipe.layout.views(X[held])
            # If every label has rows, those without rows here belong to held-out rows: their texts would tell which.
            allowed = None if is_open else column_counts(learned) > 0
            found = find(sources, views, allowed, recipe.n_jobs, before.by_key(), hidden)
            parts.append(Part(sources, found))
            judged.append((describe(sources, views, found, recipe.n_jobs), Y[held]))
    if not parts:
        return Rehearsal((), None, (1.0, 0.0), {}, None)
    names = [name for name, _ in recipe.learners]
    return Rehearsal(tuple(parts), *_learn(judged, hidden, names, settings, recipe.n_jobs))


def rehearse_with(
    sources: tuple[Source, ...], views: Views, truth: Any, settings: dict[str, Any], n_jobs: int | None
) -> Rehearsal:
    """Learn from rows that fitted sources have not seen, and their true labels."""
    found = find(sources, views, None, n_jobs)
    names = [source.name for source in sources if isinstance(source, Learner) and source.kind == Learner.kind]
    judged = [(describe(sources, views, found, n_jobs), truth)]
    return Rehearsal((), *_learn(judged, np.zeros(truth.shape[1], dtype=bool), names, settings, n_jobs))


def _learn(
    parts: list[tuple[Candidates, Any]],
    hidden: Array,
    learners: list[str],
    settings: dict[str, Any],
    n_jobs: int | None,
) -> tuple[BoostedTrees, tuple[float, float], dict[str, float], HeldOut]:
    """The ranker, the calibration, the gains and the rankings.

    They come from the candidates of held-out rows and their true labels.

    Two rankers learn from half of the rows each and are judged on the other half. Their mean is as good as a ranker
    that learns from all rows, and saves its training.
    """
    features = np.concatenate([found.features for found, _ in parts])
    hits = [is_true(found.pairs.rows, found.pairs.labels, truth) for found, truth in parts]
    right = np.concatenate(hits)
    odd = np.concatenate([found.pairs.rows % 2 == 1 for found, _ in parts])
    settings = {**settings, "min_pairs": int(np.clip(len(right) // _PAIRS_PER_LEAF, 5, _MOST_PAIRS_PER_LEAF))}
    raw, halves = np.empty(len(right)), []
    with progress.task("learning to rank", total=2) as advance:
        for held in (odd, ~odd):
            halves.append(BoostedTrees.fit(features[~held], right[~held], **settings))
            raw[held] = halves[-1].raw(features[held], n_jobs)
            advance(1)
    ends = np.cumsum([len(each) for each in hits])
    by_part = np.split(raw, ends[:-1])
    gains = _gains(parts, hidden, learners, by_part)
    slope, offset = fit_sigmoid(raw, right)
    ranked = [
        HeldOut.of(*found.pairs.best(expit(slope * scores + offset).astype(np.float32), PLACES), truth, hidden)
        for (found, truth), scores in zip(parts, by_part, strict=True)
    ]
    return BoostedTrees.mean(halves), (slope, offset), gains, HeldOut.join(ranked)


def _gains(
    parts: list[tuple[Candidates, Any]], hidden: Array, learners: list[str], raw: list[Array]
) -> dict[str, float]:
    """nDCG@5 on held-out rows without hidden labels; rankers are judged on rows that they did not learn from."""
    truth = sparse.vstack([labels for _, labels in parts], format="csr")
    fair = truth @ hidden.astype(np.float32) == 0  # learners could not find the others' labels

    def judge(ranked: list[Array]) -> float:
        return ndcg_at_k(truth[fair], np.vstack(ranked)[fair], _K)

    gains = {
        name: judge([found.found[number].labels[:, :_K] for found, _ in parts]) for number, name in enumerate(learners)
    }
    ranked = [found.pairs.best(scores, _K)[0] for (found, _), scores in zip(parts, raw, strict=True)]
    return {**gains, BOTH: judge(ranked)}


def _has_new_labels(Y: Any, Z: list[Any]) -> bool:
    """Whether there are labels with a text and without rows."""
    return bool(((column_counts(Y) == 0) & (np.diff(Z[0].indptr) > 0)).any())


def _hidden_labels(Y: Any, seed: int) -> Array:
    """Labels that only their texts can find while the ranker learns, so that it learns to trust texts of new labels.

    The most frequent labels are not hidden, as that would teach the ranker to distrust the learners.
    """
    counts = column_counts(Y)
    known = np.flatnonzero(counts)
    hidden = np.zeros(len(counts), dtype=bool)
    if len(known):
        rare = known[counts[known] <= np.quantile(counts[known], _FREQUENT)]
        hidden[np.random.default_rng(seed).permutation(rare)[: int(_HIDDEN * len(known))]] = True
    return hidden


def _without(Y: Any, hidden: Array) -> Any:
    """The label matrix without the entries of some labels."""
    if not hidden.any():
        return Y
    kept = ~hidden[Y.indices]
    ends = np.concatenate([[0], np.cumsum(kept)])[Y.indptr].astype(Y.indptr.dtype)
    return own(sparse.csr_array((Y.data[kept], Y.indices[kept], ends), shape=Y.shape))
