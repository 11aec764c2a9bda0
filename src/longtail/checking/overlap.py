"""Test rows that are training rows too, by their hashes, and labels of test rows that no training row has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

import numpy as np

from longtail.arrays import Array
from longtail.checking.contents import Digests, fold_text
from longtail.checking.features import FeatureRows, row_hashes
from longtail.checking.finding import Example, Finding
from longtail.checking.rows import Rows
from longtail.checking.texts import TextRows
from longtail.printable import counted


def overlap_of_texts(seen: TextRows, train: Rows, test: Rows, most: int) -> Iterator[Finding]:
    """What training rows, which were seen, and test rows have in common, by their texts and by their ids."""
    texts, ids = Digests(), Digests()
    unknown: Counter[str] = Counter()
    n_rows = 0
    for place, text, labels, row_name in test.texts or ():
        n_rows += 1
        if folded := fold_text(text):
            texts.add(place, folded)
        if row_name is not None:
            ids.add(place, row_name)
        unknown.update(label for label in labels if label not in seen.labels)
    yield from _shared(
        "test_rows_in_training",
        "the text",
        (texts.hashes, texts.places),
        (seen.contents.texts.hashes, seen.contents.texts.places),
        n_rows,
        (train, test),
        most,
    )
    yield from _shared(
        "test_ids_in_training",
        "the id",
        (ids.hashes, ids.places),
        (seen.ids.hashes, seen.ids.places),
        n_rows,
        (train, test),
        most,
    )
    yield from _unknown(unknown, most)


def overlap_of_features(seen: FeatureRows, train: Rows, test: Rows, most: int) -> Iterator[Finding]:
    """What training rows, which were seen, and test rows have in common, by their features."""
    names = seen.labels.names
    known = {names[label] for label in np.flatnonzero(seen.labels.counts).tolist()}
    unknown: Counter[str] = Counter()
    hashes = [np.zeros(0, np.int64)]
    for batch in test.features or ():
        hashes.append(row_hashes(batch.rows))
        labels, counts = np.unique(batch.labels.indices, return_counts=True)
        for label, count in zip(labels.tolist(), counts.tolist(), strict=True):
            if (name := batch.label_names[label]) not in known:
                unknown[name] += count
    found = np.concatenate(hashes)
    places = np.arange(1, len(found) + 1)
    kept = found != 0
    yield from _shared(
        "test_rows_in_training",
        "the features",
        (found[kept], places[kept]),
        (seen.hashes, seen.places),
        len(found),
        (train, test),
        most,
    )
    yield from _unknown(unknown, most)


def _shared(
    code: str,
    what: str,
    test: tuple[Array, Array],
    train: tuple[Array, Array],
    n_rows: int,
    rows: tuple[Rows, Rows],
    most: int,
) -> Iterator[Finding]:
    order = np.argsort(train[0], kind="stable")
    ordered = train[0][order]
    found = np.searchsorted(ordered, test[0])
    shared = np.flatnonzero(found < len(ordered))
    shared = shared[ordered[found[shared]] == test[0][shared]]
    if not len(shared):
        return
    count, (in_training, in_test) = len(shared), rows
    yield Finding(
        code,
        "warning",
        count,
        f"{count:,} of {counted(n_rows, 'test row')} ha{'s' if count == 1 else 've'} {what} of a training row",
        "Remove them from the training rows or from the test rows; otherwise metrics are too good.",
        [
            in_test.located(
                Example(
                    (int(test[1][row]),),
                    f"the same as {in_training.named(int(train[1][order[found[row]]]))} of the training set",
                ),
                always=True,
            )
            for row in shared[:most].tolist()
        ],
    )


def _unknown(unknown: Mapping[str, int], most: int) -> Iterator[Finding]:
    if not unknown:
        return
    ranked = sorted(unknown.items(), key=lambda item: (-item[1], item[0]))[:most]
    yield Finding(
        "test_labels_not_in_training",
        "note",
        len(unknown),
        f"{counted(len(unknown), 'label')} of the test rows {'is' if len(unknown) == 1 else 'are'} on no training row",
        "The model cannot predict them, apart from labels that have texts; evaluation counts them as missed.",
        [Example((), f"{label!r} ({counted(rows, 'test row')})") for label, rows in ranked],
    )
