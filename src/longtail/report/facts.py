"""`gather`: the facts of a report, computed from a model and rows with known labels. `page` renders them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from longtail import progress
from longtail.data import Corpus
from longtail.errors import InvalidInput
from longtail.estimator import Estimator, HeadDiagnostics
from longtail.metrics import (
    Band,
    ConfusedPair,
    Interval,
    Judgement,
    LabelScores,
    Mistakes,
    Reliability,
    Report,
    evaluate,
    frequency_bands,
    intervals_of,
    inverse_propensity,
    reliability,
)
from longtail.report.examples import Example, choose_examples, kinds_of_rows
from longtail.tagger import Decision, Tagger

_MIN_TRUE = 5
_INSTEAD = 3
_UNKNOWN_NAMED = 10


@dataclass(frozen=True)
class ReportOptions:
    """What a report shows.

    Parameters
    ----------
    ks : tuple of int
        Evaluate the top k labels. All but the table of metrics use the largest k.
    propensity : tuple of float
        Constants of the propensity model.
    worst, pairs, examples : int
        Maximum number of worst labels, of confused pairs, and of example documents.
    """

    ks: tuple[int, ...] = (1, 3, 5)
    propensity: tuple[float, float] = (0.55, 1.5)
    worst: int = 20
    pairs: int = 20
    examples: int = 10


@dataclass(frozen=True)
class WorstLabel:
    """A label with a low F1: its counts, and the wrong labels predicted where it was missed."""

    label: int
    train_count: int
    true: int
    given: int
    found: int
    f1: float
    instead: tuple[ConfusedPair, ...]


@dataclass(frozen=True)
class Unknown:
    """Labels of the test set that are not in the training set.

    Parameters
    ----------
    n_labels, n_pairs : int
        The number of such labels, and of true (row, label) pairs with them.
    n_rows : int
        Rows with no other labels.
    frequent : tuple of (label id, number of true rows)
    """

    n_labels: int
    n_pairs: int
    n_rows: int
    frequent: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Facts:
    """The content of a report. Label ids are positions in `label_names`."""

    options: ReportOptions
    label_names: Sequence[str]
    learner: str
    takes_texts: bool
    gives_probabilities: bool
    decision: Decision | None
    gives_one: bool
    n_train_rows: int
    n_known_labels: int
    n_pairs: int
    report: Report
    intervals: dict[int, dict[str, Interval]]
    reliability: Reliability
    bands: tuple[Band, ...]
    worst: tuple[WorstLabel, ...]
    min_true: int
    n_candidates: int
    n_never_found: int
    pairs: tuple[ConfusedPair, ...]
    any_confused: bool
    heads: HeadDiagnostics | None
    unknown: Unknown
    n_rows_without_features: int
    kinds: dict[str, int]
    examples: tuple[Example, ...]

    @property
    def k(self) -> int:
        """The largest k."""
        return self.report.ks[-1]


def gather(tagger: Tagger, corpus: Corpus, options: ReportOptions | None = None) -> Facts:
    """Rank the labels of every row and compare the ranking with the truth; the arguments are those of `make_report`."""
    if corpus.labels.nnz == 0:
        raise InvalidInput("no row has a label; a report needs rows with known labels")
    options = options or ReportOptions()
    X, truth, names, counts = tagger.align(corpus)
    k = max(options.ks)
    found = tagger.rank_rows(X, k)
    top, scores = found.labels[:, :k], found.scores[:, :k]
    n_known = len(tagger.label_names_)
    weights = inverse_propensity(counts, tagger.n_rows_, *options.propensity)
    judgement = Judgement.of(truth, top, weights)
    # Labels that the model does not know are only counted.
    known = Judgement(judgement.truth[:, :n_known], judgement.top_labels, judgement.hits)
    with progress.task("judging", total=4) as advance:
        report = evaluate(
            truth,
            found.labels,
            ks=options.ks,
            inverse_propensity=weights,
            train_label_counts=counts,
            single_label=tagger.is_single_label_ and corpus.is_single_label,
            scores=found.scores,
            given=found.given,
        )
        if not tagger.scores_are_probabilities:  # as Tagger.evaluate does
            report = replace(report, calibration_error=None)
        intervals = {each: intervals_of(judgement, each) for each in report.ks}
        advance(1)
        places = top >= 0
        calibration = reliability(scores[places], judgement.hits[places])
        by_label = LabelScores.of(known, k)
        advance(1)
        mistakes = Mistakes(known, k)
        confused = mistakes.pairs(max(1, options.pairs))
        advance(1)
        # If no label has enough true rows, all labels with one are judged.
        min_true = _MIN_TRUE if by_label.true.max(initial=0) >= _MIN_TRUE else 1
        worst_labels = tuple(
            WorstLabel(
                label,
                int(counts[label]),
                int(by_label.true[label]),
                int(by_label.given[label]),
                int(by_label.found[label]),
                float(by_label.f1[label]),
                tuple(mistakes.of(label, _INSTEAD)),
            )
            for label in by_label.worst(options.worst, min_true).tolist()
        )
        advance(1)
    candidates = by_label.true >= min_true
    return Facts(
        options=options,
        label_names=names,
        learner=type(tagger.estimator_).__name__,
        takes_texts=tagger.takes_texts,
        gives_probabilities=tagger.scores_are_probabilities,
        decision=tagger.decision_,
        gives_one=tagger.gives_one,
        n_train_rows=tagger.n_rows_,
        n_known_labels=n_known,
        n_pairs=int(judgement.truth.nnz),
        report=report,
        intervals=intervals,
        reliability=calibration,
        bands=frequency_bands(by_label, tagger.label_counts_),
        worst=worst_labels,
        min_true=min_true,
        n_candidates=int(candidates.sum()),
        n_never_found=int(np.count_nonzero(candidates & (by_label.found == 0))),
        pairs=tuple(confused[: options.pairs]),
        any_confused=bool(confused),
        heads=_heads(tagger.estimator_, X, truth[:, :n_known], names, options.pairs),
        unknown=_unknown(judgement, n_known),
        n_rows_without_features=int(np.count_nonzero(np.diff(X.indptr) == 0)),
        kinds={kind: int(mask.sum()) for kind, mask in kinds_of_rows(judgement).items()},
        examples=choose_examples(tagger, corpus, X, judgement, scores, options.examples),
    )


def _heads(learner: Estimator, X: Any, known: Any, names: Sequence[str], most: int) -> HeadDiagnostics | None:
    """What a learner with codes says of their digits; None without codes, or if it knows no label of the rows."""
    if not learner.diagnoses:
        return None
    try:
        return learner.diagnose(X, known, names, most)
    except InvalidInput as error:
        if error.code != "no_labels":
            raise
        return None


def _unknown(judgement: Judgement, n_known: int) -> Unknown:
    sizes = judgement.label_sizes[n_known:]
    truth = judgement.truth
    rows = np.repeat(np.arange(judgement.n_rows), judgement.row_sizes)
    known = np.bincount(rows[truth.indices < n_known], minlength=judgement.n_rows)
    frequent = np.argsort(-sizes, kind="stable")[:_UNKNOWN_NAMED]
    return Unknown(
        n_labels=int(np.count_nonzero(sizes)),
        n_pairs=int(sizes.sum()),
        n_rows=int(np.count_nonzero((known == 0) & (judgement.row_sizes > 0))),
        frequent=tuple((n_known + label, int(sizes[label])) for label in frequent.tolist() if sizes[label]),
    )
