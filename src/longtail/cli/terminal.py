"""`Terminal`: what a command tells besides its results, all of it on standard error.

Lines about the work, the library's log and warnings, and progress: bars on a terminal, else a line now and then.
"""

from __future__ import annotations

import logging
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from longtail.progress import Advance, listening

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

_SECONDS_BETWEEN_LINES = 10.0


def counted(count: int, singular: str, plural: str = "") -> str:
    """A number of things in words; the plural has an s more unless told.

    Examples
    --------
    >>> counted(1, "row"), counted(2000, "row"), counted(0, "class", "classes")
    ('1 row', '2,000 rows', '0 classes')
    """
    return f"{count:,} {singular if count == 1 else plural or f'{singular}s'}"


class Terminal:
    """Speaks to the person at the terminal, or keeps quiet.

    Parameters
    ----------
    quiet : bool
        Tell nothing; errors are not told here.
    """

    def __init__(self, quiet: bool = False) -> None:
        self.quiet = quiet
        self._hidden: set[str] | None = set()
        self._bars: Progress | None = None

    def say(self, text: str) -> None:
        """A line about the work."""
        if self.quiet:
            return
        if self._bars is not None and self._bars.tasks:
            self._bars.console.print(text, markup=False, highlight=False, soft_wrap=True)
        else:
            click.echo(text, err=True)

    def summarize(self, text: str) -> None:
        """A line about what was done, on standard output."""
        if not self.quiet:
            click.echo(text)

    def hide_progress(self, description: str | None = None) -> None:
        """Show no progress any more of the tasks of this name, or of any."""
        if description is None:
            self._hidden = None
        elif self._hidden is not None:
            self._hidden.add(description)

    @contextmanager
    def working(self) -> Iterator[Terminal]:
        """Listen to the library: its progress, its log, its warnings."""
        logger = logging.getLogger("longtail")
        handler = _Lines(self)
        level = logger.level
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
        try:
            with warnings.catch_warnings(), listening(self._task):
                warnings.showwarning = lambda message, *_, **__: self.say(f"note: {' '.join(str(message).split())}")
                yield self
        finally:
            logger.removeHandler(handler)
            logger.setLevel(level)

    @contextmanager
    def _task(self, description: str, total: int | None) -> Iterator[Advance]:
        if self.quiet or self._hidden is None or description in self._hidden:
            yield lambda amount, note="": None
        elif sys.stderr.isatty():
            with self._bar(description, total) as advance:
                yield advance
        else:
            yield _LinesOfProgress(self, description, total).advance

    @contextmanager
    def _bar(self, description: str, total: int | None) -> Iterator[Advance]:
        from rich.progress import (
            BarColumn,
            Progress,
            SpinnerColumn,
            TaskProgressColumn,
            TextColumn,
            TimeRemainingColumn,
        )

        if self._bars is None:
            self._bars = Progress(
                SpinnerColumn(),
                TextColumn("{task.description}"),
                BarColumn(),
                TaskProgressColumn(),
                TimeRemainingColumn(compact=True),
                TextColumn("[dim]left"),
                console=console(error=True),
                transient=True,
            )
        bars = self._bars
        bars.start()
        task = bars.add_task(description, total=total)

        def advance(amount: int, note: str = "") -> None:
            bars.update(task, advance=amount, description=f"{description}: {note}" if note else None)

        try:
            yield advance
        finally:
            bars.remove_task(task)
            if not bars.tasks:
                bars.stop()


class _LinesOfProgress:
    """Progress where there is no terminal: a line every few seconds, none for short work."""

    def __init__(self, terminal: Terminal, description: str, total: int | None) -> None:
        self._terminal = terminal
        self._description = description
        self._total = total
        self._done = 0
        self._begun = self._told = time.monotonic()

    def advance(self, amount: int, note: str = "") -> None:
        self._done += amount
        now = time.monotonic()
        if now - self._told < _SECONDS_BETWEEN_LINES or not self._total or self._done <= 0:
            return
        self._told = now
        left = (now - self._begun) * (self._total - self._done) / self._done
        told = f"{self._description}: {note}" if note else self._description
        self._terminal.say(f"{told}: {self._done / self._total:.0%}, about {left:.0f} s left")


class _Lines(logging.Handler):
    """The library's log, a line for a record."""

    def __init__(self, terminal: Terminal) -> None:
        super().__init__()
        self._terminal = terminal

    def emit(self, record: logging.LogRecord) -> None:
        self._terminal.say(record.getMessage())


def console(error: bool = False) -> Console:
    """A rich console on standard output or standard error as they are now."""
    from rich.console import Console

    return Console(stderr=error, highlight=False, file=sys.stderr if error else sys.stdout)


def on_terminal() -> bool:
    """Whether standard output is read by a person."""
    return sys.stdout.isatty()
