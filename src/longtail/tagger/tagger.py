"""`Tagger`: the pipeline people use. Texts and label names in, label names and scores out."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from longtail.aggregated import AggregatedClassifier
from longtail.arrays import Array
from longtail.choice import check_learner, choose_learner
from longtail.data import Corpus, GroupedCorpus
from longtail.errors import InvalidInput, ModelFormatError
from longtail.estimator import Estimator, Explanation, Step
from longtail.metrics import Report, evaluate, inverse_propensity
from longtail.store import (
    FEATURES,
    Persistent,
    State,
    StringTable,
    part_state,
    put_learner_together,
    put_together,
)
from longtail.text import RowScaling, TextFeatures
from longtail.validation import check_k

_log = logging.getLogger(__name__)

_LABELS_NAMED = 3


class Tag(NamedTuple):
    """A label and its score."""

    label: str
    score: float


@dataclass(frozen=True)
class LabelCount:
    """A label and its number of training rows."""

    label: str
    count: int


class Reason(NamedTuple):
    """A word, or a feature, and what it adds to a label's margin, which is the score itself for ridge."""

    feature: str
    contribution: float


class PathStep(NamedTuple):
    """A step down a label tree: one classifier, whose reasons and intercept add up to its margin.

    Parameters
    ----------
    tree : int
        Which of the trees, counted from 1.
    name : str
        Where the step leads: a class of a taxonomy, ``node 3`` of a learned tree, at the end the label.
    n_labels : int
        Labels below that place.
    frequent : tuple of str
        The most frequent of them.
    probability : float
        What the margin comes to; the product along the path is the score in this tree.
    margin : float
    reasons : tuple of Reason
    intercept : float
    """

    tree: int
    name: str
    n_labels: int
    frequent: tuple[str, ...]
    probability: float
    margin: float
    reasons: tuple[Reason, ...]
    intercept: float


class TagExplanation(NamedTuple):
    """Why a label has its score: the reasons and the intercept add up to the margin.

    Parameters
    ----------
    label : str
    score : float
    margin : float
        For ridge the score itself, for one-vs-rest the margin of the label's classifier, for a label tree the sum of
        the margins along the path, the mean over trees.
    reasons : tuple of Reason
        The largest contribution first.
    intercept : float
    steps : tuple of PathStep
        The path of a label tree, tree by tree; none for ridge.
    """

    label: str
    score: float
    margin: float
    reasons: tuple[Reason, ...]
    intercept: float
    steps: tuple[PathStep, ...] = ()

    def to_dict(self, most: int | None = None) -> dict[str, Any]:
        """The explanation as JSON has it, in the shell and over HTTP, with at most `most` reasons in each list."""
        return {
            "label": self.label,
            "score": self.score,
            **_sum(self, most),
            "steps": [
                {
                    "tree": step.tree,
                    "name": step.name,
                    "n_labels": step.n_labels,
                    "frequent": list(step.frequent),
                    "probability": step.probability,
                    **_sum(step, most),
                }
                for step in self.steps
            ],
        }


def _sum(part: TagExplanation | PathStep, most: int | None) -> dict[str, Any]:
    reasons = [reason._asdict() for reason in part.reasons[:most]]
    return {"margin": part.margin, "intercept": part.intercept, "reasons": reasons}


class Aligned(NamedTuple):
    """Rows to judge a model on, as the model sees them.

    Parameters
    ----------
    features : csr_array of shape (n_rows, n_features)
    labels : csr_array of shape (n_rows, n_labels)
        The true labels: first those of the model, then those that it does not know.
    label_names : tuple of str
        In that order.
    label_counts : int64 array of shape (n_labels,)
        Training rows of each label, 0 for those that the model does not know.
    """

    features: Any
    labels: Any
    label_names: tuple[str, ...]
    label_counts: Array


