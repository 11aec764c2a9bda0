"""`Tagger`: the only place where features, learner and label names come together."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import ClassifierTags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from longtail.aggregated import AggregatedClassifier, without_empty_groups, without_unused_labels
from longtail.arrays import Array
from longtail.choice import Choice, HeldOut, LearnerOptions
from longtail.data import Change, Corpus, GroupedCorpus, LabelDrop, LabelRename, LabelTexts, read_label_texts
from longtail.errors import InvalidInput, ModelFormatError
from longtail.estimator import (
    PLACES_OF_SCORE,
    Estimator,
    Explanation,
    HeadDiagnostics,
    Step,
    fit_with,
    normalised,
    read_feature_names,
    read_weights,
    weighted_mean,
)
from longtail.files import PathName
from longtail.metrics import Judgement, Report, evaluate, inverse_propensity
from longtail.parallel import split
from longtail.printable import counted
from longtail.ranking import TwoStage
from longtail.store import (
    FEATURES,
    Persistent,
    State,
    StringTable,
    part_state,
    put_learner_together,
    put_together,
)
from longtail.tagger.aims import Aim
from longtail.tagger.best import RaceSummary, train_best
from longtail.tagger.deciding import rank_held_out
from longtail.tagger.decision import Decision
from longtail.tagger.encoding import features_for
from longtail.tagger.explanations import LabelCount, PathStep, Reason, Tag, TagExplanation
from longtail.tagger.giving import AUTO, Giving, given_scores, without_zeros
from longtail.tagger.kept_rows import TrainingRows
from longtail.tagger.learners import check_estimator_parameter, learner_for, network_of_groups, races
from longtail.tagger.ledger import names_in
from longtail.tagger.preparation import FEWEST_ROWS, hold_out, tell_idle_texts, with_labels_that_occur
from longtail.tagger.ranks import Ranking, rank, ranked_in_pieces
from longtail.tagger.rows import KINDS, classes_of, names_a_class, read_rows
from longtail.tagger.updating import UpdateSummary, cannot_keep, changes_of, keep_rows, update
from longtail.text import rows_of
from longtail.validation import check_columns, column_names
from longtail.work import is_in_pieces

_log = logging.getLogger(__name__)

_LABELS_NAMED = 3
_ROWS_AT_ONCE = 2**16


class Aligned(NamedTuple):
    """Rows to evaluate a model on, as the model sees them.

    Parameters
    ----------
    features : csr_array of shape (n_rows, n_features)
    labels : csr_array of shape (n_rows, n_labels)
        The true labels: first those of the model, then those unknown to it.
    label_names : tuple of str
        In the same order.
    label_counts : int64 array of shape (n_labels,)
        Training rows of each label; 0 for labels unknown to the model.
    """

    features: Any
    labels: Any
    label_names: tuple[str, ...]
    label_counts: Array


def _may_give_probabilities(tagger: Any) -> bool:
    return "estimator_" not in vars(tagger) or bool(tagger.scores_are_probabilities)


class Tagger(BaseEstimator, Persistent):
    """Make features of texts (or take rows of features), train a learner on them, and tag new rows by label name.

    Parameters
    ----------
    features : TextFeatures, RowScaling, FeatureOptions or None
        How to make features. None and `FeatureOptions` make `TextFeatures` for texts and `RowScaling` for rows of
        features; whether to use parts of words is then decided on held-out rows.
    estimator : a learner, LearnerOptions or None
        What to train, for example `LabelTree()`. None and `LearnerOptions` without a learner or its parameters try
        several on held-out rows and keep the best, if it helps with a second stage that ranks its labels and those of
        other sources again; see ``docs/ranking.md``. With fewer than 1,000 rows, and for groups, they choose by the
        size of the data.
    aim : str or None
        How many labels a row gets, see `predict`; learned on held-out rows while training. "f1": as many as give the
        best F1 of all pairs of row and label together. "precision=0.8" or "recall=0.9": at least this share of the
        labels given are right, or of the right labels are given. "count": as many as rows have on average. None
        leaves it to the learner and its scores as they are. If every training row has exactly one label, a row gets
        one, and only "precision" and "recall" change that.
    updatable : bool
        Keep the training rows, as features, labels and digests of their ids, so that `update` can learn changes. The
        rows must be texts without weights.

    Attributes
    ----------
    features_, estimator_
        Fitted copies of the two.
    label_names_ : sequence of str
        A tuple once fitted; in a loaded model a `StringTable`, which decodes names on demand.
    label_counts_ : array of int
        Training rows of each label.
    n_rows_ : int
        Number of training rows.
    reasons_ : list of str
        Why this learner was chosen; empty if it was given. Not saved.
    race_ : RaceSummary or None
        What was tried on held-out rows, with its table; None without a race. Not saved.
    rows_ : TrainingRows or None
        The training rows, if the model is updatable.
    update_ : UpdateSummary or None
        What the last `update` changed. Not saved.
    decision_ : Decision or None
        The threshold and the probabilities of scores. None if `aim` is None, for estimators with thresholds of their
        own, for groups, in pieces, and with fewer than 50 rows; then the rule of the learner decides.
    holdout_report_ : Report or None
        The metrics on the held-out rows, None if none were held out. Not saved.
    is_single_label_ : bool
        Whether every training row has exactly one label.
    n_features_in_ : int
        Number of columns of the rows of features; missing for texts.
    feature_names_in_ : array of str
        The names of these columns; only if the rows were a data frame with names. Other data frames must have the same
        columns in the same order.
    classes_ : array
        The classes in the order of ``label_names_``; only if the tagger was fitted with one class for each row.

    Notes
    -----
    The parameters of a loaded model are its fitted parts, so `fit` trains the same kind of model again. A loaded model
    of two stages has the defaults instead: `fit` chooses anew.

    Decisions on the way (dropped labels, the chosen learner, held-out rows) are logged to ``longtail`` at level INFO.

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
    feature_names_in_: Array
    label_names_: Sequence[str]
    label_counts_: Array
    n_rows_: int
    reasons_: list[str]
    race_: RaceSummary | None = None
    is_single_label_: bool
    _gave_one: bool  # whether every row of the last full training had exactly one label
    _classes: str | None  # the kind of classes, if there was one class for each row
    decision_: Decision | None
    holdout_report_: Report | None
    rows_: TrainingRows | None = None
    update_: UpdateSummary | None = None

    def __init__(
        self, features: Any = None, estimator: Any = None, aim: str | None = "f1", updatable: bool = False
    ) -> None:
        self.features = features
        self.estimator = estimator
        self.aim = aim
        self.updatable = updatable

    def fit(
        self,
        texts: Any,
        labels: Any,
        sample_weight: Any = None,
        *,
        text: str | int | Sequence[str | int] | None = None,
        id: str | int | None = None,
        label_separator: str = ";",
        label_texts: Mapping[str, str | Sequence[str]] | LabelTexts | PathName | None = None,
    ) -> Self:
        """Train on texts and, for each, the names of its labels.

        Parameters
        ----------
        texts : iterable of str, matrix of features, or a table
        labels : iterable of iterables of str, one class for each row, or indicator matrix; of a table, a column
            With one class for each row (names, whole numbers or booleans), `predict` returns the class of each row, as
            classifiers of scikit-learn do. The columns of a data frame of zeros and ones name its labels.
        sample_weight : array-like of shape (n_rows,) or None
            How much each row counts: a row of weight 2 counts as two such rows, one of weight 0 as none.
        text, id, label_separator
            Of a table, such as a data frame: the columns of the texts and of the ids, and the separator between labels
            in one cell; see `Corpus.from_table`.
        label_texts : mapping, LabelTexts, str, path-like or None
            Names, alternative names and descriptions of labels: a text or a list of texts for each label, or a file
            that `longtail.data.read_label_texts` reads. See `Corpus.with_label_texts`.
        """
        if text is None:
            only_texts = bool(getattr(self.features, "takes_texts", False))
            corpus, classes = read_rows(texts, labels, sample_weight, only_texts=only_texts)
            names = None if corpus.features is None else column_names(texts)
        else:
            corpus = Corpus.from_table(texts, text=text, labels=labels, id=id, label_separator=label_separator)
            corpus, classes, names = replace(corpus, weights=read_weights(sample_weight, corpus.n_rows)), None, None
        if isinstance(label_texts, str | os.PathLike):
            label_texts = read_label_texts(label_texts)
        self.fit_corpus(corpus if label_texts is None else corpus.with_label_texts(label_texts))
        self._classes = classes
        if names is not None:
            self.feature_names_in_ = names
        return self

    def fit_corpus(
        self, corpus: Corpus, *, holdout: float | None = None, refit: bool = True, random_state: int = 0
    ) -> Self:
        """Train on a corpus: on its texts if it has them, else on its features. Labels without rows are dropped.

        Parameters
        ----------
        corpus : Corpus
        holdout : float or None
            Share of the rows to hold out and evaluate on, see `holdout_report_`.
        refit : bool
            After that, train again on all rows.
        random_state : int
            Seed of the choice of held-out rows.
        """
        self._check(corpus)
        corpus = corpus.weighted_rows()
        if holdout is None:
            return self._fit_rows(corpus)
        rest, held_out = hold_out(corpus, holdout, random_state)
        _log.info("holding out %s, training on %s", counted(held_out.n_rows, "row"), f"{rest.n_rows:,}")
        report = self.holdout_report_ = self._fit_rows(rest, "rest").evaluate(held_out)
        if refit:
            _log.info("training again on all %s rows", f"{corpus.n_rows:,}")
            self._fit_rows(corpus)
            self.holdout_report_ = report
        return self

    def _fit_rows(self, corpus: Corpus, part: str | None = None) -> Self:
        """Train on a corpus, or on a `part` of one, which is named because all rows may follow."""
        if races(self.estimator, corpus):
            decides = self.aim is not None
            *trained, held_out = train_best(self.features, corpus, self.estimator or LearnerOptions(), decides)
            self._adopt(*trained)
            return self._decide(held_out) if decides else self
        self._tell_idle(f"with at least {FEWEST_ROWS:,} rows")
        tell_idle_texts(corpus)
        corpus = with_labels_that_occur(corpus)
        features, X = features_for(self.features, self.estimator, corpus)
        estimator, reasons = learner_for(self.estimator, X, corpus)
        if part is not None:
            estimator = estimator.copy_for(part)
        estimator.check_pieces()
        if self.updatable and not estimator.takes_revisions:
            raise InvalidInput(f"{type(estimator).__name__} cannot learn changes", code="cannot_update")
        self._adopt(features, fit_with(estimator, X, corpus.labels, corpus.weights), corpus, reasons, X=X)
        return self.learn_how_many(X, corpus)

    def learn_how_many(self, X: Any, corpus: Corpus) -> Self:
        """Learn how many labels to give, if that is wanted, by training copies of the learner without held-out rows.

        Parameters
        ----------
        X : csr_array
            The features of the corpus.
        corpus : Corpus
            What the tagger was trained on.
        """
        if self.aim is None:
            return self
        if self.estimator_.decides:
            _log.info("how many tags: by the thresholds of the %s", type(self.estimator_).__name__)
            return self
        if is_in_pieces():
            _log.info("how many tags: as the learner decides, as training in pieces does not train twice")
            return self
        return self._decide(rank_held_out(self.estimator_, X, corpus.labels, weights=corpus.weights))

    def _decide(self, held_out: HeldOut | None) -> Self:
        if self.aim is None or held_out is None:
            return self
        if not held_out.hits.any():
            _log.info("how many tags: as the learner decides, as no label of a held-out row was found")
        else:
            aim = Aim.parse(self.aim)
            only_best = self._gave_one and aim.share is None
            self.decision_ = Decision.learn(held_out, aim, self.estimator_.scores_are_probabilities, only_best)
            _log.info(self.decision_.describe())
        return self

    def _tell_idle(self, when: str) -> None:
        """Say which options have no effect, because they are for a race, and when there is one."""
        if isinstance(self.estimator, LearnerOptions):
            for name in self.estimator.for_race():
                _log.info("%s has no effect: learners race only %s", name, when)

    def fit_groups(self, corpus: GroupedCorpus, strategy: str = "auto", **options: Any) -> Self:
        """Train on rows whose labels are known only for groups of rows; the model tags rows.

        Labels that no row can have, such as those of groups without rows, are dropped.

        Parameters
        ----------
        corpus : GroupedCorpus
        strategy : str
            How to decide which rows of a group carry a label, see `longtail.AggregatedClassifier`. A network learns
            from the labels of the groups without deciding that, so only "auto" goes with it.
        **options
            Other parameters of `AggregatedClassifier`, such as ``rule``, or of a network, which is a
            `longtail.neural.DeepMIML`, such as ``tau``.
        """
        self._check(corpus)
        network = network_of_groups(self.estimator, strategy, options)
        self._tell_idle("on rows with labels of their own")
        corpus = without_unused_labels(without_empty_groups(corpus))
        features, X = features_for(self.features, self.estimator, corpus)
        if network is not None:
            return self._fit_network_of_groups(network, features, X, corpus)
        if isinstance(self.estimator, LearnerOptions):
            options = {"random_state": self.estimator.random_state, "n_jobs": self.estimator.n_jobs, **options}
        estimator, reasons = learner_for(self.estimator, X, corpus.union())
        model = AggregatedClassifier(estimator, strategy=strategy, **options)
        if strategy != "auto":
            _log.info("strategy: %s, as requested", strategy)
        model.fit(X, corpus.groups, corpus.group_labels)
        labelled = corpus.labelled(model.row_labels_)
        has_labels = np.diff(labelled.labels.indptr) > 0
        return self._adopt(features, model.estimator_, labelled.select(has_labels), reasons)

    def _fit_network_of_groups(self, network: Choice, features: Any, X: Any, corpus: GroupedCorpus) -> Self:
        for reason in network.reasons:
            _log.info(reason)
        labelled = corpus.group_labels
        network.estimator.fit(X, corpus.groups, labelled)
        rows = corpus.union()
        self._adopt(features, network.estimator, rows.select(np.diff(rows.labels.indptr) > 0), network.reasons)
        # A label that occurs c times in a group is a label of c of its rows, whichever these are.
        counts = np.minimum(labelled.data, np.repeat(corpus.group_sizes, np.diff(labelled.indptr)))
        self.label_counts_ = np.bincount(labelled.indices, weights=counts, minlength=corpus.n_labels).astype(np.int64)
        self.is_single_label_ = self._gave_one = False
        return self

    def _check(self, corpus: Corpus | GroupedCorpus) -> None:
        """Refuse what cannot be trained, before anything is computed."""
        if not isinstance(self.updatable, bool | np.bool_):
            raise InvalidInput(f"Tagger: updatable is {self.updatable!r}; expected True or False")
        if self.updatable and (reason := cannot_keep(corpus)):
            raise InvalidInput(f"an updatable model is trained on {reason}", code="cannot_update")
        if isinstance(self.features, Estimator):
            learner = type(self.features).__name__
            raise InvalidInput(f"Tagger: features is a {learner}, a learner; write Tagger(estimator={learner}(...))")
        check_estimator_parameter(self.estimator, isinstance(corpus, GroupedCorpus))
        if self.aim is not None:
            Aim.parse(self.aim)
        if corpus.n_rows == 0:
            raise InvalidInput("there are no rows to learn from", code="no_rows")
        if isinstance(corpus, Corpus) and corpus.weights is not None and not corpus.weights.any():
            message = "every weight in sample_weight is zero, so there is nothing to learn from"
            raise InvalidInput(message, code="no_rows")

    @classmethod
    def from_fitted(cls, features: Any, estimator: Any, corpus: Corpus) -> Self:
        """A tagger made of features and an estimator that are fitted to `corpus` already."""
        return cls(features, estimator)._adopt(features, estimator, corpus, [])

    def _adopt(
        self,
        features: Any,
        estimator: Any,
        corpus: Corpus,
        reasons: list[str],
        race: RaceSummary | None = None,
        X: Any = None,
    ) -> Self:
        rows = keep_rows(X, corpus, features) if self.updatable and X is not None else None
        for made_before in ("_position", "fingerprint_", "directory_", "feature_names_in_"):
            self.__dict__.pop(made_before, None)
        self.features_, self.estimator_ = features, estimator
        self.label_names_ = tuple(corpus.label_names)
        self.label_counts_ = corpus.label_counts
        self.n_rows_ = corpus.n_rows
        self.reasons_, self.race_ = reasons, race
        self.rows_, self.update_ = rows, None
        self.decision_ = self.holdout_report_ = None
        self.is_single_label_ = self._gave_one = corpus.is_single_label
        self._classes = None
        return self

    def update(
        self,
        changes: Corpus | PathName | Iterable[Change] = (),
        *,
        rename: Mapping[str, str] | None = None,
        drop: Iterable[str] = (),
    ) -> Self:
        """Learn new, corrected and removed rows, feedback, and changes of labels, without training everything again.

        The model must be updatable. A row with the id of an earlier row replaces it; the id of a row without one is
        that of its text. The vocabulary of the features stays; `update_` says what changed, and whether a full training
        is due. The second stage, and how many tags are given, stay until an update brings the rows to 1.5 times
        those that they were learned from, and at least 1,500 are new. If the update fails, the model stays as it was.

        A tagger that was fitted with one class for each row refuses changes that leave a row without a class or with
        several.

        Parameters
        ----------
        changes : Corpus, str, path-like, or iterable of changes
            New and corrected rows; a file that `longtail.data.read_changes` reads, or what it returns.
        rename : mapping or None
            New names of labels, by their old names; done before `changes`.
        drop : iterable of str
            Labels to drop, before `changes`.

        Examples
        --------
        >>> from longtail import OneVsRest, Tagger, TextFeatures
        >>> from longtail.data import Corpus
        >>> texts = ["red apples", "green apples", "blue sky", "grey sky"]
        >>> tagger = Tagger(TextFeatures(min_df=1), OneVsRest(), updatable=True)
        >>> tagger = tagger.fit(texts, [["fruit"], ["fruit"], ["sky"], ["sky"]])
        >>> tagger = tagger.update(Corpus.from_lists(["grey apples"], [["stone"]]), rename={"sky": "weather"})
        >>> tagger.label_names_, tagger.update_.added
        (('fruit', 'weather', 'stone'), 1)
        """
        check_is_fitted(self, "features_")
        if self.rows_ is None:
            raise InvalidInput(
                "the model keeps no training rows, so it cannot learn changes",
                code="not_updatable",
                advice="train it again with updatable=True",
            )
        found = [LabelRename(old, new) for old, new in (rename or {}).items() if old != new]
        if chained := {each.old for each in found} & {each.new for each in found}:
            raise InvalidInput(
                f"rename has {min(chained)!r} as an old and as a new name; rename in several steps",
                code="bad_parameter",
                name="rename",
            )
        listed: list[Change] = [*found, *map(LabelDrop, drop), *changes_of(changes)]
        known = self._find(names_in(listed))
        model = self.features_, self.estimator_, self.label_names_
        updated = update(*model, known, self.rows_, listed, self._classes, gives_one=self.gives_one)
        for made_before in ("_position", "fingerprint_", "directory_"):
            self.__dict__.pop(made_before, None)
        self.estimator_, self.label_names_, self.rows_, self.update_ = updated
        self.label_counts_ = np.bincount(self.rows_.labels, minlength=len(self.label_names_)).astype(np.int64)
        self.n_rows_ = self.rows_.n_rows
        self.is_single_label_ = bool((np.diff(self.rows_.label_starts) == 1).all())
        self.updatable, self.holdout_report_ = True, None
        return self if self.decision_ is None else self._decide(self.estimator_.held_out_)

    @property
    def takes_texts(self) -> bool:
        """Whether rows are texts rather than feature vectors."""
        check_is_fitted(self, "features_")
        return bool(self.features_.takes_texts)

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
        allow, deny : names of the only labels to give, and of labels never to give
        **options
            Of the estimator, such as ``weighting`` of `Ridge`; other learners have none.
        """
        X = self._transformed(rows)
        labels, scores = self.estimator_.predict_topk(X, k, allow=self._ids(allow), deny=self._ids(deny), **options)
        decision = self._decision_for(options)
        return labels, scores if decision is None else decision.probabilities(scores)

    def predict(
        self,
        rows: Any,
        k: int | str = AUTO,
        allow: Iterable[str] | None = None,
        deny: Iterable[str] | None = None,
        *,
        threshold: float | None = None,
        **options: Any,
    ) -> Any:
        """The labels of each row by name, best first.

        Parameters
        ----------
        rows : sequence of str, or matrix of features
        k : int or "auto"
            Number of labels, or "auto" for those worth giving: with a score of at least `threshold`. If every training
            row had exactly one label, "auto" gives one, unless the aim is a precision or a recall.
        allow, deny : names of the only labels to give, and of labels never to give
        threshold : float or None
            Leave out labels with a lower score. None is, with "auto", the threshold in ``decision_`` or, without one,
            the rule of the learner.
        **options
            As for `predict_topk`.

        Returns
        -------
        list of lists of Tag, or array
            The scores are probabilities, learned on held-out rows, if there is a ``decision_``. A tagger that was
            fitted with one class for each row returns, with "auto" and no threshold, an array with the class of each
            row.
        """
        check_is_fitted(self, "features_")
        if k == AUTO and self._classes is not None and threshold is None:
            return self.classes_[np.maximum(self.predict_topk(rows, 1, allow, deny, **options)[0][:, 0], 0)]
        return self._tags(rows, k, allow, deny, threshold, options)

    def tag(
        self,
        rows: Any,
        k: int | str = AUTO,
        allow: Iterable[str] | None = None,
        deny: Iterable[str] | None = None,
        *,
        threshold: float | None = None,
        **options: Any,
    ) -> list[list[Tag]]:
        """As `predict`, without labels for which nothing speaks: the learner scores them exactly 0."""
        return self._tags(rows, k, allow, deny, threshold, options, zeros=False)

    def _tags(
        self,
        rows: Any,
        k: int | str,
        allow: Iterable[str] | None,
        deny: Iterable[str] | None,
        threshold: float | None,
        options: dict[str, Any],
        zeros: bool = True,
    ) -> list[list[Tag]]:
        check_is_fitted(self, "features_")
        giving = self._giving(k, threshold, options)
        choices = {"allow": self._ids(allow), "deny": self._ids(deny), **options}
        ranking = rank(self.estimator_, self._transformed(rows), giving.places, giving.by_rule, choices)
        return self._named(giving.apply(ranking if zeros else without_zeros(ranking)))

    @property
    def classes_(self) -> Array:
        """The class of each label, for a tagger that was fitted with one class for each row."""
        check_is_fitted(self, "features_")
        if self._classes is None:
            raise AttributeError("the tagger was fitted with lists of labels; it has label_names_ but no classes_")
        return classes_of(tuple(self.label_names_), self._classes)

    @available_if(_may_give_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, rows: Any) -> Array:
        """The probability of every label, in the order of ``label_names_``, as one dense matrix: for few labels.

        Taggers without `scores_are_probabilities` lack this method. If every training row had exactly one label, the
        probabilities of a row add up to 1; else they are the scores of `predict_topk`.
        """
        scores = self._all_scores(rows)
        if self.decision_ is not None:
            scores = self.decision_.probabilities(scores)
        return normalised(scores) if self.is_single_label_ else scores

    def decision_function(self, rows: Any) -> Array:
        """The score of every label by the learner alone, as one dense matrix: for few labels.

        For two classes, it is how much more the second scores than the first, as in scikit-learn.
        """
        scores = self._all_scores(rows)
        if self._classes is not None and len(self.label_names_) == 2:
            return np.asarray(scores[:, 1] - scores[:, 0])
        return scores

    def _all_scores(self, rows: Any) -> Array:
        X = self._transformed(rows)
        return np.asarray(self.estimator_.decision_function(X))

    def _transformed(self, rows: Any) -> Any:
        """The features of rows of texts or of features, whose columns must be those of the training."""
        check_is_fitted(self, "features_")
        check_columns(rows, vars(self).get("feature_names_in_"), type(self).__name__)
        return self.features_.transform(rows)

    def score(self, rows: Any, labels: Any, sample_weight: Any = None) -> float:
        """The accuracy if every training row had exactly one label, else nDCG@5, which judges the ranking.

        The parameters are those of `fit`.
        """
        check_is_fitted(self, "features_")
        check_columns(rows, vars(self).get("feature_names_in_"), type(self).__name__)
        corpus = read_rows(rows, labels, only_texts=self.takes_texts).corpus
        k = 1 if self.is_single_label_ and corpus.is_single_label else PLACES_OF_SCORE
        aligned = self.align(corpus)
        judgement = Judgement.of(aligned.labels, self.estimator_.predict_topk(aligned.features, k)[0])
        return weighted_mean(judgement.ndcg_of_rows(k), sample_weight)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        takes_texts = bool(getattr(self.features, "takes_texts", True))
        tags.input_tags.string, tags.input_tags.two_d_array = takes_texts, not takes_texts
        tags.input_tags.sparse = not takes_texts
        tags.target_tags.required = True
        if vars(self).get("_classes") is not None:
            # scikit-learn refuses lists of labels for classifiers, so only classes make one.
            tags.estimator_type, tags.classifier_tags = "classifier", ClassifierTags()
        return tags

    def tag_corpus(self, corpus: Corpus, k: int | str = AUTO, **options: Any) -> Iterator[list[Tag]]:
        """As `tag`, for the rows of a corpus that may be large; inside `longtail.in_pieces` its workers do it.

        Workers load the model from its directory, so it must be one that `longtail.load` has returned.
        """
        check_is_fitted(self, "features_")
        threshold, allow, deny = (options.pop(name, None) for name in ("threshold", "allow", "deny"))
        giving = self._giving(k, threshold, options)
        choices = {"allow": self._ids(allow), "deny": self._ids(deny), **options}
        X = rows_of(corpus, self.features_)
        for ranking in self._iter_rankings(X, giving.places, giving.by_rule, _ROWS_AT_ONCE, choices):
            yield from self._named(giving.apply(without_zeros(ranking)))

    def _giving(self, k: Any, threshold: float | None, options: dict[str, Any]) -> Giving:
        decision = self._decision_for(options)
        if k == AUTO and self._gave_one and (decision is None or decision.rule.only_best):
            k = 1  # as every training row
        return Giving.of(k, threshold, decision, len(self.label_names_))

    def _decision_for(self, options: dict[str, Any]) -> Decision | None:
        """The decision, unless options of the estimator change the scores that it knows."""
        return None if options else self.decision_

    def _named(self, found: Ranking) -> list[list[Tag]]:
        # Each name once: a loaded model decodes names on demand.
        names = {label: self.label_names_[label] for label in set(found.labels[found.given].tolist())}
        return [[Tag(names[label], score) for label, score in row] for row in given_scores(found)]

    def _iter_rankings(self, X: Any, k: int, by_rule: bool, at_once: int, choices: dict[str, Any]) -> Iterator[Ranking]:
        """Rankings, block after block: of `at_once` rows, or of as many as a worker gets."""
        if is_in_pieces():
            known = vars(self)
            yield from ranked_in_pieces(known.get("directory_"), known.get("fingerprint_"), X, k, by_rule, choices)
            return
        for block in split(X.shape[0], at_once) if X.shape[0] > at_once else [slice(None)]:
            yield rank(self.estimator_, X if block == slice(None) else X[block], k, by_rule, choices)

    def rank_rows(self, X: Any, k: int) -> Ranking:
        """At least `k` labels of rows of features with their scores, and which of them "auto" gives."""
        check_is_fitted(self, "features_")
        giving = self._giving(AUTO, None, {})
        places = max(k, giving.places)
        rankings = self._iter_rankings(X, places, giving.by_rule, max(1, X.shape[0]), {})
        blocks = [giving.apply(without_zeros(each)) for each in rankings]
        return Ranking(*(np.concatenate(arrays) for arrays in zip(*blocks, strict=True)))

    @property
    def n_features_in_(self) -> int:
        check_is_fitted(self, "features_")
        if self.takes_texts:
            raise AttributeError("a tagger of texts has no number of columns")
        return int(self.features_.n_features_in_)

    @property
    def gives_one(self) -> bool:
        """Whether a row gets exactly one label, as every row of the last full training had one."""
        check_is_fitted(self, "features_")
        return self._gave_one and (self.decision_ is None or self.decision_.rule.only_best)

    @property
    def scores_are_probabilities(self) -> bool:
        """Whether a score is the probability that the label is right, as far as the learner or held-out rows tell."""
        check_is_fitted(self, "features_")
        return self.decision_ is not None or bool(self.estimator_.scores_are_probabilities)

    def explain(self, row: Any, label: str) -> TagExplanation:
        """The exact contribution of each word (or feature) to the score of a label; for trees also the path."""
        [found] = self.explain_each(row, [label])
        return found

    def explain_each(self, row: Any, labels: Iterable[str]) -> list[TagExplanation]:
        """Explanations of several labels, as `explain` gives them."""
        x = self._transformed([row] if isinstance(row, str) else row)
        return [self._explain(x, label) for label in self._ids(labels) or []]

    def _explain(self, x: Any, label: int) -> TagExplanation:
        found = self.estimator_.explain(x, label)
        steps = tuple(
            self._path_step(step, after, label)
            for step, after in zip(found.steps, [*found.steps, None][1:], strict=True)
        )
        name, count = self.label_names_[label], int(self.label_counts_[label])
        reasons = self._reasons(found)
        if self.decision_ is not None:
            found = self.decision_.explained(found)
        return TagExplanation(name, found.score, found.margin, reasons, found.intercept, steps, found.evidence, count)

    def _reasons(self, part: Explanation | Step) -> tuple[Reason, ...]:
        names = self.features_.feature_names_ if self.takes_texts else None
        return tuple(
            Reason(str(feature) if names is None else names[feature], contribution)
            for feature, contribution in zip(part.features.tolist(), part.contributions.tolist(), strict=True)
        )

    def _path_step(self, step: Step, after: Step | None, label: int) -> PathStep:
        """A step by name: it leads to the node where the step `after` it starts, and at the end to the label."""
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
        """Those of some label ids that have the most training rows, most frequent first, ties in the order given."""
        counts = self.label_counts_[labels]
        if 0 < limit < len(labels):
            # Sort only what can be among the first.
            enough = counts >= np.partition(counts, len(counts) - limit)[len(counts) - limit]
            labels, counts = labels[enough], counts[enough]
        return labels[np.argsort(-counts, kind="stable")[:limit]]

    def find_labels(self, prefix: str = "", contains: str = "", limit: int = 20) -> list[LabelCount]:
        """The most frequent labels whose names begin with `prefix` and contain `contains`, ignoring ASCII case."""
        table, names = self._name_table(), self.label_names_
        found = table.containing(contains) if contains else table.with_prefix(prefix)
        if contains and prefix:
            found = np.intersect1d(found, table.with_prefix(prefix), assume_unique=True)
        best = self.most_frequent(found, limit)
        if 4 * len(best) > len(names):
            names = tuple(names)  # decoding all together is faster than many one by one
        counts = self.label_counts_[best].tolist()
        return [LabelCount(names[label], count) for label, count in zip(best.tolist(), counts, strict=True)]

    def similar_labels(self, name: str, limit: int = 3) -> list[str]:
        """The labels whose names are most like a mistyped one, best first; none if no name is like it.

        Takes some hundredths of a second with a million labels.
        """
        return [self.label_names_[label] for label in self._name_table().similar(name, limit, self.label_counts_)]

    def check_labels(self, names: Iterable[str]) -> None:
        """Raise `InvalidInput` with the code ``unknown_label`` and similar names if a name is not that of a label."""
        self._ids(names)

    def check_separable(self, separator: str) -> None:
        """Raise `InvalidInput` if a label contains what is to separate the labels in a cell of a table."""
        if found := self.find_labels(contains=separator, limit=1):
            raise InvalidInput(
                f"labels contain {separator!r}, such as {found[0].label!r}, so it cannot separate them",
                code="label_has_separator",
                name=found[0].label,
                advice="choose another label_separator, one record for each tag, or a .jsonl or .parquet file",
            )

    def _name_table(self) -> StringTable:
        check_is_fitted(self, "features_")
        names = self.label_names_
        return names if isinstance(names, StringTable) else StringTable.from_strings(names)

    def evaluate(self, corpus: Corpus, *, ks: tuple[int, ...] = (1, 3, 5), a: float = 0.55, b: float = 1.5) -> Report:
        """Evaluate the rankings of a corpus; labels that training never saw count as missed.

        Without `scores_are_probabilities`, there is no calibration error.

        Parameters
        ----------
        corpus : Corpus
        ks : cutoffs
        a, b : constants of the propensity model
        """
        aligned = self.align(corpus)
        found = self.rank_rows(aligned.features, max(ks))
        report = evaluate(
            aligned.labels,
            found.labels,
            ks=ks,
            scores=found.scores,
            given=found.given,
            inverse_propensity=inverse_propensity(aligned.label_counts, self.n_rows_, a=a, b=b),
            train_label_counts=aligned.label_counts,
            single_label=self.is_single_label_ and corpus.is_single_label,
        )
        return report if self.scores_are_probabilities else replace(report, calibration_error=None)

    def diagnose(self, corpus: Corpus, most: int = 10) -> HeadDiagnostics:
        """How often each digit of the labels' codes is right, for learners with codes; see `Estimator.diagnose`.

        Parameters
        ----------
        corpus : Corpus
        most : int
            Maximum number of confused groups of each digit.
        """
        aligned = self.align(corpus)
        known = aligned.labels[:, : len(self.label_names_)]
        found: HeadDiagnostics = self.estimator_.diagnose(aligned.features, known, aligned.label_names, most)
        unknown = int(aligned.labels.nnz - known.nnz)
        return replace(found, n_labels_left_out=found.n_labels_left_out + unknown)

    def align(self, corpus: Corpus) -> Aligned:
        """The features of a corpus, and its labels in the order of the model, with unknown labels at the end."""
        check_is_fitted(self, "features_")
        names = (*self.label_names_, *self.unknown_labels(corpus.label_names))
        return Aligned(
            features=rows_of(corpus, self.features_),
            labels=corpus.with_label_names(names).labels,
            label_names=names,
            label_counts=np.pad(self.label_counts_, (0, len(names) - len(self.label_counts_))),
        )

    def unknown_labels(self, names: Iterable[str]) -> list[str]:
        """Those of `names` that are not labels of the model."""
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
            similar = self.similar_labels(missing)
            raise InvalidInput(
                f"the model has no label {missing!r}; it knows {counted(len(self.label_names_), 'label')}",
                code="unknown_label",
                name=missing,
                found=similar,
                advice=f"did you mean {' or '.join(map(repr, similar))}?" if similar else "",
            )
        return ids

    def _find(self, names: list[str]) -> list[int]:
        """Ids of labels by name; -1 for unknown names."""
        if isinstance(self.label_names_, StringTable):
            return self.label_names_.find(names).tolist()
        if not hasattr(self, "_position"):
            self._position = {name: i for i, name in enumerate(self.label_names_)}
        return [self._position.get(name, -1) for name in names]

    def to_state(self) -> State:
        check_is_fitted(self, "features_")
        return State(
            "Tagger",
            facts={"n_labels": len(self.label_names_), "n_rows": self.n_rows_, **self._target_facts()},
            arrays={"label_names": self.label_names_, "label_counts": self.label_counts_, **self._column_names()},
            parts={
                "features": part_state(self.features_),
                "estimator": part_state(self.estimator_),
                **({} if self.rows_ is None else {"rows": self.rows_.to_state()}),
                **({} if self.decision_ is None else {"decision": self.decision_.to_state()}),
            },
        )

    def _column_names(self) -> dict[str, tuple[str, ...]]:
        return {"feature_names": tuple(self.feature_names_in_)} if "feature_names_in_" in vars(self) else {}

    def _target_facts(self) -> dict[str, Any]:
        facts: dict[str, Any] = {"single_label": True} if self.is_single_label_ else {}
        if self._gave_one and not self.is_single_label_:
            facts["gave_one"] = True
        return facts if self._classes is None else {**facts, "classes": self._classes}

    def _restore_targets(self, state: State) -> None:
        """Take from `state` what the labels of rows were; models without these facts have any number of labels."""
        self.is_single_label_ = "single_label" in state.facts and state.fact("single_label", bool)
        self._gave_one = self.is_single_label_ or ("gave_one" in state.facts and state.fact("gave_one", bool))
        self._classes = state.fact("classes", str) if "classes" in state.facts else None
        if self._classes is None:
            return
        if self._classes not in KINDS or not self.is_single_label_:
            raise ModelFormatError(f"Tagger: the fact 'classes' is {self._classes!r}; expected {' or '.join(KINDS)}")
        if not all(names_a_class(name, self._classes) for name in self.label_names_):
            raise ModelFormatError(f"Tagger: the classes are {self._classes}, but a label is not the name of one")

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Rebuild the fitted tagger, or raise `ModelFormatError`."""
        estimator = put_learner_together(state.part("estimator"))
        features = put_together(state.part("features", *FEATURES))
        decision = Decision.from_state(state.part("decision", "Decision")) if "decision" in state.parts else None
        model = cls(features, estimator)
        if state.part("estimator").kind == TwoStage.__name__:
            # Its learners and its features of texts were chosen for the old rows: `fit` chooses anew.
            model = cls(None if features.takes_texts else features)
        if decision is not None:
            model.aim = str(decision.aim)
        model.decision_ = decision
        model.features_, model.estimator_ = features, estimator
        model.label_names_ = state.string_table("label_names", model.estimator_.n_labels_)
        model.label_counts_ = state.array("label_counts", np.int64, (len(model.label_names_),))
        model.n_rows_ = state.size("n_rows", least=1, most=2**53)
        model._restore_targets(state)
        if (model.label_counts_ < 0).any():
            raise ModelFormatError("Tagger: a label count is negative")
        width = model.features_.n_features_out_
        if width != model.estimator_.n_features_in_:
            raise ModelFormatError(
                f"Tagger: the features are {width} wide and the estimator takes {model.estimator_.n_features_in_}"
            )
        if "feature_names" in state.arrays:
            model.feature_names_in_ = read_feature_names(state, model.features_.n_features_in_)
        if "rows" in state.parts:
            rows = state.part("rows", TrainingRows.__name__)
            model.rows_ = TrainingRows.from_state(rows, width, len(model.label_names_))
            model.updatable = True
            if model.rows_.n_rows != model.n_rows_ or not features.takes_texts:
                raise ModelFormatError("Tagger: the training rows that are kept do not fit the model")
        return model
