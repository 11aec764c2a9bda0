"""How the page looks: phone width, light and dark, contrast, the card, its size; with screenshots."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from tests.serve.browser.stage import LONG, SUBJECTS

expect = pytest.importorskip("playwright.sync_api").expect

TEXT = (
    "Rain and wind all day, so we stayed in to bake a birthday cake: flour, butter, and a hot oven. "
    "The forecast says that the storm will pass before the match."
)
REASON = "learner: label tree, as n_trees is given"
CARD = {
    "data": {"source": "subjects.jsonl", "rows": 60, "labels": 10},
    "trained": {"at": "2026-01-31T12:00:00+00:00", "seconds": 12.4, "learner": "LabelTree", "reason": REASON},
    "metrics": {
        "data": "held-out.jsonl",
        "at": "2026-01-31T12:05:00+00:00",
        "rows": 1200,
        "metrics": {"P@1": 0.71, "P@5": 0.41, "nDCG@1": 0.71, "nDCG@5": 0.64, "R@5": 0.55, "F1@5": 0.47},
        "groups": [
            {"train_counts": [100, 4000], "n_labels": 20, "metrics": {"R@1": 0.6, "R@5": 0.81}},
            {"train_counts": [1, 9], "n_labels": 4000, "metrics": {"R@1": 0.1, "R@5": 0.23}},
        ],
    },
}
AUDIT = {
    "data": "held-out.jsonl",
    "at": "2026-01-31T12:06:00+00:00",
    "label_sets": 700,
    "argmaxable": 690,
    "unargmaxable": 7,
    "undetermined": 3,
    "reasons": ["The weights of 10 labels have rank 9: not every label set can have an input."],
    "examples": [{"row": 3, "rows": 1, "labels": ["weather"], "says": "no input can have weather without cooking"}],
}

# Colours are painted over each other on a canvas, which knows every notation and transparency.
CONTRASTS = """() => {
  const canvas = Object.assign(document.createElement('canvas'), { width: 1, height: 1 });
  const brush = canvas.getContext('2d', { willReadFrequently: true });
  const paint = (colours) => {
    for (const colour of colours) { brush.fillStyle = colour; brush.fillRect(0, 0, 1, 1); }
    return [...brush.getImageData(0, 0, 1, 1).data.slice(0, 3)];
  };
  const light = (rgb) => rgb
    .map((part) => part / 255)
    .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
    .reduce((sum, part, place) => sum + part * [0.2126, 0.7152, 0.0722][place], 0);
  const found = [];
  for (const element of document.querySelectorAll('body *')) {
    const says = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!says && !element.matches('textarea')) continue;
    if (!element.checkVisibility() || element.matches('option, .unseen')) continue;
    const grounds = [];
    for (let above = element; above; above = above.parentElement) {
      grounds.unshift(getComputedStyle(above).backgroundColor);
    }
    const ground = light(paint(grounds));
    const ink = light(paint([...grounds, getComputedStyle(element).color]));
    const ratio = (Math.max(ground, ink) + 0.05) / (Math.min(ground, ink) + 0.05);
    found.push([ratio, `${element.tagName} ${element.className} ${element.textContent.slice(0, 40)}`]);
  }
  return found;
}"""


def fill(page: Any, model: str = "tree") -> None:
    """Bring up every part of the page: tags, a denied label, an explanation and the card."""
    page.get_by_role("combobox", name="Model").select_option(model)
    page.locator("#text").fill(TEXT)
    expect(page.locator(".tag .name").first).to_have_text("cooking")
    page.get_by_role("button", name="Exclude: weather").click()
    expect(page.locator(".chip")).to_have_text(["weather"])
    page.locator(".tag").first.click()
    expect(page.locator(".marked mark").first).to_be_visible()
    page.locator("summary").click()


def ground(page: Any) -> str:
    return str(page.evaluate("getComputedStyle(document.documentElement).backgroundColor"))


@pytest.mark.parametrize("model", ["tree", "stages"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_light_and_dark(
    visit: Any, service: Any, screenshots: Path, scheme: str, model: str
) -> None:
    page = visit(service, color_scheme=scheme).page
    page.locator("#text").fill(TEXT)
    expect(page.locator(".tag")).to_have_count(5)
    page.screenshot(path=screenshots / f"{scheme}.png")
    fill(page, model)
    contrasts = page.evaluate(CONTRASTS)
    assert len(contrasts) > 60
    assert min(contrasts) >= [4.5, ""]


def test_dark_follows_the_system_until_it_is_chosen(visit: Any, service: Any) -> None:
    page = visit(service, color_scheme="light").page
    light = ground(page)
    page.emulate_media(color_scheme="dark")
    dark = ground(page)
    assert light != dark
    page.get_by_label("Light", exact=True).check()
    assert ground(page) == light
    page.emulate_media(color_scheme="light")
    page.get_by_label("Dark", exact=True).check()
    assert ground(page) == dark
    page.reload()
    assert ground(page) == dark
    assert page.get_by_label("Dark", exact=True).is_checked()
    page.get_by_label("System", exact=True).check()
    assert ground(page) == light


def test_a_phone_needs_no_sideways_scrolling_and_no_fine_finger(visit: Any, service: Any, screenshots: Path) -> None:
    phone = {"width": 360, "height": 740}
    page = visit(service, viewport=phone, is_mobile=True, has_touch=True, device_scale_factor=2).page

    def check() -> None:
        assert page.evaluate("[document.documentElement.scrollWidth, innerWidth]") == [360, 360]
        targets = "button, select, input:not([type=radio]), summary, #theme label, footer a, [role=option]"
        small = page.locator(f":is({targets}):visible").evaluate_all(
            """targets => targets.filter((target) => {
              const box = target.getBoundingClientRect();
              return box.height < 44 || box.width < 40;
            }).map((target) => target.outerHTML)"""
        )
        assert small == []

    check()
    page.locator("#text").fill(f"{TEXT} {SUBJECTS[LONG]}")
    expect(page.locator(".tag")).to_have_count(5)
    page.screenshot(path=screenshots / "phone.png")
    page.get_by_role("button", name=f"Exclude: {LONG}").tap()
    expect(page.locator(".chip")).to_have_count(1)
    page.locator(".tag").first.tap()
    expect(page.locator(".marked mark").first).to_be_in_viewport()
    page.locator("summary").tap()
    check()
    page.get_by_label("Find a label").tap()
    page.keyboard.type("LABEL")
    expect(page.locator("#found [role=option]")).to_have_count(1)
    check()
    page.locator("#found [role=option]").tap()
    expect(page.locator("#explained")).to_have_text(LONG)
    expect(page.locator("#explained-deny")).to_have_text("Include again")
    check()


def test_the_card_tells_what_is_known_and_how_to_know_the_rest(visit: Any, service: Any, screenshots: Path) -> None:
    seen = visit(service)
    page = seen.page
    card = page.locator("#card")
    seen.put_card(CARD)
    page.locator("summary").click()
    expect(card).to_contain_text("subjects.jsonl")
    rows = dict(zip(card.locator("dt").all_inner_texts(), card.locator("dd").all_inner_texts(), strict=True))
    assert (
        rows.items()
        >= {
            "Learner": "LabelTree",
            "Labels": "10",
            "Data": "subjects.jsonl",
            "Took": "12.4 s",
            "Why this learner": "label tree, as n_trees is given",
            "Measured on": "held-out.jsonl",
            "Texts": "1,200",
        }.items()
    )
    lines = [line.split("\t") for line in card.locator(".metrics tr").all_inner_texts()]
    assert lines == [
        ["For the best k tags", "@1", "@5"],
        ["Precision P", "71.0%", "41.0%"],
        ["Ranking quality nDCG", "71.0%", "64.0%"],
        ["Recall R", "", "55.0%"],
        ["Harmonic mean of precision and recall F1", "", "47.0%"],
    ]
    expect(card.locator(".bands li")).to_contain_text(["100 to 4,000 rows · 20 labels", "1 to 9 rows · 4,000 labels"])
    shares = card.locator(".bands .bar").evaluate_all("bars => bars.map(bar => bar.style.getPropertyValue('--share'))")
    assert shares == ["0.8100", "0.2300"]
    expect(card).to_contain_text("longtail audit MODEL TEST --card")
    assert "longtail evaluate" not in card.inner_text()
    seen.put_card({**CARD, "audit": AUDIT})
    page.locator("summary").click()
    audit = card.locator(".audit")
    expect(audit).to_contain_text("7 of 700 label sets can never be given, whatever the input")
    expect(audit.locator("dl > div").last).to_have_text("Undecided3")
    expect(audit.locator("p")).to_have_text([*AUDIT["reasons"], AUDIT["examples"][0]["says"]])
    card.screenshot(path=screenshots / "card.png")
    seen.put_card({"audit": {"label_sets": 700, "argmaxable": 700, "unargmaxable": 0, "undetermined": 0}})
    expect(audit.locator("dd")).to_have_text(["All 700 label sets can be given"])
    page.unroute("**/v1/models")
    page.reload()
    page.locator("summary").click()
    expect(card).to_contain_text("longtail evaluate MODEL TEST --card")


@pytest.mark.parametrize("height", [900, 600])
def test_the_labels_found_cover_neither_their_field_nor_its_name(visit: Any, service: Any, height: int) -> None:
    page = visit(service, viewport={"width": 1280, "height": height}).page
    page.locator("#text").fill(TEXT)
    expect(page.locator(".tag")).to_have_count(5)
    page.locator("#find").fill("e")
    expect(page.locator("#found [role=option]").first).to_be_in_viewport(ratio=1)
    found = page.locator("#found").bounding_box()
    for above in ("#finder label", "#find"):
        expect(page.locator(above)).to_be_in_viewport(ratio=1)
        box = page.locator(above).bounding_box()
        assert box["y"] + box["height"] <= found["y"]


@pytest.mark.parametrize("model", ["tree", "stages"])
def test_an_explanation_looks_like_one(visit: Any, service: Any, screenshots: Path, model: str) -> None:
    page = visit(service, color_scheme="light").page
    fill(page, model)
    page.locator("summary").click()
    page.screenshot(path=screenshots / f"explanation-{model}.png", full_page=True)
    lines = page.locator(".marked mark").evaluate_all(
        "marks => marks.map(mark => [mark.className, getComputedStyle(mark).textDecorationStyle])"
    )
    assert {tuple(line) for line in lines} == {("for", "solid"), ("against", "wavy")}


def test_the_page_is_small_and_makes_no_markup_of_names() -> None:
    contents = [file.read_text(encoding="utf-8") for file in files("longtail.serve").joinpath("page").iterdir()]
    assert sum(len(content.encode()) for content in contents) < 100_000
    for risky in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "style=", "onclick="):
        assert not any(risky in content for content in contents), risky
