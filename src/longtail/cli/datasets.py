"""`longtail datasets`: the named data sets, their published sizes, and which of them are installed."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from longtail.cli.outputs import print_json
from longtail.cli.terminal import Terminal
from longtail.errors import Unavailable


@click.group(invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    """List the named data sets, their published sizes, and whether they are on this machine.

    Data sets are found in the folders of $LONGTAIL_DATA and in the cache.
    """
    if ctx.invoked_subcommand is not None:
        return
    found = _data_sets()
    if as_json:
        print_json(found, indent=2)
        return
    from longtail.cli.tables import show, simple_table

    numbers = ["train", "test", "features", "labels", "per row"]
    rows = [
        [
            known["name"],
            *(_number(known[key]) for key in ("train_rows", "test_rows", "n_features", "n_labels")),
            "-" if known["labels_per_row"] is None else f"{known['labels_per_row']:.2f}",
            known["state"],
        ]
        for known in found
    ]
    show(simple_table(["name", *numbers, "here"], rows, right=numbers))


@command.command()
@click.argument("name")
@click.pass_obj
def fetch(terminal: Terminal, name: str) -> None:
    """Download data set NAME and print its folder."""
    from longtail.data import fetch

    click.echo(str(fetch(name)))


def _data_sets() -> list[dict[str, Any]]:
    from longtail.data import CATALOGUE, find_data_set

    found = []
    for known in CATALOGUE.values():
        facts = {name: value for name, value in asdict(known).items() if name != "package"}
        folder = None
        if known.name == "python-api":
            state = "embedded"
        else:
            try:
                folder = str(find_data_set(known.name))
                state = "yes"
            except Unavailable:
                state = "fetchable" if known.package else "no"
        found.append({**facts, "state": state, "folder": folder})
    return found


def _number(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"
