"""The data sets that every learner gets: features, labels and a text file of the same rows, prepared once.

Rows have unit length for all learners. One `TextFeatures`, fitted on the training texts, turns texts into features.
Learners that make their own features read the texts and the names of the labels. The prepared files carry a key of
their sources and are made again when it changes.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.arrays import read_matrix, write_matrix
from benchmarks.samples import Sample, Split, load_sample
from longtail import __version__, text
from longtail.arrays import Array
from longtail.data import Corpus, python_api_versions, write_repository
from longtail.metrics import inverse_propensity, ndcg_at_k, precision_at_k, propensity_constants, psp_at_k
from longtail.text import RowScaling, TextFeatures

DATA_SETS = ("bibtex", "delicious", "eurlex-4k", "eurlex57k", "python-api", "yso-sv-30k")
PARTS = ("train_features", "train_labels", "test_features", "test_labels")
KS = (1, 3, 5)
FORMAT = 2


@dataclass(frozen=True)
class Prepared:
    """A prepared data set on disk, which can judge rankings of its test rows."""

    name: str
    folder: Path
    facts: dict[str, Any]

    @property
    def title(self) -> str:
        return Sample.named(self.name).title

    def judge(self, top: Array) -> dict[str, float]:
        """P, nDCG and PSP of a ranking, in percent."""
        truth, train = read_matrix(self.folder / "test_labels"), read_matrix(self.folder / "train_labels")
        return judge(self.name, truth, train, top)


def judge(name: str, truth: Any, train: Any, top: Array) -> dict[str, float]:
    """P, nDCG and PSP of a ranking of test rows, in percent.

    Parameters
    ----------
    name : str
        Of the sample, for the constants of propensities.
    truth, train : csr matrices
        The labels of the test rows and of the training rows; the latter may lack columns at the end.
    top : int array of shape (n_rows, k)
    """
    a, b = propensity_constants(Sample.named(name).base)
    counts = np.bincount(train.indices, minlength=truth.shape[1])
    weights = inverse_propensity(counts, train.shape[0], a=a, b=b)
    figures = {f"P@{k}": 100 * precision_at_k(truth, top, k) for k in KS}
    figures |= {f"nDCG@{k}": 100 * ndcg_at_k(truth, top, k) for k in KS}
    return figures | {f"PSP@{k}": 100 * psp_at_k(truth, top, k, weights) for k in KS}


def prepare(name: str, cache: Path) -> Prepared:
    """Write the files of a data set under `cache`, unless they exist.

    Raises
    ------
    Unavailable
        If the data set is not installed; the message says how to get it.
    """
    folder = cache / name
    marker = folder / "facts.json"
    key = {"format": FORMAT, "longtail": __version__, "text": _text_sources()}
    key |= python_api_versions() if name == "python-api" else {}
    if marker.is_file():
        facts = json.loads(marker.read_text(encoding="utf-8"))
        if facts["key"] == key:
            return Prepared(name, folder, facts)
        marker.unlink()
    facts = {"key": key, "language": Sample.named(name).language, **write_split(load_sample(name), folder)}
    marker.write_text(json.dumps(facts, indent=1), encoding="utf-8")
    return Prepared(name, folder, facts)


def write_split(split: Split, folder: Path) -> dict[str, Any]:
    """Write all files of a data set; return its statistics.

    The matrix of the training labels has a column for each label with training rows. That of the test labels also has
    the labels that cannot be learned from rows.
    """
    train, test, n_labels = split
    X, X_test = features(train, test)
    Y = train.labels[:, :n_labels]
    for part, matrix in zip(PARTS, (X, Y, X_test, test.labels), strict=True):
        write_matrix(folder / part, matrix)
    # Rows without labels or features teach a tree nothing, and one of the peers refuses a file that has any.
    useful = np.flatnonzero((np.diff(X.indptr) > 0) & (np.diff(Y.indptr) > 0))
    rows = Corpus(Y[useful], [str(label) for label in range(n_labels)], features=X[useful])
    write_repository(rows, folder / "train.txt")
    lists = {"train_texts": train.texts, "test_texts": test.texts, "label_texts": train.label_texts}
    for name, found in {**lists, "label_names": train.label_names}.items():
        path = folder / f"{name}.json"
        path.unlink(missing_ok=True)
        if found is not None:
            path.write_text(json.dumps(list(found), ensure_ascii=False), encoding="utf-8")
    return {
        "train_rows": X.shape[0],
        "test_rows": X_test.shape[0],
        "features": X.shape[1],
        "labels": n_labels,
        "unseen_labels": len(np.unique(test.labels.indices[test.labels.indices >= n_labels])),
        "nonzeros_per_row": X.nnz / max(1, X.shape[0]),
        "labels_per_row": Y.nnz / max(1, X.shape[0]),
        "nonzeros": int(X.nnz),
        "texts": train.texts is not None,
        "label_texts": train.label_texts is not None,
    }


def _text_sources() -> str:
    """A digest of the code of the text features, which changes between releases."""
    sources = sorted(Path(text.__file__).parent.glob("*.py"))
    return hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()


def features(train: Corpus, test: Corpus) -> tuple[Any, Any]:
    """The rows of both parts, scaled to unit length."""
    if train.features is None:
        text_features = TextFeatures()
        return text_features.fit_transform(train.texts or ()), text_features.transform(test.texts or ())
    scaling = RowScaling()
    return scaling.fit_transform(train.features), scaling.transform(test.features)
