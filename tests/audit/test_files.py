"""Output layers from `.npy` files: what is read, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from longtail.audit import read_layer
from longtail.errors import DataFormatError, NotEnoughMemory


def test_a_layer_has_the_weights_and_the_bias_less_the_threshold(tmp_path: Path) -> None:
    W, bias = np.arange(6.0).reshape(3, 2), np.array([1.0, 2.0, 3.0])
    np.save(tmp_path / "w.npy", W.astype(np.float32))
    np.save(tmp_path / "b.npy", bias)
    layer = read_layer(tmp_path / "w.npy", tmp_path / "b.npy", threshold=0.5)
    np.testing.assert_array_equal(layer.weights, W)
    np.testing.assert_array_equal(layer.offsets, bias - 0.5)
    assert (layer.rule, layer.description) == ("predict", "its score is above 0.5")


def test_a_ranking_has_no_threshold_and_bias_is_optional(tmp_path: Path) -> None:
    np.save(tmp_path / "w.npy", np.eye(2, dtype=np.int8))
    layer = read_layer(tmp_path / "w.npy", rule="topk")
    np.testing.assert_array_equal(layer.weights, np.eye(2))
    assert not layer.offsets.any()
    assert (layer.rule, layer.description) == ("topk", "its score is among the highest")


@pytest.mark.parametrize(
    ("stored", "told"),
    [
        (np.ones(3), r"shape \(3,\); expected a matrix"),
        (np.ones((0, 3)), r"shape \(0, 3\); expected a matrix"),
        (np.array([["a"]]), "dtype <U1; expected real numbers"),
        (np.array([[1.0, np.nan]]), "contains NaN or infinity"),
        (b"", "an empty file; expected an array"),
        (b"PK\x03\x04 and more", "an .npz archive; expected an array"),
        (b"1 2 3\n", "no .npy file; expected an array"),
        (b"\x93NUMPY\x01\x00\x03\x00{}\n", "expected an array of numbers"),
    ],
)
def test_what_is_no_matrix_of_numbers_is_refused(tmp_path: Path, stored: np.ndarray | bytes, told: str) -> None:
    path = tmp_path / "w.npy"
    if isinstance(stored, bytes):
        path.write_bytes(stored)
    else:
        np.save(path, stored)
    with pytest.raises(DataFormatError, match=told) as caught:
        read_layer(path)
    assert caught.value.path == str(path)


def test_a_file_that_is_cut_short_or_absent_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "w.npy", np.ones((20, 20)))
    content = (tmp_path / "w.npy").read_bytes()
    (tmp_path / "w.npy").write_bytes(content[:-100])
    with pytest.raises(DataFormatError, match="expected an array of numbers"):
        read_layer(tmp_path / "w.npy")
    with pytest.raises(DataFormatError, match="cannot be opened"):
        read_layer(tmp_path / "absent.npy")


def test_a_bias_of_another_length_is_refused_and_turned_weights_are_noticed(tmp_path: Path) -> None:
    np.save(tmp_path / "w.npy", np.ones((3, 2)))
    for length, hint in ((2, "save W.T"), (4, "expected 3 numbers")):
        np.save(tmp_path / "b.npy", np.ones(length))
        with pytest.raises(DataFormatError, match=hint) as caught:
            read_layer(tmp_path / "w.npy", tmp_path / "b.npy")
        assert caught.value.path == str(tmp_path / "b.npy")


def test_a_matrix_that_does_not_fit_into_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.save(tmp_path / "w.npy", np.ones((20, 20)))
    monkeypatch.setenv("LONGTAIL_MEMORY", "1K")
    with pytest.raises(NotEnoughMemory, match="reading an array"):
        read_layer(tmp_path / "w.npy")
