"""What the figures of a report mean, in plain sentences that are computed from them."""

from __future__ import annotations

from longtail.metrics import Band, GroupReport
from longtail.report.examples import PARTLY, RIGHT, WRONG
from longtail.report.facts import Facts, WorstLabel
from longtail.report.markup import shortened

_CALIBRATED = 0.03
_ALIKE = 0.05
_FEW = 200


def percent(share: float, digits: int = 0) -> str:
    """A share as people write it; what is not quite all, or not quite nothing, is not rounded to it.

    >>> percent(0.834), percent(0.9999), percent(0.0001), percent(1.0), percent(0.9996, 1)
    ('83%', '>99%', '<1%', '100%', '>99.9%')
    """
    shown, step = f"{100 * share:.{digits}f}%", 10.0**-digits
    if share > 0 and shown == f"{0:.{digits}f}%":
        return f"<{step:.{digits}f}%"
    if share < 1 and shown == f"{100:.{digits}f}%":
        return f">{100 - step:.{digits}f}%"
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


def span(low: int, high: int) -> str:
    """From one number to another.

    >>> span(1, 1), span(1024, 2047)
    ('1', '1,024-2,047')
    """
    return f"{low:,}" if low == high else f"{low:,}-{high:,}"


def first_places(k: int) -> str:
    """The places that are looked at.

    >>> first_places(1), first_places(5)
    ('the first place', 'the first 5 places')
    """
    return "the first place" if k == 1 else f"the first {k:,} places"


def about_rows(facts: Facts) -> str:
    """How many rows there are, and how many labels they have."""
    rows, bare = facts.report.n_rows, facts.report.n_rows_without_labels
    if rows == 1:
        return f"1 row with {counted(facts.n_pairs, 'label')}"
    mean = f"{rows:,} rows with {facts.n_pairs / rows:.1f} labels on average"
    return f"{mean}, {bare:,} of them without any" if bare else mean


def about_metrics(facts: Facts) -> str:
    report, k = facts.report, facts.k
    first = report.ks[0]
    found = facts.intervals[first]["P"]
    said = (
        f"The first label is right for {percent(found.value)} of the rows"
        if first == 1
        else f"Of the first {first} labels {percent(found.value)} are right"
    )
    reach = 100 * (found.high - found.low) / 2
    sample = ""
    if report.n_rows > 1 and reach >= 0.05:
        sample = f", give or take {reach:.1f} points for the choice of rows"
    places = first_places(k)
    held = f"{places[0].upper()}{places[1:]} hold{'s' * (k == 1)}"
    few = " With so few rows, look at the intervals before comparing models." if report.n_rows < _FEW else ""
    return (
        f"{said}{sample}. {held} {percent(report.metrics['R'][k])} of a row's true labels on average."
        f"{_without_labels(facts)}{few}"
    )


def _without_labels(facts: Facts) -> str:
    report = facts.report
    bare, rows = report.n_rows_without_labels, report.n_rows
    if not bare:
        return ""
    first = report.ks[0]
    # They add nothing to the sum over rows.
    without = report.metrics["P"][first] * rows / (rows - bare)
    verb = "has no true label and counts" if bare == 1 else "have no true label and count"
    return (
        f" {bare:,} of the {rows:,} rows {verb} as 0 in all means over rows: P@{first} of the others is "
        f"{percent(without, 1)}."
    )


def about_reliability(facts: Facts) -> str:
    found = facts.reliability
    if not found.bins:
        return "No label was given to any row, so there are no scores to look at."
    low, high = found.bins[0], found.bins[-1]
    ends = (
        f"Of the labels with the highest scores ({score(high.low, 2)} and more) {percent(high.share_right)} are right, "
        f"of those with the lowest (up to {score(low.high, 2)}) {percent(low.share_right)}."
        if len(found.bins) > 1
        else f"Of the labels given {percent(found.share_right)} are right."
    )
    if not facts.gives_probabilities:
        return (
            f"The scores of {facts.learner} are not probabilities: they order labels, and may lie outside 0 and 1. "
            f"{ends} To choose a threshold, read the share off the diagram."
        )
    if found.count < _FEW:
        given = counted(found.count, "label")
        return f"With only {given} given, one cannot tell whether scores can be read as probabilities. {ends}"
    off = 100 * found.error
    if found.error <= _CALIBRATED:
        return f"Scores can be read as probabilities: on average they are off by {off:.1f} points. {ends}"
    means = f"scores say {percent(found.mean_score)} on average, and {percent(found.share_right)} are right"
    bins = f"bin by bin they are off by {off:.1f} points"
    if abs(found.mean_score - found.share_right) <= _CALIBRATED:
        return f"Some scores are too high and some too low: {means}, but {bins}. {ends}"
    kind = "sure" if found.mean_score > found.share_right else "modest"
    return f"The model is too {kind}: its {means}; {bins}. {ends}"


