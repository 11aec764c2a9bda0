"""What happens to a corpus before training: rows are held out, and labels without rows are dropped."""

from __future__ import annotations

import logging
from numbers import Real

import numpy as np

from longtail.data import Corpus
from longtail.errors import InvalidInput
from longtail.printable import counted
from longtail.validation import check_whole

_log = logging.getLogger(__name__)

FEWEST_ROWS = 1000  # fewer rows are too few to tell learners apart
_GOLDEN_RATIO = 0x9E3779B97F4A7C15


def hold_out(corpus: Corpus, share: float, seed: int = 0) -> tuple[Corpus, Corpus]:
    """Split a corpus into rows to train on and a share of rows to evaluate on.

    Rows are ordered by a hash of their number and the seed, so the split is the same with every version of NumPy.
    """
    seed = check_whole("random_state", seed, least=0, most=2**32 - 1)
    if not isinstance(share, Real) or not 0 < share < 1:
        raise InvalidInput(f"holdout is {share!r}; expected a share between 0 and 1", code="empty_holdout")
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


def tell_idle_texts(corpus: Corpus) -> None:
    """Say that the texts of labels are not used, if there are any."""
    if corpus.label_texts is not None:
        _log.info(
            "label texts have no effect: they are for two stages, which need at least %s texts", f"{FEWEST_ROWS:,}"
        )


def with_labels_that_occur(corpus: Corpus, *, keep_texts: bool = False) -> Corpus:
    """Drop labels without rows: most learners cannot learn them, and their constant score of 0 would displace others.

    With `keep_texts`, labels that have texts stay, for learners that predict labels from their texts.
    """
    counts = corpus.label_counts
    if not counts.any():
        raise InvalidInput("no row has a label, so there is nothing to learn", code="no_labels")
    kept = counts > 0
    has_texts = keep_texts and corpus.label_texts is not None
    if has_texts:
        kept |= [len(texts) > 0 for texts in corpus.label_texts or ()]
    if kept.all():
        return corpus
    names = [name for name, keep in zip(corpus.label_names, kept.tolist(), strict=True) if keep]
    dropped = counted(corpus.n_labels - len(names), "label")
    _log.info("dropped %s without rows%s", dropped, " and texts" if has_texts else "")
    return corpus.with_label_names(names)
