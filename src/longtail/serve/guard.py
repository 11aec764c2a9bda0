"""`Guard`: what stands before the routes. It refuses what need not be parsed, and no error gets out but through it.

Plain ASGI: bodies are counted while they arrive, within a time; headers that keep a browser safe go with every answer;
what goes wrong inside is logged here and never told to a client.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import time
import traceback
from collections.abc import Awaitable, Callable, Collection, Mapping, MutableMapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from longtail.serve.batching import Batcher, Gone
from longtail.serve.limits import Limits
from longtail.serve.measures import Measures
from longtail.serve.occupancy import Occupancy
from longtail.serve.refusal import Refusal, shortened
from longtail.serve.routes import BODY

_log = logging.getLogger(__name__)

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Endpoint = Callable[[Request], Awaitable[Response]]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
SAFETY = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
]
_CLOSE = (b"connection", b"close")
_OTHER = "other"
_HUNG_UP = 499  # counted, never sent
_DIGITS = 18  # of a Content-Length that is worth reading as a number


class Guard:
    """Wraps the application.

    Parameters
    ----------
    app : ASGI application
    limits : Limits
    measures : Measures
    occupancy : Occupancy
    endpoints : mapping
        Of the paths that take a body: what answers it, and the queue that it will wait in. They are called from here:
        the way through the routing of FastAPI costs more than all the rest of a request.
    routes : collection of str
        Paths that are counted by name; all others are counted together.
    token : str or None
        What requests must bear; the page, /openapi.json and the health of the service are open to all.
    hosts : collection of str or None
        Names by which the service may be called, without a port; None allows any.
    """

    def __init__(
        self,
        app: Any,
        limits: Limits,
        measures: Measures,
        occupancy: Occupancy,
        endpoints: Mapping[str, tuple[Endpoint, Batcher]],
        routes: Collection[str],
        token: str | None = None,
        hosts: Collection[str] | None = None,
    ) -> None:
        self._app = app
        self._limits = limits
        self._measures = measures
        self._endpoints = endpoints
        self._routes = frozenset(routes)
        self._bearer = None if token is None else token.encode()
        self._hosts = None if hosts is None else frozenset(_without_port(host).lower() for host in hosts)
        self._occupancy = occupancy
        self._held = 0
        measures.watch("longtail_requests_in_progress", "Requests being worked on.", lambda: occupancy.in_progress)

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        await _Exchange(self, scope, receive, send).run()


class _Exchange:
    """One request and its answer."""

    def __init__(self, guard: Guard, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        self._guard = guard
        self._is_head = scope["method"] == "HEAD"
        # What a GET would be told, but for the body. A copy, as the server looks at its own.
        self._scope = {**scope, "method": "GET"} if self._is_head else scope
        self._receive = receive
        self._send = send
        self._status = 0
        self._held = 0
        self._entered = False
        self._headers = _headers(scope)
        self._body_read = b"content-length" not in self._headers and b"transfer-encoding" not in self._headers
        if self._headers.get(b"content-length") == b"0":
            self._body_read = True

    async def run(self) -> None:
        guard, begun = self._guard, time.perf_counter()
        try:
            await self._answer()
        except Refusal as refusal:
            await self._refuse(refusal)
        except Gone:
            self._status = _HUNG_UP
        except Exception:
            # As text, as the command line shows a record's message alone.
            _log.error("a request for %s failed\n%s", self._route(), traceback.format_exc())
            if self._status:
                raise
            await self._refuse(Refusal(500, "internal_error", "the service failed at this request; its log says why"))
        finally:
            if self._entered:
                guard._occupancy.leave()
            guard._held -= self._held
            guard._measures.request(self._route(), self._status, time.perf_counter() - begun)

    def _route(self) -> str:
        path = self._scope["path"]
        return path if path in self._guard._routes else _OTHER

    async def _answer(self) -> None:
        guard, path, method = self._guard, self._scope["path"], self._scope["method"]
        self._check_host()
        self._check_token(path)
        found = guard._endpoints.get(path) if method == "POST" else None
        if found is None:
            if path not in _ALWAYS:
                self._begin()
            await guard._app(self._scope, self._receive, self._told)
            return
        endpoint, queue = found
        self._check_type()
        self._scope[BODY] = await self._body()
        self._begin()
        queue.refuse_if_full()
        response = await endpoint(Request(self._scope, self._receive))
        await response(self._scope, self._receive, self._told)

    def _begin(self) -> None:
        """Count the request, once its body is there: the connection of one that is refused can be used again."""
        self._guard._occupancy.enter()
        self._entered = True

    def _check_host(self) -> None:
        hosts = self._guard._hosts
        if hosts is None:
            return
        # A request without the header is of no browser, and one with several has to be right in all of them.
        for called in (value.decode("latin-1") for name, value in self._scope["headers"] if name == b"host"):
            if _without_port(called).lower() not in hosts:
                message = f"the service does not go by the name {shortened(_without_port(called))}"
                raise Refusal(421, "wrong_host", f"{message}; call it by its address, or start it with --allow-host")

    def _check_token(self, path: str) -> None:
        bearer = self._guard._bearer
        if bearer is None or path in _OPEN or path.startswith("/page/"):
            return
        scheme, _, given = self._headers.get(b"authorization", b"").partition(b" ")
        if scheme.lower() != b"bearer" or not hmac.compare_digest(given, bearer):
            raise Refusal(
                401,
                "no_token",
                "the service asks for a token; send it as: Authorization: Bearer TOKEN",
                {"www-authenticate": "Bearer"},
            )

    def _check_type(self) -> None:
        kind, _, parameter = self._headers.get(b"content-type", b"").partition(b";")
        charset = parameter.strip().lower().replace(b'"', b"")
        if kind.strip().lower() != b"application/json" or charset not in (b"", b"charset=utf-8"):
            raise Refusal(
                415, "not_declared_json", "the body must be JSON in UTF-8; send Content-Type: application/json"
            )

    async def _body(self) -> bytes:
        limits = self._guard._limits
        length = self._headers.get(b"content-length", b"0")
        if not length.isdigit() or len(length) > _DIGITS or int(length) > limits.body_bytes:
            raise self._too_large()
        parts: list[bytes] = []
        try:
            async with asyncio.timeout(limits.body_seconds):
                while True:
                    message = await self._receive()
                    if message["type"] == "http.disconnect":
                        raise Gone
                    part = message.get("body", b"")
                    self._hold(len(part))
                    parts.append(part)
                    if not message.get("more_body", False):
                        break
        except TimeoutError:
            message_text = f"the body did not arrive within {limits.body_seconds:g} s; send it faster, or less of it"
            raise Refusal(408, "body_too_slow", message_text) from None
        self._body_read = True
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _hold(self, count: int) -> None:
        guard = self._guard
        self._held += count
        guard._held += count
        if self._held > guard._limits.body_bytes:
            raise self._too_large()
        if guard._held > guard._limits.held_bytes:
            message = "the requests in progress hold all the memory that is set aside for them; try again"
            raise Refusal(429, "too_many_bytes", message, {"retry-after": "1"})

    def _too_large(self) -> Refusal:
        limit = self._guard._limits.body_bytes
        return Refusal(413, "body_too_large", f"the body is larger than {limit} bytes; send fewer texts at a time")

    async def _refuse(self, refusal: Refusal) -> None:
        body = refusal.body()
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        headers += [(name.encode(), value.encode()) for name, value in refusal.headers.items()]
        await self._told({"type": "http.response.start", "status": refusal.status, "headers": headers})
        await self._told({"type": "http.response.body", "body": body})

    async def _told(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            message["headers"] = [*message.get("headers", ()), *SAFETY]
            if not self._body_read:
                # What is still on its way is not read; the connection cannot be used again.
                message["headers"].append(_CLOSE)
        elif self._is_head and message["type"] == "http.response.body":
            message["body"] = b""
        await self._send(message)


_HEALTH = ("/health/live", "/health/ready")
_OPEN = frozenset(["/", *_HEALTH, "/openapi.json"])
# A busy service must not look like a dead one to what watches it.
_ALWAYS = frozenset([*_HEALTH, "/metrics"])


def _without_port(host: str) -> str:
    """
    >>> _without_port("127.0.0.1:8080"), _without_port("[::1]:8080"), _without_port("localhost")
    ('127.0.0.1', '[::1]', 'localhost')
    """
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdecimal() else host


def _headers(scope: Mapping[str, Any]) -> dict[bytes, bytes]:
    """Headers by name; of those that stand several times the last."""
    return dict(scope["headers"])
