"""The page: what it says is what was measured, and whatever the names and texts hold is shown as text."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import pytest

from longtail import LabelTree, Ridge, Tagger, TextFeatures
from longtail.data import Corpus
from longtail.errors import InvalidInput
from longtail.report import Heading, gather, render
from longtail.report.examples import PARTLY, RIGHT, WRONG, choose_rows
from longtail.report.facts import Judgement
from longtail.report.markup import element, escape, join, name, shortened

HOSTILE = "<script>alert('x')</script>"
QUOTES = "\"><img src=x onerror=alert(1)> & ' \x00\x1b[31m \ud800 \u202egnihton"
VOID = {"meta", "br", "line", "rect", "circle", "path", "polyline"}
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
HEADING = Heading("model", "notes.jsonl", "2026-01-02T03:04:05+00:00", None, {"k": "1, 2"})


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
    page = render(gather(tagger, rows, ks=(1, 2)), Heading(HOSTILE, QUOTES, HOSTILE, card, {HOSTILE: QUOTES}))
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
    assert render(gather(tagger, corpus()), HEADING) == render(gather(tagger, corpus()), HEADING)


def test_the_figures_are_those_of_evaluate(tagger: Tagger) -> None:
    facts = gather(tagger, corpus(), ks=(1, 2))
    expected = tagger.evaluate(corpus(), ks=(1, 2))
    assert facts.report == expected
    text = Checker(render(facts, HEADING)).text
    for metric in ("P", "nDCG", "PSP", "R", "F1"):
        for k in (1, 2):
            assert facts.intervals[k][metric].value == pytest.approx(expected[f"{metric}@{k}"])
            assert f"{100 * expected[f'{metric}@{k}']:.2f}" in text


def test_labels_and_words_that_training_never_saw_are_counted(tagger: Tagger) -> None:
    facts = gather(tagger, corpus(), ks=(1, 2))
    assert (facts.unknown.n_labels, facts.unknown.n_pairs, facts.unknown.n_rows) == (1, 1, 0)
    assert [facts.label_names[label] for label, _ in facts.unknown.frequent] == [QUOTES]
    assert facts.n_rows_without_features == 1
    text = Checker(render(facts, HEADING)).text
    assert "1 label of these rows was never seen in training and cannot be found: 10% of all true labels" in text
    assert "1 row (17%) has no known word" in text


def test_ridge_is_said_to_give_no_probabilities() -> None:
    rows = corpus()
    for learner, said in ((Ridge(0.1), True), (LabelTree(random_state=0), False)):
        facts = gather(Tagger(TextFeatures(min_df=1), learner).fit_corpus(rows), rows)
        assert facts.gives_probabilities is not said
        assert ("are not probabilities" in render(facts, HEADING)) is said


def test_rows_of_features_are_shown_by_their_features() -> None:
    rows = Corpus(labels=np.eye(4), label_names=list("abcd"), features=np.eye(4) + 0.5)
    facts = gather(Tagger(estimator=Ridge(0.1)).fit_corpus(rows), rows, ks=(1, 2))
    text = Checker(render(facts, HEADING)).text
    assert re.search(r"right row \d", text)
    assert "features 0: " in text
    assert "known feature" in text
    with pytest.raises(InvalidInput, match="the model takes features; the corpus has only texts"):
        gather(Tagger(estimator=Ridge(0.1)).fit_corpus(rows), corpus())


def test_rows_without_labels_and_a_model_of_one_label_make_a_page() -> None:
    rows = Corpus.from_lists(["apples", "pears", "sky"], [["fruit"], ["fruit"], []])
    facts = gather(Tagger(TextFeatures(min_df=1), Ridge(0.1)).fit_corpus(rows), rows, ks=(1, 5))
    Checker(render(facts, HEADING))
    assert facts.n_rows_without_labels == 1
    bare = Corpus.from_lists(["sky"], [[]], label_names=["fruit"])
    Checker(render(gather(Tagger(TextFeatures(min_df=1), Ridge(0.1)).fit_corpus(rows), bare), HEADING))
    with pytest.raises(InvalidInput, match="there are no rows"):
        gather(Tagger(TextFeatures(min_df=1), Ridge(0.1)).fit_corpus(rows), rows.select([]))


def test_nothing_asked_for_is_nothing_shown(tagger: Tagger) -> None:
    facts = gather(tagger, corpus(), worst=0, pairs=0, examples=0)
    assert (facts.worst, facts.pairs, facts.examples) == ((), (), ())
    page = render(facts, HEADING)
    Checker(page)
    assert "so there is none to look at" not in page
    assert "there is nothing to confuse" not in page


def test_documents_are_the_surest_and_the_least_sure_of_each_kind() -> None:
    truth = np.array([[1, 0, 0], [1, 0, 0], [1, 0, 0], [1, 1, 0], [1, 0, 0], [0, 0, 0]])
    top = np.array([[0, 1], [0, 2], [1, 2], [0, 2], [2, 0], [0, 1]])
    scores = np.array([0.9, 0.8, 0.7, 0.6, 0.5, 0.4])
    chosen = choose_rows(Judgement.of(truth, top), scores, 6)
    assert chosen == [(RIGHT, 0), (RIGHT, 1), (PARTLY, 3), (PARTLY, 4), (WRONG, 2)]
    assert choose_rows(Judgement.of(truth, top), scores, 3) == [(RIGHT, 0), (PARTLY, 3), (WRONG, 2)]


def test_places_that_one_kind_cannot_fill_go_to_the_others() -> None:
    truth, top = np.ones((9, 1), dtype=int), np.zeros((9, 1), dtype=int)
    top[7:] = -1
    chosen = choose_rows(Judgement.of(truth, top), np.linspace(1, 0, 9), 6)
    assert [kind for kind, _ in chosen] == [RIGHT] * 4 + [WRONG] * 2
    assert [row for _, row in chosen] == [0, 1, 5, 6, 7, 8]


def test_wrong_labels_come_with_words_that_speak_for_them(tagger: Tagger) -> None:
    rows = Corpus.from_lists(["rain and grey sky"], [["fruit"]])
    [example] = gather(tagger, rows, ks=(2,), examples=10).examples
    assert example.kind == WRONG
    assert not any(each.right for each in example.given)
    words = {word for each in example.given for word, _ in each.words}
    assert words & {"rain", "grey", "sky"}
    assert all(adds > 0 for each in example.given for _, adds in each.words)


def test_texts_are_escaped_and_markup_is_not_escaped_twice() -> None:
    assert element("p", "a < b", element("b", "&")) == "<p>a &lt; b<b>&amp;</b></p>"
    assert element("p", title='"') == '<p title="&quot;"></p>'
    assert join(["<", None, escape("<")]) == "&lt;&lt;"
    assert "title" not in name("short")


@pytest.mark.parametrize("text", ["", "word", "x" * 5000, "a b " * 3000, "\n\n \t", "é" * 500])
def test_long_texts_are_cut(text: str) -> None:
    assert len(shortened(text, 40)) <= 41
