"""Corrections on the page: made with mouse and keys, taken back, saved, learnt, and seen without a restart."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from longtail import Tagger, TextFeatures
from longtail.trees import LabelTree
from tests.serve.browser.stage import Service, examples
from tests.serve.browser.test_page_looks import CONTRASTS

expect = pytest.importorskip("playwright.sync_api").expect

TEXT = "Rain and wind, so we bake a birthday cake; flour, butter, Rain."


@pytest.fixture(scope="module")
def shared(browser: Any, models: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A service that keeps corrections, and its file."""
    file = tmp_path_factory.mktemp("corrections") / "feedback.jsonl"
    service = Service({"tree": models["tree"]}, "--feedback", str(file))
    yield service, file
    service.kill()


@pytest.fixture
def feedback(shared: Any) -> Path:
    """The file of the shared service, which begins a new one when a test has moved it away."""
    file: Path = shared[1]
    file.unlink(missing_ok=True)
    return file


@pytest.fixture
def page(visit: Any, shared: Any, feedback: Path) -> Any:
    page = visit(shared[0]).page
    write(page, TEXT)
    return page


def write(page: Any, text: str) -> None:
    page.locator("#text").fill(text)
    expect(page.locator(".tag").first).to_be_visible()
    expect(page.locator("#tags")).to_have_attribute("aria-busy", "false")


def add(page: Any, name: str) -> None:
    page.get_by_role("combobox", name="Add a missing tag").fill(name)
    page.get_by_role("combobox", name="Add a missing tag").press("Enter")


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def corrections(page: Any) -> list[str]:
    return [
        str(name) for name in page.locator("#corrections button").evaluate_all("all => all.map(one => one.ariaLabel)")
    ]


def expect_status(page: Any, says: str) -> None:
    expect(page.locator("#corrections-status")).to_have_text(says)


def save(page: Any) -> None:
    page.locator("#corrections-save").click()
    expect(page.locator("#corrections-status")).to_contain_text("Saved ")


def test_corrections_stay_while_the_cut_off_hides_their_tags(visit: Any, shared: Any, feedback: Path) -> None:
    page = visit(shared[0], k="auto").page
    write(page, TEXT)
    slider = page.get_by_role("slider", name="Cut-off")
    slider.press("Home")
    page.get_by_role("button", name="Reject: weather").click()
    page.get_by_role("button", name="Accept: cooking").click()
    slider.press("End")
    expect(page.locator(".tag")).to_have_count(1)
    assert corrections(page) == ["Take back: rejected weather", "Take back: accepted cooking"]
    slider.press("Home")
    expect(page.get_by_role("button", name="Reject: weather")).to_have_attribute("aria-pressed", "true")
    slider.press("End")
    save(page)
    assert [(each["accepted"], each["rejected"]) for each in records(feedback)] == [(["cooking"], ["weather"])]


def test_three_tags_are_corrected_and_kept(page: Any, feedback: Path) -> None:
    page.get_by_role("button", name="Accept: cooking").click()
    expect_status(page, "Accepted: cooking. 1 correction, not saved yet.")
    page.get_by_role("button", name="Reject: weather").click()
    add(page, "baking")
    expect_status(page, "Added: baking. 3 corrections, not saved yet.")
    expect(page.get_by_role("button", name="Accept: cooking")).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_role("button", name="Reject: weather")).to_have_attribute("aria-pressed", "true")
    assert corrections(page) == [
        f"Take back: {made}" for made in ("accepted cooking", "rejected weather", "added baking")
    ]
    assert records(feedback) == []
    page.get_by_role("button", name="Save 3 corrections").click()
    expect_status(page, "Saved 3 corrections. The model learns from them when it is updated.")
    [record] = records(feedback)
    assert record["text"] == TEXT
    assert (record["accepted"], record["rejected"], record["added"]) == (["cooking"], ["weather"], ["baking"])
    expect(page.locator("#corrections li")).to_have_count(0)
    expect(page.locator("#corrections-saved")).to_contain_text(
        "Saved for this text: cooking is right, weather is wrong, baking was missing"
    )
    expect(page.get_by_role("button", name="Accept: cooking")).to_have_attribute("aria-pressed", "true")
    page.locator("#card summary").click()
    expect(page.locator("#card .corrections dd")).to_have_text("1 text")


