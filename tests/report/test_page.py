"""The page: what it says is what was measured, and whatever the names and texts hold is shown as text."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from longtail import LabelTree, Ridge, Tagger, TextFeatures
from longtail.data import Corpus
from longtail.errors import InvalidInput
from longtail.estimator import Evidence, HeadDiagnostics, HeadScores, Survival
from longtail.report import Heading, ReportOptions, gather, is_report, make_report, render
from longtail.report.examples import WRONG, strongest_evidence
from longtail.report.text import about_heads, percent
from longtail.tagger import TagExplanation
from tests.tagger.two_stages import two_stages

HOSTILE = "<script>alert('x')</script>"
QUOTES = "\"><img src=x onerror=alert(1)> & ' \x00\x1b[31m \ud800 \u202egnihton"
VOID = {"meta", "br", "wbr", "line", "rect", "circle", "path", "polyline"}
ALLOWED = {
    *VOID,
    "html",
    "head",
    "title",
    "style",
    "body",
    "main",
    "h1",
    "h2",
    "h3",
    "h4",
    "p",
    "div",
    "span",
    "b",
    "dl",
    "dt",
    "dd",
    "nav",
    "a",
    "section",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "small",
    "svg",
    "text",
    "details",
    "summary",
    "article",
    "ul",
    "li",
    "bdi",
    "footer",
    "time",
}


class Checker(HTMLParser):
    """Reads the page as a browser does: balanced elements that are known, no handlers, no addresses."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: list[str] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ALLOWED, tag
        for attribute, value in attrs:
            assert not attribute.startswith("on"), attribute
            assert attribute not in ("src", "srcset", "action", "xlink:href"), attribute
            assert attribute != "href" or str(value).startswith("#")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())


TEXTS = ["red apples and pears", "green apples", "clear blue sky", "grey sky and rain", "rain on red roses", "xyzzy"]
LABELS = [["fruit", HOSTILE], ["fruit"], ["weather"], ["weather", "grey"], ["weather", HOSTILE], ["fruit", QUOTES]]
HEADING = Heading("model", "notes.jsonl", "2026-01-02T03:04:05+00:00")


def corpus() -> Corpus:
    return Corpus.from_lists(TEXTS, LABELS)


@pytest.fixture(params=["ridge", "tree"])
def tagger(request: pytest.FixtureRequest) -> Tagger:
    learner = Ridge(0.1) if request.param == "ridge" else LabelTree(leaf_size=2, random_state=0)
    return Tagger(TextFeatures(min_df=1), learner).fit_corpus(
        corpus().select([0, 1, 2, 3, 4]).with_label_names(["fruit", HOSTILE, "weather", "grey"])
    )


def test_hostile_names_and_texts_are_shown_as_text(tagger: Tagger) -> None:
    rows = Corpus.from_lists(
        [*TEXTS, "rain </p></main><script>alert(2)</script>"], [*LABELS, ["fruit"]], row_names=[HOSTILE] * 7
    )
    card = {"data": {"source": HOSTILE}, "trained": {"reason": QUOTES, "at": HOSTILE, "seconds": 3}}
    page = render(gather(tagger, rows, ReportOptions(ks=(1, 2))), Heading(HOSTILE, QUOTES, HOSTILE, card, QUOTES))
    page.encode("utf-8")
    checked = Checker(page)
    assert "<script" not in page
    assert HOSTILE in checked.text
    assert "rain </p></main><script>alert(2)</script>" in checked.text
    assert "\x00" not in page
    assert "\x1b" not in page


def test_the_page_needs_nothing_else(tagger: Tagger) -> None:
    page = render(gather(tagger, corpus()), HEADING)
    assert not re.search(r"https?://|url\(|@import|<link|<script|javascript:", page)
    assert "default-src &#x27;none&#x27;; style-src &#x27;unsafe-inline&#x27;" in page
    assert "prefers-color-scheme:dark" in page
    assert "@media print" in page


def test_the_same_model_and_rows_give_the_same_page(tagger: Tagger) -> None:
    assert render(gather(tagger, corpus()), HEADING) == make_report(tagger, corpus(), HEADING)


def test_a_report_is_told_from_other_files(tagger: Tagger, tmp_path: Path) -> None:
    for content, expected in ((make_report(tagger, corpus(), HEADING), True), ("<!doctype html>", False), ("", False)):
        (tmp_path / "report.html").write_text(content, encoding="utf-8")
        assert is_report(tmp_path / "report.html") is expected


def test_the_page_names_its_options(tagger: Tagger) -> None:
    options = ReportOptions(ks=(1, 2), worst=3, pairs=4, examples=5)
    assert "Options: k: 1, 2; worst labels: 3; pairs: 4; documents: 5." in make_report(
        tagger, corpus(), HEADING, options
    )


