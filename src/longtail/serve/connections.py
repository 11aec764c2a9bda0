"""`Connection`: uvicorn's HTTP protocol with bounds on what comes before a request is one.

uvicorn waits for headers as long as a client likes, takes them at any length and any number of connections. Here each
of the three has a limit, and a client that does not read its answer is let go in the end. While the service has all the
requests that it takes, more are refused right here: on the way to the guard a refusal would cost half as much as an
answer, and a service that is asked for twice of what it can do would do nothing else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from longtail.serve.guard import SAFETY
from longtail.serve.limits import Limits
from longtail.serve.measures import Measures
from longtail.serve.occupancy import Occupancy
from longtail.serve.refusal import Refusal

_REASONS = {
    400: "Bad Request",
    408: "Request Timeout",
    429: "Too Many Requests",
    431: "Request Header Fields Too Large",
    503: "Service Unavailable",
}
_SAFETY = [f"{name.decode()}: {value.decode()}" for name, value in SAFETY]


_READ_BYTES = 1 << 14
# Paths whose requests are refused before they are taken; others cost little, or must be answered.
_REFUSED_EARLY = (b"/v1/tag", b"/v1/explain")


def connection_class(limits: Limits, occupancy: Occupancy, measures: Measures) -> type[asyncio.Protocol]:
    """The protocol with the limits of one service, for ``uvicorn.Config(http=...)``."""
    shared = {"limits": limits, "occupancy": occupancy, "measures": measures, "arrivals": _Arrivals(), "idle": {}}
    return type("Connection", (_Connection,), shared)


class _Arrivals:
    """Requests that came in this turn of the event loop, which are not in progress before the next."""

    def __init__(self) -> None:
        self.count = 0

    def add(self, loop: asyncio.AbstractEventLoop) -> None:
        if not self.count:
            # Runs before the requests of this turn do, as it is scheduled before them.
            loop.call_soon(self._end_turn)
        self.count += 1

    def _end_turn(self) -> None:
        self.count = 0


class _Connection(HttpToolsProtocol):
    limits: Limits
    occupancy: Occupancy
    measures: Measures
    arrivals: _Arrivals
    idle: dict[_Connection, None]  # those without a request in progress, longest idle first

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._header_bytes = 0
        self._in_headers = True
        self._refused_bytes: int | None = None  # of the body of a request that is refused, while it arrives
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if hasattr(transport, "max_size"):
            # asyncio reads into a new buffer of 256 KiB and cuts it down to what came. Cut-off ends of all lengths make
            # memory grow by 15 bytes with each request.
            transport.max_size = _READ_BYTES
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
        if self._is_too_much():
            self._refused_bytes = 0
            self._wait(self.transport.abort, self.limits.body_seconds)
            return
        self.arrivals.add(self.loop)
        super().on_headers_complete()

    def _is_too_much(self) -> bool:
        if not self.occupancy.full(self.arrivals.count) or self.url not in _REFUSED_EARLY:
            return False
        # What is not plain goes the long way: a request behind another, and one that waits to be asked for its body.
        waits = self.cycle is not None and not self.cycle.response_complete
        plain = not (waits or self.expect_100_continue or self.parser.should_upgrade())
        return plain and self.parser.get_method() == b"POST" and self.parser.should_keep_alive()

    def on_body(self, body: bytes) -> None:
        if self._refused_bytes is None:
            super().on_body(body)
            return
        self._refused_bytes += len(body)
        if self._refused_bytes > self.limits.body_bytes:
            self.transport.abort()

    def on_message_complete(self) -> None:
        self._in_headers, self._header_bytes = True, 0
        if self._refused_bytes is None:
            super().on_message_complete()
            return
        self._refused_bytes = None
        self._stop_waiting()
        self._tell(self.occupancy.refusal())
        self.measures.request(self.url.decode("ascii"), 429, 0.0)
        self.on_response_complete()

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
        """Answer without a request, as there may be none yet, and close."""
        self._tell(refusal, "connection: close")
        self._close()

    def _tell(self, refusal: Refusal, *lines: str) -> None:
        body = refusal.body()
        head = [
            f"HTTP/1.1 {refusal.status} {_REASONS[refusal.status]}",
            *_SAFETY,
            "content-type: application/json",
            f"content-length: {len(body)}",
            *(f"{name}: {value}" for name, value in refusal.headers.items()),
            *lines,
        ]
        self.transport.write("\r\n".join([*head, "", ""]).encode("ascii") + body)

    def send_400_response(self, msg: str) -> None:
        self._refuse(Refusal(400, "not_http", "this is no HTTP/1.1 request"))
