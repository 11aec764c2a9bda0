"""`longtail serve`: models over HTTP, and a page in the browser."""

from __future__ import annotations

import os
import signal
import sys
import threading
import webbrowser
from pathlib import Path
from typing import Any

import click

from longtail.cli.inputs import FiniteRange
from longtail.cli.terminal import Terminal
from longtail.errors import InvalidInput

_TOKEN = "LONGTAIL_TOKEN"
_LIMITS = {
    "body_bytes": "Bytes of a request's body.",
    "body_seconds": "Seconds for it to arrive.",
    "texts": "Texts in a request.",
    "characters": "Characters of a text.",
    "k": "Labels for a text.",
    "filter_labels": "Names in allow, and in deny.",
    "explained_labels": "Labels in a request for explanations.",
    "words": "Words named in an explanation.",
    "found_labels": "Labels in an answer of the label search.",
    "queued_texts": "Texts that may wait.",
    "batch_texts": "Texts scored together.",
    "requests": "Requests in progress.",
    "held_bytes": "Bytes of all their bodies.",
    "seconds": "Seconds until a request must be answered.",
    "header_bytes": "Bytes of a request's headers.",
    "header_seconds": "Seconds for them to arrive.",
    "connections": "Open connections.",
}


def _limit_options(function: Any) -> Any:
    for name, about in reversed(_LIMITS.items()):
        kind = FiniteRange(min=0, min_open=True) if name.endswith("seconds") else click.IntRange(min=1)
        option = click.option(f"--max-{name.replace('_', '-')}", f"limit_{name}", type=kind, metavar="N", help=about)
        function = option(function)
    return function


@click.command()
@click.argument("models", metavar="MODEL...", nargs=-1, required=True)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8080, show_default=True, help="0 takes a free one.")
@click.option("--token-file", metavar="FILE", help=f"Ask for the bearer token in FILE.  [default: ${_TOKEN}]")
@click.option(
    "--allow-host",
    "hosts",
    metavar="NAME",
    multiple=True,
    help="Another name that the service goes by, where it checks names.",
)
@click.option("--open", "open_page", is_flag=True, help="Open the page in the browser.")
@click.option("--access-log", is_flag=True, help="Log a line for each request.")
@_limit_options
@click.pass_obj
def command(terminal: Terminal, /, models: tuple[str, ...], **given: Any) -> int:
    """Serve MODEL over HTTP until it is interrupted, with a page to try it on.

    MODEL is a directory that `longtail train` wrote, or NAME=DIRECTORY; the first of several is the default. Routes,
    limits and examples are in the documentation, and the running service describes itself at /openapi.json.
    """
    from longtail.serve import Limits, run
    from longtail.serve.program import is_loopback

    directories = _directories(models)
    chosen = {name: given[f"limit_{name}"] for name in _LIMITS if given[f"limit_{name}"] is not None}
    token = _token(given["token_file"])
    terminal.hide_progress()
    if token is None and not is_loopback(given["host"]):
        terminal.say(
            f"warning: whoever reaches {given['host']} can use the service; set ${_TOKEN} or --token-file to ask for "
            f"a token"
        )

    def started(address: str) -> None:
        click.echo(f"Serving {', '.join(directories)} at {address} (ctrl-C ends it)")
        sys.stdout.flush()  # whoever reads a pipe waits for this line
        if given["open_page"]:
            # In a thread, as some browsers keep the caller until they are closed.
            threading.Thread(target=_open, args=(terminal, address), daemon=True).start()

    ended_by = run(
        directories,
        host=given["host"],
        port=given["port"],
        limits=Limits(**chosen),
        token=token,
        hosts=given["hosts"],
        access_log=given["access_log"],
        started=started,
    )
    if ended_by == signal.SIGINT:
        raise click.Abort
    return 0


def _open(terminal: Terminal, address: str) -> None:
    if not webbrowser.open(address):
        terminal.say(f"there is no browser to open here; open {address} yourself")


def _directories(models: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for model in models:
        name, equals, directory = model.partition("=")
        # A directory whose name holds an equals sign is still one.
        if not equals or Path(model).is_dir():
            name, directory = Path(model).absolute().name, model
        if not name or not directory:
            raise click.UsageError(f"'{model}' is not NAME=DIRECTORY")
        if name in found:
            raise click.UsageError(
                f"two models would be called '{name}': {found[name]} and {directory}; name them with NAME=DIRECTORY"
            )
        found[name] = directory
    return found


def _token(path: str | None) -> str | None:
    if path is None:
        token = os.environ.get(_TOKEN) or None
        source = f"${_TOKEN}"
    else:
        token, source = Path(path).read_bytes().decode("utf-8", "replace").strip(), path
    if token is not None and (not token or not token.isascii() or not token.isprintable() or " " in token):
        raise InvalidInput(f"{source} holds no token; expected one line of ASCII letters, digits and signs")
    return token
