"""What the figures of a report mean, in plain sentences that are computed from them."""

from __future__ import annotations

from longtail.metrics import Band
from longtail.report.examples import PARTLY, RIGHT, WRONG
from longtail.report.facts import Facts

_CALIBRATED = 0.03
_FEW_ROWS = 200


def percent(share: float, digits: int = 0) -> str:
    """A share as people write it; what is not quite all, or not quite nothing, is not rounded to it.

    >>> percent(0.834), percent(0.9999), percent(0.0001), percent(1.0)
    ('83%', '>99%', '<1%', '100%')
    """
    shown = f"{100 * share:.{digits}f}%"
    if not digits and 0 < share < 0.005:
        return "<1%"
    if not digits and 0.995 <= share < 1:
        return ">99%"
    return shown


def counted(count: int, singular: str, plural: str = "") -> str:
    """A number of things in words.

    >>> counted(1, "row"), counted(2000, "row")
    ('1 row', '2,000 rows')
    """
    return f"{count:,} {singular if count == 1 else plural or f'{singular}s'}"


def score(value: float, digits: int = 3) -> str:
    """A score, without a sign on what is rounded to 0.

    >>> score(-0.0001), score(-0.5)
    ('0.000', '-0.500')
    """
    return f"{round(value, digits) + 0.0:.{digits}f}"


def about_metrics(facts: Facts) -> str:
    report, k = facts.report, facts.k
    first = report.ks[0]
    found = facts.intervals[first]["P"]
    said = (
        f"The first label is right for {percent(report.metrics['P'][1])} of the rows"
        if first == 1
        else f"Of the first {first} labels {percent(report.metrics['P'][first])} are right"
    )
    reach = 100 * (found.high - found.low) / 2
    sample = f", give or take {reach:.1f} points for the choice of rows" if reach >= 0.05 else ""
    few = " These are few rows: look at the intervals before comparing models." if report.n_rows < _FEW_ROWS else ""
    return (
        f"{said}{sample}. The first {counted(k, 'place')} "
        f"hold{'s' * (k == 1)} {percent(report.metrics['R'][k])} of a row's true labels.{few}"
    )


def about_reliability(facts: Facts) -> str:
    found = facts.reliability
    if not found.bins:
        return "No label was given to any row, so there are no scores to look at."
    low, high = found.bins[0], found.bins[-1]
    ends = (
        f"Of the labels with the highest scores ({score(high.low, 2)} and more) {percent(high.share_right)} are right, "
        f"of those with the lowest (up to {score(low.high, 2)}) {percent(low.share_right)}."
    )
    if not facts.gives_probabilities:
        return (
            f"The scores of {facts.learner} are not probabilities: they order labels, and may lie outside 0 and 1. "
            f"{ends} To choose a threshold, read the share off the diagram."
        )
    off = 100 * found.error
    if found.error <= _CALIBRATED:
        return f"Scores can be read as probabilities: on average they are off by {off:.1f} points. {ends}"
    if found.mean_score > found.share_right:
        return (
            f"The model is too sure: its scores say {percent(found.mean_score)} on average, and "
            f"{percent(found.share_right)} are right; bin by bin they are off by {off:.1f} points. {ends}"
        )
    return (
        f"The model is too modest: its scores say {percent(found.mean_score)} on average, and "
        f"{percent(found.share_right)} are right; bin by bin they are off by {off:.1f} points. {ends}"
    )


def about_frequency(facts: Facts) -> str:
    with_truth = [group for group in facts.report.groups if group.n_true_labels and group.name != "unseen"]
    if len(with_truth) < 2:
        return "The labels of these rows are about equally frequent in training, so frequency explains nothing here."
    head, tail = with_truth[0], with_truth[-1]
    k = facts.k
    much, little = head.metrics["R"][k], tail.metrics["R"][k]
    comparison = (
        "the model serves both alike"
        if abs(much - little) < 0.05
        else "rare labels are the harder ones"
        if much > little
        else "rare labels are even the easier ones"
    )
    return (
        f"Of the {_several(head.n_labels, 'most frequent label')} ({_rows(*head.train_counts)} in training each) "
        f"{percent(much)} of all true occurrences are found, of the {_several(tail.n_labels, 'rarest')} "
        f"({_rows(*tail.train_counts)}) {percent(little)}: {comparison}."
    )


