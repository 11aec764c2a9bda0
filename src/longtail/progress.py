"""Progress reports of long work.

The library reports through `task`. A program that opens `listening` receives the reports (the command line draws bars);
by default nobody listens, and reporting costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Protocol


class Advance(Protocol):
    """What a task yields: call it with the amount done since the last call and an optional note on the work."""

    def __call__(self, amount: int, note: str = "") -> None: ...


Listener = Callable[[str, int | None], AbstractContextManager[Advance]]


def _ignore(amount: int, note: str = "") -> None:
    pass


_NOBODY = nullcontext(_ignore)
_listener: ContextVar[Listener | None] = ContextVar("longtail_progress_listener", default=None)

_stage: ContextVar[str] = ContextVar("longtail_progress_stage", default="")


def task(description: str, total: int | None = None) -> AbstractContextManager[Advance]:
    """Open a piece of work; it yields an `Advance`.

    Examples
    --------
    >>> with task("counting", total=3) as advance:
    ...     for _ in range(3):
    ...         advance(1)
    """
    listener = _listener.get()
    return _NOBODY if listener is None else listener(_stage.get() + description, total)


@contextmanager
def stage(name: str) -> Iterator[None]:
    """Prefix the descriptions of the tasks inside the block with `name`, if the same work is done several times.

    Examples
    --------
    >>> with stage("tree 2 of 3"), task("counting", total=1) as advance:  # reported as "tree 2 of 3: counting"
    ...     advance(1)
    """
    token = _stage.set(f"{_stage.get()}{name}: ")
    try:
        yield
    finally:
        _stage.reset(token)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Report the progress of all work inside the block to `listener(description, total)`."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)
