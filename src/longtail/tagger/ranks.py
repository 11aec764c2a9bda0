"""Rankings of many rows in pieces: each worker loads the model from its directory and ranks blocks of rows."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import sparse

from longtail.arrays import Array
from longtail.errors import InvalidInput
from longtail.store import load
from longtail.work import Piece, Rows, begin, even_ranges

_ROWS = 2**14


def ranked_in_pieces(
    directory: str | None, fingerprint: str | None, X: Any, k: int, choices: dict[str, Any]
) -> Iterator[tuple[Array, Array]]:
    """The rankings of all rows, block after block, by the workers of `in_pieces`.

    Parameters
    ----------
    directory, fingerprint : str
        Where the model is, and what tells it from another that may replace it.
    X : csr_array
    k : int
    choices : dict
        Other arguments of `predict_topk`.
    """
    if directory is None or fingerprint is None:
        raise InvalidInput("workers load the model from its directory: save it, and use the result of longtail.load")
    about = {"model": fingerprint, "k": k, **{name: repr(value) for name, value in choices.items()}}
    work = begin(about, None, features=X)
    ranges = even_ranges(np.ones(X.shape[0]), _ROWS)
    for piece in work.run("predicting", _rank, ranges, work.matrix("features"), directory, fingerprint, k, choices):
        yield piece["labels"], piece["scores"]


def _rank(X: Rows, directory: str, fingerprint: str, k: int, choices: dict[str, Any], start: int, stop: int) -> Piece:
    entries = slice(X.indptr[start], X.indptr[stop])
    pointers = X.indptr[start : stop + 1] - X.indptr[start]
    rows = sparse.csr_array((X.data[entries], X.indices[entries], pointers), shape=(stop - start, X.n_columns))
    labels, scores = _loaded(directory, fingerprint).predict_topk(rows, k, **choices)
    return {"labels": labels, "scores": scores}


@lru_cache(maxsize=1)
def _loaded(directory: str, fingerprint: str) -> Any:
    model = load(directory)
    if model.fingerprint_ != fingerprint:
        raise InvalidInput(f"{directory} has been replaced by another model", code="model_replaced", path=directory)
    estimator = model.estimator_
    return estimator.set_params(n_jobs=1) if "n_jobs" in estimator.get_params(deep=False) else estimator
