"""Rankings of rows, here or in pieces: each worker loads the model from its directory and ranks blocks of rows."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from longtail.arrays import Array
from longtail.errors import InvalidInput
from longtail.store import load
from longtail.trees import is_true
from longtail.work import Piece, Rows, begin, even_ranges

_ROWS = 2**14


class Ranking(NamedTuple):
    """The best labels of each row, their scores, and which of them the learner itself would give."""

    labels: Array
    scores: Array
    given: Array


def rank(estimator: Any, X: Any, k: int, by_rule: bool, choices: dict[str, Any]) -> Ranking:
    """The k best labels of each row; only with `by_rule`, the learner is asked which of them it gives."""
    labels, scores = estimator.predict_topk(X, k, **choices)
    given = labels >= 0
    if by_rule:
        rows, places = np.nonzero(given)
        answers = sparse.csr_array(estimator.predict(X))
        answers.sort_indices()
        given[rows, places] = is_true(rows, labels[rows, places], answers)
    return Ranking(labels, scores, given)


def ranked_in_pieces(
    directory: str | None, fingerprint: str | None, X: Any, k: int, by_rule: bool, choices: dict[str, Any]
) -> Iterator[Ranking]:
    """The rankings of all rows, block after block, by the workers of `in_pieces`.

    Parameters
    ----------
    directory, fingerprint : str
        Where the model is, and what tells it from another that may replace it.
    X : csr_array
    k : int
    by_rule : bool
        As for `rank`.
    choices : dict
        Other arguments of `predict_topk`.
    """
    if directory is None or fingerprint is None:
        raise InvalidInput("workers load the model from its directory: save it, and use the result of longtail.load")
    about = {"model": fingerprint, "k": k, "by_rule": by_rule, **{name: repr(value) for name, value in choices.items()}}
    work = begin(about, None, features=X)
    ranges = even_ranges(np.ones(X.shape[0]), _ROWS)
    facts = (directory, fingerprint, k, by_rule, choices)
    for piece in work.run("predicting", _rank, ranges, work.matrix("features"), *facts):
        yield Ranking(piece["labels"], piece["scores"], piece["given"])


def _rank(
    X: Rows,
    directory: str,
    fingerprint: str,
    k: int,
    by_rule: bool,
    choices: dict[str, Any],
    start: int,
    stop: int,
) -> Piece:
    entries = slice(X.indptr[start], X.indptr[stop])
    pointers = X.indptr[start : stop + 1] - X.indptr[start]
    rows = sparse.csr_array((X.data[entries], X.indices[entries], pointers), shape=(stop - start, X.n_columns))
    return rank(_loaded(directory, fingerprint), rows, k, by_rule, choices)._asdict()


@lru_cache(maxsize=1)
def _loaded(directory: str, fingerprint: str) -> Any:
    model = load(directory)
    if model.fingerprint_ != fingerprint:
        raise InvalidInput(f"{directory} has been replaced by another model", code="model_replaced", path=directory)
    estimator = model.estimator_
    return estimator.set_params(n_jobs=1) if "n_jobs" in estimator.get_params(deep=False) else estimator
