"""The connections of a service that has all the requests it takes, on real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import uvicorn
from uvicorn.server import ServerState

from longtail.serve import Limits
from longtail.serve.connections import connection_class
from longtail.serve.limits import Occupancy
from longtail.serve.measures import Measures
from tests.serve.conftest import post_bytes

WAIT = 30.0
Client = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def talk_to_full_service(limits: Limits, story: Callable[[Client], Awaitable[Any]]) -> Any:
    """What `story` returns; an error if any of its requests gets past the connection."""
    taken: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        taken.append(scope["path"])

    async def tell() -> Any:
        occupancy = Occupancy(1)
        occupancy.enter()
        protocol: Any = connection_class(limits, occupancy, Measures())
        config = uvicorn.Config(app, log_config=None, ws="none")
        state = ServerState()
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: protocol(config, state, {}), "127.0.0.1", 0)
        async with server:
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            try:
                return await story((reader, writer))
            finally:
                writer.close()

    found = asyncio.run(asyncio.wait_for(tell(), WAIT))
    assert not taken
    return found


def head_of(length: int) -> bytes:
    return post_bytes("/v1/tag", b"").replace(b"Content-Length: 0", b"Content-Length: %d" % length)


def test_a_refused_body_is_read_no_further_than_its_limit() -> None:
    async def story(client: Client) -> int:
        _, writer = client
        writer.write(head_of(1_000_000_000))
        sent = 0
        try:
            while sent < 100_000_000:
                writer.write(b"x" * 100_000)
                await writer.drain()
                sent += 100_000
        except ConnectionError:
            pass
        return sent

    assert talk_to_full_service(Limits(body_bytes=200_000), story) < 100_000_000


def test_a_refused_body_that_does_not_come_is_not_waited_for() -> None:
    async def story(client: Client) -> bytes:
        reader, writer = client
        writer.write(head_of(100) + b"{")
        try:
            return await reader.read()
        except ConnectionResetError:
            return b""

    assert talk_to_full_service(Limits(body_seconds=0.1), story) == b""


def test_a_refused_request_may_be_sent_again() -> None:
    async def story(client: Client) -> list[bytes]:
        reader, writer = client
        lines = []
        for _ in range(3):
            writer.write(post_bytes("/v1/tag", b'{"text": "an apple"}'))
            head = await reader.readuntil(b"\r\n\r\n")
            [length] = [line.split(b":")[1] for line in head.split(b"\r\n") if line.startswith(b"content-length")]
            await reader.readexactly(int(length))
            lines.append(head.split(b"\r\n")[0])
        return lines

    assert talk_to_full_service(Limits(), story) == [b"HTTP/1.1 429 Too Many Requests"] * 3
