"""The sentences of a report, which say what its figures mean, and how numbers are written."""

from __future__ import annotations

from longtail.estimator import HeadDiagnostics
from longtail.metrics import GroupReport
from longtail.printable import counted
from longtail.report.examples import PARTLY, RIGHT, WRONG, Why
from longtail.report.facts import Facts, WorstLabel
from longtail.report.markup import shortened

_CALIBRATED = 0.03
_ALIKE = 0.05
_FEW = 200
_BETTER = 0.005  # a difference of F1 that is worth telling


def percent(share: float, digits: int = 0) -> str:
    """A share in percent; 0% and 100% are exact, never rounded.

    >>> percent(0.834), percent(0.9999), percent(0.0001), percent(1.0), percent(0.9996, 1)
    ('83%', '>99%', '<1%', '100%', '>99.9%')
    """
    shown, step = f"{100 * share:.{digits}f}%", 10.0**-digits
    if share > 0 and shown == f"{0:.{digits}f}%":
        return f"<{step:.{digits}f}%"
    if share < 1 and shown == f"{100:.{digits}f}%":
        return f">{100 - step:.{digits}f}%"
    return shown


def score(value: float, digits: int = 3) -> str:
    """A score; what rounds to 0 has no sign.

    >>> score(-0.0001), score(-0.5)
    ('0.000', '-0.500')
    """
    return f"{round(value, digits) + 0.0:.{digits}f}"


def span(low: int, high: int) -> str:
    """A range of numbers.

    >>> span(1, 1), span(1024, 2047)
    ('1', '1,024-2,047')
    """
    return f"{low:,}" if low == high else f"{low:,}-{high:,}"


def share(value: float | None) -> str:
    """A share in percent, or a dash."""
    return "-" if value is None else percent(value, 1)


def first_places(k: int) -> str:
    """The places of the ranking that are evaluated.

    >>> first_places(1), first_places(5)
    ('the first place', 'the first 5 places')
    """
    return "the first place" if k == 1 else f"the first {k:,} places"


def about_rows(facts: Facts) -> str:
    """The number of rows and of their labels."""
    rows, bare = facts.report.n_rows, facts.report.n_rows_without_labels
    if rows == 1:
        return f"1 row with {counted(facts.n_pairs, 'label')}"
    mean = f"{rows:,} rows with {facts.n_pairs / rows:.1f} labels on average"
    return f"{mean}, {bare:,} of them without labels" if bare else mean


def about_metrics(facts: Facts) -> str:
    report, k = facts.report, facts.k
    first = report.ks[0]
    found = facts.intervals[first]["P"]
    margin = 100 * (found.high - found.low) / 2
    sample = f" (±{margin:.1f} points)" if report.n_rows > 1 and margin >= 0.05 else ""
    correct = (
        f"The first label is correct for {percent(found.value)}{sample} of the rows."
        if first == 1
        else f"{percent(found.value)}{sample} of the first {first} labels are correct."
    )
    cover = "The first label covers" if k == 1 else f"The first {k:,} labels cover"
    few = " With so few rows, compare the intervals, not only the values." if report.n_rows < _FEW else ""
    return (
        f"{correct} {cover} {percent(report.metrics['R'][k])} of a row's true labels on average."
        f"{_without_labels(facts)}{few}"
    )


def _without_labels(facts: Facts) -> str:
    report = facts.report
    bare, rows, first = report.n_rows_without_labels, report.n_rows, report.ks[0]
    if not bare:
        return ""
    # They contribute 0 to the sum over rows.
    without = report.metrics["P"][first] * rows / (rows - bare)
    verb = "has no label and counts" if bare == 1 else "have no label and count"
    return (
        f" {bare:,} of the {rows:,} rows {verb} as 0 in all means over rows; without {'it' if bare == 1 else 'them'}, "
        f"P@{first} is {percent(without, 1)}."
    )


