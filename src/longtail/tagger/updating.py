"""An update of a fitted tagger: from changes to a revision of its rows, and what is told about it."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from longtail.arrays import Array
from longtail.data import Change, Corpus, GroupedCorpus, RowChange, RowFeedback, read_changes
from longtail.errors import InvalidInput
from longtail.estimator import Estimator, Revision
from longtail.files import PathName
from longtail.printable import counted
from longtail.tagger.kept_rows import ID_BYTES, History, TrainingRows, digests
from longtail.tagger.ledger import Ledger, Row, key_of, names_in, numbers_now
from longtail.tagger.matching import label_readings
from longtail.tagger.rows import BOOLEANS, NUMBERS, names_a_class
from longtail.text import count_words, usual_unknown_share
from longtail.validation import own
from longtail.work import is_in_pieces

_log = logging.getLogger(__name__)

_SAMPLE = 2000  # texts whose words are counted
_MORE_UNKNOWN, _AND_MORE = 1.5, 0.02  # unknown words of new texts beyond the usual share
_FEWEST_WORDS = 50  # of new texts; fewer say nothing about their words
_KINDS = {NUMBERS: "a whole number", BOOLEANS: "True or False"}
_MUCH_CHANGED = 0.5  # share of the rows since the last full training


@dataclass(frozen=True)
class UpdateSummary:
    """What an update changed.

    Parameters
    ----------
    added, changed, removed, corrections : int
        Rows that are new, that have other labels or another text, that are gone, and that people gave feedback on.
    labels_added, labels_dropped : tuple of str
        New labels, and labels that were dropped or have no rows any more.
    labels_renamed : int
    history : History
        All updates since the last full training.
    due : tuple of str
        Why a full training is due; empty if it is not.
    """

    added: int
    changed: int
    removed: int
    corrections: int
    labels_added: tuple[str, ...]
    labels_dropped: tuple[str, ...]
    labels_renamed: int
    history: History
    due: tuple[str, ...]


class Updated(NamedTuple):
    """The parts of a tagger after an update."""

    estimator: Estimator
    label_names: tuple[str, ...]
    rows: TrainingRows
    summary: UpdateSummary


def keep_rows(X: Any, corpus: Corpus, features: Any) -> TrainingRows:
    """What an update of a model needs that is fitted to these rows of texts."""
    texts = corpus.texts or ()
    step = max(1, len(texts) // _SAMPLE)
    usual = usual_unknown_share(features, texts[::step], corpus.n_rows)
    return TrainingRows.of(X, corpus.labels, *digests(texts, corpus.row_names), History(corpus.n_rows, usual))


def cannot_keep(corpus: Corpus | GroupedCorpus) -> str | None:
    """What to train an updatable model on instead of this corpus, or None."""
    if is_in_pieces():
        return "rows that fit into memory, without pieces"
    if not isinstance(corpus, Corpus):
        return "labels of rows, not of groups"
    if corpus.weights is not None:
        return "rows without weights; fit it without sample_weight"
    return "texts, not on features" if corpus.texts is None else None


def changes_of(found: Corpus | PathName | Iterable[Change]) -> Iterable[Change]:
    """The changes in a file, and the rows of a corpus of texts as changes."""
    if isinstance(found, str | os.PathLike):
        return read_changes(found)
    if not isinstance(found, Corpus):
        return found
    if found.texts is None:
        raise InvalidInput("updates need texts; the corpus has features", code="cannot_update")
    if found.weights is not None:
        raise InvalidInput("updates need rows without weights", code="cannot_update")
    names, indptr, indices = found.label_names, found.labels.indptr, found.labels.indices
    ids: Sequence[str | None] = found.row_names or [None] * found.n_rows
    return [
        RowChange(text, tuple(names[label] for label in indices[indptr[row] : indptr[row + 1]]), ids[row])
        for row, text in enumerate(found.texts)
    ]


def update(
    features: Any,
    estimator: Estimator,
    label_names: Sequence[str],
    known: Sequence[int],
    rows: TrainingRows,
    changes: Sequence[Change],
    classes: str | None = None,
    *,
    gives_one: bool = False,
) -> Updated:
    """Learn changes.

    Parameters
    ----------
    features, estimator, label_names, rows
        Of a fitted tagger.
    known : sequence of int
        The numbers of the labels of `names_in`; -1 for others.
    changes : sequence of changes
    classes : {"names", "numbers", "booleans"} or None
        The kind of the classes, if every row has exactly one.
    gives_one : bool
        Whether the model gives each row exactly one label.
    """
    X, Y = rows.matrices()
    ledger = Ledger.of(
        changes, len(label_names), dict(zip(names_in(changes), known, strict=True)), _LabelsOf(rows, changes)
    )
    change = _Change.of(ledger, rows, features, X)
    now = numbers_now(ledger.labels)
    names, Y_now, relabelled = _labels_of(change, ledger, now, Y, estimator.reads_label_texts)
    labels = np.where(names < len(label_names), names, -1)
    renamed = ledger.labels.names
    new_names = tuple(renamed.get(int(name)) or label_names[int(name)] for name in names)
    if classes is not None:
        _check_classes(classes, new_names, change, Y_now, rows.n_rows)
    if not Y_now.shape[0]:
        raise InvalidInput("the changes remove every row; there would be nothing to learn from", code="no_rows")
    revision = Revision(
        X, Y, change.features(X), Y_now, change.kept, relabelled, labels, _texts(features, estimator, new_names, labels)
    )
    _log.info(
        "%s new, %s changed, %s removed; %s",
        *(f"{count:,}" for count in (change.added, change.changed, change.removed)),
        counted(len(new_names), "label"),
    )
    found = estimator.updated(revision)
    history = _history(rows.history, change, ledger, features)
    gone = np.setdiff1d(np.arange(len(label_names)), names)
    summary = UpdateSummary(
        change.added,
        change.changed,
        change.removed,
        len(ledger.corrected),
        tuple(name for name, label in zip(new_names, labels.tolist(), strict=True) if label < 0),
        tuple(label_names[int(label)] for label in gone),
        ledger.renamed,
        history,
        tuple(_due(history, Y_now if gives_one else None)),
    )
    for reason in summary.due:
        _log.warning("a full training is due: %s", reason)
    return Updated(found, new_names, change.stored(rows, revision, history), summary)


class _LabelsOf:
    """The labels that the rows of a digest have in the model, looked up for all changes at once."""

    def __init__(self, rows: TrainingRows, changes: Iterable[Change]) -> None:
        self._rows = rows
        judged = [change for change in changes if isinstance(change, RowFeedback)]
        self._places = {
            is_text: rows.places({key_of(each) for each in judged if (each.id is None) == is_text}, is_text)
            for is_text in (False, True)
        }

    def __call__(self, digest: bytes, is_text: bool) -> list[int]:
        starts, labels = self._rows.label_starts, self._rows.labels
        places = self._places[is_text].get(digest, ())
        found = [label for row in places for label in labels[starts[row] : starts[row + 1]].tolist()]
        return list(dict.fromkeys(found))


@dataclass(frozen=True)
class _Change:
    """Rows that stay, and rows of the ledger: those that stay in their place with other labels, and new ones."""

    kept: Array
    places: Array  # the new numbers of rows that stay with the labels of the ledger
    in_place: list[Row]
    new: list[Row]
    new_keys: list[bytes]
    X_new: Any
    added: int
    changed: int
    removed: int

    @classmethod
    def of(cls, ledger: Ledger, rows: TrainingRows, features: Any, X: Any) -> _Change:
        pending = ledger.rows
        by_text = {key for key, row in pending.items() if row is not None and row.by_text}
        found = {**rows.places(set(pending) - by_text), **rows.places(by_text, of_texts=True)}
        owner: dict[int, bytes] = {}
        settled = dict(pending)
        for key in pending:
            for row in found.get(key, ()):
                settled.pop(owner.pop(row, b""), None)  # a later change of the same row, by its id or by its text
                owner[row] = key
        listed = [(key, row) for key, row in settled.items() if row is not None]
        made = features.transform([row.text for _, row in listed])
        firsts = np.array([found.get(key, [-1])[0] for key, _ in listed], dtype=np.int64)
        had = np.flatnonzero(firsts >= 0)
        other = (made[had] != X[firsts[had]]).sum(axis=1) if len(had) else np.zeros(0)
        stays = np.zeros(len(listed), dtype=bool)
        stays[had[np.asarray(other).ravel() == 0]] = True
        is_kept = np.ones(rows.n_rows, dtype=bool)
        is_kept[[row for key in settled for row in found.get(key, ())]] = False
        is_kept[firsts[stays]] = True
        number = np.cumsum(is_kept) - 1
        order = np.argsort(firsts[stays], kind="stable")
        in_place = np.flatnonzero(stays)[order]
        new = np.flatnonzero(~stays)
        gone = sum(row is None and key in found for key, row in settled.items())
        return cls(
            np.flatnonzero(is_kept),
            number[firsts[in_place]],
            [listed[place][1] for place in in_place.tolist()],
            [listed[place][1] for place in new.tolist()],
            [listed[place][0] for place in new.tolist()],
            made[new],
            len(listed) - len(had),
            len(had),
            gone,
        )

    def features(self, X: Any) -> Any:
        return own(sparse.csr_array(sparse.vstack([X[self.kept], self.X_new], format="csr")))

    def stored(self, rows: TrainingRows, revision: Revision, history: History) -> TrainingRows:
        texts, _ = digests([row.text for row in self.new], None)
        own_ids = np.frombuffer(b"".join(self.new_keys), dtype=np.uint8).reshape(-1, ID_BYTES)
        ids = np.concatenate([rows.ids[self.kept], own_ids])
        before = rows.texts
        if before is None and all(row.by_text for row in self.new):
            return TrainingRows.of(revision.X, revision.Y, ids, None, history)
        known = rows.ids if before is None else before
        return TrainingRows.of(revision.X, revision.Y, ids, np.concatenate([known[self.kept], texts]), history)


def _labels_of(change: _Change, ledger: Ledger, now: Array, Y: Any, keeps_unused: bool) -> tuple[Array, Any, Array]:
    """The numbers of the labels that remain, the labels of rows, and the rows that stay with other labels.

    Labels without rows are dropped unless they have been in the model and `keeps_unused`.
    """
    before = ledger.labels.before
    old = Y[change.kept]
    numbers = now[old.indices]
    moved = numbers != old.indices
    entry_rows = np.repeat(np.arange(len(change.kept)), np.diff(old.indptr))
    relabelled = np.union1d(np.unique(entry_rows[moved]), change.places)
    stays = numbers >= 0
    stays &= ~np.isin(entry_rows, change.places)
    listed = [*zip(change.places.tolist(), change.in_place, strict=True)]
    listed += zip(range(len(change.kept), len(change.kept) + len(change.new)), change.new, strict=True)
    pairs = np.array(
        [(row, now[label]) for row, each in listed for label in each.labels if now[label] >= 0], dtype=np.int64
    ).reshape(-1, 2)
    row_of = np.concatenate([entry_rows[stays], pairs[:, 0]])
    label_of = np.concatenate([numbers[stays], pairs[:, 1]])
    used = np.bincount(label_of, minlength=ledger.labels.count) > 0
    if keeps_unused:
        used[:before] |= now[:before] == np.arange(before)
    names = np.flatnonzero(used)
    columns = np.cumsum(used) - 1
    shape = (len(change.kept) + len(change.new), len(names))
    matrix: Any = sparse.csr_array((np.ones(len(row_of), np.float32), (row_of, columns[label_of])), shape=shape)
    matrix.sum_duplicates()
    matrix.data[:] = 1
    return names, own(matrix), relabelled


def _check_classes(classes: str, names: Sequence[str], change: _Change, Y: Any, n_before: int) -> None:
    """Refuse a row that has no class now, or several, and classes of another kind."""
    wrong = np.flatnonzero(np.diff(Y.indptr) != 1)
    if len(wrong):
        row = int(wrong[0])
        listed = dict(zip(change.places.tolist(), change.in_place, strict=True))
        listed |= enumerate(change.new, len(change.kept))
        name = listed[row].name if row in listed else f"training row {change.kept[row]} (of {n_before:,}, from 0)"
        found = [names[label] for label in Y.indices[Y.indptr[row] : Y.indptr[row + 1]].tolist()]
        has = f"the labels {', '.join(map(repr, found))}" if found else "no label"
        raise InvalidInput(
            f"{name} would have {has}; the model was trained with one class for each row",
            code="not_one_class",
            name=name,
            found=found,
        )
    for name in names:
        if not names_a_class(name, classes):
            raise InvalidInput(
                f"the label {name!r} is not {_KINDS[classes]} like the classes that the model was trained with",
                code="bad_classes",
                name=name,
            )


def _texts(features: Any, estimator: Estimator, names: Sequence[str], labels: Array) -> list[Any] | None:
    """The readings of the names of new labels, if the estimator compares rows with label texts."""
    if not estimator.reads_label_texts:
        return None
    return label_readings(features, [names[label] for label in np.flatnonzero(labels < 0).tolist()])


def _history(history: History, change: _Change, ledger: Ledger, features: Any) -> History:
    texts = [row.text for row in change.new]
    step = max(1, len(texts) // _SAMPLE)
    found = count_words(features, texts[::step])
    return replace(
        history,
        updates=history.updates + 1,
        added=history.added + change.added,
        changed=history.changed + change.changed,
        removed=history.removed + change.removed,
        corrections=history.corrections + len(ledger.corrected),
        words=history.words + found.words,
        unknown=history.unknown + found.unknown,
        new_words=history.new_words + found.new_words,
    )


def _due(history: History, single: Any) -> list[str]:
    """Why a full training is due, with numbers; `single` are the labels of rows if a row is given exactly one."""
    reasons = []
    if single is not None and (others := int(np.count_nonzero(np.diff(single.indptr) != 1))):
        reasons.append(
            f"{counted(others, 'row')} no longer have exactly one label, but each new row is still given one"
        )
    changed = history.added + history.changed + history.removed
    if changed >= _MUCH_CHANGED * history.rows:
        reasons.append(
            f"{changed:,} rows were added, changed or removed since the last one, which had {history.rows:,} rows; "
            "features, ranking and calibration are still those of that training"
        )
    share = history.unknown / max(1, history.words)
    if history.words >= _FEWEST_WORDS and share > _MORE_UNKNOWN * history.unknown_share + _AND_MORE:
        reasons.append(
            f"{100 * share:.1f} % of the words of new texts are unknown, and {100 * history.unknown_share:.1f} % would "
            f"be usual; at least {counted(history.new_words, 'new word')} would become features"
        )
    return reasons
