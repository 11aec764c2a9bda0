"""What nobody should send, sent to a real service: each is refused, costs little memory, and the next is answered."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.serve.conftest import WAIT, Answer, Service, post_bytes, read_answer, running

BODY_BYTES = 2_000_000
MEGABYTE = 1 << 20
GROWTH = 96 * MEGABYTE

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def service(model_directory: Path) -> Iterator[Service]:
    limits = ["--max-body-bytes", str(BODY_BYTES), "--max-body-seconds", "1", "--max-header-seconds", "1"]
    with running(str(model_directory), *limits, "--max-connections", "50") as service:
        for _ in range(20):
            assert service.tag().status == 200
        yield service


@pytest.fixture(autouse=True)
def _unharmed(service: Service) -> Iterator[None]:
    """After each test the service has not grown and answers."""
    before = service.memory()
    yield
    assert service.tag().status == 200
    assert service.memory() - before < GROWTH


def stream(connection: socket.socket, piece: bytes, pieces: int) -> int:
    """Send pieces until the other side has enough; how many it took."""
    for number in range(pieces):
        try:
            connection.sendall(piece)
        except (BrokenPipeError, ConnectionResetError):
            return number
    return pieces


HEAD = "POST /v1/tag HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


def test_a_body_of_a_gigabyte_is_refused_before_it_is_sent(service: Service) -> None:
    answer = service.send(f"{HEAD}Content-Length: {1 << 30}\r\n\r\n".encode())
    assert (answer.status, answer.code, answer.headers["connection"]) == (413, "body_too_large", "close")


def test_a_gigabyte_in_chunks_is_cut_off(service: Service) -> None:
    chunk = b"%x\r\n%b\r\n" % (MEGABYTE, b"x" * MEGABYTE)
    with service.connect() as connection:
        connection.sendall(f"{HEAD}Transfer-Encoding: chunked\r\n\r\n".encode())
        assert stream(connection, chunk, 1024) < 100


def test_a_line_of_ten_megabytes_is_refused(service: Service) -> None:
    with service.connect() as connection:
        assert stream(connection, b"GET /" + b"a" * MEGABYTE, 100) < 20
        with suppress(ConnectionError):  # it may be closed while we still send
            assert read_answer(connection).status in (400, 431)


def test_trailers_without_end_are_cut_off(service: Service) -> None:
    for line in (b"a:b\r\n" * 10_000, b"a" * 50_000):
        with service.connect() as connection:
            connection.sendall(f"{HEAD}Transfer-Encoding: chunked\r\n\r\n0\r\n".encode())
            assert stream(connection, line, 1000) < 500


def test_headers_are_counted_also_where_they_come_at_once(service: Service) -> None:
    fields = "".join(f"X-{number}: {'a' * 1000}\r\n" for number in range(17))
    answer = service.post("/v1/tag", {"text": "an apple"}, fields)
    assert (answer.status, answer.code) == (431, "headers_too_large")
    assert service.post("/v1/tag", {"text": "an apple"}, fields[:10_000].rpartition("\r\n")[0] + "\r\n").status == 200


OPENAPI = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
PAGES = 1_500  # more than the system holds for a client


def _measure(service: Service, name: str) -> float:
    told = service.send(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").body.decode()
    return next((float(line.split()[-1]) for line in told.splitlines() if line.startswith(name)), 0.0)


def test_a_client_that_does_not_read_is_let_go(service: Service) -> None:
    answered = 'longtail_requests_total{route="other",status="200"}'
    before = _measure(service, answered)
    clients = [service.connect() for _ in range(3)]
    try:
        for client in clients:
            client.sendall(OPENAPI * PAGES)
        until = time.monotonic() + WAIT
        for waiting in (True, False):  # for being read, and then no longer
            while (_measure(service, "longtail_requests_in_progress") > 0) != waiting:
                assert time.monotonic() < until
                time.sleep(0.02)
        assert _measure(service, answered) - before < len(clients) * PAGES
    finally:
        for client in clients:
            client.close()


def test_a_client_that_reads_slowly_gets_all_of_its_answers(service: Service) -> None:
    length = len(service.send(OPENAPI).body)
    with service.connect() as client:
        client.sendall(OPENAPI * PAGES)
        received, begun = 0, time.monotonic()
        while received < PAGES * length and (piece := client.recv(1 << 16)):
            received += len(piece)
            if time.monotonic() < begun + 3:  # three times as long as a client may read nothing
                time.sleep(0.02)
    assert received >= PAGES * length


def test_a_text_of_ten_megabytes_is_refused(service: Service) -> None:
    body = b'{"text": "' + b"a" * 10 * MEGABYTE + b'"}'
    with service.connect() as connection:
        connection.sendall(f"{HEAD}Content-Length: {len(body)}\r\n\r\n".encode())
        assert read_answer(connection).code == "body_too_large"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b'{"text": ' + b"[" * 1_000_000, 400),
        (b'{"a":' * 300_000, 400),
        (b'{"text": "\xc3\x28"}', 400),
        (b'{"text": "\xed\xa0\x80"}', 400),
        (b"\xff\xfe{\x00}\x00", 400),
        (b'{"text": "a", "threshold": NaN}', 422),
        (b'{"text": "a", "threshold": Infinity}', 422),
        (b'{"text": "a", "k": 1000000000}', 422),
        (b'{"text": "a", "k": ' + b"9" * 1_000_000 + b"}", 400),
        (b'{"texts": [' + b"1," * 900_000 + b"1]}", 422),
        (b'{"text": "a", ' + b",".join(b'"%d":0' % n for n in range(150_000)) + b"}", 422),
        (b'{"text": "' + b"a" * 1_900_000 + b'"}', 422),
    ],
    ids=["deep", "deep objects", "utf-8", "surrogate", "utf-16", "nan", "inf", "k", "digits", "types", "keys", "long"],
)
def test_json_that_is_wrong_is_refused(service: Service, body: bytes, status: int) -> None:
    answer = service.post("/v1/tag", body)
    assert answer.status == status
    assert len(answer.body) < 1000


def test_a_million_labels_to_deny_are_refused(service: Service) -> None:
    body = b'{"text": "a", "deny": [' + b",".join([b'"a"'] * 400_000) + b"]}"
    assert (service.post("/v1/tag", body).status, service.post("/v1/tag", body).code) == (422, "filter_too_long")
    longer = post_bytes("/v1/tag", b'{"text": "a", "deny": [' + b",".join(b'"%d"' % n for n in range(10**6)) + b"]}")
    with service.connect() as connection:
        connection.sendall(longer[:300])
        assert read_answer(connection).status == 413


def test_a_body_that_trickles_is_given_up(service: Service) -> None:
    begun = time.monotonic()
    with service.connect() as connection:
        connection.sendall(f"{HEAD}Content-Length: 1000\r\n\r\n".encode())
        answer = _trickle(connection)
    assert (answer.status, answer.code) == (408, "body_too_slow")
    assert time.monotonic() - begun < WAIT / 2


def test_headers_that_trickle_are_given_up(service: Service) -> None:
    with service.connect() as connection:
        connection.sendall(b"POST /v1/tag HTTP/1.1\r\nX-Slow: ")
        answer = _trickle(connection)
    assert (answer.status, answer.code) == (408, "headers_too_slow")


def _trickle(connection: socket.socket) -> Answer:
    """Send a byte now and then until there is an answer."""
    connection.settimeout(0.2)
    for _ in range(100):
        try:
            connection.sendall(b"a")
            if connection.recv(1, socket.MSG_PEEK):
                break
        except TimeoutError:
            continue
    connection.settimeout(WAIT)
    return read_answer(connection)


def test_a_connection_that_says_nothing_is_closed(service: Service) -> None:
    with service.connect() as connection:
        assert _is_closed(connection)


def _is_closed(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def test_more_connections_than_allowed_push_out_idle_ones(service: Service) -> None:
    idle = [service.connect() for _ in range(120)]
    try:
        assert service.tag().status == 200
        assert _is_closed(idle[0])
    finally:
        for connection in idle:
            connection.close()


@pytest.mark.parametrize(
    "noise",
    [b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"GET\r\n\r\n", b"\x00" * 1000, b"POST /v1/tag HTTP/9.9\r\n\r\n"],
    ids=["tls", "line", "zeros", "version"],
)
def test_what_is_no_request_is_refused(service: Service, noise: bytes) -> None:
    with service.connect() as connection:
        connection.sendall(noise)
        with suppress(ConnectionError):
            assert read_answer(connection).status in (400, 408, 505)


def test_many_requests_at_once_on_a_connection_are_answered_in_order(service: Service) -> None:
    with service.connect() as connection:
        connection.sendall(b"".join(post_bytes("/v1/tag", json.dumps({"text": word}).encode()) for word in "abc") * 20)
        with connection.makefile("rb") as reader:
            for _ in range(60):
                assert reader.readline().split()[1] == b"200"
                length = 0
                while (line := reader.readline()) != b"\r\n":
                    if line.lower().startswith(b"content-length:"):
                        length = int(line.split(b":")[1])
                reader.read(length)


def test_clients_that_leave_in_the_middle_do_no_harm(service: Service) -> None:
    for size in (10, 60, 120, 10_000):
        for _ in range(10):
            with service.connect() as connection:
                connection.sendall(post_bytes("/v1/tag", json.dumps({"text": "an apple " * 1000}).encode())[:size])


def test_an_upgrade_is_not_made(service: Service) -> None:
    upgrade = "GET /health/live HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    assert service.send(upgrade.encode()).status == 200
