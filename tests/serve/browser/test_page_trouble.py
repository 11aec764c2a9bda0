"""The page when things go wrong: a service that is gone, busy, guarded by a token, or refuses."""

from __future__ import annotations

from typing import Any

import pytest

expect = pytest.importorskip("playwright.sync_api").expect

TEXT = "Rain and wind along the coast"


def test_the_page_recovers_when_the_service_comes_back(visit: Any, serve: Any) -> None:
    service = serve()
    seen = visit(service)
    seen.allowed.append("ERR_CONNECTION_REFUSED")
    page = seen.page
    page.locator("#text").fill(TEXT)
    expect(page.locator(".tag .name").first).to_have_text("weather")
    service.kill()
    page.locator("#text").fill("a goal by the striker")
    expect(page.locator("#status")).to_contain_text("The service does not respond")
    service.restart()
    expect(page.locator(".tag .name").first).to_have_text("football")
    expect(page.locator("#status")).to_have_text("")


def test_a_busy_service_is_asked_again_without_a_word(visit: Any, service: Any) -> None:
    seen = visit(service)
    seen.allowed.append("429")
    asked: list[Any] = []

    def refuse_first(route: Any) -> None:
        asked.append(route)
        if len(asked) > 1:
            route.continue_()
        else:
            route.fulfill(status=429, headers={"Retry-After": "1"}, json={"error": {"code": "busy", "message": "full"}})

    seen.page.route("**/v1/tag", refuse_first)
    seen.page.locator("#text").fill(TEXT)
    expect(seen.page.locator(".tag .name").first).to_have_text("weather")
    expect(seen.page.locator("#status")).to_have_text("")
    assert len(asked) == 2


def test_what_the_service_refuses_is_said_and_forgotten_when_mended(visit: Any, service: Any) -> None:
    seen = visit(service)
    seen.allowed.append("422")
    page = seen.page
    page.locator("#text").fill(TEXT * 100)
    expect(page.get_by_role("status")).to_contain_text("the maximum is 2000")
    expect(page.locator("#status")).to_have_class("error")
    expect(page.locator(".tag")).to_have_count(0)
    page.locator("#text").fill(TEXT)
    expect(page.locator(".tag .name").first).to_have_text("weather")
    expect(page.locator("#status")).to_have_text("")


def test_what_cannot_be_explained_says_why(visit: Any, service: Any) -> None:
    seen = visit(service)
    seen.allowed.append("422")
    message = "a network is not linear"
    refusal = {"error": {"code": "cannot_explain", "message": message}}
    seen.page.route("**/v1/explain", lambda route: route.fulfill(status=422, json=refusal))
    seen.page.locator("#text").fill(TEXT)
    seen.page.locator(".tag").first.click()
    expect(seen.page.get_by_role("alert")).to_have_text(message)
    expect(seen.page.get_by_role("status")).to_have_text("")


def test_a_token_is_asked_for_and_kept_for_the_tab(visit: Any, serve: Any) -> None:
    service = serve(token="s3cret")
    seen = visit(service)
    seen.allowed.append("401")
    page = seen.page
    dialog = page.get_by_role("dialog", name="This service requires a token")
    expect(dialog).to_be_visible()
    page.get_by_label("Token", exact=True).fill("guess")
    page.keyboard.press("Enter")
    expect(dialog).to_contain_text("did not accept")
    page.get_by_label("Token", exact=True).fill("s3cret")
    page.keyboard.press("Enter")
    expect(dialog).to_be_hidden()
    page.locator("#text").fill(TEXT)
    expect(page.locator(".tag .name").first).to_have_text("weather")
    page.reload()
    expect(page.locator("#frequent")).to_contain_text("The model knows 10 labels. The most frequent: ")
    expect(dialog).to_be_hidden()
    assert "s3cret" not in page.url
    assert page.evaluate("localStorage.getItem('longtail-token')") is None
