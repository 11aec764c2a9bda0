"""Every error of the table is answered with its code and status, and the documentation has the same table."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from uvicorn.server import ServerState

from longtail import Corpus, Ridge, Tagger, TextFeatures
from longtail.errors import InvalidInput, LongtailError, ModelFormatError, NotEnoughMemory, WrongType
from longtail.serve import Limits, create_app
from longtail.serve.connections import connection_class
from longtail.serve.limits import Occupancy
from longtail.serve.measures import Measures
from longtail.serve.refusal import ERRORS, refusal_of
from tests.serve.conftest import post_bytes

SMALL = Limits(
    body_bytes=2000, body_seconds=0.3, texts=2, characters=200, k=10, filter_labels=2, explained_labels=1, seconds=0.3
)
JSON = {"content-type": "application/json"}
LONG = 60.0


def slow_body() -> Any:
    async def pieces() -> Any:
        yield b"{"
        await asyncio.sleep(2)
        yield b"}"

    return pieces()


# What to send to get each error: a method, a path, and arguments of httpx.
REQUESTS: dict[str, tuple[str, str, Callable[[], dict[str, Any]]]] = {
    "not_json": ("POST", "/v1/tag", lambda: {"content": b"{", "headers": JSON}),
    "no_token": ("GET", "/v1/models", lambda: {"headers": {"authorization": "Bearer wrong"}}),
    "not_found": ("GET", "/nowhere", dict),
    "unknown_model": ("POST", "/v1/tag", lambda: {"json": {"text": "a", "model": "none"}}),
    "method_not_allowed": ("GET", "/v1/tag", dict),
    "body_too_slow": ("POST", "/v1/tag", lambda: {"content": slow_body(), "headers": JSON}),
    "body_too_large": ("POST", "/v1/tag", lambda: {"json": {"text": "a" * 2000}}),
    "not_declared_json": ("POST", "/v1/tag", lambda: {"content": b"{}"}),
    "wrong_host": ("GET", "/v1/models", lambda: {"headers": {"host": "elsewhere"}}),
    "invalid_request": ("POST", "/v1/tag", lambda: {"json": {"text": 1}}),
    "text_or_texts": ("POST", "/v1/tag", lambda: {"json": {}}),
    "too_many_texts": ("POST", "/v1/tag", lambda: {"json": {"texts": ["a"] * 3}}),
    "text_too_long": ("POST", "/v1/tag", lambda: {"json": {"text": "a" * 201}}),
    "k_too_large": ("POST", "/v1/tag", lambda: {"json": {"text": "a", "k": 11}}),
    "filter_too_long": ("POST", "/v1/tag", lambda: {"json": {"text": "a", "deny": ["a"] * 3}}),
    "too_many_labels": ("POST", "/v1/explain", lambda: {"json": {"text": "a", "labels": ["a"] * 2}}),
    "model_takes_features": ("POST", "/v1/tag", lambda: {"json": {"text": "a", "model": "rows"}}),
    "label_too_long": ("POST", "/v1/feedback", lambda: {"json": {"text": "a", "added": ["a" * 1001]}}),
    "not_one_class": ("POST", "/v1/feedback", lambda: {"json": {"text": "a", "rejected": ["x"], "model": "classes"}}),
    "cross_site": ("POST", "/v1/models/reload", lambda: {"json": {}, "headers": {"origin": "http://elsewhere"}}),
    "unknown_label": ("POST", "/v1/tag", lambda: {"json": {"text": "a", "allow": ["a" * 1000]}}),
}
# Errors of the library, whatever raises them, and what the answer is.
LIBRARY: dict[str, Callable[[], LongtailError]] = {
    "cannot_explain": lambda: InvalidInput("a network is not linear", code="cannot_explain"),
    "not_finite": lambda: InvalidInput("a score is not finite", code="not_finite"),
    "invalid_input": lambda: WrongType("not a number", code="some_code_without_a_row"),
    "not_enough_memory": lambda: NotEnoughMemory("too large"),
    "internal_error": lambda: ModelFormatError("/secret/path is damaged"),
}
# What a connection refuses itself, as bytes on a socket with these limits.
CONNECTIONS: dict[str, tuple[Limits, bytes]] = {
    "not_http": (Limits(), b"\x16\x03\x01\r\n\r\n"),
    "headers_too_slow": (Limits(header_seconds=0.1), b"POST /v1/tag HTTP/1.1\r\nX-Slow: "),
    "headers_too_large": (Limits(header_bytes=100), b"GET / HTTP/1.1\r\nX: " + b"a" * 200 + b"\r\n\r\n"),
    "too_many_requests": (Limits(), post_bytes("/v1/tag", b"{}")),
}
OTHERS = {
    "queue_full",
    "too_many_bytes",
    "deadline_passed",
    "shutting_down",
    "too_many_connections",
    # in test_feedback.py and test_reloading.py
    "feedback_full",
    "feedback_failed",
    "reload_failed",
}


@pytest.fixture(scope="module")
def models(model_directory: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    rows = Corpus(
        label_names=("a", "b"),
        labels=Corpus.from_lists(["x", "y"], [["a"], ["b"]]).labels,
        features=[[1.0, 0.0], [0.0, 1.0]],
    )
    folder = tmp_path_factory.mktemp("served")
    Tagger(None, Ridge()).fit_corpus(rows).save(folder / "rows")
    Tagger(TextFeatures(min_df=1), Ridge()).fit(["red apples", "blue sky"], ["x", "y"]).save(folder / "classes")
    return {"topics": model_directory, "rows": folder / "rows", "classes": folder / "classes"}


def with_client(
    models: dict[str, Path], story: Callable[[Any, Any], Any], limits: Limits = SMALL, **options: Any
) -> Any:
    """What `story` returns, given the application and a client of it."""

    async def tell() -> Any:
        app = create_app(models, limits=limits, **options)
        transport = httpx.ASGITransport(app)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url="http://service") as client,
        ):
            return await story(app, client)

    return asyncio.run(asyncio.wait_for(tell(), LONG))


def check(answer: Any, code: str) -> None:
    assert (answer.json()["error"]["code"], answer.status_code) == (code, ERRORS[code].status)
    assert len(answer.content) < 1000


@pytest.mark.parametrize("code", REQUESTS)
def test_a_request_gets_the_answer_of_the_table(models: dict[str, Path], code: str, tmp_path: Path) -> None:
    method, path, arguments = REQUESTS[code]

    async def story(_: Any, client: Any) -> Any:
        return await client.request(method, path, **arguments())

    options: dict[str, Any] = {"token": "secret"} if code == "no_token" else {"hosts": ["service"]}
    options |= {"feedback": tmp_path / "feedback.jsonl", "reload": True}
    check(with_client(models, story, **options), code)


@pytest.mark.parametrize("code", LIBRARY)
def test_an_error_of_the_library_gets_the_answer_of_the_table(
    models: dict[str, Path], code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise LIBRARY[code]()

    async def story(_: Any, client: Any) -> Any:
        return await client.post("/v1/tag", json={"text": "an apple"})

    monkeypatch.setattr(Tagger, "tag", fail)
    answer = with_client(models, story)
    check(answer, code)
    assert "secret" not in answer.text


def held_up(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Let no text be tagged until the event is set."""
    released, tag = threading.Event(), Tagger.tag

    def slow(self: Tagger, *given: Any, **options: Any) -> Any:
        released.wait(LONG)
        return tag(self, *given, **options)

    monkeypatch.setattr(Tagger, "tag", slow)
    return released


