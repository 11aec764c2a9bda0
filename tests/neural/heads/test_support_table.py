"""The table of heads in docs/neural-recipes.md names every head, and every cell of it has a test."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

import pytest

from longtail.neural import heads
from tests.neural import test_recipes
from tests.neural.heads import test_devices, test_onnx
from tests.neural.heads.every_head import make
from tests.test_docs import ROOT


def names_of(test: Callable[..., Any]) -> list[str]:
    """The heads that a parametrised test runs with."""
    [found] = [list(mark.args[1]) for mark in test.pytestmark if mark.name == "parametrize" and mark.args[0] == "name"]
    return found


# For each column the heads with which its test runs.
TESTED = {
    "autocast": names_of(test_devices.test_autocast_changes_little),
    "fp16, bf16, fp64": names_of(test_devices.test_heads_of_every_precision_learn_and_predict),
    "compile": names_of(test_devices.test_a_compiled_head_has_the_same_loss_and_gradient),
    "DDP": test_recipes.DISTRIBUTED,
    "export": names_of(test_devices.test_a_head_without_targets_is_one_graph_for_any_number_of_rows),
    "ONNX": names_of(test_onnx.test_onnxruntime_gives_what_torch_gives_for_any_number_of_rows),
    "meta device": names_of(test_devices.test_a_head_made_on_the_meta_device_can_be_loaded_or_started_later),
    "state_dict": names_of(test_devices.test_copies_are_heads_of_their_own),
    "sequences": names_of(test_devices.test_the_positions_of_a_sequence_are_rows),
}
# What the tests show to be impossible.
LIMITED = {
    ("`DFT`, fast transform", "export"): "fixed rows",  # see test_a_head_without_targets_is_one_graph...
    ("`DFT`, fast transform", "ONNX"): "no",  # see test_a_fast_transform_is_exported_as_the_matrix...
}


def read_table() -> dict[tuple[str, str], str]:
    """The cells of the table by row and column."""
    text = (
        (ROOT / "docs" / "neural-recipes.md").read_text(encoding="utf-8").partition("## What works with each head")[2]
    )
    lines = [re.split(r" *\| *", line.strip("| ")) for line in text.splitlines() if line.startswith("|")]
    columns = lines[0][1:]
    return {(line[0], column): cell for line in lines[2:] for column, cell in zip(columns, line[1:], strict=True)}


def row_of(name: str) -> str:
    head = make(name)
    form = ""
    if isinstance(head, heads.DFT):
        form = ", fast transform" if head.matrix is None else ", matrix"
    return f"`{type(head).__name__}`{form}"


def test_the_table_has_every_head_and_every_column() -> None:
    table = read_table()
    concrete = {name for name in heads.__all__ if isinstance(getattr(heads, name), type)}
    concrete = {name for name in concrete if issubclass(getattr(heads, name), heads.Head)}
    concrete = {name for name in concrete if not inspect.isabstract(getattr(heads, name))}
    assert {re.match(r"`(\w+)`", row)[1] for row, _ in table} == concrete
    assert {column for _, column in table} == set(TESTED)


@pytest.mark.parametrize("column", TESTED)
def test_every_cell_of_the_column_has_a_test(column: str) -> None:
    tested = {row_of(name) for name in TESTED[column]}
    for (row, name), cell in read_table().items():
        if name != column:
            continue
        assert cell == LIMITED.get((row, column), "yes"), row
        assert cell == "no" or row in tested, row
