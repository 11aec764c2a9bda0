"""`Connection`: uvicorn's HTTP protocol with bounds on what comes before a request is one.

uvicorn waits for headers as long as a client likes, takes them at any length and any number of connections. Here each
of the three has a limit, and a client that does not read its answer is let go in the end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from longtail.serve.guard import SAFETY
from longtail.serve.limits import Limits
from longtail.serve.refusal import Refusal

_REASONS = {
    400: "Bad Request",
    408: "Request Timeout",
    431: "Request Header Fields Too Large",
    503: "Service Unavailable",
}


def connection_class(limits: Limits) -> type[asyncio.Protocol]:
    """The protocol with the limits of one service, for ``uvicorn.Config(http=...)``."""
    return type("Connection", (_Connection,), {"limits": limits, "idle": {}})


class _Connection(HttpToolsProtocol):
    limits: Limits
    idle: dict[_Connection, None]  # those without a request in progress, longest idle first

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._header_bytes = 0
        self._in_headers = True
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self.limits.connections and not self._make_room():
            message = f"{self.limits.connections} connections are busy, which is all that are taken; try again"
            self._refuse(Refusal(503, "too_many_connections", message, {"retry-after": "1"}))
            return
        self.idle[self] = None
        self._wait(self._too_slow, self.limits.header_seconds)

    def _make_room(self) -> bool:
        longest = next(iter(self.idle), None)
        if longest is None:
            return False
        self.idle.pop(longest)
        self.connections.discard(longest)
        longest.transport.abort()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        self.idle.pop(self, None)
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        if self._in_headers:
            # Where the headers end within the data, the rest of it is no header and not looked at any more.
            self._header_bytes += len(data)
        super().data_received(data)
        if not self._in_headers or not self._header_bytes or self.transport.is_closing():
            return
        if self._header_bytes > self.limits.header_bytes:
            message = f"the request's line and headers are longer than {self.limits.header_bytes} bytes; send fewer"
            self._refuse(Refusal(431, "headers_too_large", message))
        elif self._timer is None:
            self._wait(self._too_slow, self.limits.header_seconds)

    def on_headers_complete(self) -> None:
        self._stop_waiting()
        self._in_headers = False
        self.idle.pop(self, None)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._in_headers, self._header_bytes = True, 0

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.is_closing():
            self._close()
        elif not self.pipeline:
            self.idle[self] = None

    def timeout_keep_alive_handler(self) -> None:
        self._close()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._wait(self.transport.abort, self.limits.body_seconds)

    def resume_writing(self) -> None:
        self._stop_waiting()
        super().resume_writing()

    def _wait(self, then: Callable[[], None], seconds: float) -> None:
        self._stop_waiting()
        self._timer = self.loop.call_later(seconds, then)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _close(self) -> None:
        """Close once the rest of the answer is sent, or when the client takes too long to read it."""
        self.transport.close()
        self._wait(self.transport.abort, self.limits.body_seconds)

    def _too_slow(self) -> None:
        self._timer = None
        if self.cycle is not None or not self._header_bytes:
            self.transport.abort()  # there is no request that an answer could belong to
            return
        message = f"the request's headers did not arrive within {self.limits.header_seconds:g} s; send them faster"
        self._refuse(Refusal(408, "headers_too_slow", message))

    def _refuse(self, refusal: Refusal) -> None:
        """Answer without a request: there may be none yet."""
        body = refusal.body()
        lines = [
            f"HTTP/1.1 {refusal.status} {_REASONS[refusal.status]}",
            *(f"{name.decode()}: {value.decode()}" for name, value in SAFETY),
            "content-type: application/json",
            f"content-length: {len(body)}",
            *(f"{name}: {value}" for name, value in refusal.headers.items()),
            "connection: close",
        ]
        self.transport.write("\r\n".join([*lines, "", ""]).encode("ascii") + body)
        self._close()

    def send_400_response(self, msg: str) -> None:
        self._refuse(Refusal(400, "not_http", "this is no HTTP/1.1 request"))