def about_worst(facts: Facts) -> str:
    if not facts.n_candidates:
        return "No label that the model knows occurs in these rows, so there is none to look at."
    never = (
        "all of them are found at least once"
        if not facts.n_never_found
        else f"{percent(facts.n_never_found / facts.n_candidates)} ({facts.n_never_found:,}) are never found"
    )
    return (
        f"Of {counted(facts.n_candidates, 'label')} with at least {counted(facts.least_true, 'true row')} here, "
        f"{never}. A label that is often true and never found deserves a look at its training rows, or at "
        "whether it can be told from the text at all."
    )


def about_pairs(facts: Facts) -> str:
    if facts.any_confused and not facts.pairs:
        return "Some labels were missed while others were given wrongly; none of these pairs was asked for."
    if not facts.pairs:
        return "No label was missed while another was given wrongly: there is nothing to confuse."
    pair = facts.pairs[0]
    twice = (
        " No pair occurs twice: the mistakes are spread widely."
        if pair.count == 1
        else " Where both mean the same, merge them; where a row lacks a label that applies, the model may be right."
    )
    return (
        f"Most often, {counted(pair.count, 'time')} ({percent(pair.share)} of its rows), "
        f"“{facts.label_names[pair.missed]}” is missed and “{facts.label_names[pair.given]}” given instead.{twice}"
    )


def about_unknown(facts: Facts) -> str:
    unknown, known = facts.unknown, "known word" if facts.takes_texts else "known feature"
    said = (
        "Training saw every label of these rows."
        if not unknown.n_labels
        else f"{counted(unknown.n_labels, 'label')} of these rows {'was' if unknown.n_labels == 1 else 'were'} never "
        f"seen in training and cannot be found: {percent(unknown.n_pairs / max(1, facts.n_pairs))} of all true labels, "
        f"and every label of {counted(unknown.n_rows, 'row')}."
    )
    blank = (
        f" Every row has a {known}."
        if not facts.n_rows_without_features
        else f" {counted(facts.n_rows_without_features, 'row')} "
        f"({percent(facts.n_rows_without_features / facts.report.n_rows)}) "
        f"{'has' if facts.n_rows_without_features == 1 else 'have'} no {known}: whatever they get is a guess."
    )
    bare = (
        f" {counted(facts.n_rows_without_labels, 'row')} {'has' if facts.n_rows_without_labels == 1 else 'have'} no "
        "label at all and can only lower the metrics."
        if facts.n_rows_without_labels
        else ""
    )
    return said + blank + bare


def about_examples(facts: Facts) -> str:
    total = max(1, sum(facts.kinds.values()))
    return (
        f"{percent(facts.kinds[RIGHT] / total)} of the labelled rows are right (their true labels come first), "
        f"{percent(facts.kinds[PARTLY] / total)} partly, and for {percent(facts.kinds[WRONG] / total)} none of the "
        f"first {counted(facts.k, 'place')} is right. Of each kind the surest and the least sure are shown."
    )


def precision_of(band: Band) -> str:
    return "-" if band.precision is None else percent(band.precision, 1)


def recall_of(band: Band) -> str:
    return "-" if band.recall is None else percent(band.recall, 1)


def _several(count: int, what: str) -> str:
    if count == 1:
        return what
    return f"{count:,} {what}{'s' * what.endswith('label')}"


def _rows(low: int, high: int) -> str:
    return counted(low, "row") if low == high else f"{low:,} to {high:,} rows"