def test_the_keys_alone_do_the_same(page: Any, feedback: Path) -> None:
    page.locator(".tag").first.focus()
    keys = page.keyboard
    keys.press("a")
    keys.press("ArrowDown")
    keys.press("r")
    expect(page.locator(".tag").nth(1)).to_be_focused()
    page.get_by_role("combobox", name="Add a missing tag").focus()
    keys.type("GARD")
    expect(page.locator("#addable [role=option]")).to_have_text(["gardening 8 texts", "New tag GARD"])
    keys.press("ArrowDown")
    keys.press("Enter")
    expect_status(page, "Accepted: gardening. 3 corrections, not saved yet.")  # it is among the tags shown
    keys.type("FOOTBALL")
    keys.press("Enter")
    expect_status(page, "Added: football. 4 corrections, not saved yet.")
    keys.press("Control+Enter")
    expect(page.locator("#corrections-status")).to_contain_text("Saved 4")
    [record] = records(feedback)
    assert (record["accepted"], record["rejected"], record["added"]) == (
        ["cooking", "gardening"],
        ["weather"],
        ["football"],
    )


def test_a_tag_is_added_with_the_button_too(page: Any, feedback: Path) -> None:
    field, button = page.get_by_role("combobox", name="Add a missing tag"), page.get_by_role("button", name="Add")
    button.click()
    expect(field).to_be_focused()
    field.fill("\u200f bak\u202eing ")  # as pasted from a text that is written from right to left
    button.click()
    expect_status(page, "Added: baking. 1 correction, not saved yet.")
    expect(field).to_be_focused()
    expect(field).to_have_value("")


def test_saving_with_a_key_waits_for_the_tag_that_is_being_added(page: Any, feedback: Path) -> None:
    page.get_by_role("button", name="Accept: cooking").click()
    field = page.get_by_role("combobox", name="Add a missing tag")
    field.fill("foot")
    expect(page.locator("#addable [role=option]").first).to_contain_text("football")
    field.press("Control+Enter")
    expect_status(page, "Added: foot. 2 corrections, not saved yet.")
    assert records(feedback) == []
    field.press("Control+Enter")
    expect(page.locator("#corrections-status")).to_contain_text("Saved 2")
    assert records(feedback)[0]["added"] == ["foot"]


def test_a_label_among_many_alike_is_found_whatever_its_case(visit: Any, serve: Any, tmp_path: Path) -> None:
    names = ["art", *(f"art {number}" for number in range(20))]
    texts = [
        text for number, name in enumerate(names) for text in [f"word{number} {name}"] * (1 if name == "art" else 2)
    ]
    labels = [[name] for name in names for _ in range(1 if name == "art" else 2)]
    Tagger(TextFeatures(min_df=1), LabelTree(random_state=0)).fit(texts, labels).save(tmp_path / "model")
    page = visit(serve("--feedback", str(tmp_path / "feedback.jsonl"), directory=tmp_path / "model"), k="1").page
    write(page, "word3 art")
    add(page, "ART")
    expect_status(page, "Added: art. 1 correction, not saved yet.")


def test_every_correction_can_be_taken_back_before_it_is_sent(page: Any, feedback: Path) -> None:
    accept, reject = (page.get_by_role("button", name=f"{kind}: cooking") for kind in ("Accept", "Reject"))
    accept.click()
    reject.click()
    assert corrections(page) == ["Take back: rejected cooking"]
    reject.click()
    assert corrections(page) == []
    page.get_by_role("button", name="Undo").click()
    assert corrections(page) == ["Take back: rejected cooking"]
    page.get_by_role("button", name="Undo").click()
    assert corrections(page) == ["Take back: accepted cooking"]
    add(page, "baking")
    expect(page.locator("#corrections li")).to_have_count(2)
    page.get_by_role("button", name="Take back: accepted cooking").click()
    expect(page.get_by_role("button", name="Take back: added baking")).to_be_focused()
    expect(accept).to_have_attribute("aria-pressed", "false")
    page.get_by_role("button", name="Discard").click()
    expect_status(page, "Discarded 1 correction.")
    expect(page.locator("#corrections-title")).to_be_focused()
    expect(page.locator("#corrections-save")).to_be_disabled()
    assert records(feedback) == []


