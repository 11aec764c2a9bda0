"""Speed of turning texts into features, side by side with scikit-learn in the same run.

``python -m benchmarks.text`` reads the texts of a JSON lines file (default: EURLEX57K's test part in `$LONGTAIL_DATA`),
checks that both give the same features and values, times both in turn, and prints the medians as a table.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from benchmarks.timing import interleave
from longtail import TextFeatures, native
from longtail.data import read_jsonl
from longtail.parallel import count_cores
from longtail.text import tokenize

# The closest regular expression to longtail's token rule. Texts that it splits differently (marks, Han and Kana, a
# final sigma) are left out, so that both do the same work.
PATTERN = r"[^\W_]{2,}"
TITLE = "commission regulation on the import of fresh apples from chile"
OF_A_SINGLE_TEXT = 300


def compare(ours: Callable[[], object], theirs: Callable[[], object], repeat: int, calls: int = 1) -> tuple[float, ...]:
    """The median time of each."""
    seconds, _ = interleave({"ours": ours, "theirs": theirs}, repeat, calls)
    return tuple(times.median for times in seconds.values())


def check_same(ours: TextFeatures, theirs: TfidfVectorizer, texts: list[str]) -> None:
    assert list(ours.feature_names_) == theirs.get_feature_names_out().tolist(), "different features"
    difference: Any = abs(ours.transform(texts) - theirs.transform(texts))
    assert difference.max() < 1e-6, "different values"


def written(time: float) -> str:
    return f"{time * 1e6:.0f} µs" if time < 0.001 else f"{time:.3f} s"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("file", type=Path, nargs="?", help="JSON lines, each with a text")
    arguments.add_argument("--ngrams", type=int, default=1, help="the longest run of words (1)")
    arguments.add_argument("--jobs", type=int, default=None, help="threads of longtail (every core)")
    arguments.add_argument("--repeat", type=int, default=3)
    options = arguments.parse_args()
    if options.file is None:
        if "LONGTAIL_DATA" not in os.environ:
            raise SystemExit("give a file, or set LONGTAIL_DATA to the folder that holds eurlex57k")
        options.file = Path(os.environ["LONGTAIL_DATA"]) / "eurlex57k" / "test.jsonl.gz"

    corpus = read_jsonl(options.file, require_labels=False, unknown="ignore")
    pattern = re.compile(PATTERN)
    texts = [text for text in corpus.texts or () if tokenize(text) == pattern.findall(text.lower())]
    ngrams = (1, options.ngrams)
    ours = TextFeatures(ngrams=ngrams, n_jobs=options.jobs).fit(texts)
    theirs = TfidfVectorizer(token_pattern=PATTERN, ngram_range=ngrams, min_df=2, sublinear_tf=True, dtype=np.float32)
    check_same(ours, theirs.fit(texts), texts)

    title = [TITLE]
    rows = {
        "transform": compare(lambda: ours.transform(texts), lambda: theirs.transform(texts), options.repeat),
        "fit_transform": compare(
            lambda: ours.fit_transform(texts), lambda: theirs.fit_transform(texts), options.repeat
        ),
        "one title": compare(lambda: ours.transform(title), lambda: theirs.transform(title), 9, OF_A_SINGLE_TEXT),
    }
    print(
        f"{len(texts):,} of {corpus.n_rows:,} texts, {sum(map(len, texts)) / 1e6:.1f} million characters, "
        f"{len(ours.idf_):,} features, {options.jobs or count_cores()} threads, native kernels: {native.is_native()}\n"
    )
    print("| | longtail | scikit-learn | ratio |\n|---|---|---|---|")
    for name, (one, other) in rows.items():
        print(f"| {name} | {written(one)} | {written(other)} | {other / one:.1f} |")


if __name__ == "__main__":
    main()
