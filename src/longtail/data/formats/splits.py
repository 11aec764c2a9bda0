"""Split files: the rows of a data set that belong to training or test, one column per split, counted from 1."""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np

from longtail.arrays import Array
from longtail.data.corpus import Corpus
from longtail.data.streams import read_lines, shown
from longtail.errors import DataFormatError, InvalidInput
from longtail.files import PathName


def read_splits(path: PathName) -> Array:
    """Read a split file into row ids counted from 0.

    Returns
    -------
    ids : array of shape (rows of a split, splits)

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "tiny_trSplit.txt"
    >>> _ = path.write_text("1 3\\n2 4\\n")
    >>> read_splits(path)
    array([[0, 2],
           [1, 3]])
    """
    ids = array("q")
    width = 0
    ended = False
    for number, line in read_lines(path):
        fields = line.split()
        if not fields:
            ended = True
            continue
        if ended:
            raise DataFormatError(path, number, "an empty line above this one; expected row ids in every line")
        width = width or len(fields)
        if len(fields) != width:
            raise DataFormatError(path, number, f"{len(fields)} columns, expected {width} as in the first line")
        for field in fields:
            if not field.isdigit() or len(field) > 18 or int(field) < 1:
                raise DataFormatError(path, number, f"{shown(field)} is not a row id; rows are counted from 1")
            ids.append(int(field) - 1)
    if not width:
        raise DataFormatError(path, 1, "the file is empty")
    return np.array(ids, dtype=np.int64).reshape(-1, width)


def split_corpus(corpus: Corpus, train_ids: Any, test_ids: Any) -> tuple[Corpus, Corpus]:
    """The training and the test part of a corpus, by row ids counted from 0; no row can be in both."""
    train, test = (_checked(ids, name, corpus.n_rows) for ids, name in ((train_ids, "train"), (test_ids, "test")))
    shared = np.intersect1d(train, test)
    if shared.size:
        raise InvalidInput(f"{shared.size} rows are in both parts of the split, the first is row {shared[0]}")
    return corpus.select(train), corpus.select(test)


def _checked(ids: Any, name: str, n_rows: int) -> Array:
    chosen = np.asarray(ids)
    if chosen.ndim != 1 or (chosen.size and chosen.dtype.kind not in "iu"):
        raise InvalidInput(f"the {name} ids have shape {chosen.shape} and dtype {chosen.dtype}; expected row ids")
    if chosen.size and (chosen.min() < 0 or chosen.max() >= n_rows):
        raise InvalidInput(f"a {name} id is outside 0..{n_rows - 1}; is the split that of another data set?")
    return chosen.astype(np.int64, copy=False)
