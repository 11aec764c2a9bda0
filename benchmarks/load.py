"""A load generator for HTTP services, light enough to share two cores with the service it drives.

In the open loop, requests are due at times fixed beforehand, independent of earlier answers. Latency counts from the
time a request was due, so a service that stalls cannot hide it by also stalling the client. In the closed loop, every
connection sends its next request as soon as it is answered, which finds the capacity.
"""

from __future__ import annotations

import asyncio
import gc
import math
from array import array
from collections import deque
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from longtail.arrays import Array

PENDING, CONNECTION_ERROR, TIMED_OUT = 0, -1, -2
_SWEEP = 0.1
# Above this rate requests are sent in bursts every millisecond, so that the client can sleep in between.
_EXACT_RATE = 1_000


class NotHTTP(ValueError):
    """An answer that this client does not understand."""


class Answer(NamedTuple):
    """The status and body of an answer, and whether the service then closes the connection."""

    status: int
    body: bytes
    closes: bool


class ResponseParser:
    """Splits a stream of bytes into answers.

    It understands only what the measured services send: HTTP/1.1 with a length.

    Examples
    --------
    >>> parser = ResponseParser()
    >>> parser.feed(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\no")
    []
    >>> parser.feed(b"kHTTP/1.1 429 Too Many Requests\\r\\nContent-Length: 0\\r\\n\\r\\n")
    [Answer(status=200, body=b'ok', closes=False), Answer(status=429, body=b'', closes=False)]
    """

    def __init__(self) -> None:
        self._kept = b""

    def feed(self, data: bytes) -> list[Answer]:
        """Return the answers that `data` completes; keep the rest for the next call."""
        if self._kept:
            data = self._kept + data
        answers = []
        start = 0
        while (end := data.find(b"\r\n\r\n", start)) >= 0:
            head = data[start:end].lower() + b"\r\n"
            status, length = _read_head(head)
            body_start = end + 4
            if len(data) < body_start + length:
                break
            body = data[body_start : body_start + length]
            answers.append(Answer(status, body, b"\r\nconnection: close\r\n" in head))
            start = body_start + length
        self._kept = data[start:]
        return answers


def _read_head(head: bytes) -> tuple[int, int]:
    place = head.find(b"\r\ncontent-length:")
    if not head.startswith(b"http/1.1 ") or place < 0:
        raise NotHTTP(f"expected an HTTP/1.1 answer with a length, found {head[:200]!r}")
    try:
        return int(head[9:12]), int(head[place + 17 : head.index(b"\r\n", place + 2)])
    except ValueError as error:
        raise NotHTTP(f"expected numbers for status and length, found {head[:200]!r}") from error


@dataclass(frozen=True)
class Record:
    """The outcome of each request, in the order they were due; times in seconds from the start.

    Parameters
    ----------
    due, sent, done : array of float
        When the request was due, when it was sent, and when its answer (or failure) was complete; NaN if never.
    status : array of int
        The HTTP status, or `CONNECTION_ERROR` or `TIMED_OUT`.
    differing : int
        Answers with status 200 and an unexpected body.
    connections : int
        The maximum number of open connections.
    """

    due: Array
    sent: Array
    done: Array
    status: Array
    differing: int
    connections: int

    @property
    def latency(self) -> Array:
        """Seconds from due to done of each request answered with 200."""
        answered = self.status == 200
        return self.done[answered] - self.due[answered]

    @property
    def lag(self) -> Array:
        """Seconds by which requests were sent late: the client's share of the latency, and waits to connect."""
        lag = self.sent - self.due
        return lag[~np.isnan(lag)]

    def counts(self) -> dict[int, int]:
        """The number of requests with each status."""
        values, counts = np.unique(self.status, return_counts=True)
        return dict(zip(values.tolist(), counts.tolist(), strict=True))

    def after(self, seconds: float) -> Record:
        """The requests that were due `seconds` or more after the start."""
        kept = self.due >= seconds
        due, sent, done, status = (values[kept] for values in (self.due, self.sent, self.done, self.status))
        return replace(self, due=due, sent=sent, done=done, status=status)


