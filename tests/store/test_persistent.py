"""Every model that can be saved can be loaded and answers the same; a model that could not be loaded is not saved."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier

from longtail import (
    AggregatedClassifier,
    LabelSubsetClassifier,
    LabelTree,
    OneVsRest,
    Ridge,
    RidgeCV,
    Tagger,
    TextFeatures,
    load,
)
from longtail.aggregated import aggregate_labels, random_groups
from longtail.data import Corpus
from longtail.errors import InvalidInput
from longtail.labels import LabelHierarchy
from longtail.text import RowScaling

N_ROWS, N_WORDS, N_LABELS = 60, 12, 6
TREES: dict[str, Any] = {
    f"{kind.__name__}, {', '.join(map(str, options.values())) or 'plain'}": kind(**options)
    for kind in (LabelTree, OneVsRest)
    for options in (
        {},
        {"loss": "logistic", "calibrate": "platt"},
        {"calibrate": "isotonic", "holdout": 0.3},
        {"thresholds": "f1", "holdout": 0.3},
        {"weighting": "loss", "precision": 32, "prune": 5},
    )
}
LEARNERS: dict[str, Any] = {
    **TREES,
    "LabelTree, several": LabelTree(leaf_size=2, branching=2, n_trees=2, negatives="beam"),
    "LabelTree, own": LabelTree(
        hierarchy=LabelHierarchy([0, 2, 5, 8], [1, 2, *range(-3, 0), *range(-6, -3)], N_LABELS)
    ),
    "Ridge": Ridge(),
    "Ridge, sparse": Ridge(density=0.5, weighting="target"),
    "Ridge, updatable": Ridge(updatable=True, fit_intercept=True),
    "RidgeCV": RidgeCV(alphas=np.array([0.1, 1.0])),
}
SUBSETS: dict[str, Any] = {
    f"LabelSubsetClassifier of {one}, {other}": LabelSubsetClassifier(
        LEARNERS[one], n_labels=3, outliers=2, outlier_estimator=LEARNERS[other], decoder=decoder
    )
    for (one, other), decoder in zip(
        product(("LabelTree, plain", "OneVsRest, plain", "Ridge", "RidgeCV"), repeat=2),
        8 * ("ridge", "l1"),
        strict=True,
    )
}
HEADS = ("cascade", "one-hot", "product", "kronecker", "sampling", "bottleneck", "dft")
NETWORKS = [f"MultiHeadClassifier, {head}" for head in HEADS]
ESTIMATORS = [*LEARNERS, *SUBSETS, "LabelSubsetClassifier", *NETWORKS]


def made(name: str) -> Any:
    """The estimator with this name; networks are created on demand, because they need torch."""
    if name in NETWORKS:
        neural = pytest.importorskip("longtail.neural")
        return neural.MultiHeadClassifier(name.partition(", ")[2], n_heads=2, width=8, epochs=2, head_width=4, slack=2)
    return LabelSubsetClassifier() if name == "LabelSubsetClassifier" else (LEARNERS | SUBSETS)[name]


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    """Texts of words w0, w1, ...; each label has two words of its own."""
    rng = np.random.default_rng(0)
    labels = (rng.random((N_ROWS, N_LABELS)) < 0.3) | (np.arange(N_LABELS) == np.arange(N_ROWS)[:, None] % N_LABELS)
    words = np.repeat(labels, 2, axis=1) & (rng.random((N_ROWS, N_WORDS)) < 0.8)
    texts = [" ".join(f"w{word}" for word in np.flatnonzero(row)) or "none" for row in words]
    return Corpus(
        labels=sparse.csr_array(labels.astype(np.float32)),
        label_names=[f"label {label}" for label in range(N_LABELS)],
        texts=texts,
        features=sparse.csr_array(words.astype(np.float32)),
    )


def check_saved(model: Any, rows: Any, folder: Path) -> None:
    """Save, load, and compare the answers for rows."""
    model.save(folder / "model")
    again = load(folder / "model", verify=True)
    for given, expected in zip(again.predict_topk(rows, 4), model.predict_topk(rows, 4), strict=True):
        np.testing.assert_array_equal(given, expected)
    given, expected = again.predict(rows), model.predict(rows)
    assert given == expected if isinstance(expected, list) else (given != expected).nnz == 0
    # Once more: a loaded model is a model.
    again.save(folder / "again")
    np.testing.assert_array_equal(load(folder / "again").predict_topk(rows, 4)[1], model.predict_topk(rows, 4)[1])


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_alone_of_groups_and_in_a_tagger_is_loaded_as_it_was(
    name: str, corpus: Corpus, tmp_path: Path
) -> None:
    estimator, X = made(name), corpus.features
    check_saved(estimator.fit(X, corpus.labels), X, tmp_path / "alone")
    groups = random_groups(N_ROWS, 2, random_state=0)
    of_groups = AggregatedClassifier(made(name), strategy="eagle")
    check_saved(of_groups.fit(X, groups, aggregate_labels(corpus.labels, groups)), X, tmp_path / "groups")
    check_saved(Tagger(TextFeatures(min_df=1), made(name)).fit_corpus(corpus), corpus.texts, tmp_path / "texts")
    check_saved(Tagger(RowScaling(log=True), made(name)).fit_corpus(corpus), X, tmp_path / "rows")


@pytest.mark.parametrize("targets", ["set", "proportion"])
def test_a_network_of_bags_is_loaded_as_it_was_alone_and_in_a_tagger(
    targets: str, corpus: Corpus, tmp_path: Path
) -> None:
    neural = pytest.importorskip("longtail.neural")
    groups = random_groups(N_ROWS, 2, random_state=0)
    scaling = RowScaling()
    X = scaling.fit_transform(corpus.features)
    model = neural.DeepMIML(hidden=8, epochs=2, targets=targets).fit(X, groups, aggregate_labels(corpus.labels, groups))
    check_saved(model, X, tmp_path / "alone")
    check_saved(Tagger.from_fitted(scaling, model, corpus), corpus.features, tmp_path / "rows")


class OwnRidge(Ridge):
    """A foreign estimator, which no loader knows."""


def fitted_foreign(corpus: Corpus) -> dict[str, Any]:
    X, groups = RowScaling().fit_transform(corpus.features), random_groups(N_ROWS, 2, random_state=0)
    of_groups = X, groups, aggregate_labels(corpus.labels, groups)
    foreign = OneVsRestClassifier(LogisticRegression()).fit(X, corpus.labels.toarray())
    aggregated = AggregatedClassifier(Ridge(), strategy="eagle").fit(*of_groups)
    changed = Ridge().fit(X, corpus.labels).set_params(alpha=-1.0)
    return {
        "a class of somebody else": OwnRidge().fit(X, corpus.labels),
        "one of these in a tagger": Tagger(RowScaling(), OwnRidge()).fit_corpus(corpus),
        "one of these of groups": AggregatedClassifier(OwnRidge(), strategy="eagle").fit(*of_groups),
        "scikit-learn's in a tagger": Tagger.from_fitted(RowScaling().fit(X), foreign, corpus),
        "a model of groups in a tagger": Tagger.from_fitted(RowScaling().fit(X), aggregated, corpus),
        "a parameter that was spoilt after fit": changed,
        "such a model in a tagger": Tagger.from_fitted(RowScaling().fit(X), changed, corpus),
        "features of another width": Tagger.from_fitted(
            RowScaling().fit(X[:, :3]), Ridge().fit(X, corpus.labels), corpus
        ),
    }


def test_what_could_not_be_loaded_is_not_saved(corpus: Corpus, tmp_path: Path) -> None:
    for what, model in fitted_foreign(corpus).items():
        with pytest.raises(InvalidInput, match="cannot be saved"):
            model.save(tmp_path / "model")
        assert not (tmp_path / "model").exists(), what
    # An earlier model stays as it is.
    Ridge().fit(corpus.features, corpus.labels).save(tmp_path / "model")
    before = {path.name: path.read_bytes() for path in (tmp_path / "model").iterdir()}
    with pytest.raises(InvalidInput, match="cannot be saved"):
        OwnRidge().fit(corpus.features, corpus.labels).save(tmp_path / "model")
    assert {path.name: path.read_bytes() for path in (tmp_path / "model").iterdir()} == before
