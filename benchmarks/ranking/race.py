"""Does the race choose well: every candidate is trained on all training rows and judged on the test rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sklearn.base import clone

from benchmarks.child import processor_seconds
from benchmarks.data import judge
from benchmarks.ranking.default import DefaultRun
from benchmarks.samples import Split
from benchmarks.timing import verdict
from longtail.choice import Entrant, entrants
from longtail.tagger.matching import SUBWORDS
from longtail.text import TextFeatures, fit_features, inputs_of
from longtail_papers.common import Cell, Column, Table

BAR = 0.5  # points of nDCG@5 that the chosen learner may be worse than the best candidate
WORDS, SUBWORD_FEATURES = "words", "words and their parts"
_K = 5


@dataclass(frozen=True)
class Candidate:
    """A learner, trained on all training rows.

    `ndcg` is in percent, and None if the learner was not trained because it would take too long.
    """

    features: str
    learner: str
    estimated_seconds: float
    processor_seconds: float | None = None
    ndcg: float | None = None


def train_candidates(name: str, split: Split, run: DefaultRun, threads: int, most: float) -> Iterator[Candidate]:
    """Train all candidates on all features that raced, except those that are expected to take too long.

    Parameters
    ----------
    most : float
        Expected processor seconds beyond which a candidate is not trained.
    """
    corpus = split.train.with_label_names(split.train.label_names[: split.n_learnable])
    first, X = fit_features(None, corpus)
    variants: dict[str, tuple[Any, Any]] = {WORDS: (first, X)}
    if isinstance(first, TextFeatures) and run.race is not None and run.race.feature_standings:
        parted = clone(first).set_params(subwords=SUBWORDS)
        variants[SUBWORD_FEATURES] = parted, parted.fit_transform(corpus.texts or ())
    for features, (fitted, X) in variants.items():
        X_test = fitted.transform(inputs_of(split.test, fitted))
        for entrant in entrants(X, corpus.labels, features, 0, threads):
            if entrant.seconds > most:
                yield Candidate(features, entrant.name, entrant.seconds)
            else:
                yield _train(name, split, entrant, X, corpus.labels, X_test)


def _train(name: str, split: Split, entrant: Entrant, X: Any, Y: Any, X_test: Any) -> Candidate:
    worked = processor_seconds()
    model = clone(entrant.estimator).fit(X, Y)
    taken = processor_seconds() - worked
    figures = judge(name, split.test.labels, Y, model.predict_topk(X_test, _K)[0])
    return Candidate(entrant.features, entrant.name, entrant.seconds, taken, figures["nDCG@5"])


def is_chosen(candidate: Candidate, run: DefaultRun) -> bool:
    return candidate.learner == run.learner and has_chosen_features(candidate, run)


def has_chosen_features(candidate: Candidate, run: DefaultRun) -> bool:
    """Whether it learned from the features that won; learners race only on these."""
    return candidate.features == chosen_features(run)


def chosen_features(run: DefaultRun) -> str:
    return WORDS if run.race is None else run.race.features


def candidates_table(title: str, found: Sequence[Candidate], run: DefaultRun) -> Table:
    """All candidates, best first; the one that the race chose is marked."""
    columns = (
        *(Column("features"), Column("learner"), Column("expected CPU s", ".1f"), Column("CPU s", ".1f")),
        *(Column("nDCG@5", ".2f"), Column("note")),
    )
    rows: list[tuple[Cell, ...]] = []
    for each in sorted(found, key=lambda each: -(each.ndcg or 0)):
        notes = ["**chosen**"] if is_chosen(each, run) else []
        if run.race is not None and each.learner in run.race.left_out and has_chosen_features(each, run):
            notes.append("left out of the race")
        notes += ["not trained: it would take too long"] if each.ndcg is None else []
        cells = each.features, each.learner, each.estimated_seconds, each.processor_seconds, each.ndcg
        rows.append((*cells, "; ".join(notes)))
    return Table(title, columns, rows)


@dataclass(frozen=True)
class Outcome:
    """The race on one corpus, beside the best candidate; `default` has the metrics of the whole default."""

    title: str
    run: DefaultRun
    candidates: Sequence[Candidate]
    default: dict[str, float]

    def cells(self) -> tuple[Cell, ...]:
        trained = [each for each in self.candidates if each.ndcg is not None]
        chosen = next((each for each in trained if is_chosen(each, self.run)), None)
        best = max(trained, key=lambda each: each.ndcg or 0)
        behind = None if chosen is None else (best.ndcg or 0) - (chosen.ndcg or 0)
        return (
            *(self.title, self.run.learner, chosen_features(self.run), chosen.ndcg if chosen else None),
            *(best.learner, best.features, best.ndcg, behind),
            "not measured" if behind is None else verdict(behind <= BAR),
            self.default["nDCG@5"],
            *(self.run.race and self.run.race.seconds, self.run.seconds, self.run.processor_seconds),
        )


def race_table(outcomes: Sequence[Outcome]) -> Table:
    """One line for each corpus."""
    columns = (
        *(Column("data set"), Column("chosen"), Column("features"), Column("nDCG@5", ".2f")),
        *(Column("best"), Column("features of the best"), Column("nDCG@5 of the best", ".2f"), Column("behind", ".2f")),
        *(Column(f"at most {BAR:g} behind"), Column("nDCG@5 of the default", ".2f")),
        *(Column("announced s, at most", ".0f"), Column("measured s", ".0f"), Column("CPU s", ".0f")),
    )
    return Table("The choice", columns, [outcome.cells() for outcome in outcomes])