def test_corrections_stay_with_the_text_they_were_made_for(page: Any, feedback: Path) -> None:
    page.get_by_role("button", name="Reject: weather").click()
    write(page, TEXT + " Storm!")
    expect(page.locator("#corrections-stale")).to_contain_text(
        "You made these corrections for an earlier text, “Rain and wind, so we bake a bi …”."
    )
    expect(page.get_by_role("button", name="Reject: weather")).to_have_attribute("aria-pressed", "false")
    write(page, TEXT)
    expect(page.locator("#corrections-stale")).to_be_hidden()
    write(page, TEXT + " Storm!")
    page.get_by_role("button", name="Move them to this text").click()
    expect(page.get_by_role("button", name="Reject: weather")).to_have_attribute("aria-pressed", "true")
    save(page)
    assert [record["text"] for record in records(feedback)] == [TEXT + " Storm!"]
    write(page, TEXT)
    expect(page.get_by_role("button", name="Reject: weather")).to_have_attribute("aria-pressed", "false")
    expect(page.locator("#corrections-saved")).to_be_hidden()


def test_corrections_of_the_earlier_text_can_still_be_saved(page: Any, feedback: Path) -> None:
    page.get_by_role("button", name="Reject: weather").click()
    write(page, "A goal in the last match.")
    page.get_by_role("button", name="Save 1 correction of the earlier text").click()
    expect(page.locator("#corrections-status")).to_contain_text("Saved 1 correction.")
    assert [(record["text"], record["rejected"]) for record in records(feedback)] == [(TEXT, ["weather"])]
    expect(page.locator("#corrections-saved")).to_be_hidden()
    write(page, TEXT)
    expect(page.locator("#corrections-saved")).to_have_text("Saved for this text: weather is wrong")


def test_corrections_of_the_earlier_text_are_not_dropped_in_silence(page: Any, feedback: Path) -> None:
    page.get_by_role("button", name="Reject: weather").click()
    add(page, "baking")
    expect(page.locator("#corrections li")).to_have_count(2)
    write(page, "A goal in the last match.")
    page.get_by_role("button", name="Accept: football").click()
    expect(page.locator("#corrections-status")).to_contain_text(
        "2 corrections of the earlier text dropped; Undo brings them back."
    )
    page.get_by_role("button", name="Undo").click()
    assert corrections(page) == ["Take back: rejected weather", "Take back: added baking"]


def test_corrections_stay_with_the_model_they_were_made_for(
    visit: Any, browser: Any, models: dict[str, Path], tmp_path: Path
) -> None:
    both = {"tree": models["tree"], "flat": models["flat"]}
    service = Service(both, "--feedback", str(tmp_path / "feedback.jsonl"))
    page = visit(service).page
    write(page, TEXT)
    page.get_by_role("button", name="Reject: weather").click()
    page.get_by_role("combobox", name="Model").select_option("flat")
    expect(page.locator("#corrections-stale")).to_contain_text("You made these corrections for the model tree.")
    page.get_by_role("button", name="Save 1 correction of tree").click()
    expect(page.locator("#corrections-status")).to_contain_text("Saved 1 correction.")
    assert [record["model"] for record in records(tmp_path / "feedback.jsonl")] == ["tree"]
    page.close()
    service.kill()


def test_what_was_saved_can_be_corrected_again(page: Any, feedback: Path) -> None:
    page.get_by_role("button", name="Accept: cooking").click()
    add(page, "bakng")
    save(page)
    page.get_by_role("button", name="Accept: cooking").click()
    expect_status(page, "Saved already: cooking is right.")
    expect(page.locator("#corrections-undo")).to_be_hidden()
    page.get_by_role("button", name="Reject: bakng").click()
    expect_status(page, "Rejected: bakng. 1 correction, not saved yet.")
    save(page)
    assert [(record["added"], record["rejected"]) for record in records(feedback)] == [(["bakng"], []), ([], ["bakng"])]
    expect(page.locator("#corrections-saved")).to_have_text("Saved for this text: cooking is right, bakng is wrong")


