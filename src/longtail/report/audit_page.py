"""`render_audit`: which label sets of a data set a model can never give, and why, as one HTML file."""

from __future__ import annotations

import numpy as np

from longtail.audit import ARGMAXABLE, UNARGMAXABLE, UNDETERMINED, Audit, CorpusAudit, lines_of
from longtail.checking import Bin
from longtail.printable import counted
from longtail.report.charts import bar_chart
from longtail.report.data_page import DataHeading
from longtail.report.layout import Column, day, document, listed, means, note, numbers, table, tiles
from longtail.report.markup import Markup, element, join, name, shortened
from longtail.version import __version__

_EXAMPLES = 20
_LABELS_SHOWN = 20
_RADII = (1.0, 0.1, 0.01, 1e-3, 1e-6, 1e-9)


def render_audit(audited: CorpusAudit, heading: DataHeading, model: str) -> str:
    """The result of an audit as HTML.

    Parameters
    ----------
    audited : CorpusAudit
    heading : DataHeading
        The data with the label sets, and when they were audited.
    model : str
        The name of the model.
    """
    found = audited.found
    sections = (
        ("verdicts", "Which sets", _verdicts(audited)),
        ("examples", "Why no input gets a set", _examples(audited)),
        ("conflicts", "Labels in conflict", _conflicts(found)),
        ("help", "What would help", _remedies(found)),
        ("radii", "How much room sets have", _radii(found)),
        ("ranks", "If the layer were narrower", _ranks(audited)),
    )
    kept = [(place, title, content) for place, title, content in sections if content is not None]
    figures = [
        (f"{len(found):,}", "different label sets"),
        (f"{found.count(ARGMAXABLE):,}", "some input gets"),
        (f"{found.count(UNARGMAXABLE):,}", "no input gets"),
        (f"{found.count(UNDETERMINED):,}", "not known"),
        (f"{found.n_labels:,}", "labels"),
        (f"{found.n_features:,}", "inputs") if found.rank is None else (f"{found.rank:,}", "rank of the weights"),
    ]
    data = name(heading.data)
    return document(
        f"Label sets out of reach: {shortened(model, 80)}",
        element("h1", name(model)),
        element("p", "audited on the label sets of ", data, ", ", element("time", day(heading.at)), class_="lead"),
        tiles(figures),
        element("nav", *(element("a", title, href=f"#{place}") for place, title, _ in kept)),
        *(element("section", element("h2", title), content, id=place) for place, title, content in kept),
        element("footer", note(f"Made by longtail {__version__} on {day(heading.at)}.")),
    )


def _verdicts(audited: CorpusAudit) -> Markup:
    found = audited.found
    never, rows = found.count(UNARGMAXABLE), counted(found.count_rows(UNARGMAXABLE), "row")
    said = (
        f"The model never gives {never:,} of {len(found):,} label sets, whatever its input: the sets of {rows}."
        if never
        else "The audit found no label set that the model can never give."
    )
    layer = None if found.layer is None else note(f"A label is given if {found.layer.description}.")
    lines = table([Column("label sets"), *numbers("sets", "share", "rows")], audited.verdict_rows())
    return join(means(said), lines, layer, *(note(reason) for reason in found.reasons))


def _examples(audited: CorpusAudit) -> Markup | None:
    examples = audited.found.examples(audited.label_names, _EXAMPLES)
    if not examples:
        return None
    articles = (
        element(
            "article",
            element("h3", element("span", f"row {each['row']}", class_="kind"), _sentence(each["says"])),
            element("p", listed(name(label) for label in each["labels"][:_LABELS_SHOWN]) or "no label"),
            class_="example",
        )
        for each in examples
    )
    said = "The weights of the labels in conflict cancel, so their scores cannot all be on the right side at once."
    return join(means(said), *articles)


def _conflicts(found: Audit) -> Markup | None:
    """How many labels the proofs name."""
    sizes = [len(proof.labels) for proof in found.certificates if proof is not None]
    if not sizes:
        return None
    counts = np.bincount(sizes)
    bins = [Bin(size, size, int(count)) for size, count in enumerate(counts) if count]
    said = f"The shortest proof names {counted(min(sizes), 'label')}, the longest {counted(max(sizes), 'label')}."
    return join(means(said), element("div", bar_chart(bins, "labels of a conflict", "label set"), class_="wide"))


def _remedies(found: Audit) -> Markup | None:
    lines = lines_of(found.remedies())
    return element("ul", *(element("li", line) for line in lines)) if lines else None


def _radii(found: Audit) -> Markup | None:
    if found.room is None or found.smallest_radius() is None:
        return None
    half_width = found.room.box.half_widths.max(initial=0)
    columns = ["radius at least", f"features from {-half_width:g} to {half_width:g}"]
    if found.seen_room is not None:
        columns.append("features in the range of the data")
    rows = [
        [
            f"{radius:g}",
            f"{found.share(radius):.1%}",
            *([f"{found.share(radius, seen=True):.1%}"] if found.seen_room is not None else []),
        ]
        for radius in _RADII
    ]
    said = (
        "The radius of a set is that of the largest ball of inputs that all get it. The shares are of all audited sets."
    )
    bound = None if found.radii_are_exact else note("The radii are lower bounds, so the true shares may be larger.")
    return join(means(said), table(numbers(*columns), rows), bound)


def _ranks(audited: CorpusAudit) -> Markup | None:
    if not audited.ranks:
        return None
    columns = numbers("rank", "no input gets", "not known", "smallest radius")
    said = "The layer cut down to its largest singular directions: what a narrower bottleneck could still give."
    return join(means(said), table(columns, audited.rank_rows()))


def _sentence(said: str) -> str:
    return f"{said[0].upper()}{said[1:]}."