def test_the_figures_are_those_of_evaluate(tagger: Tagger) -> None:
    facts = gather(tagger, corpus(), ReportOptions(ks=(1, 2)))
    expected = tagger.evaluate(corpus(), ks=(1, 2))
    assert facts.report == expected
    text = Checker(render(facts, HEADING)).text
    for metric in ("P", "nDCG", "PSP", "R", "F1"):
        for k in (1, 2):
            assert facts.intervals[k][metric].value == pytest.approx(expected[f"{metric}@{k}"])
            assert f"{100 * expected[f'{metric}@{k}']:.2f}" in text


def test_labels_and_words_that_training_never_saw_are_counted(tagger: Tagger) -> None:
    facts = gather(tagger, corpus(), ReportOptions(ks=(1, 2)))
    assert (facts.unknown.n_labels, facts.unknown.n_pairs, facts.unknown.n_rows) == (1, 1, 0)
    assert [facts.label_names[label] for label, _ in facts.unknown.frequent] == [QUOTES]
    assert facts.n_rows_without_features == 1
    text = Checker(render(facts, HEADING)).text
    assert "1 label of these rows is not in the training set and cannot be found: 10% of all true labels" in text
    assert "1 row (17%) has no known word" in text


def test_ridge_is_said_to_give_no_probabilities() -> None:
    rows = corpus()
    for learner, said in ((Ridge(0.1), True), (LabelTree(random_state=0), False)):
        facts = gather(Tagger(TextFeatures(min_df=1), learner).fit_corpus(rows), rows)
        assert facts.gives_probabilities is not said
        assert ("are not probabilities" in render(facts, HEADING)) is said


def test_rows_of_features_are_shown_by_their_features() -> None:
    rows = Corpus(labels=np.eye(4), label_names=list("abcd"), features=np.eye(4) + 0.5)
    facts = gather(Tagger(estimator=Ridge(0.1)).fit_corpus(rows), rows, ReportOptions(ks=(1, 2)))
    text = Checker(render(facts, HEADING)).text
    assert re.search(r"right row \d", text)
    assert "features 0: " in text
    assert "known feature" in text
    with pytest.raises(InvalidInput, match="the model takes features; the corpus has only texts"):
        gather(Tagger(estimator=Ridge(0.1)).fit_corpus(rows), corpus())


def test_rows_without_labels_are_counted_and_a_model_of_one_label_makes_a_page() -> None:
    rows = Corpus.from_lists(["apples", "pears", "sky"], [["fruit"], ["fruit"], []])
    tagger = Tagger(TextFeatures(min_df=1), Ridge(0.1)).fit_corpus(rows)
    text = Checker(render(gather(tagger, rows, ReportOptions(ks=(1, 5))), HEADING)).text
    assert "The first label is correct for 67% (±" in text
    assert "1 of the 3 rows has no label and counts as 0 in all means over rows; without it, P@1 is 100.0%" in text
    assert "3 rows with 0.7 labels on average, 1 of them without labels" in text
    for none in (Corpus.from_lists(["sky"], [[]], label_names=["fruit"]), rows.select([])):
        with pytest.raises(InvalidInput, match="no row has a label; a report needs rows with known labels"):
            gather(tagger, none)


def test_only_labels_that_the_model_knows_are_confused(tagger: Tagger) -> None:
    rows = Corpus.from_lists([*TEXTS[:5] * 3, "grey sky"], [["unheard", "of"]] * 15 + [["fruit"]])
    facts = gather(tagger, rows, ReportOptions(ks=(1,)))
    assert [(facts.label_names[pair.missed], pair.count) for pair in facts.pairs] == [("fruit", 1)]
    assert [facts.label_names[each.label] for each in facts.worst] == ["fruit"]
    assert sum(band.true for band in facts.bands) == 1
    assert {facts.label_names[label] for label, _ in facts.unknown.frequent} == {"unheard", "of"}
    text = Checker(render(facts, HEADING)).text
    assert "cannot be found: 97% of all true labels. 15 rows have no other label." in text
    assert "unknown unheard" in text


def test_nothing_given_where_a_label_was_missed_says_why() -> None:
    rows = Corpus.from_lists(["apples", "apples and pears"], [["fruit"], ["fruit", "pears"]])
    tagger = Tagger(TextFeatures(min_df=1), Ridge(0.1)).fit_corpus(rows)
    missed = Corpus.from_lists(["apples"], [["fruit", "pears"]])
    cells = re.findall(
        r'<span class="soft">(\w[\w ]+)</span>', render(gather(tagger, missed, ReportOptions(ks=(1,))), HEADING)
    )
    assert cells == ["no wrong label", "never missed"]


