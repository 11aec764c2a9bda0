from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.testclient import TestClient

from longtail.serve import Limits, create_app
from longtail.serve.served import ServedModel
from longtail.tagger import Tagger

JSON = [(b"content-type", b"application/json")]
BODY = b'{"text": "an apple"}'


class Exchange:
    """A request given piece by piece, without a server."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def send(
        self, pieces: list[bytes], headers: list[tuple[bytes, bytes]], pause: float = 0.0, path: str = "/v1/tag"
    ) -> tuple[int, dict[str, str], Any]:
        left = iter(pieces)
        self.taken = 0
        told: list[Any] = []

        async def receive() -> dict[str, Any]:
            await asyncio.sleep(pause)
            piece = next(left, None)
            if piece is None:
                return {"type": "http.disconnect"}
            self.taken += len(piece)
            return {"type": "http.request", "body": piece, "more_body": self.taken < sum(map(len, pieces))}

        async def send(message: Any) -> None:
            told.append(message)

        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": "POST",
            "path": path,
            "raw_path": path.encode(),
            "root_path": "",
            "scheme": "http",
            "query_string": b"",
            "headers": headers,
        }
        await self.app(scope, receive, send)
        answered = {name.decode(): value.decode() for name, value in told[0]["headers"]}
        return told[0]["status"], answered, json.loads(told[1]["body"])


def exchange(model_directory: Path, pieces: list[bytes], headers: Any = JSON, pause: float = 0.0, **limits: Any) -> Any:
    async def tell() -> Any:
        app = create_app({"topics": model_directory}, limits=Limits(**limits))
        async with app.router.lifespan_context(app):
            talk = Exchange(app)
            return *(await talk.send(pieces, headers, pause)), talk.taken

    return asyncio.run(asyncio.wait_for(tell(), 60))


def test_a_body_may_come_in_pieces(model_directory: Path) -> None:
    status, headers, answer, _ = exchange(model_directory, [BODY[:5], b"", BODY[5:]])
    assert status == 200
    assert answer["results"][0]["tags"]
    assert "connection" not in headers


def test_a_body_without_a_length_is_counted_while_it_arrives(model_directory: Path) -> None:
    chunked = [*JSON, (b"transfer-encoding", b"chunked")]
    status, headers, answer, taken = exchange(model_directory, [b"x" * 400] * 100, chunked, body_bytes=1000)
    assert (status, answer["error"]["code"]) == (413, "body_too_large")
    assert headers["connection"] == "close"
    assert taken == 1200  # and no more of it was asked for


@pytest.mark.parametrize("length", [b"1001", b"9" * 5000, b"-5"])
def test_a_length_that_is_too_large_is_refused_before_anything_is_read(model_directory: Path, length: bytes) -> None:
    declared = [*JSON, (b"content-length", length)]
    status, headers, answer, taken = exchange(model_directory, [BODY], declared, body_bytes=1000)
    assert (status, answer["error"]["code"], taken) == (413, "body_too_large", 0)
    assert headers["connection"] == "close"


def test_a_body_that_arrives_too_slowly_is_refused(model_directory: Path) -> None:
    status, _, answer, _ = exchange(model_directory, [b" "] * 100, pause=0.05, body_seconds=0.2)
    assert (status, answer["error"]["code"]) == (408, "body_too_slow")


@pytest.mark.parametrize("kind", [b"", b"text/plain", b"application/jsonp", b"application/json; charset=latin-1"])
def test_only_json_is_taken(model_directory: Path, kind: bytes) -> None:
    status, _, answer, taken = exchange(model_directory, [BODY], [(b"content-type", kind)] if kind else [])
    assert (status, answer["error"]["code"], taken) == (415, "not_declared_json", 0)


@pytest.mark.parametrize("kind", [b"application/json", b"Application/JSON; charset=UTF-8"])
def test_json_may_be_declared_in_its_usual_ways(model_directory: Path, kind: bytes) -> None:
    assert exchange(model_directory, [BODY], [(b"content-type", kind)])[0] == 200


def test_bodies_together_hold_no_more_than_the_limit(model_directory: Path) -> None:
    async def tell() -> list[int]:
        app = create_app({"topics": model_directory}, limits=Limits(held_bytes=3000, body_bytes=2000))
        async with app.router.lifespan_context(app):
            body = [BODY + b" " * 780] * 2
            first = [Exchange(app).send(body, JSON, 0.02) for _ in range(3)]
            statuses = [status for status, *_ in await asyncio.gather(*first)]
            again = await Exchange(app).send([BODY], JSON)
            return [*sorted(statuses), again[0]]

    *statuses, again = asyncio.run(asyncio.wait_for(tell(), 60))
    assert 429 in statuses
    assert again == 200


def test_requests_in_progress_are_bounded(model_directory: Path) -> None:
    async def tell() -> list[int]:
        app = create_app({"topics": model_directory}, limits=Limits(requests=2))
        async with app.router.lifespan_context(app):
            asked = [Exchange(app).send([BODY], JSON, 0.02) for _ in range(3)]
            return sorted([status for status, *_ in await asyncio.gather(*asked)])

    assert asyncio.run(asyncio.wait_for(tell(), 60)) == [200, 200, 429]


def test_a_service_with_all_it_can_take_still_tells_its_health(
    model_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    released = threading.Event()
    tag = Tagger.tag

    def slow(self: Tagger, *given: Any, **options: Any) -> Any:
        released.wait(30)
        return tag(self, *given, **options)

    async def tell() -> tuple[dict[str, int], int]:
        app = create_app({"topics": model_directory}, limits=Limits(requests=1))
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://service") as client,
        ):
            busy = asyncio.ensure_future(client.post("/v1/tag", json={"text": "an apple"}))
            await asyncio.sleep(0.2)
            paths = ("/health/live", "/health/ready", "/metrics", "/v1/models")
            statuses = {path: (await client.get(path)).status_code for path in paths}
            released.set()
            return statuses, (await busy).status_code

    monkeypatch.setattr(Tagger, "tag", slow)
    statuses, busy = asyncio.run(asyncio.wait_for(tell(), 60))
    assert statuses == {"/health/live": 200, "/health/ready": 200, "/metrics": 200, "/v1/models": 429}
    assert busy == 200


def test_a_token_is_asked_for_except_for_the_page_and_health(model_directory: Path) -> None:
    app = create_app({"topics": model_directory}, token="secret")
    with TestClient(app) as client:
        bearer = {"authorization": "Bearer secret"}
        for path in ("/v1/models", "/v1/labels", "/metrics", "/nowhere"):
            refused = client.get(path)
            assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
        for wrong in ("secret", "Bearer", "Bearer Secret", "Bearer secret2", "Basic secret"):
            assert client.get("/v1/models", headers={"authorization": wrong}).status_code == 401
        assert client.post("/v1/tag", json={"text": "x"}).status_code == 401
        assert client.post("/v1/tag", json={"text": "x"}, headers=bearer).status_code == 200
        assert client.get("/v1/models", headers=bearer).status_code == 200
        for path in ("/", "/page/index.html", "/health/live", "/health/ready", "/openapi.json"):
            assert client.get(path).status_code == 200


@pytest.mark.parametrize("path", ["/v1/tag", "/v1/explain", "/v1/labels", "/v1/models"])
def test_what_fails_inside_is_not_told(model_directory: Path, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise OSError(2, "No such file", str(model_directory / "secret.npy"))

    app = create_app({"topics": model_directory})
    for method in ("tag", "explain_each", "find_labels"):
        monkeypatch.setattr(Tagger, method, fail)
    monkeypatch.setattr(ServedModel, "describe", fail)
    with TestClient(app, raise_server_exceptions=False) as client:
        content = {"text": "x"} if path == "/v1/tag" else {"text": "x", "labels": ["fruit"]}
        answer = client.post(path, json=content) if path in ("/v1/tag", "/v1/explain") else client.get(path)
        assert (answer.status_code, answer.json()["error"]["code"]) == (500, "internal_error")
        assert "secret" not in answer.text
        assert "Traceback" not in answer.text
        assert str(model_directory) not in answer.text
        monkeypatch.undo()
        assert client.post("/v1/tag", json={"text": "x"}).status_code == 200
