"""`longtail reproduce`: repeat the experiments of the papers and compare the results with the published ones."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import click

from longtail.cli.outputs import check_folder_name
from longtail.errors import InvalidInput


@click.command()
@click.argument("name", required=False)
@click.option("-o", "--out", default=".", metavar="DIR", help="Folder for the results.  [default: here]")
@click.option("--quick", is_flag=True, help="Run a small version as a test.")
def command(name: str | None, out: str, quick: bool) -> None:
    """Repeat the experiment NAME of a paper; without NAME, list the experiments.

    The command writes tables and pictures to DIR. They compare the results with the published ones or, where we do
    not have these, with our own earlier runs. Data sets that are not installed are skipped and listed. If none is
    installed, the command fails.
    """
    papers: Any = import_module("longtail_papers")
    if name is None:
        from longtail.cli.tables import show, simple_table

        show(simple_table(["name", "what"], [[key, entry.line] for key, entry in papers.EXPERIMENTS.items()]))
        return
    if Path(out).exists() and not Path(out).is_dir():
        raise InvalidInput(f"{out} is a file; give a folder to write to", path=out)
    check_folder_name(out)
    for path in papers.run(name, out, quick=quick):
        click.echo(str(path))