def test_a_warning_comes_before_the_figures(tagger: Tagger) -> None:
    facts = gather(tagger, corpus())
    page = render(facts, replace(HEADING, warning="the model learnt from <these>"))
    assert '<p class="means warning">The model learnt from &lt;these&gt;.</p>' in page
    assert page.index("learnt from &lt;these") < page.index('class="tile"')
    assert "means warning" not in render(facts, HEADING).partition("</style>")[2]


ODD = {
    "one row, right": (["red apples"], [["fruit"]]),
    "one row, wrong": (["clear blue sky"], [["fruit"]]),
    "one row, unknown label": (["red apples"], [["unheard"]]),
    "one row, unknown word": (["xyzzy"], [["fruit"]]),
    "one row of two without labels": (["red apples", "sky"], [["fruit"], []]),
    "nothing right": (["rain", "grey sky"] * 3, [["fruit"]] * 6),
    "everything right": (["red apples", "clear blue sky"] * 3, [["fruit"], ["weather"]] * 3),
    "thirds": (["red apples", "rain", "pears and rain"], [["fruit"], ["fruit"], ["fruit", "grey"]]),
}


@pytest.mark.parametrize("ks", [(1,), (2,), (1, 3)])
@pytest.mark.parametrize("case", ODD)
def test_sentences_read_well_whatever_the_rows(tagger: Tagger, case: str, ks: tuple[int, ...]) -> None:
    page = render(gather(tagger, Corpus.from_lists(*ODD[case]), ReportOptions(ks=ks)), HEADING)
    text = "\n".join(re.findall(r"<(?:p|dd|title)[^>]*>(.*?)</(?:p|dd|title)>", page))
    assert not re.search(
        r"(?<![\d.,])1 (rows|labels|places|times|are|have)\b|\b0 rows\b|1 time\b|first 1 |\bNone\b", text
    )
    assert not re.search(r"\b(row|label) (are|have|were)\b", text)


@pytest.mark.parametrize(
    ("case", "said"),
    [
        ("one row, right", "1 known label occurs in these rows; it is found at least once. label"),
        ("one row, wrong", "No pair of labels is confused twice. One example: “fruit” was missed"),
        ("one row, unknown label", "100% of all true labels. 1 row has no other label."),
        (
            "one row, unknown label",
            "No label of these rows is in the training set, so there is nothing to compare.",
        ),
        ("one row, unknown word", "1 row (100%) has no known word: its labels are a guess."),
        ("one row of two without labels", "1 of the 2 rows has no label and counts as 0"),
        ("nothing right", "Of 6 rows with labels, none is right (the true labels come first), none is partly right, "),
        ("nothing right", "6 are wrong (no true label in the first place)."),
        ("nothing right", "1 known label occurs in at least 5 of these rows; it is never found."),
        ("nothing right", "“fruit” is missed and “weather” is predicted instead, in 6 rows, 100% of the rows with"),
        ("everything right", "No known label was missed while a wrong one was predicted."),
        ("everything right", "All labels of these rows are in the training set. Every row has a known word."),
        ("everything right", "The first label covers 100% of a row's true labels on average."),
    ],
)
def test_what_is_said_of_odd_rows(case: str, said: str) -> None:
    learnt = Corpus.from_lists(TEXTS[:5], [["fruit"], ["fruit"], ["weather"], ["weather"], ["weather"]])
    tagger = Tagger(TextFeatures(min_df=1), Ridge(0.1)).fit_corpus(learnt)
    facts = gather(tagger, Corpus.from_lists(*ODD[case]), ReportOptions(ks=(1,)))
    assert said in Checker(render(facts, HEADING)).text


def test_nothing_asked_for_is_nothing_shown(tagger: Tagger) -> None:
    rows = Corpus.from_lists(["clear blue sky"], [["fruit"]])
    facts = gather(tagger, rows, ReportOptions(ks=(1,), worst=0, pairs=0, examples=0))
    assert (facts.worst, facts.pairs, facts.examples) == ((), (), ())
    page = render(facts, HEADING)
    Checker(page)
    assert "is known to the model" not in page
    assert "the options of this report show no such pairs" in page
    assert "the lowest scores" not in page


def test_wrong_labels_come_with_words_that_speak_for_them(tagger: Tagger) -> None:
    rows = Corpus.from_lists(["rain and grey sky"], [["fruit"]])
    [example] = gather(tagger, rows, ReportOptions(ks=(2,), examples=10)).examples
    assert example.kind == WRONG
    assert not any(each.right for each in example.given)
    words = {reason.feature for each in example.given for reason in each.why.reasons}
    assert words & {"rain", "grey", "sky"}
    assert all(reason.contribution > 0 for each in example.given for reason in each.why.reasons)


