"""`render_check`: what a check of data found, as one HTML file like the report on a model."""

from __future__ import annotations

from dataclasses import dataclass

from longtail.checking import SEVERITIES, Check, Distribution, Finding, shown, told
from longtail.printable import counted
from longtail.report.charts import bar_chart
from longtail.report.layout import day, document, means, note, tiles
from longtail.report.markup import Markup, element, join, name, shortened
from longtail.version import __version__

_EXAMPLE = 300


@dataclass(frozen=True)
class DataHeading:
    """What a page about data says about itself.

    Parameters
    ----------
    data : str
        The name of the data.
    at : str
        When the check was made, in ISO 8601.
    test : str or None
        The name of the test rows.
    """

    data: str
    at: str
    test: str | None = None


def render_check(found: Check, heading: DataHeading) -> str:
    """The result of a check as HTML."""
    sections = (
        ("findings", "What to look at", _findings(found)),
        ("labels-per-row", "Labels of a row", _pictured(found.labels_per_row, "labels of a row", "row")),
        ("rows-per-label", "Rows of a label", _pictured(found.rows_per_label, "rows of a label", "label")),
        ("words", "Words of a text", _pictured(found.words_per_text, "words of a text", "text")),
        ("names", "Names of labels in texts", _names(found)),
    )
    kept = [(place, title, content) for place, title, content in sections if content is not None]
    figures = [(f"{found.n_rows:,}", f"row{'s' * (found.n_rows != 1)}")]
    figures.append((f"{found.n_labels:,}", f"label{'s' * (found.n_labels != 1)}"))
    if found.n_features is not None:
        figures.append((f"{found.n_features:,}", f"feature{'s' * (found.n_features != 1)}"))
    figures += [(f"{found.count(severity):,}", f"{severity}s") for severity in SEVERITIES]
    against = () if heading.test is None else (", with the test rows ", name(heading.test))
    return document(
        f"{shortened(heading.data, 80)} before training",
        element("h1", name(heading.data)),
        element("p", "checked before training", *against, ", ", element("time", day(heading.at)), class_="lead"),
        tiles(figures),
        element("nav", *(element("a", title, href=f"#{place}") for place, title, _ in kept)),
        *(element("section", element("h2", title), content, id=place) for place, title, content in kept),
        element("footer", note(f"Made by longtail {__version__} on {day(heading.at)}.")),
    )


def _findings(found: Check) -> Markup:
    return join(means(_sentence(found.summary())), *(_finding(found, each) for each in found.findings))


def _finding(found: Check, finding: Finding) -> Markup:
    examples = [
        element("li", element("bdi", shortened(shown(example, found.unit), _EXAMPLE))) for example in finding.examples
    ]
    kind = "kind wrong" if finding.severity == "error" else "kind"
    return element(
        "article",
        element("h3", element("span", finding.severity, class_=kind), _sentence(finding.says)),
        element("p", finding.advice),
        element("ul", *examples, class_="tags") if examples else None,
        note(finding.code),
        class_="example",
    )


def _pictured(distribution: Distribution, axis: str, what: str) -> Markup | None:
    if distribution.spread is None:
        return None
    return join(
        means(_sentence(told(distribution))),
        element("div", bar_chart(distribution.bins, axis, what), class_="wide"),
    )


def _names(found: Check) -> Markup | None:
    names = found.labels_in_texts
    if names is None:
        return None
    pairs = counted(names.n_pairs, "pair")
    return join(
        means(
            f"Of {pairs} of a row and a label, the text of the row contains the name of the label for "
            f"{names.share:.1%}; the text of a row without this label for {names.by_chance:.1%}."
        )
    )


def _sentence(said: str) -> str:
    return f"{said[0].upper()}{said[1:]}."
