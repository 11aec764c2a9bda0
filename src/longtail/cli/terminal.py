"""`Terminal`: what a command prints besides its results, all of it on standard error.

These are lines about the work, the log and warnings of the library, and progress: bars on a terminal, else a line every
few seconds. All output passes through `guarded_streams`, which removes terminal control characters from texts.
"""

from __future__ import annotations

import logging
import os
import sys
import time
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO, cast

import click

from longtail.errors import Unavailable, reason
from longtail.printable import printable, printable_lines
from longtail.progress import Advance, listening

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.progress import Progress
    from rich.segment import Segment

_SECONDS_BETWEEN_LINES = 10.0


class _Guarded:
    """A stream that disarms what is written to it.

    Parameters
    ----------
    stream : text stream
    optional : bool
        Continue without the stream if it cannot be written to: a full disk, a closed pipe.
    styled : bool
        Write the text as it is: it comes from rich, and is disarmed already.
    """

    # If the stream is ASCII or a console, click would write to its buffer, past the guard.
    buffer = None

    def __init__(self, stream: TextIO, optional: bool, styled: bool = False) -> None:
        self.stream = stream
        self.optional = optional
        self._styled = styled

    def write(self, text: Any) -> int:
        if text and isinstance(text, bytes):  # for completions; click expects an error for empty bytes
            self.write_bytes(text)
            return len(text)
        shown = text if self._styled else printable_lines(text)
        if shown:  # click tests a stream with an empty text, and hides the error of a full disk
            with self._writing():
                self.stream.write(shown)
                self.stream.flush()  # bytes that follow would overtake buffered text
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        self.write("".join(lines))

    def write_bytes(self, content: bytes) -> None:
        """Write text in UTF-8; only a terminal gets it in its own encoding."""
        if self.stream.isatty():
            self.write(content.decode("utf-8", "replace"))
            return
        with self._writing():
            self.stream.buffer.write(content)

    def flush(self) -> None:
        with self._writing():
            self.stream.flush()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            # The interpreter must not try to write the rest of the buffer when it exits.
            with open(os.devnull, "wb") as nowhere:
                os.dup2(nowhere.fileno(), self.stream.fileno())
            if self.optional:
                return
            if isinstance(error, BrokenPipeError):
                raise
            raise Unavailable(f"cannot write to standard output: {reason(error)}") from None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextmanager
def guarded_streams() -> Iterator[None]:
    """Keep terminal control characters from standard output and standard error.

    Standard error is optional: work does not fail because it cannot be reported. Output to a stream that was closed
    before the program began (None) is discarded.
    """
    before = sys.stdout, sys.stderr
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        sys.stdout = cast(TextIO, _Guarded(before[0] or nowhere, optional=False))
        sys.stderr = cast(TextIO, _Guarded(before[1] or nowhere, optional=True))
        try:
            yield
        finally:
            sys.stdout, sys.stderr = before


class Terminal:
    """Prints messages for the person at the terminal.

    Parameters
    ----------
    quiet : bool
        Print nothing; errors are printed elsewhere.
    """

    def __init__(self, quiet: bool = False) -> None:
        self.quiet = quiet
        self._hidden: set[str] | None = set()
        self._bars: Progress | None = None

    def say(self, text: str) -> None:
        """Print a line about the work."""
        if self.quiet:
            return
        text = printable(text)
        if self._bars is not None and self._bars.tasks:
            self._bars.console.print(text, markup=False, highlight=False, soft_wrap=True)
        else:
            click.echo(text, err=True)

    def outlive_reader(self) -> None:
        """Continue when standard output is closed or full: the result of the command is not what it prints."""
        if isinstance(sys.stdout, _Guarded):
            sys.stdout.optional = True

    def summarize(self, text: str) -> None:
        """Print a line about the result on standard output."""
        if not self.quiet:
            click.echo(printable(text))

    def hide_progress(self, description: str | None = None) -> None:
        """Stop showing the progress of tasks with this name, or of all."""
        if description is None:
            self._hidden = None
        elif self._hidden is not None:
            self._hidden.add(description)

    @contextmanager
    def working(self) -> Iterator[Terminal]:
        """Print the progress, the log and the warnings of the library."""
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
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                TaskProgressColumn(),
                TimeRemainingColumn(compact=True),
                TextColumn("[dim]left"),
                console=console(error=True),
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
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
    """Progress without a terminal: a line every few seconds, none for short work."""

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
    """Prints the log of the library."""

    def __init__(self, terminal: Terminal) -> None:
        super().__init__()
        self._terminal = terminal

    def emit(self, record: logging.LogRecord) -> None:
        for line in record.getMessage().split("\n"):
            self._terminal.say(line)


def console(error: bool = False) -> Console:
    """A rich console on the current standard output or standard error; it disarms texts before it styles them."""
    from rich.console import Console

    class Disarming(Console):
        def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
            for segment in super().render(renderable, options):
                yield segment if segment.control else segment._replace(text=printable_lines(segment.text))

    stream: Any = sys.stderr if error else sys.stdout
    file = _Guarded(stream.stream, stream.optional, styled=True) if isinstance(stream, _Guarded) else stream
    return Disarming(stderr=error, highlight=False, file=cast(TextIO, file))


def on_terminal() -> bool:
    """Whether standard output is a terminal."""
    return sys.stdout.isatty()
