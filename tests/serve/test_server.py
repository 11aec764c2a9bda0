from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from longtail.cli.program import run as program
from tests.serve.conftest import WAIT, Service, post_bytes, read_answer

pytestmark = pytest.mark.slow
posix = pytest.mark.skipif(os.name != "posix", reason="signals are sent otherwise elsewhere")


def many_texts(count: int = 100) -> bytes:
    return json.dumps({"texts": ["the apple and the rain of today " * 100] * count, "k": 20}).encode()


@posix
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_signal_ends_it_after_what_is_in_progress(serve: Callable[..., Service], number: int, code: int) -> None:
    service = serve()
    assert service.tag().status == 200
    connections = [service.connect() for _ in range(4)]
    for connection in connections:
        connection.sendall(post_bytes("/v1/tag", many_texts()))
        # The answer to a second request says that the first has been begun.
    assert service.tag().status == 200
    service.process.send_signal(number)
    for connection in connections:
        with connection:
            answer = read_answer(connection)
            assert answer.status == 200
            assert len(answer.json["results"]) == 100
    assert service.process.wait(WAIT) == code
    with pytest.raises(ConnectionRefusedError):
        service.connect()


@posix
def test_killed_in_the_middle_it_starts_again_without_repair(serve: Callable[..., Service]) -> None:
    service = serve()
    expected = service.tag().json
    halt = threading.Event()

    def ask() -> None:
        while not halt.is_set():
            try:
                service.post("/v1/tag", many_texts(10))
            except (OSError, KeyError, ValueError):
                return

    askers = [threading.Thread(target=ask, daemon=True) for _ in range(3)]
    for asker in askers:
        asker.start()
    assert service.tag().status == 200
    service.process.kill()
    assert service.process.wait(WAIT) == -signal.SIGKILL
    halt.set()
    for asker in askers:
        asker.join(WAIT)
    assert serve().tag().json == expected


def test_without_a_browser_the_address_is_told(model_directory: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "longtail", "serve", str(model_directory), "--port", "0", "--open"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "BROWSER": "no-such-browser", "DISPLAY": "", "WAYLAND_DISPLAY": "", "PATH": ""},
    ) as process:
        assert process.stdout is not None
        end = threading.Timer(WAIT, process.kill)
        end.start()
        try:
            lines = [process.stdout.readline() for _ in range(2)]
        finally:
            end.cancel()
            process.kill()
    [address] = {found[0] for line in lines if (found := re.search(r"http://[^ ]*/", line))}
    assert any(f"open {address} yourself" in line for line in lines)


def test_a_port_in_use_is_a_clear_error(serve: Callable[..., Service], model_directory: Path, capsys: Any) -> None:
    service = serve()
    assert program(["serve", str(model_directory), "--port", str(service.port)]) == 1
    told = capsys.readouterr().err
    assert f"port {service.port}" in told
    assert "--port 0" in told


def test_the_token_comes_from_the_environment_or_a_file(serve: Callable[..., Service], tmp_path: Path) -> None:
    assert serve(LONGTAIL_TOKEN="from-here").tag().status == 401
    (tmp_path / "token").write_text("secret\n", encoding="utf-8")
    service = serve("--token-file", str(tmp_path / "token"))
    assert service.tag().status == 401
    asked = {"text": "an apple"}
    assert service.post("/v1/tag", asked, "Authorization: Bearer secret\r\n").status == 200


def test_a_full_queue_is_told_with_429_and_the_time_to_wait(serve: Callable[..., Service]) -> None:
    service = serve("--max-queued-texts", "1", "--max-batch-texts", "1")
    statuses: list[int] = []
    retries: list[str] = []

    def ask() -> None:
        for _ in range(5):
            answer = service.post("/v1/tag", many_texts(50))
            statuses.append(answer.status)
            if answer.status == 429:
                retries.append(answer.headers["retry-after"])

    askers = [threading.Thread(target=ask) for _ in range(8)]
    for asker in askers:
        asker.start()
    for asker in askers:
        asker.join(WAIT)
    assert set(statuses) == {200, 429}
    assert all(int(retry) >= 1 for retry in retries)
    assert service.tag().status == 200


def test_what_is_refused_for_lack_of_room_may_ask_again_on_its_connection(serve: Callable[..., Service]) -> None:
    service = serve("--max-requests", "2")
    connections = [service.connect() for _ in range(30)]
    for connection in connections:
        connection.sendall(post_bytes("/v1/tag", many_texts(20)))
    answers = [read_answer(connection) for connection in connections]
    refused = [answer for answer in answers if answer.status != 200]
    assert 0 < len(refused) < len(answers)
    assert {(answer.status, answer.code) for answer in refused} == {(429, "too_many_requests")}
    assert {answer.headers.get("connection") for answer in refused} == {None}
    assert {answer.headers["retry-after"] for answer in refused} == {"1"}
    assert all("content-security-policy" in answer.headers for answer in refused)
    for connection in connections:
        with connection:
            connection.sendall(post_bytes("/v1/tag", b'{"text": "an apple"}'))
            assert read_answer(connection).status == 200
    measured = service.send(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").body.decode()
    assert f'longtail_requests_total{{route="/v1/tag",status="429"}} {len(refused)}.0' in measured
    assert "longtail_requests_in_progress 0.0" in measured


def test_on_loopback_the_service_goes_by_the_names_of_the_machine_alone(serve: Callable[..., Service]) -> None:
    def called(service: Service, name: str) -> int:
        return service.send(f"GET /v1/labels HTTP/1.1\r\nHost: {name}\r\n\r\n".encode()).status

    service = serve("--allow-host", "tags.example:8443")
    for name in ("localhost", "LOCALHOST:80", "127.0.0.1:8080", "[::1]", "[::1]:80", "tags.example"):
        assert called(service, name) == 200, name
    for name in ("elsewhere.example", "localhost.elsewhere.example:80", "127.0.0.1.elsewhere.example", "", "::1"):
        assert called(service, name) == 421, name
    assert called(service, "elsewhere.example\r\nHost: localhost") == 421
    assert called(service, "localhost\r\nHost: elsewhere.example") == 421
    assert called(serve("--host", "127.1"), "elsewhere.example") == 421
    assert called(serve(LONGTAIL_TOKEN="secret"), "elsewhere.example") == 401


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ([], 2, "MODEL"),
        (["a/model", "b/model"], 2, "two models have the name 'model'"),
        (["=here"], 2, "NAME=DIRECTORY"),
        (["nothing"], 1, "no model here"),
        (["nothing", "--host", "192.0.2.1"], 1, "cannot listen on 192.0.2.1, port 0"),
        (["nothing", "--host", "192.0.2.1"], 1, "an address of this machine"),
        (["nothing", "--token-file", "empty"], 1, "no token"),
    ],
)
def test_wrong_use_is_told(
    arguments: list[str], code: int, words: str, capsys: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").write_text("\n", encoding="utf-8")
    assert program(["serve", *arguments, *(["--port", "0"] if arguments else [])]) == code
    assert words in capsys.readouterr().err


def test_a_missing_extra_is_told_with_what_installs_it(tmp_path: Path) -> None:
    (tmp_path / "fastapi.py").write_text("raise ModuleNotFoundError('No module', name='fastapi')\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "longtail", "serve", "model"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=WAIT,
    )
    assert done.returncode == 1
    assert "pip install 'longtail[serve]'" in done.stderr
