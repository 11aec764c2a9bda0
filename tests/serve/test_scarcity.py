"""A service that may open few files, and one whose model does not come to an end."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.serve.conftest import PROGRAM, WAIT, Answer, Service, post_bytes, read_answer

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name != "posix", reason="limits and signals differ elsewhere")]

ALIVE = b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n"
SOON = 20.0  # against hanging; each takes less than a second on a machine with nothing else to do
FEW_FILES = ("sh", "-c", 'ulimit -n 64 && exec "$@"', "sh", *PROGRAM)

# The real program, around a model that never comes to an end with one text.
SLOW_MODEL = """
import sys, time
from longtail.cli import main
from longtail.tagger import Tagger

tag = Tagger.tag

def slow(self, texts, *args, **options):
    while "never" in texts:
        time.sleep(0.1)
    return tag(self, texts, *args, **options)

Tagger.tag = slow
main()
"""


def alive(service: Service) -> Answer:
    with socket.create_connection(("127.0.0.1", service.port), timeout=SOON) as connection:
        connection.sendall(ALIVE)
        return read_answer(connection)


@contextmanager
def flood(service: Service, count: int) -> Iterator[None]:
    """Open so many connections and say nothing on them, again where the service closes them."""
    with ExitStack() as stack:
        for _ in range(count):
            connection = stack.enter_context(socket.socket())
            connection.setblocking(False)
            connection.connect_ex(("127.0.0.1", service.port))
        yield


def test_with_few_files_a_flood_of_connections_is_taken_in_silence(
    serve: Callable[..., Service], tmp_path: Path
) -> None:
    with open(tmp_path / "log", "wb") as log:
        service = serve(program=FEW_FILES, log=log)
        for _ in range(3):
            with flood(service, 400):
                assert alive(service).status == 200
                assert service.tag().status == 200
        assert alive(service).status == 200
        assert service.stop() == 0
    [line] = (tmp_path / "log").read_text(encoding="utf-8").splitlines()
    assert "connections instead of 800" in line
    assert "ulimit -n" in line


def test_too_few_files_for_any_connection_are_told(model_directory: Path) -> None:
    done = subprocess.run(
        ["sh", "-c", 'ulimit -n 20 && exec "$@"', "sh", *PROGRAM, "serve", str(model_directory), "--port", "0"],
        capture_output=True,
        text=True,
        timeout=WAIT,
    )
    assert done.returncode == 1
    assert "raise the limit (`ulimit -n`)" in done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="the limits of another process are set elsewhere otherwise")
def test_where_no_file_is_left_connections_wait_and_are_served_later(
    serve: Callable[..., Service], tmp_path: Path
) -> None:
    import resource

    with open(tmp_path / "log", "wb") as log:
        service = serve(log=log)
        assert alive(service).status == 200
        before = resource.prlimit(service.process.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(service.process.pid, resource.RLIMIT_NOFILE, (3, before[1]))
        with ExitStack() as stack:
            waiting = [stack.enter_context(service.connect()) for _ in range(20)]
            for connection in waiting:
                connection.sendall(ALIVE)
            time.sleep(3.0)
            resource.prlimit(service.process.pid, resource.RLIMIT_NOFILE, before)
            assert {read_answer(connection).status for connection in waiting} == {200}
        assert service.stop() == 0
    [line] = (tmp_path / "log").read_text(encoding="utf-8").splitlines()
    assert line == "new connections have to wait: Too many open files"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_signal_ends_it_although_a_model_does_not_come_to_an_end(
    serve: Callable[..., Service], tmp_path: Path, number: int, code: int
) -> None:
    with open(tmp_path / "log", "wb") as log:
        service = serve("--max-seconds", "2", program=(sys.executable, "-c", SLOW_MODEL), log=log)
        assert service.tag().status == 200
        with service.connect() as connection:
            connection.sendall(post_bytes("/v1/tag", b'{"text": "never"}'))
            time.sleep(0.5)
            service.process.send_signal(number)
            # Its client is told, before the service ends without the thread.
            assert read_answer(connection).code == "deadline_passed"
        assert service.process.wait(SOON) == code
    assert "longtail-scoring did not stop in time; ending without it" in (tmp_path / "log").read_text(encoding="utf-8")
