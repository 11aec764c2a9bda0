"""`check_briefly`: what matters most about a corpus in memory, at little cost next to training."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from longtail.checking.checking import names_are_numbers
from longtail.checking.contents import TextContents, unlabelled
from longtail.checking.features import row_hashes
from longtail.checking.finding import Finding
from longtail.checking.labels import LabelTable, frequency_findings
from longtail.checking.names import alike_labels, list_labels, missing_labels
from longtail.data import Corpus
from longtail.parallel import split

_ROWS_AT_ONCE = 2**16
# Of texts to look at: a few seconds.
_CHARACTERS = 2**27
# A warning about fewer rows can wait.
_SHARE_OF_ROWS = 0.01


def check_briefly(corpus: Corpus) -> tuple[Finding, ...]:
    """The errors and warnings that can be found fast and concern the labels or one row of a hundred; no examples.

    Only the first hundred million characters of the texts are looked at.

    Examples
    --------
    >>> corpus = Corpus.from_lists(["a red apple", " ", "the sky"], [["fruit"], ["Fruit"], ["sky"]])
    >>> [finding.says for finding in check_briefly(corpus)][:1]
    ['1 text is empty']
    """
    found = [finding for finding in _findings(corpus) if finding.severity != "note"]
    return tuple(sorted(found, key=lambda finding: finding.severity))  # errors before warnings


def _findings(corpus: Corpus) -> Iterator[Finding]:
    labels, contents = LabelTable(corpus.label_names), TextContents(0)
    per_row = np.zeros(3, dtype=np.int64)  # the number of rows with no label, one, and several
    left = _CHARACTERS
    for block in split(corpus.n_rows, _ROWS_AT_ONCE):
        part = corpus.labels[block]
        labels.add_rows(block.start + 1, part)
        per_row += np.bincount(np.minimum(np.diff(part.indptr), 2), minlength=3)
        if corpus.texts is not None and left > 0:
            for number, label_set in enumerate(row_hashes(part).tolist(), start=block.start):
                contents.add(number + 1, corpus.texts[number], label_set)
                left -= len(corpus.texts[number])
    for finding in (*unlabelled(int(per_row[0]), corpus.n_rows, ()), *contents.findings()):
        if finding.count >= _SHARE_OF_ROWS * corpus.n_rows:
            yield finding
    yield from frequency_findings(labels, corpus.n_rows, per_row, 0)
    names = corpus.label_names
    if not names_are_numbers(names):
        for look in (alike_labels, missing_labels, list_labels):
            if (told := look(labels, names, 0)) is not None:
                yield told
