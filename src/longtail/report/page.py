"""The page: facts become one HTML file that needs nothing else, no script and no other file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from longtail.report import text
from longtail.report.charts import band_chart, legend, metric_bar, reliability_diagram
from longtail.report.examples import Example, Given
from longtail.report.facts import Facts, WorstLabel
from longtail.report.markup import Markup, element, join, name, shortened
from longtail.report.style import STYLE
from longtail.version import __version__

BEGINNING = "<!doctype html>\n<!-- a longtail report -->\n"
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_TEXT_SHOWN = 420
_METRICS = ("P", "nDCG", "PSP", "R", "F1")
_MEANING = {
    "P": "precision: of the first k labels, the share that is right",
    "nDCG": "like precision, but a label counts more the nearer it is to the top",
    "PSP": "precision where a rare label counts more than a frequent one",
    "R": "recall: of a row's true labels, the share among the first k",
    "F1": "the harmonic mean of precision and recall",
}


@dataclass(frozen=True)
class Heading:
    """What a report says of itself.

    Parameters
    ----------
    model, data : str
        What to call them.
    at : str
        When it was made, ISO 8601.
    card : mapping or None
        As `longtail.store.read_card` gives it.
    options : mapping of str to str
        What was asked for.
    warning : str
        What the reader must know before any figure, such as that the model learnt from these very rows.
    """

    model: str
    data: str
    at: str
    card: Mapping[str, Any] | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    warning: str = ""


def render(facts: Facts, heading: Heading) -> str:
    """The whole page."""
    sections = (
        ("metrics", "How good is it?", _metrics(facts)),
        ("scores", "What do the scores mean?", _reliability(facts)),
        ("frequency", "Frequent and rare labels", _frequency(facts)),
        ("worst", "The labels that fare worst", _worst(facts)),
        ("confused", "Labels taken for one another", _pairs(facts)),
        ("unknown", "What the model cannot know", _unknown(facts)),
        ("examples", "Documents to read", _examples(facts)),
    )
    title = f"{shortened(heading.model, 80)} on {shortened(heading.data, 80)}"
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="generator", content=f"longtail {__version__}"),
        element("title", title),
        element("style", Markup(STYLE)),
    )
    contents = element("nav", *(element("a", title, href=f"#{place}") for place, title, _ in sections))
    body = element(
        "body",
        element(
            "main",
            _opening(facts, heading),
            contents,
            *(element("section", element("h2", title), content, id=place) for place, title, content in sections),
            _colophon(heading),
        ),
    )
    return f"{BEGINNING}{element('html', head, body, lang='en')}\n"


def _opening(facts: Facts, heading: Heading) -> Markup:
    report, card = facts.report, heading.card or {}
    first, k = report.ks[0], facts.k
    tiles = [
        (text.percent(report.metrics["P"][first], 1), f"P@{first}"),
        (text.percent(report.metrics["R"][k], 1), f"R@{k}"),
        (text.percent(report.metrics["nDCG"][k], 1), f"nDCG@{k}"),
        (f"{report.n_rows:,}", f"row{'s' * (report.n_rows != 1)} measured on"),
        (f"{facts.n_known_labels:,}", f"label{'s' * (facts.n_known_labels != 1)} known"),
    ]
    return join(
        element("h1", name(heading.model)),
        element("p", "measured on ", name(heading.data), ", ", element("time", _day(heading.at)), class_="lead"),
        element("p", _sentence(heading.warning), class_="means warning") if heading.warning else None,
        element(
            "div",
            *(element("div", element("b", value), element("span", what), class_="tile") for value, what in tiles),
            class_="tiles",
        ),
        element("dl", *(join(element("dt", term), element("dd", said)) for term, said in _card(facts, card))),
    )


def _card(facts: Facts, card: Mapping[str, Any]) -> Iterable[tuple[str, object]]:
    data, trained, audit = (card.get(section, {}) for section in ("data", "trained", "audit"))
    learnt = [f"{text.counted(facts.n_train_rows, 'row')}, {text.counted(facts.n_known_labels, 'label')}"]
    if data.get("source"):
        learnt.insert(0, f"{data['source']}: ")
    yield "learnt from", join(*learnt)
    how = [facts.learner]
    if trained.get("at"):
        how.append(_day(trained["at"]))
    if trained.get("seconds") is not None:
        how.append(f"took {_duration(trained['seconds'])}")
    yield "trained", ", ".join(how)
    if trained.get("reason"):
        yield "why so", trained["reason"].removeprefix("learner: ")
    if "unargmaxable" in audit and "label_sets" in audit:
        sets = text.counted(audit["label_sets"], "label set")
        yield "audit", f"{audit['unargmaxable']:,} of {sets} can never be given, whatever the input"
    yield "test rows", text.about_rows(facts)


def _metrics(facts: Facts) -> Markup:
    report = facts.report
    rows = []
    for metric in _METRICS:
        cells = [element("td", element("b", metric))]
        for k in report.ks:
            found = facts.intervals[k][metric]
            cells.append(
                element(
                    "td",
                    f"{100 * found.value:.2f} ",
                    element("small", f"{100 * found.low:.1f}-{100 * found.high:.1f}"),
                    metric_bar(found),
                )
            )
        rows.append(element("tr", *cells, element("td", _MEANING[metric], class_="note")))
    a, b = facts.propensity
    return join(
        _means(text.about_metrics(facts)),
        _table(["", *((f"@{k}", "") for k in report.ks), "what it is"], rows),
        element(
            "p",
            "In percent. Small figures and whiskers are 95% intervals over rows by the normal approximation, for F1 "
            f"and PSP of their linear part. PSP with the propensity constants {a:g} and {b:g}. "
            f"Labels of these rows found at least once in {text.first_places(facts.k)}: "
            f"{text.percent(report.metrics['coverage'][facts.k], 1)}.",
            class_="note",
        ),
    )


def _reliability(facts: Facts) -> Markup:
    found = facts.reliability
    if not found.bins:
        return _means(text.about_reliability(facts))
    rows = [
        element(
            "tr",
            _number(f"{text.score(each.low)} to {text.score(each.high)}"),
            _number(f"{each.count:,}"),
            _number(text.score(each.mean_score)),
            _number(text.percent(each.share_right, 1)),
        )
        for each in reversed(found.bins)
    ]
    table = _table([("scores", "n"), ("labels given", "n"), ("mean score", "n"), ("right", "n")], rows)
    off = f"Expected calibration error {found.error:.3f}"
    aside = "" if facts.gives_probabilities else " (these scores are not meant as probabilities)"
    return join(
        _means(text.about_reliability(facts)),
        element("div", reliability_diagram(found), element("div", table), class_="beside"),
        element(
            "p",
            f"{off}{aside}, over {text.counted(found.count, 'label')} given: {text.first_places(facts.k)} of every "
            "row, in bins of about equal count. On the dashed line, scores are the share that is right.",
            class_="note",
        ),
    )


def _frequency(facts: Facts) -> Markup:
    k = facts.k
    groups = [
        element(
            "tr",
            element("td", element("b", group.name)),
            _number(f"{group.n_labels:,}"),
            _number(text.span(*group.train_counts)),
            _number(text.percent(group.truth_share, 1)),
            _number(text.percent(group.metrics["P"][k], 1)),
            _number(text.percent(group.metrics["R"][k], 1) if group.n_true_labels else "-"),
            _number(text.percent(group.metrics["macro-P"][k], 1)),
            _number(text.percent(group.metrics["macro-R"][k], 1) if group.n_true_labels else "-"),
        )
        for group in facts.report.groups
    ]
    columns = ["labels", "number", "training rows", "of the truth", f"adds to P@{k}", f"R@{k}", "macro-P", "macro-R"]
    bands = [
        element(
            "tr",
            *map(_number, (text.span(band.low, band.high), f"{band.n_labels:,}", f"{band.true:,}", f"{band.given:,}")),
            *map(_number, (text.precision_of(band), text.recall_of(band))),
        )
        for band in facts.bands
    ]
    details = element(
        "details",
        element("summary", "The figures of the curve"),
        _table(
            [(title, "n") for title in ("training rows", "labels", "true pairs", "given", "precision", "recall")], bands
        ),
        class_="note",
    )
    has_unseen = any(group.name == "unseen" for group in facts.report.groups)
    unseen = "; unseen are those that training never saw" if has_unseen else ""
    return join(
        _means(text.about_frequency(facts)),
        _table([columns[0], *((column, "n") for column in columns[1:])], groups),
        element(
            "p",
            "Head, middle and tail are the most frequent labels, the next and the rarest, each with about a third of "
            f"all occurrences in training where they can be parted so{unseen}.",
            class_="note",
        ),
        element("div", band_chart(facts.bands), class_="wide"),
        legend(("precision", "precision: right among given"), ("recall", "recall: found among true"), ("", "labels")),
        details,
    )


def _worst(facts: Facts) -> Markup:
    rows = [
        element(
            "tr",
            element("td", name(facts.label_names[each.label]), class_="l"),
            *map(_number, (f"{each.train_count:,}", f"{each.true:,}", f"{each.found:,}", f"{each.given:,}")),
            _number(f"{100 * each.f1:.1f}"),
            element("td", _instead(facts, each), class_="l several"),
        )
        for each in facts.worst
    ]
    columns: list[Any] = ["label", *((c, "n") for c in ("in training", "true here", "found", "given", "F1"))]
    shown = join(
        _table([*columns, "wrongly given where missed"], rows),
        element(
            "p",
            f"Found and given: in {text.first_places(facts.k)}. The last column has what was given wrongly most often "
            "where the label was missed, with the number of these rows. Lowest F1 first, then most rows.",
            class_="note",
        ),
    )
    return join(_means(text.about_worst(facts)), shown if rows else None)


def _instead(facts: Facts, missed: WorstLabel) -> Markup:
    if not missed.instead:
        return element("span", text.nothing_instead(missed), class_="soft")
    return _listed(
        [
            join(name(facts.label_names[pair.given], 60), element("small", f" ({pair.count:,})"))
            for pair in missed.instead
        ]
    )


def _pairs(facts: Facts) -> Markup:
    rows = [
        element(
            "tr",
            element("td", name(facts.label_names[pair.missed]), class_="l"),
            element("td", name(facts.label_names[pair.given]), class_="l"),
            _number(f"{pair.count:,}"),
            _number(text.percent(pair.share, 1)),
        )
        for pair in facts.pairs
    ]
    columns = ["true and missed", "given and not true", ("rows", "n"), ("share", "n")]
    note = element("p", "The share is that of all rows where the first label is true.", class_="note")
    return join(_means(text.about_pairs(facts)), (_table(columns, rows), note) if rows else None)


def _unknown(facts: Facts) -> Markup:
    said = _means(text.about_unknown(facts))
    if not facts.unknown.frequent:
        return said
    rows = [
        element("tr", element("td", name(facts.label_names[label]), class_="l"), _number(f"{count:,}"))
        for label, count in facts.unknown.frequent
    ]
    return join(said, _table(["the most frequent labels that training never saw", ("rows here", "n")], rows))


def _examples(facts: Facts) -> Markup:
    return join(_means(text.about_examples(facts)), *(_example(facts, example) for example in facts.examples))


def _example(facts: Facts, example: Example) -> Markup:
    given = {each.label for each in example.given}
    true = [element("li", _fate(facts, label, given), name(facts.label_names[label])) for label in example.true]
    if example.n_true > len(example.true):
        true.append(element("li", f"and {example.n_true - len(example.true):,} more", class_="note"))
    return element(
        "article",
        element(
            "h3",
            element("span", example.kind, class_=f"kind {example.kind.partition(' ')[0]}"),
            name(example.name, 80),
        ),
        element("p", element("bdi", shortened(example.text, _TEXT_SHOWN) or "(an empty text)"), class_="text"),
        element(
            "div",
            element("div", element("h4", "true labels"), element("ul", *true, class_="tags")),
            element("div", element("h4", "given, best first"), _given(facts, example.given)),
            class_="columns",
        ),
        class_="example",
    )


def _fate(facts: Facts, label: int, given: set[int]) -> Markup:
    if label >= facts.n_known_labels:
        return element("span", "unknown ", class_="soft")
    return element("span", "found ", class_="hit") if label in given else element("span", "missed ", class_="miss")


def _given(facts: Facts, given: Sequence[Given]) -> Markup:
    lines = []
    for each in given:
        why = None
        if each.words:
            words = _listed([join(name(word, 40), f" {adds:+.2f}") for word, adds in each.words])
            why = element("span", "because of ", words, class_="why")
        lines.append(
            element(
                "li",
                element("span", text.score(each.score), class_="score"),
                element("span", "✓ " if each.right else "✗ ", class_="hit" if each.right else "miss"),
                name(facts.label_names[each.label]),
                why,
            )
        )
    return element("ul", *lines, class_="tags given") if lines else element("p", "none", class_="note")


def _colophon(heading: Heading) -> Markup:
    options = "".join(f"; {option} {value}" for option, value in heading.options.items())
    return element(
        "footer",
        element("p", f"Made by longtail {__version__} on {_day(heading.at)}{options}.", class_="note"),
        element(
            "p",
            "A label of the test rows that training never saw counts as missed. The choice of documents and the order "
            "of ties are fixed: the same model and rows give the same report.",
            class_="note",
        ),
    )


def _means(sentence: str) -> Markup:
    return element("p", sentence, class_="means")


def _table(columns: Sequence[Any], rows: Sequence[Markup]) -> Markup:
    heads = [
        element("th", column[0], class_=column[1] or None, scope="col")
        if isinstance(column, tuple)
        else element("th", column, scope="col")
        for column in columns
    ]
    return element(
        "div", element("table", element("thead", element("tr", *heads)), element("tbody", *rows)), class_="wide"
    )


def _number(shown: str) -> Markup:
    return element("td", shown, class_="n")


def _listed(items: Sequence[Markup]) -> Markup:
    return join(*(join(", " if number else "", item) for number, item in enumerate(items)))


def _duration(seconds: float) -> str:
    return (
        f"{seconds:.1f} s"
        if seconds < 100
        else f"{seconds / 60:.0f} min"
        if seconds < 7200
        else f"{seconds / 3600:.1f} h"
    )


def _day(at: str) -> str:
    """A time as people read it."""
    day, _, clock = at.partition("T")
    return f"{day} {clock[:5]} UTC" if clock else at


def _sentence(said: str) -> str:
    return f"{said[0].upper()}{said[1:]}."
