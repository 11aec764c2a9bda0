"""`Terminal`: what a command tells besides its results, all of it on standard error.

Lines about the work, the library's log and warnings, and progress: bars on a terminal, else a line now and then.
Everything that is printed passes through `guarded_streams`, where texts from files lose what would steer a terminal.
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
from longtail.printable import counted as counted
from longtail.printable import printable, printable_lines
from longtail.progress import Advance, listening

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.progress import Progress
    from rich.segment import Segment

_SECONDS_BETWEEN_LINES = 10.0


class _Guarded:
    """A stream that disarms what is written to it; one that is `optional` may be full, or have lost its reader.

    Parameters
    ----------
    stream : text stream
    optional : bool
        Go on without the stream once it cannot be written to.
    styled : bool
        Take the text as it is: it is our own, and already disarmed between its colours.
    """

    # Click writes to the buffer of a stream where it finds one, past the guard, if the stream is ASCII or a console.
    buffer = None

    def __init__(self, stream: TextIO, optional: bool, styled: bool = False) -> None:
        self.stream = stream
        self.optional = optional
        self._styled = styled

    def write(self, text: Any) -> int:
        if text and isinstance(text, bytes):  # how click completes a command line; of no bytes it expects an error
            self.write_bytes(text)
            return len(text)
        shown = text if self._styled else printable_lines(text)
        if shown:  # click tries a stream with an empty text, and hides the error of a full disk
            with self._writing():
                self.stream.write(shown)
                self.stream.flush()  # bytes that follow go past the text that would wait
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        self.write("".join(lines))

    def write_bytes(self, content: bytes) -> None:
        """Write text in UTF-8, whatever the encoding of the terminal; a program that reads it gets it as it is."""
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
            # What is still buffered has nowhere to go; the interpreter must not try to write it on its way out.
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
    """Let nothing reach standard output or standard error that steers a terminal, whoever prints it.

    Work does not fail because nobody can be told about it, so standard error is optional. A stream that was closed
    before the program began is None; what is written to it goes nowhere.
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
        text = printable(text)
        if self._bars is not None and self._bars.tasks:
            self._bars.console.print(text, markup=False, highlight=False, soft_wrap=True)
        else:
            click.echo(text, err=True)

    def outlive_reader(self) -> None:
        """Go on working when standard output is closed or full: what the command makes is not what it prints."""
        if isinstance(sys.stdout, _Guarded):
            sys.stdout.optional = True

    def summarize(self, text: str) -> None:
        """A line about what was done, on standard output."""
        if not self.quiet:
            click.echo(printable(text))

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
        for line in record.getMessage().split("\n"):
            self._terminal.say(line)


def console(error: bool = False) -> Console:
    """A rich console on standard output or standard error as they are now; it disarms texts before it styles them."""
    from rich.console import Console

    class Disarming(Console):
        def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
            for segment in super().render(renderable, options):
                yield segment if segment.control else segment._replace(text=printable_lines(segment.text))

    stream: Any = sys.stderr if error else sys.stdout
    file = _Guarded(stream.stream, stream.optional, styled=True) if isinstance(stream, _Guarded) else stream
    return Disarming(stderr=error, highlight=False, file=cast(TextIO, file))


def on_terminal() -> bool:
    """Whether standard output is read by a person."""
    return sys.stdout.isatty()
