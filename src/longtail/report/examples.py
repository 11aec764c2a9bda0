"""Example documents: right, partly right and wrong ones, chosen by score, not at random."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from longtail.arrays import Array
from longtail.data import Corpus
from longtail.errors import InvalidInput
from longtail.metrics import Judgement
from longtail.tagger import Reason, TagExplanation, Tagger

RIGHT, PARTLY, WRONG = "right", "partly right", "wrong"
_TRUE_NAMED = 12
_FEATURES_NAMED = 12
_EXPLAINED = 3
_REASONS = 5
_EVIDENCE = 3
_TEXT_READ = 4000


class Why(NamedTuple):
    """What counts for a predicted label: words and, for models of two stages, evidence of the second stage."""

    reasons: tuple[Reason, ...] = ()
    evidence: tuple[Reason, ...] = ()
    has_rows: bool = True


class Given(NamedTuple):
    """A predicted label and, if it is wrong, what counts for it."""

    label: int
    score: float
    right: bool
    why: Why = Why()


@dataclass(frozen=True)
class Example:
    """A document, its true labels and its predicted labels.

    Parameters
    ----------
    kind : str
        "right": the true labels come first, as many as fit into k places. "wrong": none of them is among the k best.
    name : str
    text : str
        The text, cut if it is long, or the features.
    true : tuple of int
        Label ids, at most twelve.
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
    """Choose at most `most` documents: of each kind, those with the highest and the lowest best score."""
    chosen = choose_rows(judgement, scores[:, 0], most)
    return tuple(_example(tagger, corpus, X, judgement, scores, row, kind) for kind, row in chosen)


def kinds_of_rows(judgement: Judgement) -> dict[str, Array]:
    """Masks of the rows that are right, partly right and wrong. A row without labels is none of them."""
    k = judgement.hits.shape[1]
    sizes, hits = judgement.row_sizes, judgement.hits
    wanted = np.minimum(sizes, k)
    first = np.count_nonzero(hits & (np.arange(k) < wanted[:, None]), axis=1)
    labelled = sizes > 0
    right = labelled & (first == wanted)
    wrong = labelled & ~hits.any(axis=1)
    return {RIGHT: right, PARTLY: labelled & ~right & ~wrong, WRONG: wrong}


def choose_rows(judgement: Judgement, best_scores: Array, most: int) -> list[tuple[str, int]]:
    """The kind and number of each row to show: a third of each kind, the highest score first, ties to the first row.

    Where one kind has too few rows, the others get its places, the wrong rows first.
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
        why = Why()
        if not hit and explained < _EXPLAINED:
            why, explained = _why(tagger, corpus, row, label), explained + 1
        given.append(Given(label, score, hit, why))
    name = f"row {row + 1}" if corpus.row_names is None else corpus.row_names[row]
    text = _features(X[[row]]) if corpus.texts is None else corpus.texts[row][:_TEXT_READ]
    return Example(kind, name, text, tuple(true[:_TRUE_NAMED].tolist()), len(true), tuple(given))


def _why(tagger: Tagger, corpus: Corpus, row: int, label: int) -> Why:
    rows: Any = corpus.texts if tagger.takes_texts else corpus.features
    try:
        found = tagger.explain(rows[row] if tagger.takes_texts else rows[[row]], tagger.label_names_[label])
    except InvalidInput as error:
        if error.code != "cannot_explain":
            raise
        return Why()
    kind = "" if tagger.takes_texts else "feature "
    words = tuple(
        Reason(kind + reason.readable, reason.contribution)
        for reason in found.reasons[:_REASONS]
        if reason.contribution > 0
    )
    return Why(words, strongest_evidence(found), has_rows=found.n_rows != 0 or bool(found.steps))


def strongest_evidence(found: TagExplanation) -> tuple[Reason, ...]:
    """The evidence of a second stage that counts most for a label; the readings of its text count together."""
    sums: dict[str, float] = {}
    for each in found.evidence:
        if each.value is not None:
            name = re.sub(r", reading \d+", "", each.name)
            sums[name] = sums.get(name, 0.0) + each.contribution
    ranked = sorted((Reason(*item) for item in sums.items()), key=lambda each: -each.contribution)
    return tuple(each for each in ranked[:_EVIDENCE] if each.contribution > 0)


def _features(x: Any) -> str:
    """The largest features of a row, by id."""
    order = np.argsort(-np.abs(x.data), kind="stable")[:_FEATURES_NAMED]
    shown = ", ".join(f"{feature}: {value:.3g}" for feature, value in zip(x.indices[order], x.data[order], strict=True))
    others = f" and {x.nnz - len(order):,} others" if x.nnz > len(order) else ""
    return f"features {shown}{others}" if shown else "no features"
