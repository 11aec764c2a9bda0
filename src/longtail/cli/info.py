"""`longtail info`: describe a model, or this installation."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from typing import Any

import click

from longtail.cli.cards import card_lines
from longtail.cli.outputs import print_json
from longtail.printable import printable

_LIBRARIES = ("numpy", "scipy", "scikit-learn")
_TITLES = {"n_labels": "labels", "bytes": "size on disk", "learner_params": "parameters"}


@click.command()
@click.argument("model", required=False)
@click.option("--arrays", "with_arrays", is_flag=True, help="Also list the arrays of MODEL.")
@click.option("--verify", is_flag=True, help="Compare every file of MODEL with its checksum.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(model: str | None, with_arrays: bool, verify: bool, as_json: bool) -> None:
    """Describe MODEL or, without MODEL, this installation."""
    if verify and model is None:
        raise click.UsageError("--verify needs a MODEL to verify.")
    facts = _installation() if model is None else _model(model, verify)
    if as_json:
        print_json(facts, indent=2)
        return
    from longtail.cli.tables import show, simple_table
    from longtail.memory import format_bytes

    arrays, card = facts.pop("arrays", None), facts.pop("card", None)
    for name, value in facts.items():
        if name == "params" and not value:
            continue
        if name == "parts":
            value = {part: kind for part, kind in value.items() if "." not in part}
        shown = format_bytes(value) if name in ("memory available", "bytes") else _plain(value)
        click.echo(printable(f"{_TITLES.get(name, name.replace('_', ' '))}: {shown}"))
    for line in card_lines(card or {}):
        click.echo(line)
    if arrays and with_arrays:
        rows = [
            [a["name"], a["type"], a["dtype"], " x ".join(f"{n:,}" for n in a["shape"]), format_bytes(a["bytes"])]
            for a in arrays
        ]
        click.echo()
        show(simple_table(["array", "type", "dtype", "shape", "size"], rows, right=["shape", "size"]))


def _installation() -> dict[str, Any]:
    from longtail.data import cache_directory
    from longtail.memory import available_memory
    from longtail.native import is_native
    from longtail.parallel import count_cores
    from longtail.version import __version__

    return {
        "longtail": __version__,
        "python": platform.python_version(),
        **{name: version(name) for name in _LIBRARIES},
        "kernels": "native" if is_native() else "NumPy (slower; no compiler at installation, or LONGTAIL_NATIVE=0)",
        "cores": count_cores(),
        "memory available": available_memory(),
        "cache": str(cache_directory()),
        "data": [folder for folder in os.environ.get("LONGTAIL_DATA", "").split(os.pathsep) if folder],
    }


def _model(directory: str, verify: bool) -> dict[str, Any]:
    from longtail.store import inspect_model, read_card

    found = inspect_model(directory)
    arrays, part_params = found.pop("arrays"), found.pop("part_params")
    learner = _learner(found["parts"], part_params, arrays)
    first = {name: found.pop(name) for name in ("kind", "n_labels", "bytes")}
    facts = {**first, **learner, **found, "card": read_card(directory, found["fingerprint"]), "arrays": arrays}
    if verify:
        from longtail.store import load

        load(directory, verify=True)
        facts = {"verified": "every file matches its checksum", **facts}
    return facts


def _learner(parts: dict[str, str], params: dict[str, Any], arrays: list[dict[str, Any]]) -> dict[str, Any]:
    """Facts about the learner from the manifest: class, parameters, trees, nodes and weights."""
    kind = parts.get("estimator")
    if kind is None:
        return {}
    given = {
        name: value for name, value in params.get("estimator", {}).items() if value is not None and value is not False
    }
    facts: dict[str, Any] = {"learner": kind, "learner_params": given}
    entries = {array["name"]: array["entries"] for array in arrays}
    trees = [name for name, part in parts.items() if part == "TreeWeights"]
    if kind == "LabelTree":
        facts |= {"trees": len(trees), "nodes": sum(entries.get(f"{tree}.pointers", 1) - 1 for tree in trees)}
    networks = tuple(f"{name}." for name, part in parts.items() if part == "Weights")
    if networks:
        return {**facts, "weights": sum(count for name, count in entries.items() if name.startswith(networks))}
    weights = [f"{tree}.weights" for tree in trees] or ["estimator.coef"]
    return {**facts, "weights": sum(entries.get(name, 0) for name in weights)}


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {item}" for name, item in value.items()) or "none"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return f"{value:,}" if type(value) is int else str(value)