def test_the_browser_asks_before_corrections_are_lost(visit: Any, shared: Any, feedback: Path) -> None:
    seen = visit(shared[0])
    seen.allowed.append("dialog")
    page = seen.page
    write(page, TEXT)
    page.get_by_role("button", name="Accept: cooking").click()
    page.close(run_before_unload=True)
    page.wait_for_timeout(200)
    assert seen.trouble == ["dialog "]
    page.get_by_role("button", name="Save 1 correction").click()
    expect(page.locator("#corrections-status")).to_contain_text("Saved 1")
    page.reload()
    expect(page.locator("#frequent")).to_contain_text("The model knows")
    assert seen.trouble == ["dialog "]


def test_the_page_says_why_a_correction_was_not_saved(visit: Any, serve: Any, tmp_path: Path) -> None:
    feedback = tmp_path / "feedback.jsonl"
    seen = visit(serve("--feedback", str(feedback), "--max-feedback-bytes", "300"))
    seen.allowed.append("507")
    page = seen.page
    write(page, TEXT)
    for name in ("one", "two"):
        add(page, name * 20)
        expect(page.locator("#corrections li")).to_have_count(1 if name == "one" else 2)
    page.locator("#corrections-save").click()
    expect(page.locator("#corrections-status")).to_have_class("error")
    expect(page.locator("#corrections-status")).to_contain_text(
        "Not saved: the file of corrections has reached its limit of 300 bytes; tell"
    )
    expect(page.locator("#corrections li")).to_have_count(2)
    assert records(feedback) == []
    page.get_by_role("button", name="Discard").click()
    add(page, "one")
    expect(page.locator("#corrections-save")).to_be_enabled()
    save(page)


def test_a_service_that_keeps_no_corrections_has_no_controls(visit: Any, service: Service) -> None:
    page = visit(service).page
    write(page, TEXT)
    expect(page.locator("#correcting")).to_be_hidden()
    expect(page.locator(".accept, .reject")).to_have_count(0)
    expect(page.locator(".deny")).to_have_count(5)
    page.locator(".tag").first.press("a")
    expect(page.locator("#corrections li")).to_have_count(0)


def test_names_that_look_like_markup_are_only_names(page: Any, feedback: Path) -> None:
    add(page, "<img src=x onerror=alert(1)>")
    expect_status(page, "Added: <img src=x onerror=alert(1)>. 1 correction, not saved yet.")
    save(page)
    assert records(feedback)[0]["added"] == ["<img src=x onerror=alert(1)>"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [375, 1280])
def test_corrections_can_be_read_and_fit(visit: Any, shared: Any, screenshots: Path, scheme: str, width: int) -> None:
    options = {"color_scheme": scheme, "viewport": {"width": width, "height": 900}}
    page = visit(shared[0], **options).page
    write(page, TEXT)
    page.get_by_role("button", name="Accept: cooking").click()
    add(page, "kitchens")
    expect(page.locator("#corrections li")).to_have_count(2)
    save(page)
    page.get_by_role("button", name="Reject: weather").click()
    page.mouse.move(0, 0)
    page.screenshot(path=screenshots / f"corrections-{scheme}-{width}.png", full_page=True)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    low = [says for ratio, says in page.evaluate(CONTRASTS) if ratio < 4.5]
    assert low == []
    small = page.locator("#tagging button:visible").evaluate_all(
        "all => all.filter(one => one.getBoundingClientRect().height < 44).map(one => one.textContent)"
    )
    assert small == []


def update(directory: Path, feedback: Path) -> str:
    """Run `longtail update`; returns what it says."""
    command = [sys.executable, "-m", "longtail", "update", str(directory), str(feedback)]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=300).stdout


@contextmanager
def load_on(address: str) -> Iterator[list[str]]:
    """The failures among the requests that three threads send all the time, each of another kind."""
    failed: list[str] = []
    kinds: list[tuple[str, str, Any]] = [
        ("tag", "results", {"texts": [TEXT, "a goal in the storm"], "k": 10}),
        ("explain", "explanations", {"text": TEXT, "labels": ["cooking", "weather"]}),
        ("labels?contains=a", "labels", None),
    ]
    counts = [0] * len(kinds)
    ended = threading.Event()

    def ask(number: int) -> None:
        path, key, sent = kinds[number]
        body = None if sent is None else json.dumps(sent).encode()
        while not ended.is_set():
            try:
                request = Request(f"{address}/v1/{path}", body, {"Content-Type": "application/json"})
                with urlopen(request, timeout=60) as answer:
                    found = json.load(answer)[key]
                if len(found) < 2 or not all(found) or (path == "tag" and not all(each["tags"] for each in found)):
                    failed.append(f"{path}: {found}")
            except OSError as error:
                failed.append(f"{path}: {error}")
            counts[number] += 1

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(len(kinds))]
    for thread in threads:
        thread.start()
    try:
        yield failed
    finally:
        ended.set()
        for thread in threads:
            thread.join(60)
    assert min(counts) > 10


