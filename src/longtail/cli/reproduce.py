"""`longtail reproduce`: the experiments of papers, measured here beside what is published."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import click

from longtail.errors import InvalidInput


@click.command()
@click.argument("name", required=False)
@click.option("-o", "--out", default=".", metavar="DIR", help="Where to write.  [default: here]")
@click.option("--quick", is_flag=True, help="Smaller settings, to see that it works.")
def command(name: str | None, out: str, quick: bool) -> None:
    """Repeat the experiments called NAME; without NAME, list what there is.

    Tables and pictures are written to DIR: what was measured here beside what is published or, where that is not
    available to us, beside our own earlier runs. Data sets that are not here are left out and named; without any of
    them the command fails.
    """
    recipes: Any = import_module("longtail_papers")
    if name is None:
        from longtail.cli.tables import show, simple_table

        show(simple_table(["name", "what"], [[key, what] for key, what in recipes.NAMES.items()]))
        return
    if name not in recipes.NAMES:
        raise InvalidInput(f"there is nothing called {name!r} to reproduce; known are {', '.join(recipes.NAMES)}")
    if Path(out).exists() and not Path(out).is_dir():
        raise InvalidInput(f"{out} is a file; give a folder to write to")
    for path in recipes.run(name, out, quick=quick):
        click.echo(str(path))
