"""Documents to read: some that are right, some partly, some wrong, chosen by their scores and never at random."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from longtail.arrays import Array
from longtail.data import Corpus
from longtail.errors import LongtailError
from longtail.metrics import Judgement
from longtail.tagger import Tagger

RIGHT, PARTLY, WRONG = "right", "partly right", "wrong"
_TRUE_NAMED = 12
_FEATURES_NAMED = 12
_EXPLAINED = 3
_WORDS = 5
_TEXT_READ = 4000


class Given(NamedTuple):
    """A label that was given, and of a wrong one the words that speak for it."""

    label: int
    score: float
    right: bool
    words: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True)
class Example:
    """A document, its true labels and those it was given.

    Parameters
    ----------
    kind : str
        "right": its true labels, or as many as there are places, come first; "wrong": none of them is among the k best.
    name : str
    text : str
        Its text, the beginning of a long one, or its features.
    true : tuple of int
        Label ids, at most a dozen.
    n_true : int
    given : tuple of Given
        Best first.
    """

    kind: str
    name: str
    text: str
    true: tuple[int, ...]
    n_true: int
    given: tuple[Given, ...]


def choose_examples(
    tagger: Tagger, corpus: Corpus, X: Any, judgement: Judgement, scores: Array, most: int
) -> tuple[Example, ...]:
    """Documents of each kind, those with the highest and the lowest best score, `most` in all where there are."""
    chosen = choose_rows(judgement, scores[:, 0], most)
    return tuple(_example(tagger, corpus, X, judgement, scores, row, kind) for kind, row in chosen)


def kinds_of_rows(judgement: Judgement) -> dict[str, Array]:
    """Which rows are right, partly right and wrong, as masks; a row without labels is none of them."""
    k = judgement.hits.shape[1]
    sizes, hits = judgement.row_sizes, judgement.hits
    wanted = np.minimum(sizes, k)
    first = np.count_nonzero(hits & (np.arange(k) < wanted[:, None]), axis=1)
    labelled = sizes > 0
    right = labelled & (first == wanted)
    wrong = labelled & ~hits.any(axis=1)
    return {RIGHT: right, PARTLY: labelled & ~right & ~wrong, WRONG: wrong}


def choose_rows(judgement: Judgement, best_scores: Array, most: int) -> list[tuple[str, int]]:
    """The kind and the number of each row to show: a third of each kind, the surest first, ties to the first row.

    What one kind has not enough rows for goes to the others, the wrong ones first.
    """
    rows = {kind: np.flatnonzero(mask) for kind, mask in kinds_of_rows(judgement).items()}
    wanted = {RIGHT: most // 3, PARTLY: most - 2 * (most // 3), WRONG: most // 3}
    counts = {kind: min(wanted[kind], len(some)) for kind, some in rows.items()}
    for kind in (WRONG, PARTLY, RIGHT):
        counts[kind] += min(most - sum(counts.values()), len(rows[kind]) - counts[kind])
    chosen: list[tuple[str, int]] = []
    for kind, some in rows.items():
        by_score = some[np.argsort(-best_scores[some], kind="stable")].tolist()
        surest = (counts[kind] + 1) // 2
        least_sure = counts[kind] - surest
        chosen += [(kind, row) for row in by_score[:surest] + by_score[len(by_score) - least_sure :]]
    return chosen


def _example(
    tagger: Tagger, corpus: Corpus, X: Any, judgement: Judgement, scores: Array, row: int, kind: str
) -> Example:
    truth, top, hits = judgement.truth, judgement.top_labels[row], judgement.hits[row]
    true = truth.indices[truth.indptr[row] : truth.indptr[row + 1]]
    given: list[Given] = []
    explained = 0
    for label, score, hit in zip(top.tolist(), scores[row].tolist(), hits.tolist(), strict=True):
        if label < 0:
            break
        words: tuple[tuple[str, float], ...] = ()
        if not hit and explained < _EXPLAINED:
            words, explained = _words(tagger, X[[row]], label), explained + 1
        given.append(Given(label, score, hit, words))
    name = f"row {row + 1}" if corpus.row_names is None else corpus.row_names[row]
    text = _features(X[[row]]) if corpus.texts is None else corpus.texts[row][:_TEXT_READ]
    return Example(kind, name, text, tuple(true[:_TRUE_NAMED].tolist()), len(true), tuple(given))


def _words(tagger: Tagger, x: Any, label: int) -> tuple[tuple[str, float], ...]:
    try:
        found = tagger.estimator_.explain(x, label)
    except LongtailError:
        # A network has no words to its scores.
        return ()
    names = tagger.features_.feature_names_ if tagger.takes_texts else None
    return tuple(
        (f"feature {feature}" if names is None else names[feature], contribution)
        for feature, contribution in zip(
            found.features[:_WORDS].tolist(), found.contributions[:_WORDS].tolist(), strict=True
        )
        if contribution > 0
    )


def _features(x: Any) -> str:
    """The largest features of a row, by number."""
    order = np.argsort(-np.abs(x.data), kind="stable")[:_FEATURES_NAMED]
    shown = ", ".join(f"{feature}: {value:.3g}" for feature, value in zip(x.indices[order], x.data[order], strict=True))
    others = f" and {x.nnz - len(order):,} others" if x.nnz > len(order) else ""
    return f"features {shown}{others}" if shown else "no features"
