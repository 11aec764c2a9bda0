from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import scale
from benchmarks.large import AMAZON_3M, write_rows
from longtail.data import read_corpus


@pytest.mark.parametrize("ending", ["txt", "jsonl"])
def test_every_label_of_the_made_up_data_has_a_row(tmp_path: Path, ending: str) -> None:
    shape = AMAZON_3M.scaled(0.0002)
    path = tmp_path / f"train.{ending}"
    write_rows(path, shape, shape.rows)
    corpus = read_corpus(path)
    assert (corpus.n_rows, corpus.n_labels) == (shape.rows, shape.labels)
    assert corpus.labels.nnz / shape.rows == pytest.approx(shape.labels_per_row, rel=0.2)
    assert corpus.labels.sum(axis=0).min() >= 1


@pytest.mark.slow
def test_a_model_has_the_same_bytes_in_pieces_and_is_evaluated_and_served(tmp_path: Path) -> None:
    steps = ["in memory", "in pieces", scale.EVALUATED, scale.SERVED]
    scale.main(["--data", "amazon-3m:0.0005", "--cache", str(tmp_path), "--steps", *steps])
    written = json.loads((tmp_path / "results" / "scale.json").read_text(encoding="utf-8"))
    of_steps, of_stages = (table["rows"] for table in written["sections"][0]["tables"])
    found = {line["step"]: line for line in of_steps}
    assert found["in memory"]["model"] == found["in pieces"]["model"] != ""
    assert found[scale.EVALUATED]["result"].startswith("P@1/3/5 ")
    assert "300 requests" in found[scale.SERVED]["result"]
    assert "rows of labels" in {line["stage"] for line in of_stages}
