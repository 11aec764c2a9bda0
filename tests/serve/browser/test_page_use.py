"""The page as people use it: typing, explaining, leaving labels out, finding labels, other models, keys alone."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from longtail import Tagger
from longtail.cli import cards, demo
from tests.serve.browser.stage import EMOJI, IMAGE, LONG, RIGHT_TO_LEFT, SCRIPT, SUBJECTS

expect = pytest.importorskip("playwright.sync_api").expect

TEXT = "Rain and wind, so we bake a birthday cake; flour, butter, Rain."


def write(page: Any, text: str) -> None:
    page.locator("#text").fill(text)
    expect(page.locator(".tag").first).to_be_visible()
    expect(page.locator("#tags")).to_have_attribute("aria-busy", "false")


def shown(page: Any) -> list[str]:
    return [str(name) for name in page.locator(".tag .name").all_inner_texts()]


def expect_tags(page: Any, names: list[str]) -> None:
    expect(page.locator(".tag .name")).to_have_text(names)


def best(tagger: Tagger, text: str, k: int, deny: list[str] | None = None) -> list[str]:
    return [tag.label for tag in tagger.predict([text], k, deny=deny)[0]]


def test_tags_appear_while_typing(visit: Any, service: Any, taggers: dict[str, Tagger]) -> None:
    page = visit(service).page
    page.locator("#text").press_sequentially(TEXT, delay=5)
    expect_tags(page, best(taggers["tree"], TEXT, 5))
    expected = [tag.score for tag in taggers["tree"].predict([TEXT], 5)[0]]

    def scores() -> list[float]:
        return [float(score) for score in page.locator(".tag .number").all_inner_texts()]

    # The first words may have the same tags, with other scores, as all of them.
    until = time.monotonic() + 30
    while not all(abs(a - b) < 0.006 for a, b in zip(scores(), expected, strict=True)):
        assert time.monotonic() < until, (scores(), expected)
        page.wait_for_timeout(100)
    widths = page.locator(".tag .bar > span").evaluate_all(
        "bars => bars.map(bar => bar.getBoundingClientRect().width / bar.parentNode.getBoundingClientRect().width)"
    )
    assert all(abs(width - score) < 0.02 for width, score in zip(widths, expected, strict=True))
    page.locator("#k").select_option("10")
    expect_tags(page, best(taggers["tree"], TEXT, 10))


def test_an_answer_that_was_overtaken_is_dropped(visit: Any, service: Any, taggers: dict[str, Tagger]) -> None:
    page = visit(service).page
    held: list[Any] = []
    page.route("**/v1/tag", lambda route: held.append(route) if not held else route.continue_())
    given_up: list[str] = []
    page.on("requestfailed", lambda request: given_up.append(request.post_data))
    with page.expect_request("**/v1/tag"):
        page.locator("#text").fill("goal")
    page.locator("#text").fill(TEXT)
    expect_tags(page, best(taggers["tree"], TEXT, 5))
    page.unroute_all(behavior="ignoreErrors")
    assert [json.loads(body)["text"] for body in given_up] == ["goal"]


def test_an_empty_text_invites_with_sentences_only_where_they_suit_the_model(
    visit: Any, service: Any, taggers: dict[str, Tagger]
) -> None:
    seen = visit(service)
    page = seen.page
    examples = page.locator("#examples button")
    expect(page.locator("#frequent")).to_contain_text("The model knows 10 labels. The most frequent: ")
    expect(page.locator("#examples")).to_be_hidden()
    seen.put_card({"data": {"source": "NumPy.jsonl"}})
    expect(page.locator("#card-sections")).to_contain_text("NumPy.jsonl")
    expect(page.locator("#examples")).to_be_hidden()
    for source in (demo._card(taggers["tree"], 1.0)["data"]["source"], cards.source("python-api", "training")):
        seen.put_card({"data": {"source": source}})
        expect(examples).to_have_count(3)
    expect(examples.first).to_be_visible()
    examples.first.click()
    expect(page.locator("#text")).to_have_value(demo.SENTENCES[0])
    expect(page.locator("#invitation")).to_be_hidden()
    page.get_by_role("button", name="Clear").click()
    expect(page.locator("#invitation")).to_be_visible()
    expect(page.locator(".tag")).to_have_count(0)


def test_a_model_of_features_has_a_note_in_place_of_the_text(visit: Any, service: Any) -> None:
    page = visit(service).page
    write(page, TEXT)
    page.get_by_role("combobox", name="Model").select_option("rows")
    expect(page.locator("#no-text")).to_contain_text("longtail predict")
    for gone in ("#text", "#clear", "#tagging", "#explanation"):
        expect(page.locator(gone)).to_be_hidden()
    expect(page.locator("#status")).to_have_text("")
    page.get_by_role("combobox", name="Model").select_option("flat")
    expect(page.locator("#no-text")).to_be_hidden()
    expect(page.locator("#text")).to_have_value(TEXT)
    expect(page.locator(".tag")).to_have_count(5)


def test_explaining_marks_the_words_that_count(visit: Any, service: Any, taggers: dict[str, Tagger]) -> None:
    page = visit(service).page
    write(page, TEXT)
    page.get_by_role("button", name="weather").first.click()
    marks = page.locator(".marked mark")
    expect(marks.first).to_be_visible()
    assert page.locator(".marked").evaluate("box => box.textContent") == TEXT
    reasons = dict(taggers["tree"].explain(TEXT, "weather").reasons)
    expected = [
        word for word in TEXT.replace(",", "").replace(";", "").replace(".", "").split() if word.lower() in reasons
    ]
    assert marks.all_inner_texts() == expected
    signs = marks.evaluate_all("marks => marks.map(mark => mark.className)")
    assert signs == ["for" if reasons[word.lower()] > 0 else "against" for word in expected]
    strengths = marks.evaluate_all("marks => marks.map(mark => Number(mark.style.getPropertyValue('--strength')))")
    strongest = max(range(len(expected)), key=lambda place: strengths[place])
    assert expected[strongest].lower() == "wind"
    assert page.locator(".words tbody th").all_inner_texts()[:2] == sorted(reasons, key=reasons.__getitem__)[:-3:-1]
    steps = taggers["tree"].explain(TEXT, "weather").steps
    assert page.locator(".path bdi").all_inner_texts() == [step.name for step in steps]
    assert len(steps) > 1
    expect(page.locator("#explanation")).to_contain_text("Sum along the path: ")


def test_two_stages_show_what_decided_the_score(visit: Any, service: Any, taggers: dict[str, Tagger]) -> None:
    page = visit(service).page
    page.get_by_role("combobox", name="Model").select_option("stages")
    write(page, TEXT)
    page.get_by_role("button", name="weather").first.click()
    section = page.locator("#explanation section", has=page.get_by_role("heading", name="What decided the score"))
    expect(section).to_be_visible()
    found = taggers["stages"].explain(TEXT, "weather")
    strongest = max(found.evidence[1:], key=lambda each: abs(each.contribution))
    first = section.locator("tr").first
    expect(first.locator("th")).to_contain_text(strongest.name)
    expect(first.locator(".number")).to_have_text(f"+{strongest.contribution:.2f}")
    assert strongest.contribution > 0
    assert section.locator("th").last.inner_text() == "start: an average candidate"
    added = [float(number.replace("\N{MINUS SIGN}", "-")) for number in section.locator(".number").all_inner_texts()]
    total = sum(each.contribution for each in found.evidence)
    assert abs(sum(added) - total) < 0.05
    expect(section).to_contain_text(f", the log-odds of the score of {found.score:.2f}.")
    expect(page.get_by_role("heading", name="Contribution of each word in the first learner")).to_be_visible()


def test_a_label_without_training_texts_shows_the_words_of_its_name(visit: Any, service: Any) -> None:
    page = visit(service).page
    page.get_by_role("combobox", name="Model").select_option("stages")
    write(page, f"{TEXT} A planet in the telescope.")
    field = page.get_by_role("combobox", name="Find a label")
    field.fill("astro")
    expect(page.locator("#found bdi")).to_have_text(["astronomy"])
    field.press("ArrowDown")
    field.press("Enter")
    words = page.locator("#explanation section", has=page.get_by_role("heading", name="Words of the label in the text"))
    expect(words.locator("p")).to_have_text(
        "No training text has this label. Words of its name or description occur in the text."
    )
    assert set(words.locator("th").all_inner_texts()) == {"planet", "telescope"}
    expect(page.locator(".marked mark.for")).to_have_text(["planet", "telescope"])
    page.locator("#text").fill(TEXT)
    expect(words).to_contain_text("No word of its name or description occurs in the text.")


def test_marks_follow_the_text_and_escape_closes_them(visit: Any, service: Any) -> None:
    page = visit(service).page
    write(page, "a goal in the rain")
    page.get_by_role("button", name="football").first.click()
    expect(page.locator(".marked mark.for")).to_have_text(["goal"])
    page.locator("#text").fill("a goal by the striker")
    expect(page.locator(".marked mark.for")).to_have_text(["goal", "striker"])
    page.locator("#text").press("Escape")
    expect(page.locator("#explanation")).to_be_hidden()


def test_a_denied_label_makes_room_until_it_is_allowed_again(
    visit: Any, service: Any, taggers: dict[str, Tagger]
) -> None:
    page = visit(service).page
    page.locator("#k").select_option("3")
    write(page, TEXT)
    before = best(taggers["tree"], TEXT, 3)
    expect_tags(page, before)
    page.get_by_role("button", name=f"Exclude: {before[0]}").click()
    expect_tags(page, best(taggers["tree"], TEXT, 3, deny=before[:1]))
    page.get_by_role("button", name=f"Exclude: {before[1]}").click()
    expect_tags(page, best(taggers["tree"], TEXT, 3, deny=before[:2]))
    expect(page.locator(".chip")).to_have_text(before[:2])
    page.get_by_role("button", name=f"Include again: {before[1]}").click()
    expect_tags(page, best(taggers["tree"], TEXT, 3, deny=before[:1]))
    page.get_by_role("button", name=f"Include again: {before[0]}").click()
    expect_tags(page, before)
    expect(page.locator("#denied")).to_be_hidden()


def test_hostile_names_are_shown_as_text(visit: Any, service: Any) -> None:
    hostile = [SCRIPT, IMAGE, EMOJI, RIGHT_TO_LEFT, LONG]
    text = " ".join(" ".join(SUBJECTS[name].split()[:2]) for name in hostile) + f" {SCRIPT} {IMAGE}"
    page = visit(service).page
    page.locator("#k").select_option("10")
    write(page, text)
    assert set(hostile) <= set(page.locator(".tag .name").evaluate_all("names => names.map(name => name.textContent)"))
    for name in hostile:
        page.locator(".tag", has=page.get_by_text(name, exact=True)).click()
        expect(page.locator("#explained")).to_have_text(name)
        expect(page.locator(".marked mark.for").first).to_be_visible()
        assert page.locator(".marked").evaluate("box => box.textContent") == text
        page.locator("#explained-deny").click()
    expect(page.locator(".chip")).to_have_text(hostile)
    page.locator("#find").fill("<SCR")
    expect(page.locator("#found bdi")).to_have_text([SCRIPT])
    assert page.locator("main img, main script, main a").count() == 0


def test_any_label_is_found_by_a_part_of_its_name(visit: Any, service: Any) -> None:
    page = visit(service).page
    write(page, TEXT)
    field = page.get_by_role("combobox", name="Find a label")
    field.fill("C")
    expect(page.locator("#found bdi")).to_have_text(["cooking", IMAGE, SCRIPT, "medicine"])
    field.fill("")
    expect(page.locator("#found bdi")).to_have_count(8)
    field.press_sequentially("GA")
    expect(page.locator("#found bdi")).to_have_text(["gardening"])
    field.press("ArrowDown")
    expect(page.locator("#found [aria-selected=true]")).to_contain_text("gardening")
    field.press("Enter")
    expect(page.locator("#explained")).to_have_text("gardening")
    expect(field).to_have_attribute("aria-expanded", "false")
    field.fill("foot")
    expect(page.locator("#found bdi")).to_have_text(["football"])
    field.press("Shift+Enter")
    expect(page.locator(".chip")).to_have_text(["football"])
    field.fill("zzz")
    expect(page.locator("#found")).to_contain_text("No label name contains this")
    field.press("Escape")
    expect(page.locator("#found")).to_be_hidden()
    expect(page.locator("#explanation")).to_be_visible()


def test_everything_is_done_with_keys_alone(visit: Any, service: Any, taggers: dict[str, Tagger]) -> None:
    page = visit(service).page
    keys = page.keyboard
    expect(page.locator("#text")).to_be_focused()
    keys.type(TEXT)
    names = best(taggers["tree"], TEXT, 5)
    expect_tags(page, names)
    for _ in range(6):
        keys.press("Tab")
        if page.evaluate("document.activeElement.classList.contains('tag')"):
            break
    tags = page.locator(".tag")
    expect(tags.first).to_be_focused()
    assert float(tags.first.evaluate("tag => parseFloat(getComputedStyle(tag).outlineWidth)")) >= 2
    keys.press("ArrowDown")
    expect(tags.nth(1)).to_be_focused()
    keys.press("Enter")
    expect(page.locator("#explained")).to_have_text(names[1])
    expect(tags.nth(1)).to_have_attribute("aria-expanded", "true")
    keys.press("Escape")
    expect(page.locator("#explanation")).to_be_hidden()
    keys.press("Delete")
    after = best(taggers["tree"], TEXT, 5, deny=names[1:2])
    expect_tags(page, after)
    expect(tags.nth(1)).to_be_focused()
    keys.press("?")
    expect(page.get_by_role("dialog", name="Shortcuts")).to_be_visible()
    keys.press("Escape")
    expect(page.get_by_role("dialog", name="Shortcuts")).to_be_hidden()
    keys.press("/")
    expect(page.locator("#text")).to_be_focused()
    assert page.locator("#text").input_value() == TEXT
    reached = set()
    for _ in range(40):
        keys.press("Tab")
        reached.add(
            page.evaluate("(({ id, className, tagName }) => id || className || tagName)(document.activeElement)")
        )
    assert {"k", "tag", "deny", "copy-text", "copy-json", "chip", "find", "SUMMARY", "help-open"} <= reached


def test_the_cut_off_decides_how_many_tags_are_shown(visit: Any, service: Any, taggers: dict[str, Tagger]) -> None:
    seen = visit(service, k="auto")
    page, tagger = seen.page, taggers["tree"]
    write(page, TEXT)
    expect_tags(page, [tag.label for tag in tagger.tag([TEXT])[0]])
    slider = page.get_by_role("slider", name="Cut-off")
    assert tagger.decision_ is not None
    assert abs(float(slider.input_value()) - tagger.decision_.rule.threshold) < 0.006
    asked = len([url for url in seen.requests if url.endswith("/v1/tag")])
    slider.focus()
    page.keyboard.press("Home")
    expect(page.locator("#cutoff-value")).to_have_text("0.010")
    expect_tags(page, [tag.label for tag in tagger.tag([TEXT], threshold=0.01)[0]])
    page.keyboard.press("End")
    expect_tags(page, [tag.label for tag in tagger.tag([TEXT], threshold=0.99)[0]])
    assert len([url for url in seen.requests if url.endswith("/v1/tag")]) == asked
    page.get_by_role("button", name="Reset").click()
    expect_tags(page, [tag.label for tag in tagger.tag([TEXT])[0]])
    page.locator("#k").select_option("3")
    expect(page.locator("#cutoff-line")).to_be_hidden()
    expect_tags(page, best(tagger, TEXT, 3))


@pytest.mark.parametrize(("score", "told"), [(0.9896, "of 0.9900. The best one has 0.9896"), (2e-5, "has 2e-5")])
def test_a_cut_off_that_is_just_missed_is_told_apart(visit: Any, service: Any, score: float, told: str) -> None:
    page = visit(service, k="auto").page

    def answer(route: Any) -> None:
        found = route.fetch()
        tags = [{"label": "weather", "score": score}]
        route.fulfill(response=found, json={**found.json(), "results": [{"tags": tags}]})

    page.route("**/v1/tag", answer)
    page.get_by_role("slider", name="Cut-off").press("End")
    page.locator("#text").fill(TEXT)
    expect(page.locator("#nothing")).to_contain_text(told)
    expect(page.locator("#nothing")).to_be_visible()
    expect(page.locator("#tags")).to_be_hidden()


def test_tags_are_copied_as_text_and_as_json(visit: Any, service: Any, taggers: dict[str, Tagger]) -> None:
    page = visit(service, permissions=["clipboard-read", "clipboard-write"]).page
    write(page, TEXT)
    names = best(taggers["tree"], TEXT, 5)
    expect_tags(page, names)
    page.get_by_role("button", name="Copy as JSON").click()
    expect(page.locator("#status")).to_have_text("Copied 5 tags as JSON.")
    copied = json.loads(page.evaluate("navigator.clipboard.readText()"))
    assert [tag["label"] for tag in copied] == names
    page.get_by_role("button", name="Copy as text").click()
    expect(page.locator("#status")).to_have_text("Copied 5 tags as text.")
    lines = page.evaluate("navigator.clipboard.readText()").splitlines()
    assert [line.split("\t")[0] for line in lines] == names


def test_several_models_are_chosen_from(visit: Any, service: Any, taggers: dict[str, Tagger]) -> None:
    page = visit(service).page
    choice = page.get_by_role("combobox", name="Model")
    expect(choice.locator("option")).to_have_text(["tree", "flat", "rows", "stages"])
    write(page, TEXT)
    expect_tags(page, best(taggers["tree"], TEXT, 5))
    page.get_by_role("button", name="Exclude: cooking").click()
    expect_tags(page, best(taggers["tree"], TEXT, 5, deny=["cooking"]))
    choice.select_option("flat")
    expect_tags(page, best(taggers["flat"], TEXT, 5))
    expect(page.locator("#denied")).to_be_hidden()
    page.get_by_role("button", name="weather").first.click()
    expect(page.locator(".marked mark").first).to_be_visible()
    expect(page.locator(".path")).to_have_count(0)
    choice.select_option("tree")
    expect_tags(page, best(taggers["tree"], TEXT, 5, deny=["cooking"]))
