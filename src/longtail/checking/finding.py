"""What a check found: findings with a stable code, and a description of the data; as text and as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from longtail.printable import counted, printable

Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
_PLACES_SHOWN = 5


@dataclass(frozen=True)
class Example:
    """Where a finding was seen.

    Parameters
    ----------
    places : sequence of int
        Numbers of lines or rows, counted from 1; see `Check.unit`.
    what : str
        What stands there: an excerpt of a text, an id, names of labels. It comes from the data, so it is untrusted.
    files : sequence of str
        The names of the files that the places are in; empty if there is only one file.
    """

    places: Sequence[int] = ()
    what: str = ""
    files: Sequence[str] = ()


@dataclass(frozen=True)
class Finding:
    """One kind of trouble, or a fact that one should know before training.

    Parameters
    ----------
    code : str
        A short name that stays the same; docs/check.md lists all.
    severity : {"error", "warning", "note"}
        Training fails or is useless; the model gets worse or its metrics are wrong; good to know.
    count : int
        The number of rows, labels or features.
    says : str
        What was found, as a sentence.
    advice : str
        What to do, as a sentence.
    examples : sequence of Example
    """

    code: str
    severity: Severity
    count: int
    says: str
    advice: str
    examples: Sequence[Example] = ()


@dataclass(frozen=True)
class Spread:
    """The smallest, the median, the mean and the largest of some numbers."""

    smallest: int
    median: float
    mean: float
    largest: int


@dataclass(frozen=True)
class Bin:
    """Numbers from `low` to `high`, and how many things have one of them."""

    low: int
    high: int
    count: int

    @property
    def name(self) -> str:
        return f"{self.low:,}" if self.low == self.high else f"{self.low:,}-{self.high:,}"


@dataclass(frozen=True)
class Distribution:
    """How some numbers are spread, and how many fall into each bin; None and no bins if there are no numbers."""

    spread: Spread | None
    bins: Sequence[Bin] = ()


@dataclass(frozen=True)
class LabelsInTexts:
    """Of how many pairs of a row and a label the name could be looked for, and the share of names that were found.

    `share` is the share in the text of the row, `by_chance` in the text of a row without the label.
    """

    n_pairs: int
    share: float
    by_chance: float


@dataclass(frozen=True)
class Check:
    """The result of a check.

    Parameters
    ----------
    n_rows, n_labels, n_pairs : int
        The number of rows, of different labels, and of pairs of a row and one of its labels.
    n_features : int or None
        The number of columns of a file of features.
    unit : {"line", "row"}
        What the places of examples count.
    labels_per_row, rows_per_label, words_per_text : Distribution
        `words_per_text` is empty for features.
    labels_in_texts : LabelsInTexts or None
        How often names of labels stand in texts; None if there is no name to look for.
    findings : sequence of Finding
        Errors first, then warnings, then notes.
    """

    n_rows: int
    n_labels: int
    n_pairs: int
    n_features: int | None
    unit: Literal["line", "row"]
    labels_per_row: Distribution
    rows_per_label: Distribution
    words_per_text: Distribution
    labels_in_texts: LabelsInTexts | None
    findings: Sequence[Finding]

    def count(self, severity: Severity) -> int:
        """The number of findings of a severity."""
        return sum(finding.severity == severity for finding in self.findings)

    def summary(self) -> str:
        """The numbers of errors, warnings and notes in words."""
        told = [counted(self.count(severity), severity) for severity in SEVERITIES if self.count(severity)]
        return ", ".join(told) or "nothing found"

    def to_text(self) -> str:
        """Plain lines: the description, then the findings with examples and advice. Safe to print."""
        return "\n".join([*self._described(), "", self.summary(), *self._told()])

    def to_dict(self) -> dict[str, Any]:
        """For JSON; docs/check.md describes the keys."""
        described = {
            "rows": self.n_rows,
            "labels": self.n_labels,
            "pairs": self.n_pairs,
            "features": self.n_features,
            "unit": self.unit,
        }
        distributions = {
            "labels_per_row": _as_dict(self.labels_per_row),
            "rows_per_label": _as_dict(self.rows_per_label),
            "words_per_text": _as_dict(self.words_per_text),
        }
        names = self.labels_in_texts
        in_texts = None if names is None else {"pairs": names.n_pairs, "share": names.share, "chance": names.by_chance}
        return {
            **described,
            **distributions,
            "labels_in_texts": in_texts,
            "findings": [self._finding(each) for each in self.findings],
        }

    def _described(self) -> list[str]:
        rows = counted(self.n_rows, "row") if self.n_features is None else f"{counted(self.n_rows, 'row')} of features"
        sizes = [rows, counted(self.n_labels, "label")]
        if self.n_features is not None:
            sizes.append(counted(self.n_features, "feature"))
        named = {
            "labels per row": self.labels_per_row,
            "rows per label": self.rows_per_label,
            "words per text": self.words_per_text,
        }
        lines = [", ".join(sizes)]
        lines += [f"{name}: {told(each)}" for name, each in named.items() if each.spread is not None]
        if (names := self.labels_in_texts) is not None:
            lines.append(f"names of labels in texts: {names.share:.0%} of pairs, {names.by_chance:.0%} by chance")
        return lines

    def _told(self) -> list[str]:
        lines = []
        for finding in self.findings:
            lines += ["", f"{finding.severity}: {finding.says} ({finding.code})"]
            lines += [f"  {printable(shown(example, self.unit))}" for example in finding.examples]
            lines.append(f"  {finding.advice}")
        return lines

    def _finding(self, finding: Finding) -> dict[str, Any]:
        return {
            "code": finding.code,
            "severity": finding.severity,
            "count": finding.count,
            "says": finding.says,
            "advice": finding.advice,
            "examples": [
                {f"{self.unit}s": list(each.places), "what": each.what}
                | ({"files": list(each.files)} if each.files else {})
                for each in finding.examples
            ],
        }


def told(distribution: Distribution) -> str:
    """A distribution in words.

    >>> told(Distribution(Spread(1, 2.0, 2.25, 5)))
    '1 to 5, median 2, mean 2.2'
    """
    found = distribution.spread
    if found is None:
        return "none"
    return f"{found.smallest:,} to {found.largest:,}, median {found.median:,g}, mean {found.mean:,.1f}"


def shown(example: Example, unit: str) -> str:
    """An example on one line; the text of the data in it is still untrusted.

    >>> shown(Example((3, 17), "a red apple"), "line")
    'lines 3, 17: a red apple'
    >>> shown(Example((3, 1), "a red apple", ("a.csv", "b.csv")), "line")
    'a.csv:3, b.csv:1: a red apple'
    """
    if not example.places:
        return example.what
    numbers = [str(place) for place in example.places[:_PLACES_SHOWN]]
    if example.files:
        numbers = [f"{file}:{number}" for file, number in zip(example.files, numbers, strict=False)]
    else:
        numbers[0] = f"{unit}{'s' * (len(example.places) > 1)} {numbers[0]}"
    more = f" and {len(example.places) - _PLACES_SHOWN:,} more" if len(example.places) > _PLACES_SHOWN else ""
    place = f"{', '.join(numbers)}{more}"
    return f"{place}: {example.what}" if example.what else place


def _as_dict(distribution: Distribution) -> Mapping[str, Any] | None:
    found = distribution.spread
    if found is None:
        return None
    return {
        "min": found.smallest,
        "median": found.median,
        "mean": found.mean,
        "max": found.largest,
        "bins": [{"low": each.low, "high": each.high, "count": each.count} for each in distribution.bins],
    }