@pytest.mark.parametrize("way", ["route", "signal"])
def test_a_correction_is_seen_after_an_update_without_a_restart_under_load(
    visit: Any, serve: Any, tmp_path: Path, way: str
) -> None:
    feedback, directory = tmp_path / "feedback.jsonl", tmp_path / "tree"
    tree = LabelTree(leaf_size=3, random_state=0)
    Tagger(TextFeatures(min_df=1), tree, updatable=True).fit(*examples()).save(directory)
    service = serve("--feedback", str(feedback), directory=directory)
    page = visit(service).page
    page.clock.install()
    with load_on(service.address) as failed:
        for text in (TEXT, "flour and butter for a birthday cake", "bake a cake with flour"):
            write(page, text)
            page.get_by_role("button", name="Accept: cooking").click()
            page.get_by_role("button", name="Reject: weather").click()
            add(page, "baking")
            expect(page.locator("#corrections li")).to_have_count(3)
            save(page)
        write(page, TEXT)
        expect(page.locator(".tag .name", has_text="baking")).to_have_count(0)
        assert "3 new rows, 0 changed, 0 removed; 11 labels (1 new)" in update(directory, feedback)
        if way == "route":
            assert reload(service) == [True]
        else:
            service.hang_up()
            until = time.monotonic() + 60
            while "baking" not in str(_labels(service)):
                assert time.monotonic() < until
        # The open page looks for new versions from time to time, without anyone doing anything.
        page.clock.run_for(20_000)
        expect(page.locator("#news")).to_contain_text("The model has a new version, saved ")
        expect(page.locator(".tag .name", has_text="baking")).to_have_count(1)
        assert page.locator("#tags .name").all_inner_texts().index("baking") < 3
        page.locator("#card summary").click()
        expect(page.locator("#card .corrections dd")).to_have_text(["3 texts", "0 texts"])
        expect(page.locator("#model-facts")).to_contain_text("11 labels")
    assert failed == []


def test_an_excluded_label_that_a_new_version_lacks_is_forgotten(visit: Any, serve: Any, tmp_path: Path) -> None:
    directory = tmp_path / "tree"
    texts, labels = examples()
    Tagger(TextFeatures(min_df=1), LabelTree(leaf_size=3, random_state=0)).fit(texts, labels).save(directory)
    service = serve(directory=directory)
    seen = visit(service)
    seen.allowed.append("422")
    page = seen.page
    page.clock.install()
    write(page, TEXT)
    page.get_by_role("button", name="Exclude: weather").click()
    expect(page.locator(".chip")).to_have_text(["weather"])
    renamed = [["climate" if name == "weather" else name for name in found] for found in labels]
    Tagger(TextFeatures(min_df=1), LabelTree(leaf_size=3, random_state=0)).fit(texts, renamed).save(directory)
    reload(service)
    page.clock.run_for(20_000)
    expect(page.locator("#news")).to_contain_text("The model has a new version")
    expect(page.locator(".tag .name", has_text="climate")).to_have_count(1)
    expect(page.locator("#status")).to_contain_text("all labels are included again")
    expect(page.locator(".chip")).to_have_count(0)


def reload(service: Service) -> list[bool]:
    """Ask for new versions; returns which models have changed."""
    request = Request(f"{service.address}/v1/models/reload", b"{}", {"Content-Type": "application/json"})
    with urlopen(request, timeout=60) as answer:
        return [model["changed"] for model in json.load(answer)["models"]]


def _labels(service: Service) -> Any:
    with urlopen(f"{service.address}/v1/labels?limit=50", timeout=60) as answer:
        return json.load(answer)
