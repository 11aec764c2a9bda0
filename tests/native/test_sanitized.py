"""The sanitizers detect known errors; otherwise a run without findings would prove nothing."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from longtail import native

READ_ROW = """
import numpy as np
from longtail.native import kernels
dense, out = np.ones((1000, 8), np.float32), np.empty((1, 8), np.float32)
kernels.multiply(np.array([0, 1]), np.array([{}]), np.ones(1, np.float32), dense, out)
print("survived")
"""
NUMBER_LABELS = """
import numpy as np
from longtail.native import kernels
labels, scores = np.full((1, 1), -1), np.full((1, 1), -np.inf, np.float32)
kernels.update_topk(np.array([[1, 2]], np.float32), {}, None, labels, scores)
print("survived")
"""


def run(program: str, argument: int) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program.format(argument)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.skipif("LONGTAIL_EXPECT_SANITIZED" not in os.environ, reason="only where the sanitized build is tested")
def test_the_kernels_under_test_are_the_sanitized_ones() -> None:
    assert native.is_native()
    assert native.is_sanitized()


@pytest.mark.skipif(not native.is_sanitized(), reason="the kernels are built without sanitizers")
@pytest.mark.parametrize(
    ("program", "sound", "wrong", "report"),
    [
        (READ_ROW, 999, 1000, "AddressSanitizer: heap-buffer-overflow"),
        (NUMBER_LABELS, 2**63 - 2, 2**63 - 1, "signed integer overflow"),
    ],
)
def test_a_kernel_led_astray_ends_the_program_with_a_report(program, sound, wrong, report) -> None:
    assert run(program, sound).stdout == "survived\n"
    ended = run(program, wrong)
    assert ended.returncode != 0
    assert ended.stdout == ""
    assert report in ended.stderr
    assert ".cpp" in ended.stderr
