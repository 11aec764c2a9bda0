"""Labels that are known only by name: some labels are hidden from the training rows, and their names stay.

The second model learns from the same rows and does not know the names of the hidden labels. It tells what the names
cost the other labels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.ranking.default import columns_of, train_default
from benchmarks.samples import Split
from benchmarks.timing import verdict
from longtail.arrays import Array
from longtail.data import Corpus
from longtail.errors import InvalidInput
from longtail.metrics import precision_at_k
from longtail_papers.common import Column, Table

SHARE, SEED, PLACES = 0.05, 0, 10
LEAST_RECALL, MOST_LOSS = 0.08, 0.2  # a share, and points of P@5


@dataclass(frozen=True)
class Hidden:
    """The figures of both models.

    Parameters
    ----------
    n_labels, n_pairs, n_named : int
        Number of hidden labels, of pairs of a test row and a hidden label that it has, and of labels that compete.
    recall : float
        Share of these pairs that the model with names has among its first 10 labels.
    with_names, without_names : float
        P@5 of the other labels, in percent.
    """

    n_labels: int
    n_pairs: int
    n_named: int
    recall: float
    with_names: float
    without_names: float

    def table(self) -> Table:
        loss = self.without_names - self.with_names
        columns = Column("figure"), Column("measured", ".2f"), Column("bar")
        return Table(
            "Hidden labels",
            columns,
            [
                ("hidden labels", f"{self.n_labels:,}", ""),
                ("names that compete", f"{self.n_named:,}", ""),
                ("test pairs with a hidden label", f"{self.n_pairs:,}", ""),
                (
                    f"recall at {PLACES} of hidden labels, in percent",
                    100 * self.recall,
                    f"at least {100 * LEAST_RECALL:g}: {verdict(self.recall >= LEAST_RECALL)}",
                ),
                ("P@5 of the other labels, with the names", self.with_names, ""),
                ("P@5 of the other labels, without the names", self.without_names, ""),
                ("loss, in points", loss, f"at most {MOST_LOSS:g}: {verdict(loss <= MOST_LOSS)}"),
            ],
        )


def choose_hidden(split: Split, share: float = SHARE, seed: int = SEED) -> Array:
    """A mask of the columns to hide: a share of the labels that can be learned and have texts."""
    if split.train.label_texts is None:
        raise InvalidInput("labels can be hidden only if they have texts; this data set has no vocabulary")
    named = [label for label in range(split.n_learnable) if split.train.label_texts[label]]
    chosen = np.random.default_rng(seed).permutation(named)[: round(share * len(named))]
    hidden = np.zeros(split.train.n_labels, dtype=bool)
    hidden[chosen] = True
    return hidden


def without_labels(corpus: Corpus, hidden: Array) -> Corpus:
    """The same rows and label texts, without the hidden labels on the rows."""
    return replace(corpus, labels=_keep(corpus.labels, ~hidden))


def without_texts(corpus: Corpus, hidden: Array) -> Corpus:
    """The same rows; the hidden labels have no texts, so that training drops them."""
    texts = corpus.label_texts or ()
    return replace(corpus, label_texts=[() if gone else own for gone, own in zip(hidden, texts, strict=True)])


def _keep(Y: Any, kept: Array) -> Any:
    return sparse.csr_array(Y @ sparse.diags_array(kept.astype(np.float32), format="csr"))


def measure_hidden(split: Split, threads: int, share: float = SHARE) -> Hidden:
    """Train both models and compare them on the test rows."""
    hidden = choose_hidden(split, share)
    corpus = without_labels(split.train, hidden)
    truth = split.test.labels
    others = _positive(_keep(truth, ~hidden))
    ranked, n_named = {}, 0
    for named in (True, False):
        rows = corpus if named else without_texts(corpus, hidden)
        tagger = train_default(rows, threads).tagger
        top = tagger.predict_topk(split.test.texts, PLACES)[0]
        ranked[named] = columns_of(tagger, rows)[top]
        n_named = max(n_named, len(tagger.label_names_))
    pairs = _positive(_keep(truth, hidden))
    return Hidden(
        n_labels=int(hidden.sum()),
        n_pairs=pairs.nnz,
        n_named=n_named,
        recall=recall_of_pairs(pairs, ranked[True]),
        with_names=100 * precision_at_k(others, ranked[True], 5),
        without_names=100 * precision_at_k(others, ranked[False], 5),
    )


def _positive(Y: Any) -> Any:
    Y.eliminate_zeros()
    return Y


def recall_of_pairs(truth: Any, top: Array) -> float:
    """The share of all true pairs of row and label that the ranking contains.

    >>> recall_of_pairs(sparse.csr_array([[0, 1, 1], [1, 0, 0]]), np.array([[1, 0], [2, -1]]))
    0.3333333333333333
    """
    rows = np.repeat(np.arange(truth.shape[0]), np.diff(truth.indptr))
    hits = (top[rows] == truth.indices[:, None]).any(axis=1)
    return float(hits.mean()) if len(hits) else 0.0
