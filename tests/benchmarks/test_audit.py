from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks import audit
from benchmarks.audit import Sizes, fourier


def test_the_fourier_columns_are_orthogonal_and_alike() -> None:
    W = fourier(50, 4)
    assert pytest.approx(25 * np.eye(9)) == W.T @ W


def test_every_comparison_says_whether_verdicts_agree_and_proofs_hold(capsys: pytest.CaptureFixture[str]) -> None:
    sizes = Sizes(labels=200, frequencies=3, many_labels=60, many_dimensions=8, many_sets=40)
    sizes = replace(
        sizes, mode_labels=80, mode_dimensions=6, large_labels=90, large_dimensions=10, classes=120, class_dimensions=8
    )
    audit.main(["--repeat", "2"], sizes)
    printed = capsys.readouterr().out
    assert printed.count("proofs hold: holds") == 11
    assert printed.count("ratio") == 7
    assert "40 label sets, 60 labels, 8 dimensions" in printed
