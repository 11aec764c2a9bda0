"""A small model, the application around it in this process, and real services in processes of their own."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import psutil
import pytest

from longtail import LabelTree, Tagger, TextFeatures

WAIT = 60.0
TOPICS = {
    "fruit": "apple pear plum cherry",
    "weather": "rain sky cloud storm",
    "music": "violin flute drum choir",
    "travel": "train boat bicycle road",
}


def examples() -> tuple[list[str], list[list[str]]]:
    texts, labels = [], []
    for topic, words in TOPICS.items():
        for word in words.split():
            for other in words.split():
                texts.append(f"the {word} and the {other} of today")
                labels.append([topic, f"{topic}/{word}"])
    return texts, labels


@pytest.fixture(scope="session")
def model_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tagger = Tagger(TextFeatures(ngrams=(1, 2), min_df=1), LabelTree(leaf_size=3, random_state=0)).fit(*examples())
    directory = tmp_path_factory.mktemp("served") / "topics"
    tagger.save(directory)
    return directory


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        return str(self.json["error"]["code"])


def read_answer(connection: socket.socket) -> Answer:
    """One answer with a Content-Length, as every answer of the service has."""
    with connection.makefile("rb") as reader:
        line = reader.readline()
        if not line:
            raise ConnectionError("the connection was closed without an answer")
        headers: dict[str, str] = {}
        while (header := reader.readline()) not in (b"\r\n", b""):
            name, _, value = header.decode("latin-1").partition(":")
            headers[name.lower()] = value.strip()
        return Answer(int(line.split()[1]), headers, reader.read(int(headers["content-length"])))


@dataclass(frozen=True)
class Service:
    """A service in a process of its own."""

    process: subprocess.Popen[str]
    port: int

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=WAIT)

    def send(self, data: bytes) -> Answer:
        with self.connect() as connection:
            connection.sendall(data)
            return read_answer(connection)

    def post(self, path: str, content: Any, headers: str = "") -> Answer:
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        return self.send(post_bytes(path, body, headers))

    def tag(self, text: str = "an apple") -> Answer:
        return self.post("/v1/tag", {"text": text})

    def memory(self) -> int:
        return int(psutil.Process(self.process.pid).memory_info().rss)

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(WAIT)


def post_bytes(path: str, body: bytes, headers: str = "") -> bytes:
    head = (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    )
    return (head + headers + "\r\n").encode() + body


PROGRAM = (sys.executable, "-m", "longtail")


def start(
    *arguments: str, program: Sequence[str] = PROGRAM, log: IO[bytes] | int = subprocess.DEVNULL, **environment: str
) -> Service:
    process = subprocess.Popen(
        [*program, "serve", "--port", "0", *arguments],
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
        env={**os.environ, **environment},
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    found = re.search(r"http://[^/]*:(\d+)/", line)
    if found is None:
        process.kill()
        raise AssertionError(f"the service did not start: {line!r}")
    return Service(process, int(found[1]))


@contextmanager
def running(*arguments: str, **options: Any) -> Iterator[Service]:
    service = start(*arguments, **options)
    try:
        yield service
    finally:
        service.process.kill()
        service.process.wait(WAIT)
        assert service.process.stdout is not None
        service.process.stdout.close()


@pytest.fixture
def serve(model_directory: Path) -> Iterator[Callable[..., Service]]:
    """Start a service of the small model; it ends with the test."""
    with ExitStack() as stack:
        yield lambda *arguments, **options: stack.enter_context(running(str(model_directory), *arguments, **options))