def about_given(facts: Facts) -> str:
    """How many labels rows are given, how good they are, and which cut-off would be better here."""
    found = facts.report.given
    assert found is not None
    rule = "By its own rule, the learner gives"
    if facts.gives_one:
        rule = "As every training row has exactly one label, the model gives"
    elif facts.decision is not None:
        rule = (
            f"With a score of at least {score(facts.decision.rule.threshold)}, learned for the aim "
            f"{facts.decision.aim} on held-out rows, the model gives"
        )
    best = max(facts.report.cutoffs, key=lambda each: each.f1)
    other = f" A cut-off of {best.cutoff:g} would give {percent(best.f1, 1)}." if best.f1 > found.f1 + _BETTER else ""
    return (
        f"{rule} {found.per_row:.1f} labels per row: {percent(found.precision)} of them are correct, and they are "
        f"{percent(found.recall)} of the true labels, an F1 of {percent(found.f1, 1)}.{other}"
    )


def about_reliability(facts: Facts) -> str:
    found = facts.reliability
    if not found.bins:
        return "The model predicts no label for any row, so there are no scores."
    low, high = found.bins[0], found.bins[-1]
    ends = (
        f"Of the labels with the highest scores ({score(high.low, 2)} and more), {percent(high.share_right)} are "
        f"correct; of those with the lowest (up to {score(low.high, 2)}), {percent(low.share_right)}."
        if len(found.bins) > 1
        else f"{percent(found.share_right)} of the predicted labels are correct."
    )
    if not facts.gives_probabilities:
        return (
            f"The scores of {facts.learner} are not probabilities: they rank labels, and can be below 0 or above 1. "
            f"{ends} To choose a threshold, read the share of correct labels off the diagram."
        )
    if found.count < _FEW:
        given = counted(found.count, "predicted label")
        return f"{given} {'is' if found.count == 1 else 'are'} too few to tell whether scores are probabilities. {ends}"
    off = 100 * found.error
    if found.error <= _CALIBRATED:
        return f"The scores are good estimates of probabilities: on average they are off by {off:.1f} points. {ends}"
    means = f"the mean score is {percent(found.mean_score)}, and {percent(found.share_right)} of the labels are correct"
    bins = f"the scores of a bin are off by {off:.1f} points on average"
    if abs(found.mean_score - found.share_right) <= _CALIBRATED:
        return f"Some scores are too high and some too low: {means}, but {bins}. {ends}"
    kind = "high" if found.mean_score > found.share_right else "low"
    return f"The scores are too {kind}: {means}; {bins}. {ends}"


def about_frequency(facts: Facts) -> str:
    with_truth = [group for group in facts.report.groups if group.n_true_labels and group.name != "unseen"]
    if not with_truth:
        return "No label of these rows is in the training set, so there is nothing to compare."
    if len(with_truth) == 1:
        return f"All known labels of these rows belong to the {with_truth[0].name}, so there is nothing to compare."
    frequent, rare = with_truth[0], with_truth[-1]
    much, little = (group.metrics["R"][facts.k] for group in (frequent, rare))
    comparison = (
        "it finds neither"
        if not much and not little
        else "both are found about equally often"
        if abs(much - little) < _ALIKE
        else "rare labels are harder"
        if much > little
        else "rare labels are easier"
    )
    return (
        f"The model finds {percent(much)} of the true occurrences of the {_group(frequent)} and {percent(little)} of "
        f"those of the {_group(rare)}: {comparison}."
    )


def _group(group: GroupReport) -> str:
    low, high = group.train_counts
    rows = counted(low, "training row") if low == high else f"{low:,} to {high:,} training rows"
    return f"{group.name} ({counted(group.n_labels, 'label')} with {rows}{' each' * (group.n_labels > 1)})"


def about_worst(facts: Facts) -> str:
    labels, never = facts.n_candidates, facts.n_never_found
    if not labels:
        return "No label of these rows is known to the model."
    occur = "in these rows" if facts.min_true == 1 else f"in at least {facts.min_true} of these rows"
    if labels == 1:
        said = f"1 known label occurs {occur}; it is {'never found' if never else 'found at least once'}."
    elif not never:
        said = f"{labels:,} known labels occur {occur}; all of them are found at least once."
    elif never == labels:
        said = f"{labels:,} known labels occur {occur}; none of them is ever found."
    else:
        verb = "is" if never == 1 else "are"
        said = (
            f"{labels:,} known labels occur {occur}; {never:,} of them ({percent(never / labels)}) {verb} never found."
        )
    advice = (
        " If a label is often true and never found, look at its training rows, or ask whether the text can show it at "
        "all."
    )
    return said + advice * bool(never)