@pytest.mark.parametrize("code", ["queue_full", "deadline_passed"])
def test_a_busy_service_gives_the_answer_of_the_table(
    models: dict[str, Path], code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    released = held_up(monkeypatch)
    seconds = 0.2 if code == "deadline_passed" else LONG

    async def story(_: Any, client: Any) -> Any:
        asked = []
        for _ in range(3):
            asked.append(asyncio.ensure_future(client.post("/v1/tag", json={"text": "an apple"})))
            await asyncio.sleep(0.1)
        first, _, last = asked
        answer = await (last if code == "queue_full" else first)
        released.set()
        await asyncio.gather(*asked)
        return answer

    check(with_client(models, story, Limits(queued_texts=1, seconds=seconds)), code)


def test_too_many_bytes_get_the_answer_of_the_table(models: dict[str, Path]) -> None:
    async def story(_: Any, client: Any) -> Any:
        return await client.post("/v1/tag", json={"text": "a" * 100})

    check(with_client(models, story, Limits(held_bytes=50)), "too_many_bytes")


def test_a_service_that_shuts_down_gives_the_answer_of_the_table(models: dict[str, Path]) -> None:
    async def story(app: Any, client: Any) -> Any:
        async with app.router.lifespan_context(app):
            pass
        return await client.get("/health/ready")

    check(with_client(models, story), "shutting_down")


@pytest.mark.parametrize("code", [*CONNECTIONS, "too_many_connections"])
def test_a_connection_gives_the_answer_of_the_table(code: str) -> None:
    limits, sent = CONNECTIONS.get(code, (Limits(connections=1), b""))

    async def app(scope: Any, receive: Any, send: Any) -> None:
        raise AssertionError("a request came through")

    async def tell() -> bytes:
        occupancy = Occupancy(1)
        occupancy.enter()
        protocol: Any = connection_class(limits, occupancy, Measures())
        if code == "too_many_connections":
            protocol._make_room = lambda self: False  # as if all were busy
        config, state = uvicorn.Config(app, log_config=None, ws="none"), ServerState()
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: protocol(config, state, {}), "127.0.0.1", 0)
        async with server:
            _, first = await asyncio.open_connection(*server.sockets[0].getsockname())
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            try:
                writer.write(sent)
                head = await reader.readuntil(b"\r\n\r\n")
                [length] = re.findall(rb"content-length: (\d+)", head)
                return head + await reader.readexactly(int(length))
            finally:
                writer.close()
                first.close()

    found = asyncio.run(asyncio.wait_for(tell(), LONG))
    assert found.startswith(b"HTTP/1.1 %d " % ERRORS[code].status)
    assert b'"code": "%b"' % code.encode() in found


def test_every_row_of_the_table_is_tried() -> None:
    assert {*REQUESTS, *LIBRARY, *CONNECTIONS, *OTHERS} == set(ERRORS)


def test_other_exceptions_are_failures_of_the_service() -> None:
    assert refusal_of(KeyError("x")) is None
    assert refusal_of(ModelFormatError("damaged")) is None


def test_the_documentation_has_the_table() -> None:
    page = (Path(__file__).parents[2] / "docs" / "serve.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| `(\w+)` \| (.*) \|$", page, flags=re.MULTILINE)
    assert rows == [(str(error.status), code, error.when) for code, error in ERRORS.items()]
