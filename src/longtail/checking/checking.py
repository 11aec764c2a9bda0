"""`check`: one pass over the rows, and one over test rows if there are any, then all findings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from longtail.arrays import Array
from longtail.checking.counting import distribution, distribution_of
from longtail.checking.features import FeatureRows
from longtail.checking.finding import SEVERITIES, Check, Finding, LabelsInTexts
from longtail.checking.labels import LabelTable, frequency_findings
from longtail.checking.names import alike_labels, list_labels, missing_labels, odd_names, similar_labels
from longtail.checking.overlap import overlap_of_features, overlap_of_texts
from longtail.checking.rows import Rows
from longtail.checking.texts import TextRows
from longtail.errors import InvalidInput


def check(rows: Rows, test: Rows | None = None, *, examples: int = 5) -> Check:
    """Look at labelled rows before training on them.

    Texts are hashed and forgotten, so memory grows by about 40 bytes per row, and with the names of the labels.

    Parameters
    ----------
    rows : Rows
        From `rows_of_file` or `rows_of_corpus`.
    test : Rows or None
        Test rows, to look for training rows among them.
    examples : int
        Maximum number of examples of each finding.

    Examples
    --------
    >>> from longtail.checking import rows_of_corpus
    >>> from longtail.data import Corpus
    >>> corpus = Corpus.from_lists(["a red apple", "A red  apple", "the sky"], [["fruit"], ["Fruit"], ["sky"]])
    >>> found = check(rows_of_corpus(corpus))
    >>> [finding.code for finding in found.findings]
    ['conflicting_duplicates', 'alike_labels', 'single_label', 'labels_with_one_row']
    """
    if rows.texts is not None:
        return _check_texts(rows, test, examples)
    if rows.features is not None:
        return _check_features(rows, test, examples)
    raise InvalidInput("there are neither texts nor features to check")


def _check_texts(rows: Rows, test: Rows | None, most: int) -> Check:
    seen = TextRows(most)
    for record in rows.texts or ():
        seen.add(record)
    if not seen.n_rows:
        raise _no_rows()
    overlap: Iterator[Finding] = iter(())
    if test is not None:
        if test.texts is None:
            raise InvalidInput("the rows have texts, but the test rows have features; give test rows with texts")
        overlap = overlap_of_texts(seen, rows, test, most)
    per_row = np.bincount(list(seen.n_labels), weights=list(seen.n_labels.values())).astype(np.int64)
    names = seen.leakage
    return Check(
        n_rows=seen.n_rows,
        n_labels=len(seen.labels.counts),
        n_pairs=int(seen.labels.counts.sum()),
        n_features=None,
        unit=rows.unit,
        labels_per_row=distribution(seen.n_labels),
        rows_per_label=distribution_of(seen.labels.counts),
        words_per_text=distribution(seen.n_words),
        labels_in_texts=LabelsInTexts(names.n_pairs, names.share, names.chance) if names.n_pairs else None,
        findings=_sorted(
            chain(seen.findings(), overlap, _label_findings(seen.labels, seen.n_rows, per_row, most)), rows
        ),
    )


def _check_features(rows: Rows, test: Rows | None, most: int) -> Check:
    seen: FeatureRows | None = None
    for batch in rows.features or ():
        seen = seen or FeatureRows(batch, most)
        seen.add(batch)
    if seen is None or not seen.n_rows:
        raise _no_rows()
    overlap: Iterator[Finding] = iter(())
    if test is not None:
        if test.features is None:
            raise InvalidInput("the rows have features, but the test rows have texts; give test rows with features")
        overlap = overlap_of_features(seen, rows, test, most)
    counts = seen.labels.counts
    return Check(
        n_rows=seen.n_rows,
        n_labels=int((counts > 0).sum()),
        n_pairs=int(counts.sum()),
        n_features=seen.n_features,
        unit=rows.unit,
        labels_per_row=distribution(dict(enumerate(seen.n_labels.tolist()))),
        rows_per_label=distribution_of(counts[counts > 0]),
        words_per_text=distribution({}),
        labels_in_texts=None,
        findings=_sorted(
            chain(seen.findings(), overlap, _label_findings(seen.labels, seen.n_rows, seen.n_labels, most)), rows
        ),
    )


def _no_rows() -> InvalidInput:
    return InvalidInput("there are no rows to check", code="no_rows")


def _label_findings(labels: LabelTable, n_rows: int, per_row: Array, most: int) -> Iterator[Finding]:
    names = labels.names
    yield from frequency_findings(labels, n_rows, per_row, most)
    if names_are_numbers(names):
        return
    for look in (alike_labels, missing_labels, list_labels, similar_labels):
        if (finding := look(labels, names, most)) is not None:
            yield finding
    yield from odd_names(labels, names, most)


def names_are_numbers(names: Sequence[str]) -> bool:
    """Whether labels are named by their numbers from 0, as in files without names."""
    return all(name == str(number) for number, name in enumerate(names))


def _sorted(findings: Iterator[Finding], rows: Rows) -> tuple[Finding, ...]:
    located = (replace(each, examples=[rows.located(example) for example in each.examples]) for each in findings)
    return tuple(sorted(located, key=lambda finding: SEVERITIES.index(finding.severity)))