@dataclass(frozen=True)
class Target:
    """The target of the load: prebuilt requests, sent in turn, and the expected body of each answer."""

    host: str
    port: int
    requests: Sequence[bytes]
    expected: Sequence[bytes | None] = ()


class _Connection(asyncio.Protocol):
    """A connection with at most one pending request, `number`."""

    __slots__ = ("_client", "_parser", "number", "transport")

    def __init__(self, client: _Client) -> None:
        self._client = client
        self._parser = ResponseParser()
        self.number = -1
        self.transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self._client.connected(self)

    def send(self, number: int) -> None:
        self.number = number
        client = self._client
        client.sent[number] = perf_counter()
        requests = client.target.requests
        self.transport.write(requests[number % len(requests)])

    def data_received(self, data: bytes) -> None:
        try:
            answers = self._parser.feed(data)
        except NotHTTP:
            self.transport.abort()
            return
        for answer in answers:
            number, self.number = self.number, -1
            if number < 0:  # more answers than requests
                self._client.unasked += 1
                self.transport.abort()
                return
            self._client.answered(number, answer)
            if answer.closes:
                self.transport.close()
            else:
                self._client.release(self)

    def connection_lost(self, error: Exception | None) -> None:
        self._client.lost(self)


class _Client:
    """The connections, the requests that wait for one, and the record."""

    def __init__(self, target: Target, most_connections: int, timeout: float) -> None:
        self.target = target
        self.due, self.sent, self.done = array("d"), array("d"), array("d")
        self.status = array("h")
        self.differing = 0
        self.unasked = 0
        self.unanswered = 0
        self.most_open = 0
        self.again: Callable[[], None] | None = None
        self._open: set[_Connection] = set()
        # Used in turn, so that no connection stays idle until the service closes it.
        self._idle: deque[_Connection] = deque()
        self._waiting: deque[int] = deque()
        self._most = most_connections
        self._timeout = timeout
        self._connecting: set[asyncio.Task[None]] = set()

    async def connect(self, connections: int) -> None:
        await asyncio.gather(*(self._connect() for _ in range(connections)))

    def issue(self, due: float) -> None:
        """Send the next request, or let it wait for a connection."""
        number = len(self.due)
        self.due.append(due)
        self.sent.append(math.nan)
        self.done.append(math.nan)
        self.status.append(PENDING)
        self.unanswered += 1
        while self._idle:
            connection = self._idle.popleft()
            if connection in self._open:
                connection.send(number)
                return
        self._waiting.append(number)
        self._grow()

    def connected(self, connection: _Connection) -> None:
        self._open.add(connection)
        self.most_open = max(self.most_open, len(self._open))
        self.release(connection)

    def release(self, connection: _Connection) -> None:
        while self._waiting:
            number = self._waiting.popleft()
            if self.status[number] == PENDING:
                connection.send(number)
                return
        self._idle.append(connection)
        if self.again is not None:
            self.again()

    def answered(self, number: int, answer: Answer) -> None:
        self._end(number, answer.status)
        expected = self.target.expected
        if answer.status == 200 and expected:
            wanted = expected[number % len(expected)]
            self.differing += wanted is not None and wanted != answer.body

    def lost(self, connection: _Connection) -> None:
        self._open.discard(connection)
        if connection.number >= 0:
            self._end(connection.number, CONNECTION_ERROR)
        if self.again is not None:
            self._grow()

    def sweep(self) -> None:
        """Give up on requests that wait too long for a connection (since due) or for an answer (since sent).

        A request that got its connection late still has its full time. Otherwise the service would work for clients
        that are gone and slow down.
        """
        oldest = perf_counter() - self._timeout
        while self._waiting and self.due[self._waiting[0]] < oldest:
            self._end(self._waiting.popleft(), TIMED_OUT)
        for connection in list(self._open):
            if connection.number >= 0 and self.sent[connection.number] < oldest:
                self._end(connection.number, TIMED_OUT)
                connection.transport.abort()

    async def close(self) -> None:
        self.again = None
        for task in list(self._connecting):
            task.cancel()
        until = perf_counter() + self._timeout
        # A connection that was being made may still open after the others were closed.
        while (self._open or self._connecting) and perf_counter() < until:
            for connection in list(self._open):
                connection.transport.abort()
            await asyncio.sleep(0.001)

    def record(self, start: float) -> Record:
        due, sent, done = (np.array(values) - start for values in (self.due, self.sent, self.done))
        return Record(due, sent, done, np.array(self.status), self.differing + self.unasked, self.most_open)

    def _end(self, number: int, status: int) -> None:
        if self.status[number] == PENDING:
            self.status[number] = status
            self.done[number] = perf_counter()
            self.unanswered -= 1

    def _grow(self) -> None:
        if len(self._open) + len(self._connecting) < self._most:
            task = asyncio.get_running_loop().create_task(self._connect())
            self._connecting.add(task)
            task.add_done_callback(self._connecting.discard)

    async def _connect(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.create_connection(lambda: _Connection(self), self.target.host, self.target.port)
        except OSError:
            if self._waiting:
                self._end(self._waiting.popleft(), CONNECTION_ERROR)


def schedule(rate: float, seconds: float, seed: int = 0) -> Array:
    """Times of independent arrivals (exponential gaps), `rate` per second on average, within `seconds`.

    >>> times = schedule(200, 10)
    >>> 1_800 < len(times) < 2_200
    True
    """
    rng = np.random.default_rng(seed)
    gaps = rng.exponential(1 / rate, size=int(1.2 * rate * seconds + 20 * math.sqrt(rate * seconds) + 20))
    times = np.cumsum(gaps)
    return times[times < seconds]


async def open_loop(
    target: Target, due: Array, *, connections: int = 64, most_connections: int = 1_024, timeout: float = 10.0
) -> Record:
    """Send a request at each time of `due`, whether or not earlier ones are answered.

    Parameters
    ----------
    target : Target
    due : array of float
        Seconds from the start, ascending.
    connections, most_connections : int
        Connections opened before the start, and the maximum when all others wait for an answer. A request that finds
        none waits, and this counts as latency.
    timeout : float
        Seconds after which a request fails: since due while it waits for a connection, since sent afterwards.
    """
    loop = asyncio.get_running_loop()
    client = _Client(target, most_connections, timeout)
    await client.connect(connections)
    shortest_sleep = 0.001 if len(due) > _EXACT_RATE * (due[-1] if len(due) else 1) else 0.0
    with _no_garbage_collection():
        start = perf_counter()
        times = array("d", due + start)
        finished = loop.create_future()
        following = iter(range(len(times)))
        place = next(following, None)

        def tick() -> None:
            nonlocal place
            now = perf_counter()
            while place is not None and times[place] <= now:
                client.issue(times[place])
                place = next(following, None)
            if place is None:
                if not finished.done():
                    finished.set_result(None)
            else:
                loop.call_later(max(shortest_sleep, times[place] - perf_counter()), tick)

        tick()
        while not finished.done() or client.unanswered:
            await asyncio.sleep(_SWEEP if not finished.done() else 0.01)
            client.sweep()
    await client.close()
    return client.record(start)


async def closed_loop(target: Target, seconds: float, *, connections: int = 64, timeout: float = 10.0) -> Record:
    """Keep `connections` busy for `seconds`: each sends its next request when the last is answered."""
    client = _Client(target, connections, timeout)
    with _no_garbage_collection():
        start = perf_counter()
        end = start + seconds

        def again() -> None:
            now = perf_counter()
            if now < end:
                client.issue(now)

        client.again = again
        await client.connect(connections)
        while client.unanswered or perf_counter() < end:
            await asyncio.sleep(_SWEEP if perf_counter() < end else 0.01)
            client.sweep()
    await client.close()
    return client.record(start)


def run(load: Coroutine[Any, Any, Record]) -> Record:
    """Run a loop to its end, on uvloop if it is installed."""
    if find_spec("uvloop") is None:
        return asyncio.run(load)
    import uvloop

    return uvloop.run(load)


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Avoid pauses of the client; it allocates no cycles."""
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.unfreeze()
