"""Models of every earlier version of the format can be read and give the same arrays.

The directories under `frozen` are never written again; a new format version adds a directory of its own.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from longtail.store import State, inspect_model, read_model
from tests.store.stored_states import same

FROZEN = Path(__file__).parent / "frozen"


def expected() -> State:
    dtypes = ("b1", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8")
    long_rows = sparse.csr_array(
        (np.array([0.5, -1.0, 2.0], np.float32), np.array([0, 4, 1]), np.array([0, 2, 2, 3])), shape=(3, 5)
    )
    short_rows = sparse.csr_array(
        (np.array([1, 2], np.int8), np.array([1, 0], np.int32), np.array([0, 1, 2], np.int32)), shape=(2, 2)
    )
    inner = State(
        "Inner",
        params={"alpha": 0.1},
        arrays={dtype: np.arange(3).astype(f"<{dtype}") for dtype in dtypes},
        parts={"deepest": State("Deepest", arrays={"X": np.zeros((2, 0, 3), np.float32)})},
    )
    return State(
        "Outer",
        params={"name": "Überlänge", "none": None, "flag": True, "count": 2**63, "rate": -0.0},
        facts={"n_labels": 3, "nested": {"list": [1, 2.5, "x", [], {}]}},
        arrays={
            "label_names": ("apple", "", "naïve 🍎"),
            "nothing": (),
            "long_rows": long_rows,
            "short_rows": short_rows,
            "scalar": np.array(1.5),
            "cube": np.arange(8, dtype=np.int16).reshape(2, 2, 2),
        },
        parts={"inner": inner},
    )


@pytest.mark.parametrize("version", [1])
def test_a_model_of_an_earlier_format_is_read_as_ever(version):
    directory = FROZEN / f"v{version}"
    assert inspect_model(directory)["format_version"] == version
    for verify in (True, False):
        assert same(read_model(directory, verify=verify), expected())
