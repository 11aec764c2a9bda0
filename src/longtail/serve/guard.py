"""`Guard`: the ASGI middleware in front of the routes. Every request and every error passes through it.

It checks host, token and content type, limits the size and time of a body while it arrives, adds the headers that keep
a browser safe, and turns errors into answers. Failures of the service are logged, and clients learn no details.
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
from longtail.serve.limits import Limits, Occupancy
from longtail.serve.measures import Measures
from longtail.serve.refusal import Refusal, refusal_of, shortened
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
_DIGITS = 18  # a Content-Length with more is too large


class Guard:
    """The middleware around the application.

    Parameters
    ----------
    app : ASGI application
    limits : Limits
    measures : Measures
    occupancy : Occupancy
    endpoints : mapping
        For each path that takes a body, the endpoint and the queue that it uses. The guard calls these endpoints
        itself, because the routing of FastAPI costs more than the rest of a request.
    routes : collection of str
        Paths that are counted by name; all others are counted together.
    token : str or None
        The bearer token that requests must send, except for the page, /openapi.json and /health.
    hosts : collection of str or None
        Allowed values of the `Host` header, without port; None allows any.
    changing : collection of str
        Paths of requests that change something: pages of other sites may not send them.
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
        changing: Collection[str] = (),
    ) -> None:
        self._app = app
        self._limits = limits
        self._measures = measures
        self._endpoints = endpoints
        self._routes = frozenset(routes)
        self._bearer = None if token is None else token.encode()
        self._hosts = None if hosts is None else frozenset(_without_port(host).lower() for host in hosts)
        self._changing = frozenset(changing)
        self._occupancy = occupancy
        self._held = 0
        measures.watch("longtail_requests_in_progress", "Requests in progress.", lambda: occupancy.in_progress)

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
        # A HEAD is handled as a GET without a body. In a copy, because the server uses its own scope.
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
        except Gone:
            self._status = _HUNG_UP
        except Exception as error:
            refusal = refusal_of(error)
            if refusal is None:
                # As text, because the command line shows only the message of a log record.
                _log.error("a request for %s failed\n%s", self._route(), traceback.format_exc())
                refusal = Refusal("internal_error", "the service failed; its log has the details")
            if self._status:
                raise
            await self._refuse(refusal)
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
            await guard._app(self._scope, self._receive, self._send_on)
            return
        endpoint, queue = found
        if path in guard._changing:
            self._check_origin()
        self._check_type()
        self._scope[BODY] = await self._body()
        self._begin()
        queue.refuse_if_full()
        response = await endpoint(Request(self._scope, self._receive))
        await response(self._scope, self._receive, self._send_on)

    def _begin(self) -> None:
        """Count the request. Its body has arrived by now, so that its connection can be reused after a refusal."""
        self._guard._occupancy.enter()
        self._entered = True

    def _check_host(self) -> None:
        hosts = self._guard._hosts
        if hosts is None:
            return
        # Browsers always send the header; where there are several, all must be allowed.
        for called in (value.decode("latin-1") for name, value in self._scope["headers"] if name == b"host"):
            if _without_port(called).lower() not in hosts:
                message = f"the host {shortened(_without_port(called))} is not allowed"
                raise Refusal("wrong_host", f"{message}; use the address of the service, or start it with --allow-host")

    def _check_token(self, path: str) -> None:
        bearer = self._guard._bearer
        if bearer is None or path in _OPEN or path.startswith("/page/"):
            return
        scheme, _, given = self._headers.get(b"authorization", b"").partition(b" ")
        if scheme.lower() != b"bearer" or not hmac.compare_digest(given, bearer):
            message = "the service requires a token; send the header Authorization: Bearer TOKEN"
            raise Refusal("no_token", message, {"www-authenticate": "Bearer"})

    def _check_origin(self) -> None:
        """Refuse the request of a page of another site; programs send neither header."""
        site, origin = self._headers.get(b"sec-fetch-site"), self._headers.get(b"origin")
        # Behind a proxy, the host of the service can have another name than the page; browsers then tell the site.
        if site is None and origin is not None:
            site = b"same-origin" if origin.partition(b"://")[2] == self._headers.get(b"host") else b"cross-site"
        if site not in (None, b"same-origin", b"none"):
            raise Refusal("cross_site", "a page of another site sent this request; use the page of the service")

    def _check_type(self) -> None:
        kind, _, parameter = self._headers.get(b"content-type", b"").partition(b";")
        charset = parameter.strip().lower().replace(b'"', b"")
        if kind.strip().lower() != b"application/json" or charset not in (b"", b"charset=utf-8"):
            message = "the body must be JSON in UTF-8; send the header Content-Type: application/json"
            raise Refusal("not_declared_json", message)

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
            late = f"the body did not arrive within {limits.body_seconds:g} s; send it faster, or send less"
            raise Refusal("body_too_slow", late) from None
        self._body_read = True
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _hold(self, count: int) -> None:
        guard = self._guard
        self._held += count
        guard._held += count
        if self._held > guard._limits.body_bytes:
            raise self._too_large()
        if guard._held > guard._limits.held_bytes:
            message = f"requests in progress hold {guard._limits.held_bytes} bytes, which is the maximum; try again"
            raise Refusal("too_many_bytes", message, {"retry-after": "1"})

    def _too_large(self) -> Refusal:
        limit = self._guard._limits.body_bytes
        return Refusal("body_too_large", f"the body is larger than {limit} bytes; send fewer texts at a time")

    async def _refuse(self, refusal: Refusal) -> None:
        body = refusal.body()
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        headers += [(name.encode(), value.encode()) for name, value in refusal.headers.items()]
        await self._send_on({"type": "http.response.start", "status": refusal.status, "headers": headers})
        await self._send_on({"type": "http.response.body", "body": body})

    async def _send_on(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            message["headers"] = [*message.get("headers", ()), *SAFETY]
            if not self._body_read:
                # The rest of the body stays unread, so the connection cannot be reused.
                message["headers"].append(_CLOSE)
        elif self._is_head and message["type"] == "http.response.body":
            message["body"] = b""
        await self._send(message)


_HEALTH = ("/health/live", "/health/ready")
_OPEN = frozenset(["/", *_HEALTH, "/openapi.json"])
# Always answered: a busy service must not look dead to monitoring.
_ALWAYS = frozenset([*_HEALTH, "/metrics"])


def _without_port(host: str) -> str:
    """
    >>> _without_port("127.0.0.1:8080"), _without_port("[::1]:8080"), _without_port("localhost")
    ('127.0.0.1', '[::1]', 'localhost')
    """
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdecimal() else host


def _headers(scope: Mapping[str, Any]) -> dict[bytes, bytes]:
    """Headers by name; the last one where a name repeats."""
    return dict(scope["headers"])
