"""The load generator, against a service whose answers the tests decide."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.load import (
    CONNECTION_ERROR,
    TIMED_OUT,
    Answer,
    NotHTTP,
    Record,
    ResponseParser,
    Target,
    closed_loop,
    open_loop,
    run,
    schedule,
)
from benchmarks.services import HOST, get, post

REQUEST = post("/v1/tag", "a text")


def written(status: int = 200, body: bytes = b"{}", extra: bytes = b"") -> bytes:
    return b"HTTP/1.1 %d Reason\r\nContent-Length: %d\r\n%s\r\n%s" % (status, len(body), extra, body)


Loop = Callable[[Target], Awaitable[Record]]
Respond = Callable[[int], "bytes | None"]


def drive(load: Loop, respond: Respond, expected: tuple[bytes | None, ...] = (), delay: float = 0.0) -> Record:
    """Run a load against a service that answers request number n with ``respond(n)``, or hangs up for None."""
    served = 0

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal served
        try:
            while await reader.readexactly(len(REQUEST)):
                answer = respond(served)
                served += 1
                if answer is None:
                    break
                await asyncio.sleep(delay)
                writer.write(answer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def both() -> Record:
        server = await asyncio.start_server(handle, HOST, 0)
        port = server.sockets[0].getsockname()[1]
        record = await load(Target(HOST, port, [REQUEST], expected))
        server.close()
        return record

    record = run(asyncio.wait_for(both(), 60))
    assert len(record.due) == len(record.sent) == len(record.done) == len(record.status)
    return record


@given(
    answers=st.lists(st.tuples(st.sampled_from([200, 429, 503]), st.binary(max_size=60)), max_size=5),
    cuts=st.lists(st.integers(0, 400), max_size=8),
)
def test_answers_are_read_however_the_bytes_are_cut(answers: list[tuple[int, bytes]], cuts: list[int]) -> None:
    stream = b"".join(written(status, body) for status, body in answers)
    bounds = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    parser = ResponseParser()
    found = [answer for start, end in pairwise(bounds) for answer in parser.feed(stream[start:end])]
    assert found == [Answer(status, body, False) for status, body in answers]


@pytest.mark.parametrize("name", [b"content-length", b"Content-Length", b"CONTENT-LENGTH"])
def test_header_names_are_read_in_any_case(name: bytes) -> None:
    data = b"HTTP/1.1 200 OK\r\nserver: x\r\n" + name + b":1\r\nConnection: close\r\n\r\na"
    assert ResponseParser().feed(data) == [Answer(200, b"a", True)]


@pytest.mark.parametrize(
    "data",
    [
        b"SSH-2.0-something\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n",
        b"HTTP/1.1 2xx OK\r\nContent-Length: 0\r\n\r\n",
    ],
)
def test_what_is_no_answer_is_refused(data: bytes) -> None:
    with pytest.raises(NotHTTP):
        ResponseParser().feed(data)


def test_a_schedule_has_the_rate_asked_for_and_comes_again_with_its_seed() -> None:
    times = schedule(500, 20, seed=3)
    assert len(times) == pytest.approx(10_000, rel=0.05)
    assert (np.diff(times) > 0).all()
    assert times[-1] < 20
    gaps = np.diff(times)
    assert gaps.std() == pytest.approx(gaps.mean(), rel=0.1)
    np.testing.assert_array_equal(times, schedule(500, 20, seed=3))
    assert len(times) != len(schedule(500, 20, seed=4)) or (times != schedule(500, 20, seed=4)).any()


def test_every_request_of_the_open_loop_is_counted_under_its_status() -> None:
    due = schedule(400, 0.5)
    record = drive(lambda target: open_loop(target, due), lambda n: written(429 if n % 3 == 0 else 200))
    assert set(record.counts()) == {200, 429}
    assert sum(record.counts().values()) == len(due)
    assert record.counts()[429] == (len(due) + 2) // 3
    np.testing.assert_allclose(record.due, due)
    assert len(record.latency) == record.counts()[200]


def test_no_request_is_sent_before_it_is_due_nor_long_after() -> None:
    due = schedule(300, 0.5)
    record = drive(lambda target: open_loop(target, due), lambda n: written())
    assert (record.lag >= 0).all()
    assert np.median(record.lag) < 0.25


def test_waiting_for_a_stalled_service_counts_from_the_time_due() -> None:
    """All requests fall due at once, the service takes 0.05 s for each, and only one can be under way."""
    record = drive(
        lambda target: open_loop(target, np.zeros(6), connections=1, most_connections=1),
        lambda n: written(),
        delay=0.05,
    )
    assert record.connections == 1
    # Timers count whole milliseconds, and may end one early.
    assert record.latency.min() >= 0.048
    assert record.latency.max() >= 6 * 0.048


def test_connections_are_added_while_answers_are_out() -> None:
    record = drive(
        lambda target: open_loop(target, np.zeros(40), connections=1, most_connections=8),
        lambda n: written(),
        delay=0.02,
    )
    assert record.connections == 8
    assert record.counts() == {200: 40}


def test_a_service_that_hangs_up_is_a_connection_error_and_the_load_goes_on() -> None:
    record = drive(
        lambda target: open_loop(target, np.linspace(0, 0.2, 20), connections=1, most_connections=4),
        lambda n: None if n == 5 else written(),
    )
    assert record.counts() == {200: 19, CONNECTION_ERROR: 1}


def test_a_closing_service_is_connected_to_again() -> None:
    record = drive(
        lambda target: closed_loop(target, 0.2, connections=2), lambda n: written(extra=b"Connection: close\r\n")
    )
    assert set(record.counts()) == {200}
    assert record.counts()[200] > 2


def test_requests_without_an_answer_time_out() -> None:
    record = drive(
        lambda target: open_loop(target, np.zeros(3), connections=1, most_connections=1, timeout=0.2),
        lambda n: written(),
        delay=5.0,
    )
    assert record.counts() == {TIMED_OUT: 3}
    assert np.isnan(record.sent).sum() == 2


def test_nobody_listening_is_a_connection_error_for_each_request() -> None:
    async def load() -> Record:
        server = await asyncio.start_server(lambda reader, writer: None, HOST, 0)
        port = server.sockets[0].getsockname()[1]
        server.close()
        await server.wait_closed()
        return await open_loop(Target(HOST, port, [REQUEST]), np.linspace(0, 0.05, 5))

    assert run(load()).counts() == {CONNECTION_ERROR: 5}


def test_other_bodies_than_expected_are_counted() -> None:
    due = np.linspace(0, 0.1, 10)
    record = drive(
        lambda target: open_loop(target, due, connections=1, most_connections=1),
        lambda n: written(body=b"new" if n >= 7 else b"old"),
        expected=(b"old",),
    )
    assert record.differing == 3


def test_the_closed_loop_has_as_many_requests_under_way_as_connections() -> None:
    seen: list[int] = []
    record = drive(lambda target: closed_loop(target, 0.3, connections=4), lambda n: seen.append(n) or written())
    assert record.connections == 4
    assert record.counts() == {200: len(seen)}
    under_way = [int(((record.sent <= when) & (record.done > when)).sum()) for when in record.sent]
    assert max(under_way) == 4


def test_the_first_part_of_a_record_can_be_left_out() -> None:
    due = np.linspace(0, 0.2, 11)
    record = drive(lambda target: open_loop(target, due), lambda n: written())
    assert record.after(0.099).counts() == {200: 6}


def test_requests_say_their_length_in_bytes() -> None:
    head, body = post("/v1/tag", "größer").split(b"\r\n\r\n")
    assert f"Content-Length: {len(body)}".encode() in head
    assert body.decode() == '{"text": "größer"}'
    assert get("/health/live").endswith(b"\r\n\r\n")
