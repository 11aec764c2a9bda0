"""`run`: serve the application with uvicorn on one socket until a signal arrives."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import errno
import ipaddress
import logging
import os
import signal
import socket
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from types import FrameType
from typing import Any

import uvicorn

from longtail.errors import Unavailable
from longtail.files import PathName
from longtail.serve.accepting import accept, allow_files, free_files, share_files
from longtail.serve.app import create_app
from longtail.serve.connections import connection_class
from longtail.serve.limits import Limits

_log = logging.getLogger(__name__)

_BACKLOG = 1024
_GRACE = 30
_TAKEN_AWAY = 1.0  # seconds
_OWN_NAMES = ("localhost", "127.0.0.1", "[::1]")


def run(
    models: Mapping[str, PathName],
    *,
    host: str = "127.0.0.1",
    port: int = 8080,
    limits: Limits | None = None,
    token: str | None = None,
    hosts: Collection[str] = (),
    feedback: PathName | None = None,
    access_log: bool = False,
    started: Callable[[str], None] | None = None,
) -> int:
    """Serve `models` until SIGTERM or SIGINT, then finish the requests in progress.

    On SIGHUP, new versions of the models take the place of the old ones, without a pause. A request can do the same if
    there is a token, or if the service is on loopback.

    Parameters
    ----------
    models, limits, token, feedback
        As for `create_app`.
    host, port
        The address to listen on; port 0 chooses a free port.
    hosts : collection of str
        Further allowed values of the `Host` header. A service on loopback without a token allows only these and the
        names of the machine itself, because a foreign web page can point its own name at this machine to read the
        answers. Other services allow every name.
    access_log : bool
        Log a line for each request.
    started : callable or None
        Called with the address once the service accepts requests.

    Returns
    -------
    int
        The number of the signal that ended the service.

    Raises
    ------
    Unavailable
        If the address is in use or does not belong to this machine, or if the process may open too few files.
    """
    limits = limits or Limits()
    allow_files(limits.connections)
    listener = _listen(host, port)
    with contextlib.closing(listener):
        on_loopback = _is_loopback(listener.getsockname()[0])
        known = (*_OWN_NAMES, host, *hosts) if token is None and on_loopback else None
        reload = token is not None or on_loopback
        app = create_app(models, limits=limits, token=token, hosts=known, feedback=feedback, reload=reload)
        connections, at_once = share_files(limits.connections, free_files())
        limits = dataclasses.replace(limits, connections=connections)
        config = uvicorn.Config(
            app,
            http=connection_class(limits, app.state.occupancy, app.state.measures),
            ws="none",
            loop="asyncio",
            lifespan="on",
            log_config=None,
            log_level="warning",
            access_log=access_log,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=max(1, round(limits.header_seconds)),
            timeout_graceful_shutdown=_GRACE,
        )
        if access_log:
            _log_requests()
        tell = partial(started, _address(host, listener)) if started else None
        server = _Server(config, at_once, app.state.reload, tell)
        server.run(sockets=[listener])
    if server.failure is not None:
        raise server.failure
    return server.ended_by


def _has_terminal() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | getattr(os, "O_NOCTTY", 0)))
    except OSError:
        return False
    return True


def _ignores_hang_up() -> bool:
    """Whether the service was started to outlive its terminal, as `nohup` does."""
    return hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) == signal.SIG_IGN


class _Server(uvicorn.Server):
    """Accepts connections itself, calls `tell` when it is up, and records the signal instead of raising it again."""

    def __init__(
        self, config: uvicorn.Config, at_once: int, reload: Callable[[], None], tell: Callable[[], None] | None
    ) -> None:
        super().__init__(config)
        self._at_once = at_once
        self._reload = reload
        self._ends_with_terminal = _has_terminal() and not _ignores_hang_up()
        self._tell = tell
        self._accepting: list[asyncio.Task[None]] = []
        self.ended_by = 0
        self.failure: BaseException | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=[])
        self._accepting = [
            asyncio.create_task(accept(listener, self._protocol, self._at_once)) for listener in sockets or ()
        ]
        for task in self._accepting:
            task.add_done_callback(self._end_if_failed)
        if hasattr(signal, "SIGHUP"):
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self._hang_up)
        if self._tell is not None:
            self._tell()

    def _hang_up(self) -> None:
        """Load new versions; but when the terminal of the service was closed, the signal means the end."""
        if not self._end_without_terminal():
            # The system sends the signal a moment before it takes the terminal away.
            asyncio.get_running_loop().call_later(_TAKEN_AWAY, self._end_without_terminal)
            self._reload()

    def _end_without_terminal(self) -> bool:
        ends = self._ends_with_terminal and not _has_terminal()
        if ends:
            self.handle_exit(signal.SIGHUP, None)
        return ends

    def _end_if_failed(self, accepting: asyncio.Task[None]) -> None:
        """End a service that cannot accept connections any more, so that a supervisor can restart it."""
        if not accepting.cancelled() and (error := accepting.exception()) is not None:
            _log.error("cannot accept connections any more, ending the service: %s: %s", type(error).__name__, error)
            self.failure = error
            self.should_exit = True

    def _protocol(self) -> asyncio.Protocol:
        make: Any = self.config.http_protocol_class
        protocol: asyncio.Protocol = make(self.config, self.server_state, self.lifespan.state)
        return protocol

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for task in self._accepting:
            task.cancel()
        await asyncio.wait(self._accepting)
        await super().shutdown(sockets=sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.ended_by = self.ended_by or sig
        super().handle_exit(sig, frame)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach `host`.

    >>> is_loopback("127.0.0.1"), is_loopback("LOCALHOST"), is_loopback("127.1"), is_loopback("0.0.0.0")
    (True, True, True, False)
    """
    try:
        return _is_loopback(_resolve(host, 0)[-1][0])
    except (OSError, UnicodeError):
        return False


def _is_loopback(address: str) -> bool:
    found = ipaddress.ip_address(address.partition("%")[0])
    return (getattr(found, "ipv4_mapped", None) or found).is_loopback


def _resolve(host: str, port: int) -> Any:
    """Family, type, protocol, canonical name and address of the socket to listen on."""
    return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]


def _log_requests() -> None:
    lines = logging.StreamHandler()
    lines.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    logger = logging.getLogger("uvicorn.access")
    logger.addHandler(lines)
    logger.setLevel(logging.INFO)


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = _resolve(host, port)
        listener = socket.socket(family, kind, protocol)
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a valid host name"
        raise Unavailable(f"cannot listen on {host}: {reason}; give an address of this machine") from None
    try:
        if os.name == "posix":  # on Windows it would let two services share a port
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        advice = "choose another port with --port, or any free one with --port 0"
        if error.errno == errno.EADDRNOTAVAIL:
            advice = "give an address of this machine with --host"
        raise Unavailable(f"cannot listen on {host}, port {port}: {error.strerror}; {advice}") from None
    return listener


def _address(host: str, listener: socket.socket) -> str:
    port = listener.getsockname()[1]
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"
