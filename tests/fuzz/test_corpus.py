"""Inputs that a fuzzer found interesting keep the promises of their target."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.targets import TARGETS, run

CORPUS = Path(__file__).parent / "corpus"


@pytest.mark.parametrize("name", TARGETS)
def test_the_promises_hold_for_every_input_of_the_corpus(name):
    inputs = sorted((CORPUS / name).iterdir())
    assert inputs
    for path in inputs:
        try:
            run(TARGETS[name], path.read_bytes())
        except Exception as error:
            raise AssertionError(f"{path.name} breaks {name}") from error
