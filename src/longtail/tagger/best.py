"""The default training: features and learners race on held-out rows, and a second stage ranks labels again."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from longtail.choice import Entrant, HeldOut, LearnerOptions, Race, Standing, entrants, folds, run_race, seconds_of
from longtail.data import Corpus
from longtail.errors import NotEnoughMemory
from longtail.estimator import Estimator
from longtail.parallel import resolve_jobs
from longtail.printable import counted
from longtail.ranking import BOTH, TwoStage, joined_learner
from longtail.tagger.deciding import rank_held_out
from longtail.tagger.encoding import WIDTH, Encoder, choose_encoder, with_vectors
from longtail.tagger.matching import SUBWORDS, label_readings, texts_of_labels, with_matcher
from longtail.tagger.preparation import tell_idle_texts, with_labels_that_occur
from longtail.text import FeatureOptions, TextFeatures, fit_features

_log = logging.getLogger(__name__)

_PATIENCE = 12.5  # times the estimated time of one label tree
_LEAST_SECONDS = 50.0
# Estimated processor time of a second stage: the ranker, the candidates of held-out rows, and indexing.
_SECONDS_TO_RANK, _SECONDS_OF_A_ROW, _SECONDS_OF_AN_ENTRY = 1.0, 6e-4, 5e-7
_MOST_ENCODING = 600.0  # processor seconds that an encoder may take unless the user sets a limit
_SAMPLE = 5000  # rows that decide on the features, at least
_WORTH = 1.01  # vectors make the model larger and slower, so they must raise nDCG@5 by this factor
_SHORT = 100  # features of a row up to which subwords are tried
_WORDS, _SUBWORDS = "words", "words and their parts"


@dataclass(frozen=True)
class RaceSummary:
    """What was tried on held-out rows; it keeps no fitted models.

    Parameters
    ----------
    features : str
        The features that won; the learners raced on these.
    feature_standings : tuple of Standing
        The result of a label tree on each kind of features; empty if there was only one kind.
    standings : tuple of Standing
        One for each learner and round, in the order of training, with its nDCG@5 on the held-out rows.
    winner : str
        The learner that won.
    left_out : tuple of str
        Learners that would have taken too long.
    seconds : float
        The time that the whole training was expected to take at most, by the clock on the wall.
    """

    features: str
    feature_standings: tuple[Standing, ...]
    standings: tuple[Standing, ...]
    winner: str
    left_out: tuple[str, ...]
    seconds: float


class Trained(NamedTuple):
    """Fitted features and estimator, the corpus with the labels that it knows, the reasons, the race, and the rows.

    Also the rankings of held-out rows, if they are wanted.
    """

    features: Any
    estimator: Estimator
    corpus: Corpus
    reasons: list[str]
    race: RaceSummary
    X: Any
    held_out: HeldOut | None


class _Variant(NamedTuple):
    """One way to make features, and the rows that it makes."""

    name: str
    features: Any
    X: Any


def train_best(features: Any, corpus: Corpus, options: LearnerOptions, decides: bool = True) -> Trained:
    """Train what is best on held-out rows within the time that the options allow.

    Parameters
    ----------
    features : TextFeatures, RowScaling, FeatureOptions or None
        None and `FeatureOptions` without ``subwords`` let the race decide whether to use parts of words.
    corpus : Corpus
        With at least 1,000 rows.
    options : LearnerOptions
    decides : bool
        Whether rankings of held-out rows are wanted, to decide how many labels a row gets.
    """
    words, X = fit_features(features, corpus)
    label_texts = None
    if isinstance(words, TextFeatures) and not options.fast:
        corpus = with_labels_that_occur(corpus, keep_texts=True)
        label_texts = texts_of_labels(corpus, words)
    if label_texts is None:
        tell_idle_texts(corpus)
        corpus = with_labels_that_occur(corpus)
    variants = [_Variant(_WORDS, words, X)]
    if _may_use_subwords(features, words, X):
        parted = clone(words).set_params(subwords=SUBWORDS)
        variants.append(_Variant(_SUBWORDS, parted, parted.fit_transform(corpus.texts or (), also=label_texts)))
    parts = folds(corpus.n_rows, options.random_state)
    variant, on_features = _best_variant(variants, corpus, parts[0], options)
    ranking = _SECONDS_TO_RANK + _SECONDS_OF_A_ROW * sum(len(held) for held, _ in parts) + _SECONDS_OF_AN_ENTRY * X.nnz
    two_stages = _affords_second_stage(ranking, options)
    trainings = 1 + len(parts) if two_stages else 2
    tree, jobs = _tree(variant, corpus, options), resolve_jobs(options.n_jobs)
    limit = _limit(tree, options)
    encoder, besides = None, 0.0
    if two_stages:
        encoder = _encoder(variant, corpus, label_texts, trainings, limit, options)
        # Ranking hardly uses more than one thread.
        besides = ranking + (0.0 if encoder is None else encoder.seconds / jobs)
        if options.patience is not None:
            limit = max(0.0, limit - jobs * besides)
    announced = max(1.0, besides + max(limit, trainings * tree.seconds) / jobs)
    found = _race(variant, corpus, parts, limit, announced, trainings, options)
    race = RaceSummary(
        variant.name,
        on_features,
        found.standings,
        found.winner.name,
        tuple(entrant.name for entrant in found.left_out),
        announced,
    )
    if two_stages:
        trained = _second_stage(variant, corpus, found, race, label_texts, encoder, options)
        if trained is not None:
            return trained
    reason = f"learner: {race.winner}, the best on held-out rows"
    _log.info(reason)
    corpus = with_labels_that_occur(corpus)
    estimator = clone(found.winner.estimator).fit(variant.X, corpus.labels, sample_weight=corpus.weights)
    held_out = None
    if decides:
        fitted = [found.fitted] if found.fitted.n_labels_ == corpus.n_labels else []
        held_out = rank_held_out(
            estimator, variant.X, corpus.labels, options.random_state, fitted, weights=corpus.weights
        )
    return Trained(variant.features, estimator, corpus, [reason], race, variant.X, held_out)


def _affords_second_stage(seconds: float, options: LearnerOptions) -> bool:
    """Whether a second stage is wanted, and takes no more than half of the time that the user gave."""
    if options.fast or options.patience is None:
        return not options.fast
    if seconds <= options.patience / 2:
        return True
    _log.info("one stage: a second one would take about %.0f s more", seconds)
    return False


def _encoder(
    variant: _Variant,
    corpus: Corpus,
    label_texts: list[str] | None,
    trainings: int,
    limit: float,
    options: LearnerOptions,
) -> Encoder | None:
    """The encoder to try, if any; its seconds include those of learning from its vectors."""
    if options.encoder is None:
        return None
    learner = joined_learner(options.random_state, options.n_jobs)
    learning = trainings * seconds_of(learner, variant.X, corpus.labels, width=WIDTH)
    most = _MOST_ENCODING if options.patience is None else limit / 2
    found = choose_encoder(corpus, label_texts, options, max(0.0, most - learning))
    return None if found is None else found._replace(seconds=found.seconds + learning)


def _may_use_subwords(features: Any, words: Any, X: Any) -> bool:
    undecided = features is None or (isinstance(features, FeatureOptions) and features.subwords is None)
    return undecided and isinstance(words, TextFeatures) and X.nnz <= _SHORT * X.shape[0]


def _entrants(variant: _Variant, corpus: Corpus, options: LearnerOptions) -> list[Entrant]:
    return entrants(variant.X, corpus.labels, variant.name, options.random_state, options.n_jobs)


def _tree(variant: _Variant, corpus: Corpus, options: LearnerOptions) -> Entrant:
    """The single label tree, which all else is compared with."""
    found = _entrants(variant, corpus, options)
    return next((each for each in found if each.name == "label tree"), found[0])


def _limit(tree: Entrant, options: LearnerOptions) -> float:
    """Processor seconds that the whole training may take."""
    if options.patience is not None:
        return options.patience * resolve_jobs(options.n_jobs)
    return max(_LEAST_SECONDS, _PATIENCE * tree.seconds)


def _best_variant(
    variants: list[_Variant], corpus: Corpus, rows: tuple[Any, Any], options: LearnerOptions
) -> tuple[_Variant, tuple[Standing, ...]]:
    """The features with which a single tree is best after training on a sample, and how good it is on each kind."""
    if len(variants) == 1:
        return variants[0], ()
    held, rest = rows
    sample = np.random.default_rng(options.random_state).permutation(rest)[: max(_SAMPLE, len(rest) // 8)]
    found = [
        run_race(each.X, corpus.labels, [_tree(each, corpus, options)], [(held, sample)], 0, 0, weights=corpus.weights)
        for each in variants
    ]
    standings = tuple(each.standings[-1] for each in found)
    best = variants[int(np.argmax([each.ndcg for each in standings]))]
    told = ", ".join(f"{each.features} {100 * each.ndcg:.1f}" for each in standings)
    _log.info("features: %s (nDCG@5 of a label tree on held-out rows: %s)", best.name, told)
    return best, standings


def _race(
    variant: _Variant,
    corpus: Corpus,
    parts: list[tuple[Any, Any]],
    limit: float,
    announced: float,
    trainings: int,
    options: LearnerOptions,
) -> Race:
    """The race of learners on the chosen features, told with its time and its table."""
    entered = _entrants(variant, corpus, options)
    jobs = counted(resolve_jobs(options.n_jobs), "thread")
    _log.info("trying %s on %s held-out rows", counted(len(entered), "learner"), f"{len(parts[0][0]):,}")
    _log.info("training should take at most about %.0f s with %s", announced, jobs)
    found = run_race(variant.X, corpus.labels, entered, parts, limit, options.random_state, trainings, corpus.weights)
    if found.left_out:
        _log.info("left out, as they take longer: %s", ", ".join(each.name for each in found.left_out))
    for each in sorted(found.standings, key=lambda each: (-each.n_parts, -each.n_rows, -each.ndcg)):
        told = f"{each.n_rows:,} rows" + (f", mean of {each.n_parts} parts" if each.n_parts > 1 else "")
        _log.info("  %-20s nDCG@5 %.2f after training on %s", each.name, 100 * each.ndcg, told)
    return found


class _Prepared(NamedTuple):
    """A model of two stages that has rehearsed, and what it learns from."""

    features: Any
    X: Any
    readings: list[Any] | None
    model: TwoStage

    @property
    def gain(self) -> float:
        return self.model.gains_[BOTH]


def _second_stage(
    variant: _Variant,
    corpus: Corpus,
    found: Race,
    race: RaceSummary,
    label_texts: list[str] | None,
    encoder: Encoder | None,
    options: LearnerOptions,
) -> Trained | None:
    """A model of two stages if it ranks held-out rows better than the best learner alone."""
    features, X, readings = variant.features, variant.X, None
    if label_texts is not None:
        if variant.name == _WORDS and not features.subwords:
            features, X = with_matcher(features, X, corpus, label_texts)
        readings = label_readings(features, label_texts)
    model = TwoStage(
        [(found.winner.name, found.winner.estimator)],
        learned=variant.X.shape[1],
        random_state=options.random_state,
        n_jobs=options.n_jobs,
    )
    try:
        model.rehearse(X, corpus.labels, readings, [found.fitted], sample_weight=corpus.weights)
    except NotEnoughMemory as error:
        _log.info("one stage, as %s", error)
        return None
    best = _Prepared(features, X, readings, model)
    del model  # what it learned while rehearsing takes memory, and vectors may replace it
    if encoder is not None:
        best = _try_vectors(best, corpus, label_texts, encoder, options)
    alone = max(value for name, value in best.model.gains_.items() if name != BOTH)
    told = f"nDCG@5 on all held-out rows is {100 * best.gain:.2f} with a second stage and {100 * alone:.2f} without"
    if best.gain <= alone:
        _log.info("one stage: %s", told)
        return None
    reason = f"learner: two stages over {race.winner}, as {told}"
    _log.info(reason)
    model = best.model.finish(best.X, corpus.labels, best.readings, sample_weight=corpus.weights)
    return Trained(best.features, model, corpus, [reason], race, best.X, model.held_out_)


def _try_vectors(
    plain: _Prepared, corpus: Corpus, label_texts: list[str] | None, encoder: Encoder, options: LearnerOptions
) -> _Prepared:
    """The same with sentence vectors if they rank held-out rows better, else `plain`."""
    features, X, readings, width = with_vectors(
        plain.features, plain.X, plain.readings, corpus.texts or (), label_texts, encoder, options
    )
    model = TwoStage(**{**plain.model.get_params(deep=False), "dense": width})
    try:
        model.rehearse(X, corpus.labels, readings, like=plain.model, sample_weight=corpus.weights)
    except NotEnoughMemory as error:
        _log.info("sentence vectors: not used, as %s", error)
        return plain
    found = _Prepared(features, X, readings, model)
    told = f"{100 * found.gain:.2f} with them and {100 * plain.gain:.2f} without"
    better = found.gain >= _WORTH * plain.gain
    _log.info("sentence vectors: %s, as nDCG@5 on held-out rows is %s", "used" if better else "not used", told)
    return found if better else plain
