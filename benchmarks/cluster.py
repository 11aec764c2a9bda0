"""A Dask scheduler and workers as processes on loopback, which can be killed, and a proxy that counts their bytes."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Self

import psutil

HOST = "127.0.0.1"
PATIENCE = 60  # seconds to wait for the scheduler and its workers
_DASK = [sys.executable, "-m", "dask"]


def digest_of(model: Path) -> str:
    """The first digits of a SHA-256 over all array files of a model."""
    digest = sha256()
    for path in sorted(model.glob("*.npy")):
        digest.update(path.name.encode())
        with open(path, "rb") as file:
            while block := file.read(2**24):
                digest.update(block)
    return digest.hexdigest()[:12]


def free_port() -> int:
    """A port of loopback that nobody uses."""
    with socket.socket() as free:
        free.bind((HOST, 0))
        port: int = free.getsockname()[1]
    return port


class Cluster:
    """A scheduler behind a proxy, and single-threaded workers; the block of ``with`` ends them."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._port = folder, free_port()
        self._scheduler: subprocess.Popen[bytes] | None = None
        self._workers: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        with ExitStack() as opened:
            self.address, self.bytes = opened.enter_context(counting_proxy(self._port))
            self._opened = opened.pop_all()
        self.start_scheduler()
        return self

    def start_scheduler(self, **env: str) -> None:
        arguments = ["--host", HOST, "--port", str(self._port), "--dashboard-address", f"{HOST}:0"]
        self._scheduler = self._start(["scheduler", *arguments], env)
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                socket.create_connection((HOST, self._port)).close()
            except OSError:
                if not self.is_running() or time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
            else:
                break

    def start_worker(self, *options: str, inside: Sequence[str] = (), **env: str) -> None:
        """Start a worker with more options and variables of the environment, perhaps inside another command."""
        own = self._folder / f"worker{len(self._workers)}"
        fixed = ["--host", HOST, "--nthreads", "1", "--no-dashboard", "--local-directory", str(own)]
        self._workers.append(self._start(["worker", self.address, *fixed, *options], env, inside))

    def _start(
        self, arguments: list[str], env: Mapping[str, str], inside: Sequence[str] = ()
    ) -> subprocess.Popen[bytes]:
        command = [*inside, *_DASK, *arguments]
        with open(self._folder / "cluster.log", "ab") as log:
            return subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, **env})

    def workers(self, n_workers: int) -> list[psutil.Process]:
        """The processes that do the work, as soon as there are `n_workers` of them."""
        from distributed import Client

        with Client(self.address, timeout=PATIENCE, set_as_default=False) as client:  # type: ignore[no-untyped-call]
            client.wait_for_workers(n_workers, timeout=PATIENCE)
            return [psutil.Process(pid) for pid in client.run(os.getpid).values()]  # type: ignore[no-untyped-call]

    def kill_worker(self) -> None:
        """Kill the process of the worker that has lived longest."""
        found = [process for each in self._workers for process in _living(each)]
        if found:
            min(found, key=psutil.Process.create_time).kill()

    def kill_scheduler(self) -> None:
        """Kill the scheduler; its workers are ended too, since they cannot work for another."""
        assert self._scheduler is not None
        self._scheduler.kill()
        self._scheduler.wait()
        self.end_workers()

    def suspend_scheduler(self) -> None:
        """Stop the scheduler without closing its connections."""
        assert self._scheduler is not None
        self._scheduler.send_signal(signal.SIGSTOP)

    def is_running(self) -> bool:
        """Whether the scheduler lives."""
        return self._scheduler is not None and self._scheduler.poll() is None

    def end_workers(self) -> None:
        for each in self._workers:
            for process in [*_living(each), each]:
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            each.wait()
        self._workers.clear()

    def __exit__(self, *_: object) -> None:
        self.kill_scheduler()
        self._opened.close()


def _living(worker: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """The process that works: the child of a nanny, or the process itself."""
    if worker.poll() is not None:
        return []
    nanny = psutil.Process(worker.pid)
    if "--no-nanny" in nanny.cmdline():
        return [nanny]
    return [child for child in nanny.children() if "resource_tracker" not in " ".join(child.cmdline())]


class Counted:
    """What has gone through a proxy, in bytes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.sent = self.received = 0

    def add(self, size: int, to_server: bool) -> None:
        with self._lock:
            if to_server:
                self.sent += size
            else:
                self.received += size

    @property
    def total(self) -> int:
        return self.sent + self.received


@contextmanager
def counting_proxy(port: int) -> Iterator[tuple[str, Counted]]:
    """The address of a proxy for a server on loopback, and the bytes in both directions."""
    counted = Counted()

    def forward(source: socket.socket, target: socket.socket, to_server: bool) -> None:
        with suppress(OSError):
            while block := source.recv(2**16):
                counted.add(len(block), to_server)
                target.sendall(block)
        for each in (source, target):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def accept() -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                try:
                    server = socket.create_connection((HOST, port))
                except OSError:  # the scheduler was killed
                    client.close()
                    continue
                for arguments in ((client, server, True), (server, client, False)):
                    threading.Thread(target=forward, args=arguments, daemon=True).start()

    with socket.create_server((HOST, 0)) as listener:
        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield f"tcp://{HOST}:{listener.getsockname()[1]}", counted
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()