class Tagger(BaseEstimator, Persistent):
    """Turns texts (or rows of features) into features, learns from them, and speaks in label names.

    Parameters
    ----------
    features : TextFeatures, RowScaling or None
        How to make features; None makes `TextFeatures` for texts and `RowScaling` for rows of features.
    estimator : LabelTree, OneVsRest, Ridge, RidgeCV, LabelSubsetClassifier, MultiHeadClassifier or None
        What learns; None chooses by the size of the data, see `longtail.choice.choose_learner`.

    Attributes
    ----------
    features_, estimator_
        Fitted copies of the two.
    label_names_ : sequence of str
        A tuple once fitted; once loaded, a `StringTable` that decodes the names that are asked for.
    label_counts_ : array of int
        Training rows of each label.

    Examples
    --------
    >>> from longtail import Ridge, Tagger, TextFeatures
    >>> texts = ["red apples and pears", "green apples", "clear blue sky", "grey sky and rain"]
    >>> labels = [["fruit"], ["fruit"], ["weather"], ["weather"]]
    >>> tagger = Tagger(TextFeatures(min_df=1), Ridge()).fit(texts, labels)
    >>> tagger.predict(["rain and a grey sky"], k=1)[0][0].label
    'weather'
    """

    features_: Any
    estimator_: Any
    label_names_: Sequence[str]
    label_counts_: Array
    n_rows_: int

    def __init__(self, features: Any = None, estimator: Any = None) -> None:
        self.features = features
        self.estimator = estimator

    def fit(self, texts: Iterable[str], labels: Iterable[Iterable[str]]) -> Self:
        """Learn from texts and, for each, the names of its labels."""
        return self.fit_corpus(Corpus.from_lists(texts, labels))

    def fit_corpus(self, corpus: Corpus) -> Self:
        """Learn from a corpus: from its texts where it has them, else from its features."""
        if corpus.n_rows == 0 or corpus.n_labels == 0:
            raise InvalidInput(f"nothing to learn from: {corpus.n_rows} rows and {corpus.n_labels} labels")
        if self.estimator is not None:
            check_learner(self.estimator, "Tagger")
        features, X = self._make_features(corpus)
        if self.estimator is None:
            estimator, reasons = choose_learner(X, corpus.labels)
            for reason in reasons:
                _log.info(reason)
        else:
            estimator = clone(self.estimator)
        return self._adopt(features, estimator.fit(X, corpus.labels), corpus)

    def fit_groups(self, corpus: GroupedCorpus, strategy: str = "auto", **options: Any) -> Self:
        """Learn from rows whose labels are known for groups only; what comes out tags rows.

        Parameters
        ----------
        corpus : GroupedCorpus
        strategy : str
            How the rows of a label are found, see `longtail.AggregatedClassifier`.
        **options
            Other parameters of `AggregatedClassifier`, such as ``rule``.
        """
        if corpus.n_rows == 0 or corpus.n_labels == 0:
            raise InvalidInput(f"nothing to learn from: {corpus.n_rows} rows and {corpus.n_labels} labels")
        features, X = self._make_features(corpus)
        model = AggregatedClassifier(self.estimator, strategy=strategy, **options)
        model.fit(X, corpus.groups, corpus.group_labels)
        labelled = corpus.labelled(model.row_labels_)
        learnt_from = np.diff(labelled.labels.indptr) > 0
        return self._adopt(features, model.estimator_, labelled.select(learnt_from))

    def _make_features(self, corpus: Corpus | GroupedCorpus) -> tuple[Any, Any]:
        default = RowScaling() if corpus.texts is None else TextFeatures(min_df=min(2, corpus.n_rows))
        if isinstance(self.features, Estimator):
            learner = type(self.features).__name__
            raise InvalidInput(f"Tagger: features is a {learner}, which learns; write Tagger(estimator={learner}(...))")
        features = default if self.features is None else clone(self.features)
        return features, features.fit_transform(_inputs(corpus, features))

    @classmethod
    def from_fitted(cls, features: Any, estimator: Any, corpus: Corpus) -> Self:
        """A tagger of features and an estimator that were fitted to `corpus` apart from each other."""
        return cls(features, estimator)._adopt(features, estimator, corpus)

    def _adopt(self, features: Any, estimator: Any, corpus: Corpus) -> Self:
        for made_before in ("_position", "fingerprint_"):
            self.__dict__.pop(made_before, None)
        self.features_, self.estimator_ = features, estimator
        self.label_names_ = tuple(corpus.label_names)
        self.label_counts_ = corpus.label_counts
        self.n_rows_ = corpus.n_rows
        return self

    @property
    def takes_texts(self) -> bool:
        """Whether rows are texts rather than feature vectors."""
        check_is_fitted(self, "features_")
        return isinstance(self.features_, TextFeatures)

    def predict_topk(
        self,
        rows: Any,
        k: int = 5,
        allow: Iterable[str] | None = None,
        deny: Iterable[str] | None = None,
        **options: Any,
    ) -> tuple[Array, Array]:
        """The k best labels of each row as ids into ``label_names_``, and their scores.

        Parameters
        ----------
        rows : sequence of str, or matrix of features
        k : int
        allow, deny : names of labels that may, or may not, be given
        **options
            Those of the estimator, as ``weighting`` of `Ridge`; other learners have none.
        """
        check_is_fitted(self, "features_")
        return self.estimator_.predict_topk(
            self.features_.transform(rows), k, allow=self._ids(allow), deny=self._ids(deny), **options
        )

    def predict(
        self,
        rows: Any,
        k: int = 5,
        allow: Iterable[str] | None = None,
        deny: Iterable[str] | None = None,
        **options: Any,
    ) -> list[list[Tag]]:
        """The k best labels of each row by name, best first; the parameters are those of `predict_topk`."""
        check_is_fitted(self, "features_")
        places = min(check_k(k), max(1, len(self.label_names_)))  # no row has more labels than there are
        labels, scores = self.predict_topk(rows, places, allow, deny, **options)
        # Each name once: those of a loaded model are decoded when they are asked for.
        names = {label: self.label_names_[label] for label in set(labels.ravel().tolist()) if label >= 0}
        return [
            [Tag(names[label], float(score)) for label, score in zip(*row, strict=True) if label >= 0]
            for row in zip(labels.tolist(), scores.tolist(), strict=True)
        ]

    def tag(
        self,
        rows: Any,
        k: int = 5,
        allow: Iterable[str] | None = None,
        deny: Iterable[str] | None = None,
        *,
        threshold: float | None = None,
        **options: Any,
    ) -> list[list[Tag]]:
        """The labels to give each row: those of `predict` without scores of 0, or below `threshold`."""
        return [
            [tag for tag in tags if tag.score and (threshold is None or tag.score >= threshold)]
            for tags in self.predict(rows, k, allow, deny, **options)
        ]

    def explain(self, row: Any, label: str) -> TagExplanation:
        """Which words of a text (or features of a row) gave `label` its score, exactly; for trees also the path."""
        [found] = self.explain_each(row, [label])
        return found

    def explain_each(self, row: Any, labels: Iterable[str]) -> list[TagExplanation]:
        """What `explain` says of each of several labels."""
        check_is_fitted(self, "features_")
        x = self.features_.transform([row] if isinstance(row, str) else row)
        return [self._explain(x, label) for label in self._ids(labels) or []]

    def _explain(self, x: Any, label: int) -> TagExplanation:
        found = self.estimator_.explain(x, label)
        steps = tuple(
            self._path_step(step, after, label)
            for step, after in zip(found.steps, [*found.steps, None][1:], strict=True)
        )
        name = self.label_names_[label]
        return TagExplanation(name, found.score, found.margin, self._reasons(found), found.intercept, steps)

    def _reasons(self, part: Explanation | Step) -> tuple[Reason, ...]:
        names = self.features_.feature_names_ if self.takes_texts else None
        return tuple(
            Reason(str(feature) if names is None else names[feature], contribution)
            for feature, contribution in zip(part.features.tolist(), part.contributions.tolist(), strict=True)
        )

    def _path_step(self, step: Step, after: Step | None, label: int) -> PathStep:
        """A step by name: it leads to the node from which the step `after` it starts, in the end to the label."""
        if after is None or after.tree != step.tree:
            name, below = self.label_names_[label], np.array([label])
        else:
            hierarchy = self.estimator_.hierarchies_[step.tree - 1]
            order, bounds = hierarchy.label_order()
            name = f"node {after.node}" if hierarchy.node_names is None else hierarchy.node_names[after.node]
            below = order[slice(*bounds[after.node])]
        frequent = tuple(self.label_names_[other] for other in self.most_frequent(below, _LABELS_NAMED).tolist())
        return PathStep(
            step.tree, name, len(below), frequent, step.probability, step.margin, self._reasons(step), step.intercept
        )

    def most_frequent(self, labels: Array, limit: int) -> Array:
        """Of some label ids those with most training rows, the most frequent first, ties in the order given."""
        counts = self.label_counts_[labels]
        if 0 < limit < len(labels):
            # Only what can be among the first is put in order.
            enough = counts >= np.partition(counts, len(counts) - limit)[len(counts) - limit]
            labels, counts = labels[enough], counts[enough]
        return labels[np.argsort(-counts, kind="stable")[:limit]]

    def find_labels(self, prefix: str = "", contains: str = "", limit: int = 20) -> list[LabelCount]:
        """The most frequent labels whose names begin with `prefix` and contain `contains`, ignoring ASCII case."""
        check_is_fitted(self, "features_")
        names = self.label_names_
        table = names if isinstance(names, StringTable) else StringTable.from_strings(names)
        found = table.containing(contains) if contains else table.with_prefix(prefix)
        if contains and prefix:
            found = np.intersect1d(found, table.with_prefix(prefix), assume_unique=True)
        return [
            LabelCount(names[label], int(self.label_counts_[label]))
            for label in self.most_frequent(found, limit).tolist()
        ]

    def evaluate(self, corpus: Corpus, *, ks: tuple[int, ...] = (1, 3, 5), a: float = 0.55, b: float = 1.5) -> Report:
        """Judge the rankings of a corpus; its labels that training never saw count as missed.

        Parameters
        ----------
        corpus : Corpus
        ks : cutoffs
        a, b : constants of the propensity model
        """
        aligned = self.align(corpus)
        top, _ = self.estimator_.predict_topk(aligned.features, max(ks))
        return evaluate(
            aligned.labels,
            top,
            ks=ks,
            inverse_propensity=inverse_propensity(aligned.label_counts, self.n_rows_, a=a, b=b),
            train_label_counts=aligned.label_counts,
        )

    def align(self, corpus: Corpus) -> Aligned:
        """The features of a corpus, and its labels in the order of the model's, those it does not know after them."""
        check_is_fitted(self, "features_")
        names = (*self.label_names_, *self.unknown_labels(corpus.label_names))
        return Aligned(
            features=self.features_.transform(_inputs(corpus, self.features_)),
            labels=corpus.with_label_names(names).labels,
            label_names=names,
            label_counts=np.pad(self.label_counts_, (0, len(names) - len(self.label_counts_))),
        )

    def unknown_labels(self, names: Iterable[str]) -> list[str]:
        """Those of `names` that are no label of the model."""
        names = list(names)
        return [name for name, found in zip(names, self._find(names), strict=True) if found < 0]

    def _ids(self, names: Iterable[str] | None) -> list[int] | None:
        if names is None:
            return None
        if isinstance(names, str):
            raise InvalidInput(f"expected a list of label names, found the single text {names!r}")
        names = list(names)
        ids = self._find(names)
        if -1 in ids:
            missing = names[ids.index(-1)]
            raise InvalidInput(
                f"the model has no label {missing!r}; it knows {len(self.label_names_)} labels",
                code="unknown_label",
                name=missing,
            )
        return ids

    def _find(self, names: list[str]) -> list[int]:
        """The ids of labels by name, -1 for what is none."""
        if isinstance(self.label_names_, StringTable):
            return self.label_names_.find(names).tolist()
        if not hasattr(self, "_position"):
            self._position = {name: i for i, name in enumerate(self.label_names_)}
        return [self._position.get(name, -1) for name in names]

    def to_state(self) -> State:
        check_is_fitted(self, "features_")
        return State(
            "Tagger",
            facts={"n_labels": len(self.label_names_), "n_rows": self.n_rows_},
            arrays={"label_names": self.label_names_, "label_counts": self.label_counts_},
            parts={"features": part_state(self.features_), "estimator": part_state(self.estimator_)},
        )

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Build the fitted tagger again, or raise `ModelFormatError`."""
        estimator = put_learner_together(state.part("estimator"))
        model = cls(put_together(state.part("features", *FEATURES)), estimator)
        model.features_, model.estimator_ = model.features, model.estimator
        model.label_names_ = state.string_table("label_names", model.estimator_.n_labels_)
        model.label_counts_ = state.array("label_counts", np.int64, (len(model.label_names_),))
        model.n_rows_ = state.size("n_rows", least=1, most=2**53)
        if (model.label_counts_ < 0).any():
            raise ModelFormatError("Tagger: labels have fewer than 0 rows")
        width = len(model.features_.idf_) if model.takes_texts else model.features_.n_features_in_
        if width != model.estimator_.n_features_in_:
            raise ModelFormatError(
                f"Tagger: the features are {width} wide and the estimator takes {model.estimator_.n_features_in_}"
            )
        return model


def _inputs(corpus: Corpus | GroupedCorpus, features: Any) -> Any:
    """What `features` takes of the corpus: its texts or its feature rows."""
    takes_texts = isinstance(features, TextFeatures)
    rows = corpus.texts if takes_texts else corpus.features
    if rows is None:
        wanted, found = ("texts", "only features") if takes_texts else ("features", "only texts")
        raise InvalidInput(f"the model takes {wanted}; the corpus has {found}")
    return rows
