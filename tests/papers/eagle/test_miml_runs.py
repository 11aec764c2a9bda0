from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from longtail_papers import run
from longtail_papers.common import benchmarks, experiment
from longtail_papers.eagle import miml


def blobs(name: str, n_train: int | None) -> miml.Images:
    """Ten kinds of rows that are easily told apart, instead of images."""
    rng = np.random.default_rng(0)
    centres = 3 * rng.normal(size=(10, 12))

    def part(n: int):
        kinds = rng.integers(0, 10, size=n)
        rows = (centres[kinds] + rng.normal(size=(n, 12))).astype(np.float32)
        return rows, sparse.csr_array((np.ones(n, np.float32), kinds, np.arange(n + 1)), shape=(n, 10))

    return miml.Images(name, *part(4000), part(200), part(200))


def test_bags_are_learned_from_and_compared_with_the_paper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(miml.Images, "load", blobs)
    for module in (miml, experiment):
        monkeypatch.setattr(module, "why_missing", lambda name: None if name == "mnist" else "not here")
    monkeypatch.setattr(miml, "_SIZES", (4,))
    monkeypatch.setattr(miml, "_LEARNING_RATES", (0.01, 0.02))
    run("miml", tmp_path, quick=True)
    found = json.loads((tmp_path / "miml.json").read_text(encoding="utf-8"))
    section, holds = found["sections"]
    rows = section["tables"][0]["rows"]
    assert [(row["targets"], row["network"]) for row in rows] == [
        (targets, way) for targets in ("set", "proportion") for way in ("Deep-MIML", "EAGLE-0", "EAGLE")
    ]
    for row in rows:
        assert row["paper"] == {"Deep-MIML": 94.70, "EAGLE-0": 94.82, "EAGLE": 94.82}[row["network"]]
        assert 30 < row["accuracy"] <= 100  # ten kinds: by chance 10
        assert row["- Deep-MIML"] == pytest.approx(
            row["accuracy"] - rows[3 * (row["targets"] == "proportion")]["accuracy"]
        )
        assert (row["tau"] is None) == (row["network"] == "Deep-MIML")
    assert "the system: Fashion-MNIST." in (tmp_path / "miml.md").read_text(encoding="utf-8")
    for statement, three in zip(holds["tables"][0]["rows"], (rows[:3], rows[3:]), strict=True):
        plain, vectors, robust = (row["accuracy"] for row in three)
        assert statement["holds"] == ("yes" if robust > plain and robust >= vectors else "no")

    # A second run trains nothing and finds the same.
    monkeypatch.setattr(miml, "train", None)
    run("miml", tmp_path, quick=True)
    assert json.loads((tmp_path / "miml.json").read_text(encoding="utf-8")) == found


def test_images_are_here_only_with_both_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGTAIL_DATA", str(tmp_path))
    (tmp_path / "mnist").mkdir()
    for part in ("t10k", "train"):
        assert "put train-images-idx3" in (benchmarks.why_missing("mnist") or "")
        for what in ("images-idx3", "labels-idx1"):
            (tmp_path / "mnist" / f"{part}-{what}-ubyte").write_bytes(b"not read")
    assert benchmarks.why_missing("mnist") is None


def test_targets_are_whether_or_how_much_of_a_bag(monkeypatch: pytest.MonkeyPatch) -> None:
    bagged = miml.Bagged.of(blobs("mnist", None), 4, seed=0)
    assert set(bagged.targets("set").data.tolist()) == {1.0}
    shares = bagged.targets("proportion")
    assert set(shares.data.tolist()) <= {0.25, 0.5, 0.75, 1.0}
    np.testing.assert_allclose(shares.sum(axis=1), 1)
