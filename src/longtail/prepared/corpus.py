"""A prepared corpus as a directory: opened, it is a `Corpus` whose arrays are mapped, not read."""

from __future__ import annotations

from typing import Any

import numpy as np

from longtail.data import Corpus
from longtail.errors import InvalidInput, ModelFormatError
from longtail.files import PathName
from longtail.store import State, inspect_model, put_together, read_model

KIND = "PreparedCorpus"


def is_prepared(path: PathName) -> bool:
    """Whether a directory, or a URL, holds a prepared corpus, of any version, damaged or not."""
    try:
        return bool(inspect_model(path)["kind"] == KIND)
    except ModelFormatError:
        return False


def open_prepared(path: PathName, *, verify: bool = False) -> Corpus:
    """Open a prepared corpus.

    Parameters
    ----------
    path : str or path-like
        A directory that `prepare` has written, or its URL, such as ``s3://bucket/prepared``.
    verify : bool
        Read every file and compare it with its checksum.

    Returns
    -------
    corpus : Corpus
        With features and, in `made_by`, what made them of texts or of raw features.
    """
    state = read_model(path, verify=verify)
    if state.kind != KIND:
        raise InvalidInput(f"{path} holds a {state.kind}, not a prepared corpus; make one with `longtail prepare`")
    try:
        return _corpus(state)
    except ModelFormatError as error:
        raise ModelFormatError(f"{path}: {error}") from None


def _corpus(state: State) -> Corpus:
    made_by: Any = put_together(state.part("features", "TextFeatures", "RowScaling"))
    n_rows = state.size("n_rows")
    names = state.strings("label_names")
    row_names = state.strings("row_names") if "row_names" in state.arrays else None
    labels = state.csr("labels", np.float32, (n_rows, len(names)))
    features = state.csr("features", np.float32, (n_rows, made_by.n_features_out_))
    return Corpus(labels, names, features=features, row_names=row_names, made_by=made_by)
