"""An update of a fitted tagger: from changes to a revision of its rows, and what is told about it."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from longtail.arrays import Array
from longtail.data import Change, Corpus, GroupedCorpus, RowChange, RowFeedback, RowRemoval, read_changes
from longtail.errors import InvalidInput
from longtail.estimator import Estimator, Revision
from longtail.files import PathName
from longtail.printable import counted
from longtail.tagger.kept_rows import History, TrainingRows, digests, places, table_of
from longtail.tagger.ledger import Labels, Ledger, Row, key_of, name_of, names_in, numbers_now
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
    labels_now = Labels(len(label_names), dict(zip(names_in(changes), known, strict=True)))
    ledger = Ledger(labels_now, _rows_for(changes, rows))
    for each in changes:
        ledger.take(each)
    for warning in _oddities(ledger):
        _log.warning("%s", warning)
    now = numbers_now(ledger.labels)
    change = _Change.of(ledger, rows, features, X, Y, now)
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
    history = _history(rows.history, change, features)
    gone = np.setdiff1d(np.arange(len(label_names)), names)
    summary = UpdateSummary(
        change.added,
        change.changed,
        change.removed,
        change.corrected,
        tuple(name for name, label in zip(new_names, labels.tolist(), strict=True) if label < 0),
        tuple(label_names[int(label)] for label in gone),
        ledger.renamed,
        history,
        tuple(_due(history, Y_now if gives_one else None)),
    )
    for reason in summary.due:
        _log.warning("a full training is due: %s", reason)
    return Updated(found, new_names, change.stored(rows, revision, history), summary)


def _oddities(ledger: Ledger) -> Iterator[str]:
    """What is probably a mistake in changes."""
    if removals := ledger.unknown:
        yield f"{counted(len(removals), 'removal')} found no row to remove, such as {name_of(removals[0])}"
    if renamed := ledger.labels.old_names:
        old, new = next(iter(renamed.items()))
        count = counted(len(renamed), "old name")
        yield f"{count} of labels in later changes, such as {old!r}, which is read as {new!r}"
    if again := ledger.labels.again:
        yield f"{counted(len(again), 'dropped label')} in later changes, such as {again[0]!r}, which is a new label now"


def _rows_for(changes: Iterable[Change], rows: TrainingRows) -> list[Row]:
    """All rows of the model that changes can find."""
    keys = {key_of(change) for change in changes if isinstance(change, RowChange | RowFeedback | RowRemoval)}
    ids, texts = ({key for key, is_text in keys if is_text == wanted} for wanted in (False, True))
    found = {*places(rows.ids, ids), *places(rows.text_digests, texts)}
    return [
        Row(
            number,
            rows.ids[number].tobytes(),
            rows.text_digests[number].tobytes(),
            rows.labels[rows.label_starts[number] : rows.label_starts[number + 1]].tolist(),
        )
        for number in sorted(found)
    ]


@dataclass(frozen=True)
class _Change:
    """Rows that stay, and rows of the ledger: those that stay in their place with other labels, and new ones."""

    kept: Array
    places: Array  # the new numbers of rows that stay with the labels of the ledger
    in_place: list[Row]
    new: list[Row]
    X_new: Any
    added: int
    changed: int
    removed: int
    corrected: int

    @classmethod
    def of(cls, ledger: Ledger, rows: TrainingRows, features: Any, X: Any, Y: Any, now: Array) -> _Change:
        written = [row for row in ledger.rows if row.is_written and not row.is_removed]
        made = features.transform([row.text for row in written])
        numbers = np.array([row.number for row in written], dtype=np.int64)
        had = np.flatnonzero(numbers >= 0)
        other = (made[had] != X[numbers[had]]).sum(axis=1) if len(had) else np.zeros(0)
        stays = np.zeros(len(written), dtype=bool)
        stays[had[np.asarray(other).ravel() == 0]] = True
        # Rows that are in the model as they are need no training, and count for nothing.
        differs = np.ones(len(written), dtype=bool)
        for place in np.flatnonzero(stays).tolist():
            row = written[place]
            known = _labels_now(Y.indices[Y.indptr[row.number] : Y.indptr[row.number + 1]], now)
            is_known = rows.text_digests[row.number].tobytes() == row.digest and known == _labels_now(row.labels, now)
            differs[place] = not is_known
        written = [row for row, other in zip(written, differs.tolist(), strict=True) if other]
        made, numbers, stays = made[differs], numbers[differs], stays[differs]
        had = np.flatnonzero(numbers >= 0)
        removed = [row.number for row in ledger.rows if row.is_removed and row.number >= 0]
        is_kept = np.ones(rows.n_rows, dtype=bool)
        is_kept[removed] = False
        is_kept[numbers[had]] = stays[had]
        new = np.flatnonzero(~stays)
        return cls(
            np.flatnonzero(is_kept),
            (np.cumsum(is_kept) - 1)[numbers[stays]],
            [written[place] for place in np.flatnonzero(stays).tolist()],
            [written[place] for place in new.tolist()],
            made[new],
            len(written) - len(had),
            len(had),
            len(removed),
            sum(row.is_corrected for row in written),
        )

    def features(self, X: Any) -> Any:
        return own(sparse.csr_array(sparse.vstack([X[self.kept], self.X_new], format="csr")))

    def stored(self, rows: TrainingRows, revision: Revision, history: History) -> TrainingRows:
        ids = np.concatenate([rows.ids[self.kept], table_of(row.id for row in self.new)])
        texts = np.concatenate([rows.text_digests[self.kept], table_of(row.digest for row in self.new)])
        texts[self.places] = table_of(row.digest for row in self.in_place)
        own_ids = not np.array_equal(ids, texts)
        return TrainingRows.of(revision.X, revision.Y, ids, texts if own_ids else None, history)


def _labels_now(labels: Iterable[int], now: Array) -> set[int]:
    """What the labels of a row became."""
    return {int(now[label]) for label in labels} - {-1}


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


def _history(history: History, change: _Change, features: Any) -> History:
    texts = [row.text for row in change.new]
    step = max(1, len(texts) // _SAMPLE)
    found = count_words(features, texts[::step])
    return replace(
        history,
        updates=history.updates + 1,
        added=history.added + change.added,
        changed=history.changed + change.changed,
        removed=history.removed + change.removed,
        corrections=history.corrections + change.corrected,
        words=history.words + found.words,
        unknown=history.unknown + found.unknown,
        new_words=max(history.new_words, found.new_words),
    )


def _due(history: History, single: Any) -> list[str]:
    """Why a full training is due, with numbers; `single` are the labels of rows if a row is given exactly one."""
    reasons = []
    if single is not None and (others := int(np.count_nonzero(np.diff(single.indptr) != 1))):
        reasons.append(
            f"{counted(others, 'row')} no longer {'has' if others == 1 else 'have'} exactly one label, "
            "but each new row is still given one"
        )
    changed = history.added + history.changed + history.removed
    if changed >= _MUCH_CHANGED * history.rows:
        reasons.append(
            f"{changed:,} rows were added, changed or removed since the last one, which had {history.rows:,} rows; "
            "the vocabulary and the weights of its words are still those of that training"
        )
    share = history.unknown / max(1, history.words)
    if history.words >= _FEWEST_WORDS and share > _MORE_UNKNOWN * history.unknown_share + _AND_MORE:
        reasons.append(
            f"{100 * share:.1f} % of the words of new texts are unknown, and {100 * history.unknown_share:.1f} % would "
            f"be usual; at least {counted(history.new_words, 'new word')} would become features"
        )
    return reasons
