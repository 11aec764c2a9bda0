"""`connection_class`: uvicorn's HTTP protocol with limits on headers, time and connections.

uvicorn waits for headers without a time limit, and limits neither their size nor the number of connections. This
protocol limits all three, and drops clients that do not read their answers. A busy service refuses further requests
here: in the guard, a refusal would cost half as much as an answer, and an overloaded service would do little else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from longtail.serve.guard import SAFETY
from longtail.serve.limits import Limits, Occupancy
from longtail.serve.measures import Measures
from longtail.serve.refusal import Refusal

_SAFETY = [f"{name.decode()}: {value.decode()}" for name, value in SAFETY]
_READ_BYTES = 1 << 14
# Paths whose requests are refused before the guard sees them; others cost little, or must be answered.
_REFUSED_EARLY = (b"/v1/tag", b"/v1/explain")


def connection_class(limits: Limits, occupancy: Occupancy, measures: Measures) -> type[asyncio.Protocol]:
    """The protocol class of one service, for ``uvicorn.Config(http=...)``."""
    shared = {"limits": limits, "occupancy": occupancy, "measures": measures, "arrivals": _Arrivals(), "idle": {}}
    return type("Connection", (_Connection,), shared)


class _Arrivals:
    """Counts the requests of this turn of the event loop, which are in progress only from the next turn on."""

    def __init__(self) -> None:
        self.count = 0

    def add(self, loop: asyncio.AbstractEventLoop) -> None:
        if not self.count:
            # Scheduled before the requests of this turn, so it runs before them.
            loop.call_soon(self._end_turn)
        self.count += 1

    def _end_turn(self) -> None:
        self.count = 0


class _Connection(HttpToolsProtocol):
    limits: Limits
    occupancy: Occupancy
    measures: Measures
    arrivals: _Arrivals
    idle: dict[_Connection, None]  # without a request in progress, the longest idle first

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._in_headers = True
        self._header_bytes = 0  # received since the last request
        self._field_bytes = 0  # of the request line and headers of this request
        self._other_bytes = 0  # chunk sizes and trailers since the last piece of the body
        self._refused_bytes: int | None = None  # received of the body of a refused request
        self._timer: asyncio.TimerHandle | None = None  # deadline for the client to send
        self._write_timer: asyncio.TimerHandle | None = None  # deadline for the client to read

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if hasattr(transport, "max_size"):
            # asyncio allocates a buffer of 256 KiB for each read and shrinks it to the data received. The fragmentation
            # makes memory grow by 15 bytes per request.
            transport.max_size = _READ_BYTES
        if len(self.connections) > self.limits.connections and not self._make_room():
            message = f"{self.limits.connections} connections are busy, which is the maximum; try again"
            self._refuse(Refusal("too_many_connections", message, {"retry-after": "1"}))
            return
        self.idle[self] = None
        self._wait(self._too_slow, self.limits.header_seconds)

    def _make_room(self) -> bool:
        longest = next((each for each in self.idle if not each.transport.get_write_buffer_size()), None)
        if longest is None:
            return False
        self.idle.pop(longest)
        self.connections.discard(longest)
        longest.transport.abort()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        self.idle.pop(self, None)
        self._stop_waiting()
        self._stop_watching()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        if self._in_headers:
            self._header_bytes += len(data)
        else:
            self._other_bytes += len(data)
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._other_bytes > self.limits.header_bytes:
            self.transport.abort()  # the request may be answered already
        elif self._in_headers and self._header_bytes > self.limits.header_bytes:
            self._refuse(self._headers_too_large())
        elif self._in_headers and self._header_bytes and self._timer is None:
            self._wait(self._too_slow, self.limits.header_seconds)

    def on_message_begin(self) -> None:
        self._field_bytes = 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._field_bytes += len(url)
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._field_bytes += len(name) + len(value)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._stop_waiting()
        self._unset_keepalive_if_required()
        self._in_headers, self._other_bytes = False, 0
        self.idle.pop(self, None)
        if self._field_bytes > self.limits.header_bytes:
            self._refuse(self._headers_too_large())
        elif self._is_too_much():
            self._refused_bytes = 0
            self._wait(self.transport.abort, self.limits.body_seconds)
        else:
            self.arrivals.add(self.loop)
            super().on_headers_complete()

    def _is_too_much(self) -> bool:
        if not self.occupancy.full(self.arrivals.count) or self.url not in _REFUSED_EARLY:
            return False
        # Special cases go on to the guard: pipelined requests, `Expect: 100-continue`, and clients that do not read.
        plain = not (self._is_busy() or self.expect_100_continue or self.flow.write_paused)
        plain = plain and self.parser.get_http_version() == "1.1" and not self.parser.should_upgrade()
        return plain and self.parser.get_method() == b"POST" and self.parser.should_keep_alive()

    def _is_busy(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def on_body(self, body: bytes) -> None:
        self._other_bytes = 0
        if self.transport.is_closing():
            return
        if self._refused_bytes is None:
            super().on_body(body)
            return
        self._refused_bytes += len(body)
        if self._refused_bytes > self.limits.body_bytes:
            self.transport.abort()

    def on_message_complete(self) -> None:
        self._in_headers, self._header_bytes, self._other_bytes = True, 0, 0
        if self.transport.is_closing():
            return
        if self._refused_bytes is None:
            super().on_message_complete()
            return
        self._refused_bytes = None
        self._stop_waiting()
        self._write_answer(self.occupancy.refusal())
        self.measures.refused(self.url.decode("ascii"), 429)
        self.on_response_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.is_closing():
            self._close()
        elif not self._is_busy():
            self.idle[self] = None

    def timeout_keep_alive_handler(self) -> None:
        self._close()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch()

    def resume_writing(self) -> None:
        if not self.transport.is_closing():
            self._stop_watching()
        super().resume_writing()

    def _wait(self, then: Callable[[], None], seconds: float) -> None:
        self._stop_waiting()
        self._timer = self.loop.call_later(seconds, then)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _watch(self) -> None:
        """Abort the connection if the client reads nothing; wait for one that reads slowly."""
        self._stop_watching()
        left = self.transport.get_write_buffer_size()
        self._write_timer = self.loop.call_later(self.limits.body_seconds, self._check_progress, left)

    def _stop_watching(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None

    def _check_progress(self, before: int) -> None:
        if self.transport.get_write_buffer_size() < before:
            self._watch()
        else:
            self.transport.abort()

    def _close(self) -> None:
        """Close once the rest of the answer is sent; abort if the client does not read it."""
        self.transport.close()
        self._watch()

    def _too_slow(self) -> None:
        self._timer = None
        if self._is_busy() or not self._header_bytes:
            self.transport.abort()  # there is no request to answer
            return
        message = f"the headers did not arrive within {self.limits.header_seconds:g} s; send them faster"
        self._refuse(Refusal("headers_too_slow", message))

    def _headers_too_large(self) -> Refusal:
        message = f"the request line and headers are larger than {self.limits.header_bytes} bytes; send fewer"
        return Refusal("headers_too_large", message)

    def _refuse(self, refusal: Refusal) -> None:
        """Answer, even before there is a whole request, and close."""
        if self._is_busy():
            self.transport.abort()  # the client would take this for the answer to its previous request
            return
        self._write_answer(refusal, "connection: close")
        self._close()

    def _write_answer(self, refusal: Refusal, *lines: str) -> None:
        body = refusal.body()
        head = [
            f"HTTP/1.1 {refusal.status} {HTTPStatus(refusal.status).phrase}",
            *_SAFETY,
            "content-type: application/json",
            f"content-length: {len(body)}",
            *(f"{name}: {value}" for name, value in refusal.headers.items()),
            *lines,
        ]
        self.transport.write("\r\n".join([*head, "", ""]).encode("ascii") + body)

    def send_400_response(self, msg: str) -> None:
        self._refuse(Refusal("not_http", "this is not an HTTP/1.1 request"))
