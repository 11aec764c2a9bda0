"""`make_report`: a report as one HTML file, without scripts or other files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from longtail.data import Corpus
from longtail.estimator import HeadDiagnostics, LabelGroup
from longtail.printable import counted
from longtail.report import text
from longtail.report.charts import band_chart, cutoff_chart, legend, metric_bar, reliability_diagram
from longtail.report.examples import Example, Given, Why
from longtail.report.facts import Facts, ReportOptions, WorstLabel, gather
from longtail.report.layout import BEGINNING, Column, document, means, tiles
from longtail.report.layout import day as _day
from longtail.report.layout import listed as _listed
from longtail.report.layout import note as _note
from longtail.report.layout import numbers as _numbers
from longtail.report.layout import table as table_of
from longtail.report.markup import Markup, element, escape, join, name, shortened
from longtail.tagger import Tagger
from longtail.version import __version__

_TEXT_SHOWN = 420
_MEANING = {
    "P": "precision: share of the first k labels that are correct",
    "nDCG": "like precision, with more weight on the first places",
    "PSP": "precision with more weight on rare labels",
    "R": "recall: share of a row's true labels that are among the first k",
    "F1": "harmonic mean of precision and recall",
}


@dataclass(frozen=True)
class Heading:
    """What a report says about itself.

    Parameters
    ----------
    model, data : str
        Names of the model and of the test set.
    at : str
        When the report was made, in ISO 8601.
    card : mapping or None
        The card of the model, from `longtail.store.read_card`.
    warning : str
        A sentence to show before all figures, for example that the model was trained on these rows.
    """

    model: str
    data: str
    at: str
    card: Mapping[str, Any] | None = None
    warning: str = ""


def make_report(tagger: Tagger, corpus: Corpus, heading: Heading, options: ReportOptions | None = None) -> str:
    """Measure a model on rows with known labels, and return the report as HTML.

    Parameters
    ----------
    tagger : Tagger
    corpus : Corpus
        The test set. Labels that are not in the training set count as missed.
    heading : Heading
    options : ReportOptions or None
        None is ``ReportOptions()``.
    """
    return render(gather(tagger, corpus, options), heading)


def is_report(path: str | os.PathLike[str]) -> bool:
    """Whether a file begins like a report."""
    with Path(path).open("rb") as file:
        return file.read(len(BEGINNING)) == BEGINNING.encode()


def render(facts: Facts, heading: Heading) -> str:
    """The facts of a report as HTML."""
    sections = (
        ("metrics", "How good is it?", _metrics(facts)),
        ("given", "How many labels?", _given_labels(facts)),
        ("scores", "What do the scores mean?", _reliability(facts)),
        ("frequency", "Frequent and rare labels", _frequency(facts)),
        ("worst", "The worst labels", _worst(facts)),
        ("confused", "Confused labels", _pairs(facts)),
        *([] if facts.heads is None else [("heads", "The heads of the network", _heads(facts.heads))]),
        ("unknown", "Unknown labels and words", _unknown(facts)),
        ("examples", "Example documents", _examples(facts)),
    )
    contents = element("nav", *(element("a", title, href=f"#{place}") for place, title, _ in sections))
    return document(
        f"{shortened(heading.model, 80)} on {shortened(heading.data, 80)}",
        _opening(facts, heading),
        contents,
        *(element("section", element("h2", title), content, id=place) for place, title, content in sections),
        _colophon(facts.options, heading),
    )


def _opening(facts: Facts, heading: Heading) -> Markup:
    report = facts.report
    first, k = report.ks[0], facts.k
    figures = [
        (text.percent(report.metrics["P"][first], 1), f"P@{first}"),
        (text.percent(report.metrics["R"][k], 1), f"R@{k}"),
        (text.percent(report.metrics["nDCG"][k], 1), f"nDCG@{k}"),
        (f"{report.n_rows:,}", f"test row{'s' * (report.n_rows != 1)}"),
        (f"{facts.n_known_labels:,}", f"known label{'s' * (facts.n_known_labels != 1)}"),
    ]
    if report.classes is not None:
        scores = ((report.classes.accuracy, "accuracy"), (report.classes.macro_f1, "macro-F1"))
        figures[:3] = [(text.percent(value, 1), what) for value, what in scores]
    card = _card(facts, heading.card or {})
    return join(
        element("h1", name(heading.model)),
        element("p", "measured on ", name(heading.data), ", ", element("time", _day(heading.at)), class_="lead"),
        element("p", _sentence(heading.warning), class_="means warning") if heading.warning else None,
        tiles(figures),
        element("dl", *(join(element("dt", term), element("dd", value)) for term, value in card)),
    )


def _card(facts: Facts, card: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    data, trained, audit = (card.get(section, {}) for section in ("data", "trained", "audit"))
    source = [f"{data['source']}: "] if data.get("source") else []
    size = f"{counted(facts.n_train_rows, 'row')}, {counted(facts.n_known_labels, 'label')}"
    yield "training set", join(*source, size)
    how = [facts.learner]
    if trained.get("at"):
        how.append(f"trained {_day(trained['at'])}")
    if trained.get("seconds") is not None:
        how.append(f"took {_duration(trained['seconds'])}")
    yield "learner", ", ".join(how)
    if trained.get("reason"):
        yield "chosen because", trained["reason"].removeprefix("learner: ")
    if "unargmaxable" in audit and "label_sets" in audit:
        sets = counted(audit["label_sets"], "label set")
        yield "audit", f"{audit['unargmaxable']:,} of {sets} can never be given, whatever the input"
    yield "test set", text.about_rows(facts)


def _metrics(facts: Facts) -> Markup:
    report, (a, b) = facts.report, facts.options.propensity

    def cell(metric: str, k: int) -> Markup:
        found = facts.intervals[k][metric]
        interval = element("small", f"{100 * found.low:.1f}-{100 * found.high:.1f}")
        return join(f"{100 * found.value:.2f} ", interval, metric_bar(found))

    rows = [[element("b", metric), *(cell(metric, k) for k in report.ks), _MEANING[metric]] for metric in _MEANING]
    columns = [Column(""), *(Column(f"@{k}") for k in report.ks), Column("meaning", "note")]
    return join(
        means(text.about_metrics(facts)),
        table_of(columns, rows),
        _note(
            "All values are percentages. The small figures and whiskers are 95% intervals over rows by the normal "
            f"approximation; for F1 and PSP, of their linear part. PSP uses the propensity constants {a:g} and {b:g}. "
            f"{text.percent(report.metrics['coverage'][facts.k], 1)} of the labels of these rows are found at least "
            f"once in {text.first_places(facts.k)}."
        ),
    )


def _given_labels(facts: Facts) -> Markup:
    found, cutoffs = facts.report.given, facts.report.cutoffs
    assert found is not None
    lines = [
        (
            f"{each.cutoff:g}",
            *(text.percent(value, 1) for value in (each.precision, each.recall, each.f1)),
            f"{each.per_row:.2f}",
        )
        for each in cutoffs
    ]
    rows = [
        ("all pairs", *(text.percent(value, 1) for value in (found.precision, found.recall, found.f1))),
        (
            "mean of labels",
            *(text.percent(value, 1) for value in (found.macro_precision, found.macro_recall, found.macro_f1)),
        ),
    ]
    shown = table_of(_numbers("cut-off", "precision", "recall", "F1", "per row"), lines)
    threshold = None if facts.decision is None else facts.decision.threshold
    return join(
        means(text.about_given(facts)),
        table_of([Column("labels as given"), *_numbers("precision", "recall", "F1")], rows),
        element("div", cutoff_chart(cutoffs, threshold), element("div", shown), class_="beside"),
        legend(("precision", "precision"), ("recall", "recall"), ("f1", "F1")),
        _note(
            "Each line of the table gives every label with at least this score, and counts all pairs of row and label. "
            "Choose the cut-off for your purpose, and use it with --threshold."
        ),
    )


def _reliability(facts: Facts) -> Markup:
    found = facts.reliability
    said = means(text.about_reliability(facts))
    if not found.bins:
        return said
    rows = [
        (
            f"{text.score(each.low)} to {text.score(each.high)}",
            f"{each.count:,}",
            text.score(each.mean_score),
            text.percent(each.share_right, 1),
        )
        for each in reversed(found.bins)
    ]
    table = table_of(_numbers("scores", "labels", "mean score", "correct"), rows)
    aside = "" if facts.gives_probabilities else " (but these scores are not meant as probabilities)"
    return join(
        said,
        element("div", reliability_diagram(found), element("div", table), class_="beside"),
        _note(
            f"Expected calibration error: {found.error:.3f}{aside}, on {counted(found.count, 'predicted label')} "
            f"in {text.first_places(facts.k)} of the rows. All bins have about the same size. On the dashed line, a "
            "score equals the share of correct labels."
        ),
    )


def _frequency(facts: Facts) -> Markup:
    k = facts.k
    groups = [
        (
            element("b", group.name),
            f"{group.n_labels:,}",
            text.span(*group.train_counts),
            text.percent(group.truth_share, 1),
            text.percent(group.metrics["P"][k], 1),
            text.percent(group.metrics["R"][k], 1) if group.n_true_labels else "-",
            text.percent(group.metrics["macro-P"][k], 1),
            text.percent(group.metrics["macro-R"][k], 1) if group.n_true_labels else "-",
        )
        for group in facts.report.groups
    ]
    titles = ("labels", "training rows", "share of truth", f"part of P@{k}", f"R@{k}", "macro-P", "macro-R")
    bands = [
        (
            text.span(band.low, band.high),
            f"{band.n_labels:,}",
            f"{band.true:,}",
            f"{band.given:,}",
            text.share(band.precision),
            text.share(band.recall),
        )
        for band in facts.bands
    ]
    has_unseen = any(group.name == "unseen" for group in facts.report.groups)
    unseen = " Unseen labels are not in the training set." if has_unseen else ""
    return join(
        means(text.about_frequency(facts)),
        table_of([Column("group"), *_numbers(*titles)], groups),
        _note(
            "Head, middle and tail are the most frequent labels, the next ones, and the rarest. Each group has about a "
            f"third of all label occurrences in the training set, if it can be divided so.{unseen}"
        ),
        element("div", band_chart(facts.bands), class_="wide"),
        legend(
            ("precision", "precision: correct among predicted"),
            ("recall", "recall: found among true"),
            ("", "number of labels"),
        ),
        element(
            "details",
            element("summary", "The figures of the chart"),
            table_of(_numbers("training rows", "labels", "true pairs", "predicted", "precision", "recall"), bands),
            class_="note",
        ),
    )


def _worst(facts: Facts) -> Markup:
    rows = [
        (
            name(facts.label_names[each.label]),
            *(f"{count:,}" for count in (each.train_count, each.true, each.found, each.given)),
            f"{100 * each.f1:.1f}",
            _instead(facts, each),
        )
        for each in facts.worst
    ]
    numbers = _numbers("training rows", "true", "found", "predicted", "F1")
    columns = [Column("label", "l"), *numbers, Column("predicted where missed", "l several")]
    note = _note(
        f"Found and predicted labels are those in {text.first_places(facts.k)}. The last column lists the wrong labels "
        "most often predicted for rows where the label was missed, with the number of these rows. Sorted by F1, then "
        "by true rows."
    )
    return join(means(text.about_worst(facts)), (table_of(columns, rows), note) if rows else None)


def _instead(facts: Facts, missed: WorstLabel) -> Markup:
    if not missed.instead:
        return element("span", text.nothing_instead(missed), class_="soft")
    return _listed(
        join(name(facts.label_names[pair.given], 60), element("small", f" ({pair.count:,})")) for pair in missed.instead
    )


def _pairs(facts: Facts) -> Markup:
    rows = [
        (
            name(facts.label_names[pair.missed]),
            name(facts.label_names[pair.given]),
            f"{pair.count:,}",
            text.percent(pair.share, 1),
        )
        for pair in facts.pairs
    ]
    columns = [Column("true but missed", "l"), Column("predicted but wrong", "l"), *_numbers("rows", "share")]
    note = _note("The share is relative to all rows where the first label is true.")
    return join(means(text.about_pairs(facts)), (table_of(columns, rows), note) if rows else None)


def _heads(found: HeadDiagnostics) -> Markup:
    scores = [
        (f"{number}", f"{head.length:,}", text.percent(head.accuracy, 1), text.percent(head.together, 1))
        for number, head in enumerate(found.heads, start=1)
    ]
    confused = [
        (f"{number}", _group(pair.missed), _group(pair.preferred), f"{pair.count:,}", text.percent(pair.share, 1))
        for number, head in enumerate(found.heads, start=1)
        for pair in head.confusions
    ]
    survival = None
    if found.survival is not None:
        columns = [Column("groups kept", "n"), *_numbers(*(f"after head {n + 1}" for n in range(len(found.heads) - 1)))]
        kept = [
            (f"{size:,}", *(text.percent(share, 1) for share in shares))
            for size, *shares in zip(found.survival.sizes, *found.survival.shares, strict=True)
        ]
        survival = join(
            table_of(columns, kept),
            _note("Labels that remain when a head keeps only its best groups, as a share of all labels of the rows."),
        )
    columns = [
        Column("head", "n"),
        Column("right group", "l"),
        Column("preferred group", "l"),
        *_numbers("rows", "share"),
    ]
    return join(
        means(text.about_heads(found)),
        table_of(_numbers("head", "values", "right alone", "right with all before"), scores),
        _note(
            "Rows with a label that the network knows. A head is right if the value that it prefers belongs to a label "
            "of the row; with all before it, if one label of the row has all these values. Heads of a cascade are "
            "given the right values of those before."
        ),
        survival,
        (
            table_of(columns, confused),
            _note("The most frequent labels of a group are named. The share is relative to the rows with that group."),
        )
        if confused
        else None,
    )


def _group(group: LabelGroup) -> Markup:
    named = _listed(name(each, 60) for each in group.names)
    more = group.n_labels - len(group.names)
    return join(named, element("span", f" and {more:,} more", class_="soft") if more else None)


def _unknown(facts: Facts) -> Markup:
    rows = [(name(facts.label_names[label]), f"{count:,}") for label, count in facts.unknown.frequent]
    columns = [Column("most frequent labels that are not in the training set", "l"), *_numbers("test rows")]
    return join(means(text.about_unknown(facts)), table_of(columns, rows) if rows else None)


def _examples(facts: Facts) -> Markup:
    return join(means(text.about_examples(facts)), *(_example(facts, example) for example in facts.examples))


def _example(facts: Facts, example: Example) -> Markup:
    given = {each.label for each in example.given}
    true = [element("li", _fate(facts, label, given), name(facts.label_names[label])) for label in example.true]
    if example.n_true > len(example.true):
        true.append(element("li", f"and {example.n_true - len(example.true):,} more", class_="note"))
    kind = element("span", example.kind, class_=f"kind {example.kind.partition(' ')[0]}")
    return element(
        "article",
        element("h3", kind, name(example.name, 80)),
        element("p", element("bdi", shortened(example.text, _TEXT_SHOWN) or "(an empty text)"), class_="text"),
        element(
            "div",
            element("div", element("h4", "true labels"), element("ul", *true, class_="tags")),
            element("div", element("h4", "predicted labels, best first"), _given(facts, example.given)),
            class_="columns",
        ),
        class_="example",
    )


def _fate(facts: Facts, label: int, given: set[int]) -> Markup:
    if label >= facts.n_known_labels:
        return element("span", "unknown ", class_="soft")
    return element("span", "found ", class_="hit") if label in given else element("span", "missed ", class_="miss")


def _given(facts: Facts, given: Sequence[Given]) -> Markup:
    lines = [
        element(
            "li",
            element("span", text.score(each.score), class_="score"),
            element("span", "✓ " if each.right else "✗ ", class_="hit" if each.right else "miss"),
            name(facts.label_names[each.label]),
            _why(each.why),
        )
        for each in given
    ]
    return element("ul", *lines, class_="tags given") if lines else element("p", "none", class_="note")


def _why(why: Why) -> Markup | None:
    evidence = _listed(escape(f"{what} {contribution:+.2f}") for what, contribution in why.evidence)
    words = _listed(join(name(what, 40), f" {contribution:+.2f}") for what, contribution in why.reasons)
    parts = [join("because of ", evidence)] if evidence else []
    parts += [join(text.before_words(why), words)] if words else []
    return element("span", _listed(parts, "; "), class_="why") if parts else None


def _colophon(options: ReportOptions, heading: Heading) -> Markup:
    ks = ", ".join(map(str, options.ks))
    shown = f"k: {ks}; worst labels: {options.worst}; pairs: {options.pairs}; documents: {options.examples}"
    return element(
        "footer",
        _note(f"Made by longtail {__version__} on {_day(heading.at)}. Options: {shown}."),
        _note(
            "Labels that are not in the training set count as missed. The choice of documents and the order of ties "
            "are fixed, so the same model and rows give the same report."
        ),
    )


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _sentence(said: str) -> str:
    return f"{said[0].upper()}{said[1:]}."
