"""Arrays that grew in files become files of a model, by a link or, where that is refused, by a copy."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from longtail.store import Spool, SpooledCsr, State, read_model, write_model


def spooled(folder: Path, name: str, values: list[int], dtype: type):
    with Spool(folder / f"{name}.npy", dtype) as spool:
        for value in values:
            spool.append([value])
    assert len(spool) == len(values)
    return spool.finished()


@pytest.mark.parametrize("links", [True, False])
def test_a_model_takes_over_spooled_arrays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool) -> None:
    def refuse(*_):
        raise OSError("no links here")

    if not links:
        monkeypatch.setattr(os, "link", refuse)
    matrix = SpooledCsr(
        spooled(tmp_path, "data", [1, 2], np.float32),
        spooled(tmp_path, "indices", [0, 2], np.int32),
        spooled(tmp_path, "indptr", [0, 1, 2], np.int32),
        (2, 3),
    )
    empty = spooled(tmp_path, "empty", [], np.int64)
    write_model(State("Some", arrays={"matrix": matrix, "empty": empty}), tmp_path / "model")
    for each in tmp_path.glob("*.npy"):
        each.unlink()
    found = read_model(tmp_path / "model", verify=True)
    assert found.arrays["matrix"].toarray().tolist() == [[1, 0, 0], [0, 0, 2]]
    assert found.arrays["empty"].tolist() == []


def test_an_interrupted_spool_is_no_array(tmp_path: Path) -> None:
    def interrupted() -> None:
        with Spool(tmp_path / "half.npy", np.int64) as spool:
            spool.append([1])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        interrupted()
    with pytest.raises(ValueError, match=r".*"):
        np.load(tmp_path / "half.npy")
