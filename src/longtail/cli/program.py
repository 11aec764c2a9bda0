"""The program: commands are loaded on use, and errors become messages and exit codes in one place.

0 is success, 1 an error of input or environment, 2 wrong usage, 130 an interrupt, 141 a closed pipe.
"""

from __future__ import annotations

import difflib
import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import click

from longtail.cli.advice import with_advice
from longtail.cli.terminal import Terminal, guarded_streams
from longtail.errors import LongtailError, no_room, reason
from longtail.printable import printable
from longtail.version import __version__

INTERRUPTED = 130
PIPE_CLOSED = 141

# Listing the commands must not import them, so their short descriptions are here.
COMMANDS = {
    "check": "Look at labelled data before training.",
    "prepare": "Turn files of any size into arrays on disk to train on.",
    "plan": "Estimate time, memory and disk of a training.",
    "compare": "Compare learners on held-out rows.",
    "train": "Train a model on labelled texts or features.",
    "update": "Let a model learn new, corrected and removed rows.",
    "assign": "Decide which texts of a group carry which of its labels.",
    "predict": "Tag new texts or rows of features.",
    "evaluate": "Evaluate a model on rows with known labels.",
    "explain": "Show how much each word adds to the score of a label.",
    "labels": "List the labels of a model with their training rows.",
    "tree": "Print or export the label tree of a model.",
    "audit": "Find label sets that a model can never predict.",
    "select": "Select a few labels that represent all.",
    "report": "Write a one-page HTML report on a model.",
    "serve": "Serve a model over HTTP, with a web page to try it.",
    "demo": "Train on an embedded corpus and tag a few sentences.",
    "datasets": "List the named data sets, or download one.",
    "info": "Describe a model, or this installation.",
    "reproduce": "Repeat an experiment of a paper.",
    "completion": "Print the completion script for a shell.",
}


class _Program(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        command: click.Command = import_module(f"longtail.cli.{name}").command
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            near = difflib.get_close_matches(args[0], COMMANDS, n=1)
            meant = f" Did you mean '{near[0]}'?" if near else ""
            ctx.fail(f"No such command '{args[0]}'.{meant}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            return PIPE_CLOSED
        return result


def _hyphenated(token: str) -> str:
    """Normalise an option or a choice: hyphens, blanks and underscores are the same."""
    return token.replace(" ", "-").replace("_", "-")


@click.group(
    cls=_Program, context_settings={"help_option_names": ["-h", "--help"], "token_normalize_func": _hyphenated}
)
@click.option("-q", "--quiet", is_flag=True, help="Print results and errors only.")
@click.version_option(__version__, message="longtail %(version)s")
@click.pass_context
def program(ctx: click.Context, quiet: bool) -> None:
    """Tag texts, or rows of features, with labels from a very large vocabulary, on an ordinary machine.

    Start with `longtail demo`, then try `longtail train notes.jsonl --out model`.
    """
    ctx.obj = ctx.with_resource(Terminal(quiet).working())


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the program and return its exit code; a user sees messages, never a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # never fail on a name that the terminal cannot show
            stream.reconfigure(errors="backslashreplace")
    with guarded_streams():
        return _run(arguments)


def _run(arguments: Sequence[str] | None) -> int:
    wants_traceback = os.environ.get("LONGTAIL_TRACEBACK", "0") not in ("", "0")
    try:
        result = program.main(args=arguments, prog_name="longtail", standalone_mode=False)
        return result if isinstance(result, int) else 0
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort:
        return _fail("interrupted", INTERRUPTED)
    except LongtailError as error:
        if wants_traceback:
            raise
        return _fail(f"error: {_one_line(with_advice(error))}")
    except Exception as error:
        if wants_traceback:
            raise
        if isinstance(error, OSError) and error.filename is not None:
            return _fail(f"error: {error.filename}: {reason(error)}")
        if isinstance(error, OSError) and no_room(error):
            return _fail(f"error: {reason(error)}")
        return _fail(
            f"error: unexpected {type(error).__name__}: {_one_line(error)}; "
            f"set LONGTAIL_TRACEBACK=1 to see the traceback"
        )


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def _fail(message: str, code: int = 1) -> int:
    click.echo(printable(message), err=True)
    return code
