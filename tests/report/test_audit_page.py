"""The page on an audit says what the audit found, and disarms every name."""

from __future__ import annotations

import re

import numpy as np
import pytest

from longtail.audit import CorpusAudit, OutputLayer, audit_corpus, lines_of
from longtail.data import Corpus
from longtail.report import DataHeading, render_audit

HEADING = DataHeading("notes.jsonl", "2026-01-02T03:04:05")
PLANE = OutputLayer(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), np.zeros(3), "predict", "its score is above 0")
LABELS = np.array([[1, 1, 0], [1, 0, 1], [1, 1, 1], [1, 1, 0], [0, 0, 0]], dtype=np.int8)


def audited(names: str | list[str] = "ABC", **options: object) -> CorpusAudit:
    corpus = Corpus(labels=LABELS, label_names=list(names), texts=["text"] * len(LABELS))
    return audit_corpus(PLANE, corpus, list(names), **options)  # type: ignore[arg-type]


def words(page: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))


def test_a_page_tells_verdicts_reasons_radii_and_ranks() -> None:
    seen = np.array([[-2.0, -2.0], [2.0, 2.0]])
    page = render_audit(audited(exact_radii=True, seen=seen, ranks=(1,)), HEADING, "plane.npy")
    shown = words(page)
    assert "plane.npy audited on the label sets of notes.jsonl" in shown
    assert "never gives 1 of 4 label sets, whatever its input: the sets of 2 rows." in shown
    assert "No input can have A and B without C." in shown
    assert "<bdi>A</bdi>, <bdi>B</bdi>" in page
    assert "The shortest proof names 3 labels, the longest 3 labels." in shown
    # Radii are 1, 0.41 and 1 in the box, and twice that in the range of the data.
    assert "1 50.0% 50.0% 0.1 75.0% 75.0%" in shown
    assert "lower bounds" not in shown
    assert "If the layer were narrower" in shown
    assert "<script" not in page


def test_a_page_says_what_would_help() -> None:
    lines = lines_of(audited().found.remedies())
    assert lines
    shown = words(render_audit(audited(), HEADING, "plane.npy"))
    assert all(line in shown for line in lines)


def test_an_audit_without_findings_says_so() -> None:
    corpus = Corpus(labels=LABELS[1:2], label_names=list("ABC"), texts=["text"])
    page = render_audit(audit_corpus(PLANE, corpus, "ABC"), HEADING, "plane.npy")
    assert "found no label set that the model can never give" in words(page)
    assert "The radii are lower bounds" in words(page)
    assert "Labels in conflict" not in page


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", "a&b", '"x"'])
def test_names_are_escaped(name: str) -> None:
    page = render_audit(audited([name, "B", "C"]), HEADING, name)
    assert "<script>" not in page
    assert name not in page
