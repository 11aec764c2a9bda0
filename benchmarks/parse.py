"""Speed of reading the repository text format, side by side with scikit-learn in the same run.

``python -m benchmarks.parse train.txt.gz`` reads the file plain and gzipped with both in turn, several times, checks
that both read the same values, and prints medians. scikit-learn does not know the header, so it gets the file without
it. It drops rows that have neither labels nor features; such files are refused.
"""

from __future__ import annotations

import argparse
import gzip
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_svmlight_file

from benchmarks.timing import interleave
from longtail import native
from longtail.data import Corpus, read_repository


def check_same(corpus: Corpus, X: Any, y: list[tuple[float, ...]]) -> None:
    X.sort_indices()
    if corpus.n_rows != X.shape[0]:
        raise SystemExit("rows without labels and features: scikit-learn drops them, so the two cannot be compared")
    assert np.array_equal(corpus.features.indptr, X.indptr)
    assert np.array_equal(corpus.features.indices, X.indices)
    assert np.array_equal(corpus.features.data, X.data.astype(np.float32))
    theirs = [int(label) for row in y for label in sorted(row)]
    assert corpus.labels.indices.tolist() == theirs
    assert np.array_equal(np.diff(corpus.labels.indptr), [len(row) for row in y])


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("file", type=Path, help="a file in the repository text format, plain or gzipped")
    arguments.add_argument("--repeat", type=int, default=5)
    options = arguments.parse_args()

    content = options.file.read_bytes()
    if content.startswith(b"\x1f\x8b"):
        content = gzip.decompress(content)
    header, body = content.split(b"\n", 1)
    n_features = int(header.split()[1])
    print(f"{len(content) / 1e6:.1f} MB unzipped, native kernels: {native.is_native()}")
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = Path(folder) / "ours", Path(folder) / "theirs"
        ours.with_suffix(".txt").write_bytes(content)
        ours.with_suffix(".gz").write_bytes(gzip.compress(content))
        theirs.with_suffix(".txt").write_bytes(body)
        theirs.with_suffix(".gz").write_bytes(gzip.compress(body))

        def peer(suffix: str) -> Any:
            path = str(theirs.with_suffix(suffix))
            return load_svmlight_file(path, multilabel=True, n_features=n_features, zero_based=True, dtype=np.float32)

        check_same(read_repository(ours.with_suffix(".txt")), *peer(".txt"))
        for suffix in (".txt", ".gz"):
            read = partial(read_repository, ours.with_suffix(suffix))
            contestants = {"longtail": read, "scikit-learn": partial(peer, suffix)}
            seconds, _ = interleave(contestants, options.repeat)
            told = "  ".join(f"{name} {times}" for name, times in seconds.items())
            print(f"{suffix:>4}  {told}  ratio {seconds['scikit-learn'].median / seconds['longtail'].median:.1f}")


if __name__ == "__main__":
    main()
