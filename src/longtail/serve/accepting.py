"""`accept`: accept connections within the limit on open files.

Each connection is an open file, and the system limits these. asyncio accepts every connection regardless, and logs a
stack trace for each attempt once no file is left. Here, connections then wait in the queue of the system.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress

from longtail.errors import Unavailable

_log = logging.getLogger(__name__)

_MOST_AT_ONCE = 1000
# Files besides connections and models; the models are open already.
_OTHER_FILES = 16
# Assumed number of open files where the system does not list them.
_LIKELY_OPEN = 50
# Files for connections that are being opened or closed, if there are enough.
_IN_TRANSIT = 100
_SECONDS_UNTIL_RETRY = 1.0
_SECONDS_BETWEEN_WARNINGS = 60.0


async def accept(listener: socket.socket, protocol: Callable[[], asyncio.Protocol], at_once: int) -> None:
    """Accept the connections of `listener` until cancelled.

    Parameters
    ----------
    listener : socket
    protocol : callable
        Makes the protocol of a connection.
    at_once : int
        Maximum number of connections to accept in one turn of the event loop. One would be too few: under load a turn
        is long, and new clients would time out.
    """
    loop = asyncio.get_running_loop()
    listener.setblocking(False)
    warned = -math.inf
    while True:
        try:
            accepted = [(await loop.sock_accept(listener))[0]]
            try:
                while len(accepted) < at_once:
                    accepted.append(listener.accept()[0])
            except OSError:  # no more are waiting, or the next round shows why not
                pass
            begun = (loop.connect_accepted_socket(protocol, each) for each in accepted)
            await asyncio.gather(*begun, return_exceptions=True)
        except ConnectionError:
            pass  # the client left before its connection was accepted
        except OSError as error:
            if time.monotonic() - warned >= _SECONDS_BETWEEN_WARNINGS:
                warned = time.monotonic()
                _log.warning("new connections have to wait: %s", error.strerror)
            await asyncio.sleep(_SECONDS_UNTIL_RETRY)


def allow_files(connections: int) -> None:
    """Raise the limit on open files for this number of connections, as far as the system allows."""
    if sys.platform == "win32":
        return
    import resource

    count = 2 * connections + _IN_TRANSIT
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < count:
        most = count if hard == resource.RLIM_INFINITY else min(count, hard)
        with suppress(OSError, ValueError):  # macOS has a limit that it does not report
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def free_files() -> float:
    """The number of files that the process may still open."""
    if sys.platform == "win32":
        return math.inf
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        opened = len(os.listdir("/dev/fd"))
    except OSError:  # for example in a container without /proc
        opened = _LIKELY_OPEN
    return math.inf if soft == resource.RLIM_INFINITY else soft - opened


def share_files(connections: int, free: float) -> tuple[int, int]:
    """Divide `free` files: the number of connections to keep, at most `connections`, and to accept at once.

    A new connection counts twice: it needs its own file, and the one it replaces may not be closed yet.

    >>> share_files(800, math.inf), share_files(800, 1000), share_files(800, 56)
    ((800, 1000), (800, 92), (20, 10))
    """
    room = int(min(free, connections + 2 * _MOST_AT_ONCE + _OTHER_FILES)) - _OTHER_FILES
    kept = min(connections, room - min(_IN_TRANSIT, room // 2))
    at_once = (room - kept) // 2
    if kept < 1 or at_once < 1:
        raise Unavailable(
            f"the process can open only {free:.0f} more files, too few for connections; raise the limit (`ulimit -n`)"
        )
    if kept < connections:
        _log.warning(
            "the limit on open files allows %d connections instead of %d; raise the limit (`ulimit -n`) for more",
            kept,
            connections,
        )
    return kept, at_once
