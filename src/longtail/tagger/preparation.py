"""What happens to a corpus before training: rows are held out, and labels and groups that teach nothing are dropped."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TypeVar

import numpy as np

from longtail.arrays import Array
from longtail.data import Corpus, GroupedCorpus
from longtail.errors import InvalidInput
from longtail.printable import counted

_log = logging.getLogger(__name__)

_Any = TypeVar("_Any", Corpus, GroupedCorpus)
_GOLDEN_RATIO = 0x9E3779B97F4A7C15


def hold_out(corpus: Corpus, share: float, seed: int = 0) -> tuple[Corpus, Corpus]:
    """Split a corpus into rows to train on and a share of rows to evaluate on.

    Rows are ordered by a hash of their number and the seed, so the split is the same with every version of NumPy.
    """
    count = round(share * corpus.n_rows)
    if not 0 < count < corpus.n_rows:
        raise InvalidInput(
            f"holding out {share:g} of {corpus.n_rows} rows leaves one part empty; choose another share",
            code="empty_holdout",
        )
    mixed = np.arange(1, corpus.n_rows + 1, dtype=np.uint64) + np.uint64(seed) * np.uint64(corpus.n_rows)
    mixed *= np.uint64(_GOLDEN_RATIO)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    order = np.argsort(mixed ^ (mixed >> np.uint64(31)), kind="stable")
    return corpus.select(np.sort(order[count:])), corpus.select(np.sort(order[:count]))


def with_labels_that_occur(corpus: Corpus) -> Corpus:
    """Drop labels without rows: they cannot be learned, and their constant score of 0 would displace others."""
    if not corpus.label_counts.any():
        raise InvalidInput("no row has a label, so there is nothing to learn", code="no_labels")
    return _without(corpus, corpus.label_counts, "without rows")


def with_group_labels_that_occur(corpus: GroupedCorpus) -> GroupedCorpus:
    """Drop labels that no row can have: those that occur only in empty groups, or in none."""
    occupied = np.repeat(corpus.group_sizes > 0, np.diff(corpus.group_labels.indptr))
    counts = np.bincount(corpus.group_labels.indices[occupied], minlength=corpus.n_labels)
    if not counts.any():
        raise InvalidInput("no group has both rows and labels, so there is nothing to learn", code="no_labels")
    return _without(corpus, counts, "of no group that has rows")


def _without(corpus: _Any, counts: Array, which: str) -> _Any:
    if counts.all():
        return corpus
    names = [name for name, count in zip(corpus.label_names, counts.tolist(), strict=True) if count]
    _log.info("dropped %s %s", counted(corpus.n_labels - len(names), "label"), which)
    return corpus.with_label_names(names)


def without_empty_groups(corpus: GroupedCorpus) -> GroupedCorpus:
    """The same groups, but groups without rows lose their labels, which no row could carry."""
    labels = corpus.group_labels.copy()
    lost = np.flatnonzero((corpus.group_sizes == 0) & (np.diff(labels.indptr) > 0))
    if not len(lost):
        return corpus
    labels.data[np.isin(np.repeat(np.arange(corpus.n_groups), np.diff(labels.indptr)), lost)] = 0
    first = corpus.describe_group(int(lost[0]))
    have = f"{counted(len(lost), 'group')} {'has' if len(lost) == 1 else 'have'}"
    _log.info("%s labels and no rows, for example %s; these labels are dropped", have, first)
    return replace(corpus, group_labels=labels)
