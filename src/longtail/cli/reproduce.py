"""`longtail reproduce`: published tables and figures, made again here."""

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
    """Regenerate the table or figure NAME; without NAME, list what there is."""
    recipes: Any = import_module("longtail.reproduce")
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
