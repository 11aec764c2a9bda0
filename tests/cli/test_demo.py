"""`longtail demo` as a newcomer meets it."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

import longtail as library
from longtail.cli.cards import learnt_from
from longtail.store import read_card


@pytest.mark.slow
def test_the_demo_measures_tags_and_says_why() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "longtail", "demo", "--out", "model"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONUTF8": "1"},
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    precision = re.search(r"^P +([\d.]+)", done.stdout, re.MULTILINE)
    assert precision is not None
    assert float(precision[1]) > 75
    _, _, first = done.stdout.partition("“fit a straight line through noisy points”")
    best, _, why = first.partition("why")
    assert "numpy.linalg.lstsq" in best
    assert "line +" in why
    _, _, reading = done.stdout.partition("“read numbers from a text file”")
    assert "numpy.loadtxt" in reading.partition("why")[0]
    assert library.load("model").takes_texts
    card = read_card("model")
    assert learnt_from(card, "python-api").startswith("the model was trained on every part of python-api; ")