def about_frequency(facts: Facts) -> str:
    with_truth = [group for group in facts.report.groups if group.n_true_labels and group.name != "unseen"]
    if not with_truth:
        return "No label that training saw occurs in these rows, so there is nothing to compare."
    if len(with_truth) == 1:
        return (
            f"All labels of these rows that training saw belong to the {with_truth[0].name}, so frequency explains "
            "nothing here."
        )
    frequent, rare = with_truth[0], with_truth[-1]
    much, little = (group.metrics["R"][facts.k] for group in (frequent, rare))
    comparison = (
        "it finds neither"
        if not much and not little
        else "the model serves both alike"
        if abs(much - little) < _ALIKE
        else "rare labels are the harder ones"
        if much > little
        else "rare labels are even the easier ones"
    )
    return (
        f"Of the {_group(frequent)} {percent(much)} of all true occurrences are found, of the {_group(rare)} "
        f"{percent(little)}: {comparison}."
    )


def _group(group: GroupReport) -> str:
    low, high = group.train_counts
    rows = counted(low, "row") if low == high else f"{low:,} to {high:,} rows"
    return f"{group.name} ({counted(group.n_labels, 'label')} with {rows} in training{' each' * (group.n_labels > 1)})"


def about_worst(facts: Facts) -> str:
    labels, never = facts.n_candidates, facts.n_never_found
    if not labels:
        return "No label that the model knows occurs in these rows, so there is none to look at."
    occur = "in these rows" if facts.least_true == 1 else f"in at least {facts.least_true} of these rows"
    if labels == 1:
        said = f"One known label occurs {occur}; it is {'never found' if never else 'found at least once'}."
    elif not never:
        said = f"{labels:,} known labels occur {occur}; all of them are found at least once."
    elif never == labels:
        said = f"{labels:,} known labels occur {occur}; none of them is ever found."
    else:
        share = percent(never / labels)
        verb = "is" if never == 1 else "are"
        said = f"{labels:,} known labels occur {occur}; {never:,} of them ({share}) {verb} never found."
    advice = (
        " A label that is often true and never found deserves a look at its training rows, or at whether it can be "
        "told from the text at all."
    )
    return said + advice * bool(never)


def about_pairs(facts: Facts) -> str:
    if facts.any_confused and not facts.pairs:
        return "Some labels were missed while others were given wrongly; none of these pairs was asked for."
    if not facts.pairs:
        return "No label that the model knows was missed while another was given wrongly."
    pair = facts.pairs[0]
    missed, given = (f"“{shortened(facts.label_names[label], 100)}”" for label in (pair.missed, pair.given))
    if pair.count == 1:
        return f"No label is taken for the same other one twice. One such case: {missed} was missed and {given} given."
    return (
        f"Most often {missed} is missed and {given} given instead: in {pair.count:,} rows, {percent(pair.share)} of "
        "those that have the first. Where both mean the same, merge them; where a row lacks a label that applies, the "
        "model may be right."
    )


def nothing_instead(label: WorstLabel) -> str:
    """Why nothing is said to be given where a label was missed."""
    return "never missed" if label.found == label.true else "no wrong label"


def about_unknown(facts: Facts) -> str:
    unknown, known = facts.unknown, "known word" if facts.takes_texts else "known feature"
    said = "Training saw every label of these rows."
    if unknown.n_labels:
        said = (
            f"{counted(unknown.n_labels, 'label')} of these rows {'was' if unknown.n_labels == 1 else 'were'} never "
            f"seen in training and cannot be found: {percent(unknown.n_pairs / facts.n_pairs)} of all true labels."
        )
        if unknown.n_rows:
            said += f" {counted(unknown.n_rows, 'row has', 'rows have')} no other label."
    blank = facts.n_rows_without_features
    if not blank:
        return f"{said} Every row has a {known}."
    share = percent(blank / facts.report.n_rows)
    return (
        f"{said} {counted(blank, 'row')} ({share}) {'has' if blank == 1 else 'have'} no {known}: whatever "
        f"{'it gets' if blank == 1 else 'they get'} is a guess."
    )


def about_examples(facts: Facts) -> str:
    right, partly, wrong = (facts.kinds[kind] for kind in (RIGHT, PARTLY, WRONG))
    rows = counted(right + partly + wrong, "row with labels", "rows with labels")
    shown = " Of each kind the surest and the least sure are shown." if facts.examples else ""
    return (
        f"Of {rows}, {_are(right)} right (the true labels come first), {_are(partly)} partly right, and {_are(wrong)} "
        f"wrong (no true label in {first_places(facts.k)}).{shown}"
    )


def _are(count: int) -> str:
    return f"{count:,} are" if count > 1 else "1 is" if count else "none is"


def precision_of(band: Band) -> str:
    return "-" if band.precision is None else percent(band.precision, 1)


def recall_of(band: Band) -> str:
    return "-" if band.recall is None else percent(band.recall, 1)
