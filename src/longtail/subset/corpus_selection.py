"""`select_from_corpus`: from a corpus to a few labels that represent all, with what each of them explains."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from longtail.arrays import Array
from longtail.data import Corpus
from longtail.errors import InvalidInput
from longtail.subset.affinity import label_affinity
from longtail.subset.selection import NEED_SCORES, LabelSubset, check_criterion, select_labels

_log = logging.getLogger(__name__)
_COUNT = 100


class SelectedLabel(NamedTuple):
    """A selected label.

    Parameters
    ----------
    label : str
    rows : int
        Number of rows with the label.
    predictability : float or None
        How well the label can be predicted, see `longtail.ridge.label_predictability`; None if it was not computed.
    gain, coverage : float
        As in `LabelSubset`, for this label.
    explains : list of (str, float)
        The other labels that it explains best, with their weights.
    """

    label: str
    rows: int
    predictability: float | None
    gain: float
    coverage: float
    explains: list[tuple[str, float]]


@dataclass(frozen=True)
class CorpusSelection:
    """Labels selected from a corpus.

    Parameters
    ----------
    corpus : Corpus
    subset : LabelSubset
        The selected labels.
    most_frequent : LabelSubset
        As many of the most frequent labels, for comparison.
    scores : array of n_all_labels or None
        The predictability of each label; None where the criterion does not use it.
    weights : csr_array of shape (n_all_labels, n_all_labels)
        ``weights[i, k]`` says how much label k explains label i.
    """

    corpus: Corpus
    subset: LabelSubset
    most_frequent: LabelSubset
    scores: Array | None
    weights: Any

    def labels(self, n_explained: int = 3) -> list[SelectedLabel]:
        """The selected labels in order of selection, each with at most `n_explained` labels that it explains best."""
        names, counts = self.corpus.label_names, self.corpus.label_counts
        columns = sparse.csc_array(self.weights)
        selected = []
        for place, label in enumerate(self.subset.labels.tolist()):
            part = slice(columns.indptr[label], columns.indptr[label + 1])
            best = np.lexsort((columns.indices[part], -columns.data[part]))[:n_explained]
            others, shares = columns.indices[part][best].tolist(), columns.data[part][best].tolist()
            selected.append(
                SelectedLabel(
                    names[label],
                    int(counts[label]),
                    None if self.scores is None else float(self.scores[label]),
                    float(self.subset.gains[place]),
                    float(self.subset.coverage[place]),
                    [(names[other], share) for other, share in zip(others, shares, strict=True)],
                )
            )
        return selected


def select_from_corpus(
    corpus: Corpus,
    n_labels: int | None = None,
    features: Any = None,
    *,
    criterion: str | None = None,
    affinity: str = "co-occurrence",
    penalty: float = 0.1,
    score_weight: float | None = None,
    random_state: int = 0,
    n_jobs: int | None = None,
) -> CorpusSelection:
    """Select labels of a corpus that represent all of them.

    Parameters
    ----------
    corpus : Corpus
    n_labels : int or None
        How many to select; None selects 100, or all if there are fewer.
    features : TextFeatures, RowScaling, FeatureOptions or None
        Features to predict labels from, as in `longtail.text.fit_features`.
    criterion : str or None
        See `select_labels`. None is "predictable cut", or "penalised cut" if all texts or features are empty.
    affinity : {"co-occurrence", "conditional", "self-representation"}
        See `label_affinity`.
    penalty, score_weight, random_state
        See `select_labels`.
    n_jobs : int or None
        Threads; None uses every core.

    Returns
    -------
    CorpusSelection

    Examples
    --------
    >>> texts = ["red apples", "ripe pears", "grey sky", "rain"]
    >>> labels = [["fruit", "apple"], ["fruit", "pear"], ["weather", "sky"], ["weather", "rain"]]
    >>> found = select_from_corpus(Corpus.from_lists(texts, labels), 2, criterion="penalised cut")
    >>> for selected in found.labels(n_explained=1):
    ...     print(selected.label, selected.rows, f"{selected.coverage:.2f}", selected.explains)
    fruit 2 0.50 [('apple', 0.707...)]
    weather 2 1.00 [('rain', 0.707...)]
    """
    if not corpus.n_labels:
        raise InvalidInput(f"there are {corpus.n_rows} rows and no labels to select from", code="no_labels")
    n_labels = min(_COUNT, corpus.n_labels) if n_labels is None else n_labels
    if criterion is None and not _has_features(corpus):
        _log.info("there are no texts or features to predict labels from: selecting by penalised cut")
        criterion = "penalised cut"
    criterion = check_criterion("predictable cut" if criterion is None else criterion)
    scores = None
    if criterion in NEED_SCORES:
        scores = _predictability(corpus, features, criterion, random_state, n_jobs)
    found = label_affinity(corpus.labels, affinity, n_jobs=n_jobs)
    subset = select_labels(
        corpus.labels,
        n_labels,
        criterion=criterion,
        affinity=found,
        penalty=penalty,
        scores=scores,
        score_weight=score_weight,
        random_state=random_state,
    )
    most_frequent = select_labels(corpus.labels, n_labels, criterion="frequency", affinity=found)
    return CorpusSelection(corpus, subset, most_frequent, scores, found.weights)


def _has_features(corpus: Corpus) -> bool:
    if corpus.texts is not None:
        return any(text.strip() for text in corpus.texts)
    return bool(corpus.features.nnz)


def _predictability(corpus: Corpus, features: Any, criterion: str, random_state: int, n_jobs: int | None) -> Array:
    # Selecting by labels alone needs none of these, and they load scikit-learn.
    from longtail.ridge import label_predictability
    from longtail.text import fit_features

    if not _has_features(corpus):
        raise InvalidInput(
            f"the criterion {criterion!r} needs texts or features, and the corpus has none", code="no_features"
        )
    _, X = fit_features(features, corpus)
    return label_predictability(X, corpus.labels, n_jobs=n_jobs, random_state=random_state)
