"""`accept`: take connections, as many as the process may open files for.

Each connection is a file, and a process may open only so many. asyncio takes every connection that waits, counted or
not, and where there is no file left it logs a stack trace for each attempt; here connections that there is no file for
wait in the system's queue.
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
# Files that the service may open besides its models, which are open already, and connections.
_OTHER_FILES = 16
# Files that are taken to be open where the system does not list them.
_LIKELY_OPEN = 50
# Files for connections that are not counted yet or not closed yet, where there are plenty.
_ON_THE_WAY = 100
_SECONDS_UNTIL_RETRY = 1.0
_SECONDS_BETWEEN_COMPLAINTS = 60.0


async def accept(listener: socket.socket, protocol: Callable[[], asyncio.Protocol], at_once: int) -> None:
    """Take the connections that come to `listener`, until cancelled.

    Parameters
    ----------
    listener : socket
    protocol : callable
        Makes the protocol of a connection.
    at_once : int
        How many to take before those have begun. One at a time would be too slow: turns of the event loop are long
        under load, and new clients would give up, neither served nor refused.
    """
    loop = asyncio.get_running_loop()
    listener.setblocking(False)
    complained = -math.inf
    while True:
        try:
            taken = [(await loop.sock_accept(listener))[0]]
            try:
                while len(taken) < at_once:
                    taken.append(listener.accept()[0])
            except OSError:  # no more wait, or no more can be taken: the next round tells
                pass
            begun = (loop.connect_accepted_socket(protocol, each) for each in taken)
            await asyncio.gather(*begun, return_exceptions=True)
        except ConnectionError:
            pass  # the client has left before its connection was taken
        except OSError as error:
            if time.monotonic() - complained >= _SECONDS_BETWEEN_COMPLAINTS:
                complained = time.monotonic()
                _log.warning("new connections have to wait: %s", error.strerror)
            await asyncio.sleep(_SECONDS_UNTIL_RETRY)


def allow_files(connections: int) -> None:
    """Let the process open the files of so many connections and of models, as far as the system agrees."""
    if sys.platform == "win32":
        return
    import resource

    count = 2 * connections + _ON_THE_WAY
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < count:
        most = count if hard == resource.RLIM_INFINITY else min(count, hard)
        with suppress(OSError, ValueError):  # macOS refuses what is beyond a limit that it does not tell
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def free_files() -> float:
    """How many more files the process may open."""
    if sys.platform == "win32":
        return math.inf
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        opened = len(os.listdir("/dev/fd"))
    except OSError:  # not everywhere, such as in a container without /proc
        opened = _LIKELY_OPEN
    return math.inf if soft == resource.RLIM_INFINITY else soft - opened


def share_files(connections: int, free: float) -> tuple[int, int]:
    """How many connections to keep, at most `connections`, and how many to take at once, with so many free files.

    A new connection may need its own file and that of the one it replaces until that is closed: two each.

    >>> share_files(800, math.inf), share_files(800, 1000), share_files(800, 56)
    ((800, 1000), (800, 92), (20, 10))
    """
    room = int(min(free, connections + 2 * _MOST_AT_ONCE + _OTHER_FILES)) - _OTHER_FILES
    kept = min(connections, room - min(_ON_THE_WAY, room // 2))
    at_once = (room - kept) // 2
    if kept < 1 or at_once < 1:
        raise Unavailable(
            f"only {free:.0f} more files can be opened, which is too few for connections; raise the limit (`ulimit -n`)"
        )
    if kept < connections:
        _log.warning(
            "the limit on open files allows %d connections instead of %d; raise it (`ulimit -n`) for more",
            kept,
            connections,
        )
    return kept, at_once