def test_wrong_labels_of_two_stages_come_with_the_evidence_of_the_second() -> None:
    tagger = two_stages(Corpus.from_lists(TEXTS[:5] * 12, LABELS[:5] * 12), {"astronomy": "telescope planet"})
    others = ["fruit", "grey", "weather", HOSTILE]
    rows = Corpus.from_lists(["rain and grey sky", "a telescope and a planet"], [["fruit"], others])
    facts = gather(tagger, rows, ReportOptions(ks=(5,), examples=10))
    given = {facts.label_names[each.label]: each.why for example in facts.examples for each in example.given}
    found = tagger.explain(rows.texts[0], "weather")
    best = max(found.evidence[1:], key=lambda each: each.contribution)
    assert given["weather"].evidence[0] == (best.name, pytest.approx(best.contribution))
    page = Checker(render(facts, HEADING)).text
    assert f"because of {best.name} {best.contribution:+.2f}" in page
    assert "; words: " in page
    assert "no training row has this label, but words of its name or description occur in the text: " in page


def test_the_readings_of_a_label_text_count_together() -> None:
    evidence = (
        Evidence("an average candidate", None, 9.0),
        Evidence("share of the label's text that occurs", 1.0, 0.25),
        Evidence("share of the label's text, reading 2 that occurs", 1.0, 0.5),
        Evidence("frequency of the label", 2.0, 0.5),
        Evidence("rank in tree", 0.0, -3.0),
    )
    found = TagExplanation("fruit", 0.5, 0.0, (), 0.0, evidence=evidence)
    assert strongest_evidence(found) == (
        ("share of the label's text that occurs", 0.75),
        ("frequency of the label", 0.5),
    )


def test_a_report_on_rows_with_one_label_each_opens_with_accuracy_and_macro_f1() -> None:
    corpus = Corpus.from_lists(["red apples", "green apples", "clear sky", "grey sky"], [["a"], ["a"], ["b"], ["b"]])
    tagger = Tagger(TextFeatures(min_df=1), Ridge()).fit_corpus(corpus)
    page = make_report(tagger, corpus, Heading("model", "data", "2026-01-31"))
    assert tagger.evaluate(corpus).classes is not None
    tiles = page[: page.index("<dl")]
    assert "accuracy" in tiles
    assert "macro-F1" in tiles
    assert "P@1" not in tiles


def network() -> Tagger:
    neural = pytest.importorskip("longtail.neural")
    learner = neural.MultiHeadClassifier(radices=(2, 2), survivors=1, width=8, epochs=2, n_networks=2, n_jobs=1)
    known = corpus().select([0, 1, 2, 3, 4]).with_label_names(["fruit", HOSTILE, "weather", "grey"])
    return Tagger(TextFeatures(min_df=1), learner).fit_corpus(known)


def test_the_heads_of_a_network_have_a_part_of_their_own(tagger: Tagger) -> None:
    assert gather(tagger, corpus()).heads is None
    assert "heads of the network" not in render(gather(tagger, corpus()), HEADING)
    judged = network()
    facts = gather(judged, corpus(), ReportOptions(ks=(1, 2)))
    assert facts.heads is not None
    assert judged.diagnose(corpus(), 20).heads == facts.heads.heads
    assert judged.diagnose(corpus()).n_labels_left_out == 1
    text = Checker(render(facts, HEADING)).text
    least = 1 + min(range(2), key=lambda number: facts.heads.heads[number].accuracy)
    assert (
        f"first of the model's networks writes a label as a code of 2 values, one from each head. Head {least}" in text
    )
    assert "The model keeps 1 group of labels for each row" in text
    for head in facts.heads.heads:
        assert f"{head.length} {percent(head.accuracy, 1)} {percent(head.together, 1)}" in text
    none_known = Corpus.from_lists(["red apples"], [["other"]])
    assert gather(judged, none_known).heads is None


def heads(accuracies: list[float], survival: Survival | None = None, n_networks: int = 1) -> HeadDiagnostics:
    scores = tuple(HeadScores(4, accuracy, min(accuracies), ()) for accuracy in accuracies)
    return HeadDiagnostics(10, 0, 0, scores, 0.5, survival, n_networks)


def test_sentences_on_heads_name_the_weakest_and_what_is_lost() -> None:
    assert about_heads(heads([0.5])) == "The network has one head, which is right for 50% of the rows."
    assert "Head 2 is right least often, for 60% of the rows; all heads together are right for 60%" in about_heads(
        heads([0.9, 0.6, 0.7])
    )
    some = Survival((1, 2, 5), ((0.5, 0.9, 1.0),), 2)
    assert about_heads(heads([0.9, 0.8], some)).endswith(
        "keeps 2 groups of labels for each row, in which 90% of its labels remain; the others cannot be found."
    )
    every = Survival((1, 2, 3), ((0.5, 0.9, 1.0),), 10)  # there are only three groups
    assert about_heads(heads([0.9, 0.8], every)).endswith(
        "3 groups of labels for each row, in which 100% of its labels remain."
    )
