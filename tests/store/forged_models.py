"""A small model of each kind that can be saved, and the questions to ask an untrusted model."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from longtail import (
    AggregatedClassifier,
    LabelSubsetClassifier,
    LabelTree,
    OneVsRest,
    Ridge,
    RidgeCV,
    Tagger,
    TextFeatures,
)
from longtail.cli.program import run
from longtail.data import Corpus
from longtail.ranking import TwoStage
from longtail.store import State, inspect_model
from longtail.text import JoinedFeatures, RowScaling

TEXTS = ["red apples and pears", "green apples", "clear blue sky", "grey sky and rain", "rain on red roses", "pears"]
TAGS = [["fruit", "red"], ["fruit"], ["weather"], ["weather", "grey"], ["weather", "red"], ["fruit", "pear"]]


def planted() -> tuple[Any, Any]:
    """Rows whose labels depend on their features; every label has a row."""
    rng = np.random.default_rng(0)
    X = sparse.random_array((60, 20), density=0.3, rng=rng, dtype=np.float32, format="csr")
    Y = (X @ rng.normal(size=(20, 9)) > 0.6).astype(np.int8)
    Y[np.arange(9), np.arange(9)] = 1
    return X, sparse.csr_array(Y)


def grouped() -> tuple[Any, Any, Any]:
    X, Y = planted()
    groups = sparse.csr_array(np.kron(np.eye(20, dtype=np.int8), np.ones((3, 1), dtype=np.int8)))
    return X, groups, sparse.csr_array(groups.T @ Y)


def fitted(estimator: Any) -> Callable[[], Any]:
    return lambda: estimator.fit(*planted())


def tagged(estimator: Any) -> Callable[[], Any]:
    return lambda: Tagger(TextFeatures(min_df=1), estimator).fit(TEXTS, TAGS)


def _updated() -> Any:
    X, Y = planted()
    return Ridge(updatable=True).fit(X[:40], Y[:40]).partial_fit(X[40:], Y[40:])


def _of_rows() -> Any:
    X, Y = planted()
    names = [f"label {i}" for i in range(Y.shape[1])]
    return Tagger(RowScaling(log=True), Ridge()).fit_corpus(Corpus(labels=Y, label_names=names, features=abs(X)))


def _two_stages() -> Any:
    X, Y = planted()
    names = sparse.random_array((Y.shape[1], X.shape[1]), density=0.2, rng=np.random.default_rng(1), dtype=np.float32)
    tree = LabelTree(leaf_size=3, branching=2, random_state=0)
    model = TwoStage([("tree", tree), ("ridge", Ridge())], rounds=3, random_state=0)
    return model.fit(X, Y, sparse.csr_array(names))


def _two_stages_of_learners_and_texts() -> Any:
    X, Y = planted()
    tree = LabelTree(leaf_size=3, branching=2, random_state=0)
    return TwoStage([("tree", tree)], sources=("names",), rounds=3, random_state=0).fit(X, Y, np.eye(9, 20))


def _two_stages_with_vectors() -> Any:
    X, Y = planted()
    names = np.random.default_rng(1).normal(size=(Y.shape[1], X.shape[1]))
    tree = LabelTree(leaf_size=3, branching=2, random_state=0)
    return TwoStage([("tree", tree)], dense=6, rounds=3, random_state=0).fit(X, Y, names)


def _sentence_features() -> Any:
    """Features whose encoder is elsewhere; it is looked for only when a text comes."""
    from longtail.neural import SentenceFeatures

    facts = {"folder": "encoder", "fingerprint": "a" * 64, "width": 4, "max_tokens": 9, "precision": "float32"}
    return SentenceFeatures.from_state(State("SentenceFeatures", facts=facts))


def _token_features() -> Any:
    from longtail.neural import TokenFeatures

    facts = {"folder": "encoder", "fingerprint": "a" * 64, "max_tokens": 9}
    return TokenFeatures.from_state(State("TokenFeatures", facts=facts))


def _joined() -> Any:
    return JoinedFeatures((TextFeatures(min_df=1).fit(TEXTS), TextFeatures(min_df=1, subwords=4).fit(TEXTS)))


def linear() -> dict[str, Callable[[], Any]]:
    small = {"leaf_size": 3, "branching": 2}
    return {
        "LabelTree": fitted(LabelTree(**small, n_trees=2, prune=0.05, random_state=0)),
        "LabelTree in 32 bits": fitted(LabelTree(**small, precision=32, loss="logistic", random_state=0)),
        "LabelTree with Platt and thresholds": fitted(
            LabelTree(**small, calibrate="platt", thresholds="f1", random_state=0)
        ),
        "LabelTree with isotonic": fitted(LabelTree(**small, calibrate="isotonic", weighting="score", random_state=0)),
        "OneVsRest": fitted(OneVsRest(thresholds="macro_f1", random_state=0)),
        "Ridge": fitted(Ridge()),
        "sparse Ridge": fitted(Ridge(density=0.3, weighting="target")),
        "updatable Ridge": _updated,
        "RidgeCV": fitted(RidgeCV(alphas=(0.1, 1.0))),
        "LabelSubsetClassifier": fitted(LabelSubsetClassifier(Ridge(), n_labels=4, random_state=0)),
        "LabelSubsetClassifier of trees": fitted(
            LabelSubsetClassifier(LabelTree(**small, random_state=0), n_labels=4, random_state=0)
        ),
        "AggregatedClassifier": lambda: AggregatedClassifier(Ridge()).fit(*grouped()),
        "TwoStage": _two_stages,
        "TwoStage without statistics": _two_stages_of_learners_and_texts,
        "TwoStage with dense vectors": _two_stages_with_vectors,
        "JoinedFeatures": _joined,
        "TextFeatures": lambda: TextFeatures(min_df=1).fit(TEXTS),
        "RowScaling": lambda: RowScaling().fit(planted()[0]),
    }


def taggers() -> dict[str, Callable[[], Any]]:
    return {
        "Tagger with LabelTree": tagged(LabelTree(leaf_size=2, branching=2, n_trees=2, random_state=0)),
        "Tagger with OneVsRest": tagged(OneVsRest(random_state=0)),
        "Tagger with Ridge": tagged(Ridge()),
        "Tagger with RidgeCV": tagged(RidgeCV()),
        "Tagger with LabelSubsetClassifier": tagged(LabelSubsetClassifier(Ridge(), n_labels=2, random_state=0)),
        "Tagger of rows": _of_rows,
    }


def networks() -> dict[str, Callable[[], Any]]:
    from longtail.neural import DeepMIML, MultiHeadClassifier

    def network(head: str, **options: Any) -> Any:
        return MultiHeadClassifier(head, width=6, epochs=1, random_state=0, n_jobs=1, **options)

    return {
        "cascade": fitted(network("cascade", head_width=3)),
        "cascade of three stages": fitted(network("cascade", radices=(3, 2, 2), survivors=2, layers=2)),
        "product": fitted(network("product", products=2)),
        "kronecker": fitted(network("kronecker", products=2)),
        "sampling": fitted(network("sampling", n_heads=3, encoder="dense")),
        "bottleneck": fitted(network("bottleneck", head_width=4, trim=0.2)),
        "dft": fitted(network("dft", slack=2, order="random")),
        "dft in order": fitted(network("dft", order="given", active=2, encoder="dense")),
        "one-hot": fitted(network("one-hot", task="multi-label", n_networks=2)),
        "DeepMIML": lambda: DeepMIML(hidden=6, concepts=2, epochs=1, random_state=0, n_jobs=1).fit(*grouped()),
        "plain DeepMIML": lambda: DeepMIML(hidden=6, tau=0.0, epochs=1, random_state=0, n_jobs=1).fit(*grouped()),
        "Tagger with a network": tagged(network("one-hot")),
        "SentenceFeatures": _sentence_features,
        "TokenFeatures": _token_features,
    }


class Checkpoint:
    """A checkpoint of a network, which is how networks of any other form are saved."""

    def __init__(self, encoder: Any, head: Any, inputs: Any) -> None:
        from longtail.neural.network import Network
        from longtail.neural.optimiser import Optimiser

        self.network, self.inputs = Network(encoder, head), inputs
        self.optimiser = Optimiser(self.network, learning_rate=0.1)
        self.n_labels_ = head.n_labels

    def save(self, directory: Path) -> None:
        from longtail.neural.averaging import WeightAverage
        from longtail.neural.checkpoint import Position, write_checkpoint

        average = WeightAverage(self.network)
        average.add(self.network)
        best = {name: tensor.clone() for name, tensor in self.network.state_dict().items()}
        position = Position([2.0, 1.0], [0.1, 0.2], best, best_epoch=2, average=average)
        write_checkpoint(directory, {"seed": 0}, self.network, self.optimiser, position)

    def load(self, directory: Path) -> Checkpoint:
        from longtail.neural.checkpoint import read_checkpoint

        read_checkpoint(directory, {"seed": 0}, self.network, self.optimiser)
        return self

    def answers(self) -> Iterator[Callable[[], Any]]:
        from longtail.neural.network import predict_rows

        for tensors in (self.network.state_dict(), self.optimiser.tensors()):
            yield lambda tensors=tensors: np.concatenate([tensor.numpy().ravel() for tensor in tensors.values()])
        yield lambda: np.maximum(predict_rows(self.network, self.inputs, 3)[0], 0)


def checkpoints() -> dict[str, Callable[[], Any]]:
    import torch

    from longtail.neural.batches import DenseRows, TokenRows
    from longtail.neural.encoders import Dense, ImageCNN, TextCNN
    from longtail.neural.heads import DFT, PowersetCascade, PowersetProduct, PowersetSampling

    def checkpoint(head: Callable[[], Any], encoder: Callable[[], Any] | None = None, inputs: Any = None) -> Any:
        def build() -> Checkpoint:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(0)
                first = Dense(5, [4]) if encoder is None else encoder()
                rows = DenseRows(np.eye(5, dtype=np.float32)) if inputs is None else inputs
                return Checkpoint(first, head(), rows)

        return build

    images = DenseRows(np.linspace(0, 1, 3 * 64, dtype=np.float32).reshape(3, 1, 8, 8))
    texts = TokenRows(np.array([1, 2, 3, 4, 5]), np.array([0, 2, 5]))
    return {
        "checkpoint of PowersetProduct": checkpoint(lambda: PowersetProduct(4, 7, bits=3)),
        "checkpoint of PowersetSampling": checkpoint(lambda: PowersetSampling(4, 7, bits=3)),
        "checkpoint of PowersetCascade": checkpoint(lambda: PowersetCascade(4, 7, bits=3, width=3)),
        "checkpoint of TextCNN": checkpoint(
            lambda: DFT(4, 7, 2, order=torch.arange(6, -1, -1)), lambda: TextCNN(9, 4, 2, 3), texts
        ),
        "checkpoint of ImageCNN": checkpoint(
            lambda: PowersetProduct(4, 7, bits=3), lambda: ImageCNN(8, 8, maps=(2, 3), n_features=4), images
        ),
    }


GROUPS = {"linear": linear, "taggers": taggers, "networks": networks, "checkpoints": checkpoints}


def questions(model: Any, directory: Path) -> Iterator[Callable[[], Any]]:
    """Call what a user would call; each answer is an array, a number or a text for `check`."""
    yield lambda: str(inspect_model(directory))
    if isinstance(model, Checkpoint):
        yield from model.answers()
        return
    yield lambda: repr(model)
    if isinstance(model, TextFeatures | JoinedFeatures):
        yield lambda: model.transform(TEXTS).data
        yield lambda: "".join(model.feature_names_[:5])
        return
    if type(model).__name__ in ("SentenceFeatures", "TokenFeatures"):  # whose modules need torch
        yield lambda: "".join(model.feature_names_[:5])
        return
    if isinstance(model, RowScaling):
        yield lambda: model.transform(rows_for(model.n_features_in_)).data
        return
    yield lambda: information(directory)
    if isinstance(model, Tagger):
        rows: Any = TEXTS if model.takes_texts else rows_for(model.features_.n_features_in_)
        one: Any = TEXTS[0] if model.takes_texts else rows[[0]]
        name = model.label_names_[0]
        yield lambda: [tag.score for row in model.predict(rows, k=3) for tag in row]
        yield lambda: model.predict_topk(rows, 3, deny=[name])
        yield lambda: numbers_of(model.explain(one, name))
        estimator = model.estimator_
    else:
        rows = rows_for(model.n_features_in_)
        estimator = model
        yield lambda: model.predict_topk(rows, 5)
        yield lambda: model.predict_topk(rows[[0]], 3, allow=[0, model.n_labels_ - 1])
        yield lambda: model.decision_function(rows)
        yield lambda: model.predict(rows).data
        for label in (0, model.n_labels_ - 1):
            yield lambda label=label: numbers_of(model.explain(rows[[0]], label))
    if hasattr(estimator, "hierarchies_"):
        yield lambda: "".join(tree.format() for tree in estimator.hierarchies_)


def rows_for(width: int) -> Any:
    """A few rows with this many features, even if there cannot be that many."""
    indices = np.array([0, 1, min(5, width - 1), max(0, width - 1)], dtype=np.int64)
    data = np.array([1.0, 0.5, 2.0, 0.25], dtype=np.float32)
    rows = sparse.csr_array((data, indices, np.array([0, 2, 4, 4])), shape=(3, width))
    rows.sum_duplicates()
    return rows


def numbers_of(explanation: Any) -> list[float]:
    found = [explanation.score, explanation.margin, explanation.intercept]
    found += [step.margin for step in explanation.steps]
    reasons = getattr(explanation, "contributions", None)
    return [*found, *(reasons if reasons is not None else [reason.contribution for reason in explanation.reasons])]


def information(directory: Path) -> str:
    """The output of `longtail info`; an exit code above 1 would be an unexpected error."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        code = run(["info", str(directory)])
    if code not in (0, 1) or "unexpected" in said.getvalue():
        raise AssertionError(f"info ended with {code}: {said.getvalue()}")
    return said.getvalue()


def check(answer: Any, n_labels: int | None) -> None:
    """Raise `AssertionError` unless an answer is finite and its labels exist."""
    if isinstance(answer, str):
        if len(answer) > 10**7:
            raise AssertionError(f"a text of {len(answer)} characters")
    elif isinstance(answer, tuple):
        labels, scores = answer
        if not ((labels >= -1).all() and (n_labels is None or (labels < n_labels).all())):
            raise AssertionError(f"labels are {labels}")
        if not (np.isfinite(scores[labels >= 0]).all() and (scores[labels < 0] == -np.inf).all()):
            raise AssertionError(f"scores are {scores} of {labels}")
    elif not np.isfinite(np.asarray(answer, dtype=np.float64)).all():
        raise AssertionError(f"not finite: {answer}")