def about_pairs(facts: Facts) -> str:
    if facts.any_confused and not facts.pairs:
        return "Some labels were missed while wrong ones were predicted; the options of this report show no such pairs."
    if not facts.pairs:
        return "No known label was missed while a wrong one was predicted."
    pair = facts.pairs[0]
    missed, given = (f"“{shortened(facts.label_names[label], 100)}”" for label in (pair.missed, pair.given))
    if pair.count == 1:
        return f"No pair of labels is confused twice. One example: {missed} was missed and {given} was predicted."
    return (
        f"The most frequent confusion: {missed} is missed and {given} is predicted instead, in {pair.count:,} rows, "
        f"{percent(pair.share)} of the rows with the first label. If both mean the same, merge them. If a row lacks a "
        "label that applies, the model may be right."
    )


def nothing_instead(label: WorstLabel) -> str:
    """Why no wrong label was predicted in place of a label."""
    return "never missed" if label.found == label.true else "no wrong label"


def about_heads(found: HeadDiagnostics) -> str:
    """How often the heads of a network are right alone and together, and what a cascade loses on the way."""
    least = min(range(len(found.heads)), key=lambda number: found.heads[number].accuracy)
    which = "The first of the model's networks" if found.n_networks > 1 else "The network"
    n_heads = len(found.heads)
    if n_heads == 1:
        return f"{which} has one head, which is right for {percent(found.together)} of the rows."
    said = (
        f"{which} writes a label as a code of {n_heads} values, one from each head. Head {least + 1} is right least "
        f"often, for {percent(found.heads[least].accuracy)} of the rows; all heads together are right for "
        f"{percent(found.together)}."
    )
    if found.survival is None:
        return said
    place = found.survival.sizes.index(min(found.survival.in_use, found.survival.sizes[-1]))
    remaining = found.survival.shares[-1][place]
    lost = "" if remaining == 1 else "; the others cannot be found"
    return (
        f"{said} The model keeps {counted(found.survival.sizes[place], 'group')} of labels for each row, in which "
        f"{percent(remaining)} of its labels remain{lost}."
    )


def about_unknown(facts: Facts) -> str:
    unknown, known = facts.unknown, "known word" if facts.takes_texts else "known feature"
    said = "All labels of these rows are in the training set."
    if unknown.n_labels:
        verb = "is" if unknown.n_labels == 1 else "are"
        said = (
            f"{counted(unknown.n_labels, 'label')} of these rows {verb} not in the training set and cannot be found: "
            f"{percent(unknown.n_pairs / facts.n_pairs)} of all true labels."
        )
        if unknown.n_rows:
            said += f" {counted(unknown.n_rows, 'row has', 'rows have')} no other label."
    blank = facts.n_rows_without_features
    if not blank:
        return f"{said} Every row has a {known}."
    verb, labels = ("has", "its labels are") if blank == 1 else ("have", "their labels are")
    return (
        f"{said} {counted(blank, 'row')} ({percent(blank / facts.report.n_rows)}) {verb} no {known}: {labels} a guess."
    )


def about_examples(facts: Facts) -> str:
    right, partly, wrong = (facts.kinds[kind] for kind in (RIGHT, PARTLY, WRONG))
    rows = counted(right + partly + wrong, "row with labels", "rows with labels")
    shown = " The examples of each kind have the highest and the lowest scores." if facts.examples else ""
    return (
        f"Of {rows}, {_are(right)} right (the true labels come first), {_are(partly)} partly right, and {_are(wrong)} "
        f"wrong (no true label in {first_places(facts.k)}).{shown}"
    )


def before_words(why: Why) -> str:
    """What the words that count for a label are; for a label without training rows, those of its own text."""
    if not why.has_rows:
        return "no training row has this label, but words of its name or description occur in the text: "
    return "words: " if why.evidence else "because of "


def _are(count: int) -> str:
    return f"{count:,} are" if count > 1 else "1 is" if count else "none is"
