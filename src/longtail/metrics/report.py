"""`evaluate`: every metric of a ranking, overall and by the frequency of the labels in training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np

from longtail.errors import InvalidInput
from longtail.metrics.calibration import reliability
from longtail.metrics.given import Cutoff, GivenScores, cutoffs_of
from longtail.metrics.judgement import MEASURES, Judgement
from longtail.metrics.label_scores import GROUP_NAMES, LabelScores, frequency_groups
from longtail.metrics.single_label import ClassScores
from longtail.printable import align, json_text

AtK = dict[int, float]

_SHOWN = (5, 10, 20, 30, 40, 50, 60, 70, 80, 90)  # cut-offs in the table of a text, in percent


@dataclass(frozen=True)
class GroupReport:
    """The metrics of one frequency group of labels.

    Parameters
    ----------
    name : str
        head, middle, tail or unseen; see `longtail.metrics.frequency_groups`.
    n_labels, n_true_labels : int
        Number of labels in the group, and of those with at least one true row.
    train_counts : tuple of int
        The smallest and the largest training count in the group.
    truth_share : float
        The share of all true (row, label) pairs that belongs to the group.
    metrics : dict of str to dict of int to float
        By name and k. "P": the part of P@k that comes from the group's hits; the groups sum to P@k. "R": the share of
        the group's true (row, label) pairs that were found. "macro-P", "macro-R": means over the group's labels.
    """

    name: str
    n_labels: int
    n_true_labels: int
    train_counts: tuple[int, int]
    truth_share: float
    metrics: dict[str, AtK]


@dataclass(frozen=True)
class Report:
    """The result of `evaluate`; every value lies between 0 and 1.

    Parameters
    ----------
    n_rows, n_labels : int
        The size of the truth.
    ks : tuple of int
    metrics : dict of str to dict of int to float
        By name (P, nDCG, PSP, PSnDCG, R, F1, coverage, macro-P, macro-R) and k.
    groups : tuple of GroupReport
        The non-empty groups among head, middle, tail and unseen labels; none without training counts.
    n_rows_without_labels : int
        Number of rows without true labels, which count as 0 in every mean over rows.
    classes : ClassScores or None
        Accuracy and macro-F1, if every row has exactly one label.
    given : GivenScores or None
        The labels as given, if it is known which are.
    cutoffs : tuple of Cutoff
        What giving labels from a score on leads to; empty without scores.
    calibration_error : float or None
        Expected calibration error of the scores in the first max(ks) places, in 10 bins of equal size; None without
        scores.
    """

    n_rows: int
    n_labels: int
    ks: tuple[int, ...]
    metrics: dict[str, AtK]
    groups: tuple[GroupReport, ...] = ()
    n_rows_without_labels: int = 0
    classes: ClassScores | None = None
    given: GivenScores | None = None
    cutoffs: tuple[Cutoff, ...] = ()
    calibration_error: float | None = None

    def __getitem__(self, key: str) -> float:
        """One overall value by its usual name, such as ``report["P@1"]``.

        "F1" is that of the labels as given; "accuracy" and "macro-F1" are those of rows with one label each.
        """
        without_k = self._classes() if self.given is None else {"F1": self.given.f1, **self._classes()}
        if key in without_k:
            return without_k[key]
        name, _, k = key.rpartition("@")
        if name not in self.metrics or k not in map(str, self.ks):
            raise InvalidInput(
                f"the report has no {key!r}; it has {', '.join(self.metrics)} at {', '.join(map(str, self.ks))}"
            )
        return self.metrics[name][int(k)]

    def to_dict(self) -> dict[str, Any]:
        """The report as plain values, with keys such as "P@1"."""
        return {
            "n_rows": self.n_rows,
            "n_rows_without_labels": self.n_rows_without_labels,
            "n_labels": self.n_labels,
            "ks": list(self.ks),
            "metrics": _flat(self.metrics) | self._classes(),
            "groups": [
                vars(group) | {"train_counts": list(group.train_counts), "metrics": _flat(group.metrics)}
                for group in self.groups
            ],
            "given": None if self.given is None else vars(self.given),
            "cutoffs": [vars(each) for each in self.cutoffs],
            "calibration_error": self.calibration_error,
        }

    def to_json(self) -> str:
        """`to_dict` as JSON text."""
        return json_text(self.to_dict(), indent=2)

    def to_text(self) -> str:
        """The report as aligned tables, values in percent."""
        heading = ["", *(f"@{k}" for k in self.ks)]
        rows = [[name, *(_percent(at_k[k]) for k in self.ks)] for name, at_k in self.metrics.items()]
        text = f"{self._counts()}; values in percent\n\n{align([heading, *rows])}"
        if self.classes is not None:
            text += "\n\n" + ", ".join(f"{name} {_percent(value)}" for name, value in self._classes().items())
        text += self._choice()
        if not self.groups:
            return text
        last = self.ks[-1]
        heading = ["labels", "number", "with truth", "train count", "of truth"]
        heading += [f"{name}@{k}" for name in ("P", "R") for k in self.ks] + [f"macro-P@{last}", f"macro-R@{last}"]
        rows = [
            [
                group.name,
                f"{group.n_labels:,}",
                f"{group.n_true_labels:,}",
                _range(*group.train_counts),
                _percent(group.truth_share),
                *(_percent(group.metrics["P"][k]) for k in self.ks),
                *(_percent(group.metrics["R"][k]) if group.n_true_labels else "-" for k in self.ks),
                _percent(group.metrics["macro-P"][last]),
                _percent(group.metrics["macro-R"][last]) if group.n_true_labels else "-",
            ]
            for group in self.groups
        ]
        return f"{text}\n\n{align([heading, *rows])}"

    def _classes(self) -> dict[str, float]:
        return {} if self.classes is None else {"accuracy": self.classes.accuracy, "macro-F1": self.classes.macro_f1}

    def _choice(self) -> str:
        """The labels as given, and what to expect of cut-offs."""
        text = ""
        if self.given is not None:
            found = self.given
            pairs = (found.precision, found.recall, found.f1)
            labels = (found.macro_precision, found.macro_recall, found.macro_f1)
            rows = [["tags as given", "precision", "recall", "F1"]]
            rows += [["all pairs", *map(_percent, pairs)], ["mean of labels", *map(_percent, labels)]]
            bare = found.rows_without
            without = f", {bare:,} row{'s' * (bare != 1)} without a tag" if bare else ""
            text += f"\n\n{align(rows)}\n{found.per_row:.2f} tags per row{without}"
        if self.calibration_error is not None:
            text += f"\ncalibration error of the first {self.ks[-1]} scores: {self.calibration_error:.3f}"
        shown = [each for each in self.cutoffs if round(100 * each.cutoff) in _SHOWN]
        if shown:
            rows = [["cut-off", "precision", "recall", "F1", "per row"]]
            rows += [
                [f"{each.cutoff:g}", *map(_percent, (each.precision, each.recall, each.f1)), f"{each.per_row:.2f}"]
                for each in shown
            ]
            text += f"\n\n{align(rows)}"
        return text

    def _counts(self) -> str:
        rows, labels = (f"{n:,} {what}{'s' * (n != 1)}" for n, what in ((self.n_rows, "row"), (self.n_labels, "label")))
        if bare := self.n_rows_without_labels:
            rows += f" ({bare:,} without any label, counted as 0)"
        return f"{rows}, {labels}"

    def save_picture(self, path: str | PathLike[str]) -> None:
        """Draw the report as a PNG: the ranking metrics, and recall by label frequency if known.

        Needs matplotlib: ``pip install 'longtail[plots]'``.
        """
        from longtail.metrics.picture import save_picture

        save_picture(self, path)


def evaluate(
    truth: Any,
    top_labels: Any,
    *,
    ks: Sequence[int] = (1, 3, 5),
    inverse_propensity: Any = None,
    train_label_counts: Any = None,
    single_label: bool = False,
    scores: Any = None,
    given: Any = None,
) -> Report:
    """Evaluate a ranking by every metric.

    Parameters
    ----------
    truth : sparse or dense 0/1 matrix of shape (n_rows, n_labels)
    top_labels : integer array of shape (n_rows, at least max(ks))
        Label ids as `predict_topk` returns them: best first, -1 if there are fewer.
    ks : sequence of int
        Numbers of top labels to evaluate.
    inverse_propensity : array-like of shape (n_labels,) or None
        See `longtail.metrics.inverse_propensity`; needed for PSP and PSnDCG.
    train_label_counts : array-like of shape (n_labels,) or None
        Number of training rows of each label; needed for the breakdown by label frequency.
    single_label : bool
        Whether every row has exactly one label; then there are accuracy and macro-F1, too.
    scores : array like `top_labels` or None
        Needed for cut-offs and the calibration error.
    given : mask like `top_labels` or None
        Which of these labels rows are given, to judge them as a set.

    Examples
    --------
    >>> report = evaluate([[1, 1, 0], [0, 0, 1]], [[0, 2], [1, 2]], ks=[1, 2], train_label_counts=[9, 4, 2])
    >>> report["P@1"], report["R@2"]
    (0.5, 0.75)
    >>> [(group.name, group.metrics["R"][2]) for group in report.groups]
    [('head', 1.0), ('tail', 0.5)]
    """
    judgement = Judgement.of(truth, top_labels, inverse_propensity)
    cutoffs = tuple(sorted({judgement.check_k(k) for k in ks}))
    if not cutoffs:
        raise InvalidInput("ks is empty; expected at least one k, such as ks=(1, 3, 5)")
    values = None if scores is None else _like(scores, judgement, "scores")
    names = [name for name in MEASURES if judgement.weights is not None or name not in ("PSP", "PSnDCG")]
    return Report(
        n_rows=judgement.n_rows,
        n_labels=judgement.n_labels,
        ks=cutoffs,
        metrics={name: {k: MEASURES[name](judgement, k) for k in cutoffs} for name in names},
        groups=() if train_label_counts is None else _break_down(judgement, cutoffs, train_label_counts),
        n_rows_without_labels=int(np.count_nonzero(judgement.row_sizes == 0)),
        classes=ClassScores.of(judgement.truth, np.asarray(top_labels)[:, 0]) if single_label else None,
        given=None if given is None else GivenScores.of(judgement, _like(given, judgement, "given")),
        cutoffs=() if values is None else cutoffs_of(judgement, values),
        calibration_error=None if values is None else _calibration_error(judgement, values, cutoffs[-1]),
    )


def _like(values: Any, judgement: Judgement, name: str) -> Any:
    found = np.asarray(values)
    if found.shape != judgement.top_labels.shape:
        raise InvalidInput(f"{name} has shape {found.shape}; top_labels has {judgement.top_labels.shape}")
    return found


def _calibration_error(judgement: Judgement, scores: Any, k: int) -> float:
    places = judgement.top_labels[:, :k] >= 0
    return reliability(scores[:, :k][places], judgement.hits[:, :k][places]).error


def _break_down(judgement: Judgement, ks: tuple[int, ...], train_label_counts: Any) -> tuple[GroupReport, ...]:
    groups = frequency_groups(train_label_counts)
    if len(groups) != judgement.n_labels:
        raise InvalidInput(f"train_label_counts has {len(groups)} counts for {judgement.n_labels} labels of the truth")
    counts = np.asarray(train_label_counts)
    scores = {k: LabelScores.of(judgement, k) for k in ks}
    all_pairs = int(judgement.truth.nnz)
    reports = []
    for number, name in enumerate(GROUP_NAMES):
        members = np.flatnonzero(groups == number)
        if not len(members):
            continue
        sizes = judgement.label_sizes[members]
        true = sizes > 0
        pairs = int(sizes.sum())
        metrics: dict[str, AtK] = {"P": {}, "R": {}, "macro-P": {}, "macro-R": {}}
        for k, at_k in scores.items():
            hits = int(at_k.found[members].sum())
            metrics["P"][k] = hits / (judgement.n_rows * k)
            metrics["R"][k] = hits / pairs if pairs else 0.0
            metrics["macro-P"][k] = float(np.mean(at_k.precision[members]))
            metrics["macro-R"][k] = float(np.mean(at_k.recall[members][true])) if pairs else 0.0
        train_counts = (int(counts[members].min()), int(counts[members].max()))
        share = pairs / all_pairs if all_pairs else 0.0
        reports.append(GroupReport(name, len(members), int(np.count_nonzero(true)), train_counts, share, metrics))
    return tuple(reports)


def _flat(metrics: dict[str, AtK]) -> dict[str, float]:
    return {f"{name}@{k}": value for name, at_k in metrics.items() for k, value in at_k.items()}


def _percent(value: float) -> str:
    return f"{100 * value:.2f}"


def _range(smallest: int, largest: int) -> str:
    return f"{smallest:,}" if smallest == largest else f"{smallest:,}-{largest:,}"
