"""`longtail serve`: serve models over HTTP, with a web page."""

from __future__ import annotations

import os
import signal
import sys
import threading
import webbrowser
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import click

from longtail.cli.options import FiniteRange, SectionedCommand, SectionedOption, option, takes
from longtail.cli.terminal import Terminal
from longtail.errors import InvalidInput
from longtail.files import is_url
from longtail.parallel import use_jobs
from longtail.serve import Limits

_TOKEN = "LONGTAIL_TOKEN"


def _limit_options(function: Any) -> Any:
    for limit in reversed(fields(Limits)):
        kind = FiniteRange(min=0, min_open=True) if limit.name.endswith("seconds") else click.IntRange(min=1)
        settings = {"type": kind, "metavar": "N", "default": limit.default, "help": limit.metadata["about"]}
        flag = f"--max-{limit.name.replace('_', '-')}"
        function = click.option(
            flag, limit.name, cls=SectionedOption, section="Maximum numbers", show_default=True, **settings
        )(function)
    return function


@dataclass(frozen=True)
class ServeOptions:
    """Where to listen, and whom to answer."""

    section = "Service"

    host: str = option(default="127.0.0.1", show_default=True, help="Address to listen on.")
    port: int = option(
        type=click.IntRange(0, 65535), default=8080, show_default=True, help="Port; 0 chooses a free one."
    )
    token_file: str | None = option(
        metavar="FILE", help=f"Require the bearer token that FILE contains.  [default: ${_TOKEN}]"
    )
    hosts: tuple[str, ...] = option(
        "--allow-host", metavar="NAME", multiple=True, help="Also accept requests to this host name; can be repeated."
    )
    feedback: str | None = option(
        metavar="FILE", help="Let users correct tags on the page; FILE gets a JSON line for each correction."
    )
    open_page: bool = option("--open", is_flag=True, default=False, help="Open the page in the browser.")
    access_log: bool = option(is_flag=True, default=False, help="Log a line for each request.")
    jobs: int | None = option(type=int, help="Number of threads for one batch of texts.  [default: as in training]")


@click.command(cls=SectionedCommand)
@click.argument("models", metavar="MODEL...", nargs=-1, required=True)
@takes(options=ServeOptions)
@_limit_options
@click.pass_obj
def command(terminal: Terminal, /, models: tuple[str, ...], options: ServeOptions, **limits: Any) -> None:
    """Serve MODEL over HTTP, with a web page to try it, until you press Ctrl-C.

    MODEL is a directory or URL that `longtail train` wrote, or NAME=DIRECTORY. The first of several models is the
    default. On SIGHUP, new versions of the models take the place of the old ones without a pause. The documentation
    lists routes, limits and examples, and the running service describes itself at /openapi.json.
    """
    from longtail.serve import is_loopback, run

    directories = _directories(models)
    token, host = _token(options.token_file), options.host
    terminal.hide_progress()
    if token is None and not is_loopback(host):
        terminal.say(
            f"warning: everyone who can reach {host} can use the service; set ${_TOKEN} or --token-file to require a "
            f"token"
        )

    def started(address: str) -> None:
        click.echo(f"Serving {', '.join(directories)} at {address} (stop with Ctrl-C)")
        sys.stdout.flush()  # readers of a pipe wait for this line
        if options.open_page:
            # In a thread, because some browsers return only when they are closed.
            threading.Thread(target=_open, args=(terminal, address), daemon=True).start()

    with use_jobs(options.jobs):
        ended_by = run(
            directories,
            host=host,
            port=options.port,
            limits=Limits(**limits),
            token=token,
            hosts=options.hosts,
            feedback=options.feedback,
            access_log=options.access_log,
            started=started,
        )
    if ended_by == signal.SIGINT:
        raise click.Abort


def _open(terminal: Terminal, address: str) -> None:
    if not webbrowser.open(address):
        terminal.say(f"no browser found; open {address} yourself")


def _directories(models: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for model in models:
        name, equals, directory = model.partition("=")
        # The name of a directory, or a URL, may contain an equals sign.
        if not equals or is_url(model) or Path(model).is_dir():
            name, directory = Path(model).absolute().name, model
        if not name or not directory:
            raise click.UsageError(f"'{model}' is not NAME=DIRECTORY")
        if name in found:
            raise click.UsageError(
                f"two models have the name '{name}': {found[name]} and {directory}; name them with NAME=DIRECTORY"
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
        raise InvalidInput(f"{source} has no token; expected one line of ASCII letters, digits and punctuation")
    return token
