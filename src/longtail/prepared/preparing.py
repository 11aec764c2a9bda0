"""`prepare`: from files of any size to a prepared corpus, in bounded memory, batch by batch.

The texts are read twice: once to learn the features, once to make the rows. Each batch of rows is kept as a piece, so
that preparing goes on where it was interrupted.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.base import clone

from longtail.arrays import Array
from longtail.data import Batch, Corpus, Source, iter_batches
from longtail.errors import InvalidInput
from longtail.files import PathName, unfinished
from longtail.native import kernels
from longtail.prepared.corpus import KIND, open_prepared
from longtail.store import Pieces, Spool, SpooledCsr, State, StringTable, alone_in, put_together, write_model
from longtail.text import FeatureOptions
from longtail.version import __version__

_log = logging.getLogger(__name__)


def prepare(
    sources: Sequence[Source | PathName],
    directory: PathName,
    features: Any = None,
    *,
    like: Corpus | None = None,
    merge_by: str | None = None,
) -> Corpus:
    """Prepare the rows of files, one after another, for training or evaluation.

    An interrupted call is continued by the same call. It keeps its unfinished work beside `directory` or, for a URL, in
    the current folder.

    Parameters
    ----------
    sources : sequence of Source, str or path-like
        All with texts, or all with features.
    directory : str or path-like
        Where to write the prepared corpus: a directory, or a URL such as ``s3://bucket/prepared``.
    features : TextFeatures, RowScaling, FeatureOptions or None
        How to make features; not fitted.
    like : Corpus or None
        A prepared corpus whose features to use: that of the training rows, to prepare test rows.
    merge_by : "id" or None
        Make one row of the rows with the same id, see `longtail.data.read_corpus`.

    Returns
    -------
    corpus : Corpus
        The prepared corpus, opened.

    Examples
    --------
    >>> import tempfile
    >>> from longtail.data import Corpus, write_corpus
    >>> folder = Path(tempfile.mkdtemp())
    >>> write_corpus(Corpus.from_lists(["red apples", "red sky"], [["fruit"], ["sky"]]), folder / "notes.jsonl")
    >>> corpus = prepare([folder / "notes.jsonl"], folder / "prepared")
    >>> corpus.features.shape, corpus.label_names
    ((2, 1), ('fruit', 'sky'))
    """
    files = [each if isinstance(each, Source) else Source(each) for each in sources]
    if not files:
        raise InvalidInput("there is no file to prepare")
    wanted = None if like is None else like.made_by
    job = {"longtail": __version__, "files": [file.facts() for file in files], "features": _told(features, wanted)}
    if merge_by is not None:
        job["merge_by"] = merge_by

    def rows() -> Iterator[Batch]:
        return iter_batches(files, merge_by=merge_by)

    folder = unfinished(directory)
    with alone_in(folder):
        pieces = Pieces(folder, job)
        made_by = put_together(pieces.get("features", lambda: _fitted(rows(), files, features, wanted).to_state()))
        _write(pieces, _row_pieces(pieces, rows(), made_by), made_by, directory)
        pieces.remove()
    return open_prepared(directory)


def _told(features: Any, wanted: Any) -> str:
    """What tells the features from others: their parameters or, if they are fitted, a digest of all that they hold."""
    if wanted is None:
        return repr(features)
    state = wanted.to_state()
    digest = sha256(repr((state.kind, state.params, state.facts)).encode())
    for name in sorted(state.arrays):
        digest.update(np.ascontiguousarray(state.arrays[name]).data)
    return digest.hexdigest()


def _fitted(batches: Iterator[Batch], files: list[Source], features: Any, wanted: Any) -> Any:
    """Features that are fitted in one pass over the rows; `wanted` are fitted already."""
    if wanted is not None:
        return wanted
    first = next(batches, None)
    if first is None:
        raise InvalidInput(f"{files[0].path} has no rows", code="no_rows")
    if features is None or isinstance(features, FeatureOptions):
        # Only the kind of rows, and whether there are few, decides.
        kind = {"texts" if isinstance(first.rows, list) else "features": first.rows}
        sample = Corpus(np.zeros((first.labels.shape[0], 0)), (), **kind)
        fitted: Any = (features or FeatureOptions()).features_for(sample)
    else:
        fitted = clone(features)
    if not fitted.takes_texts:
        return fitted.fit(first.rows)
    return fitted.fit(_texts([first], batches))


def _texts(*batches: Iterable[Batch]) -> Iterator[str]:
    for some in batches:
        for batch in some:
            if not isinstance(batch.rows, list):
                raise InvalidInput("some files have texts and others features; prepare them apart")
            yield from batch.rows


def _row_pieces(pieces: Pieces, batches: Iterator[Batch], made_by: Any) -> Iterator[tuple[Batch, State]]:
    """The features and labels of each batch."""
    n_known = 0
    for number, batch in enumerate(batches):
        made = False

        def make(batch: Batch = batch) -> State:
            nonlocal made
            made = True
            arrays: dict[str, Any] = {"features": _features(batch, made_by), "labels": batch.labels}
            if not batch.numbered:
                arrays["label_names"] = tuple(batch.label_names)
            if batch.row_names is not None:
                arrays["row_names"] = tuple(batch.row_names)
            return State("Rows", arrays=arrays)

        state = pieces.get(f"rows{number:06d}", make)
        n_known += not made
        yield batch, state
    if n_known:
        _log.info("%s of %s batches of rows were prepared earlier", n_known, number + 1)


def _features(batch: Batch, made_by: Any) -> Any:
    if made_by.takes_texts != isinstance(batch.rows, list):
        kinds = ("texts", "features") if made_by.takes_texts else ("features", "texts")
        raise InvalidInput(f"the features are made from {kinds[0]}; these rows have {kinds[1]}")
    return made_by.transform(batch.rows)


class _Labels:
    """The labels of all rows: numbered as in the files, or by the order of their names."""

    def __init__(self) -> None:
        self._known = kernels.GrowingVocabulary()
        self._numbered: Sequence[str] | None = None

    def ids(self, batch: Batch) -> Array | None:
        """The id of each label of a batch; None if labels are numbered, by their columns."""
        if batch.numbered:
            before, self._numbered = self._numbered, batch.label_names
            if before is not None and before is not batch.label_names and list(before) != list(batch.label_names):
                raise InvalidInput("the files number their labels differently; give them the same label names")
            return None
        table = StringTable.from_strings(batch.label_names)
        found: Array = self._known.add(table.text, table.offsets, np.zeros(len(table), np.int64))
        return found

    def finished(self) -> tuple[Any, Array]:
        """The names of all labels, and the final number of each id."""
        order = self._known.sorted(np.arange(len(self._known.frequencies())))
        if self._numbered is not None:
            if len(order):
                raise InvalidInput("some files number their labels and others name them; prepare them apart")
            return tuple(self._numbered), order
        places = np.empty(len(order), np.int64)
        places[order] = np.arange(len(order))
        return StringTable(*self._known.tokens(order)), places


def _write(pieces: Pieces, rows: Iterator[tuple[Batch, State]], made_by: Any, target: PathName) -> None:
    """Join the pieces: their arrays go to files, one after another, which become those of the prepared corpus."""
    labels = _Labels()
    parts: list[tuple[State, Array | None]] = []
    row_names: list[str] = []
    for batch, state in rows:
        parts.append((state, labels.ids(batch)))
        row_names += batch.row_names or ()
    names, places = labels.finished()
    n_rows = sum(state.arrays["labels"].shape[0] for state, _ in parts)
    if row_names and len(row_names) != n_rows:
        _log.info("%s of %s rows have an id: ids are dropped", f"{len(row_names):,}", f"{n_rows:,}")
        row_names = []
    entries = sum(state.arrays["features"].nnz for state, _ in parts)
    with tempfile.TemporaryDirectory(prefix="join-", dir=pieces.folder) as folder:
        joined = {
            "features": _join(
                Path(folder) / "x", (state.arrays["features"] for state, _ in parts), made_by.n_features_out_, entries
            ),
            "labels": _join(
                Path(folder) / "y",
                (_renumbered(state.arrays["labels"], None if ids is None else places[ids]) for state, ids in parts),
                len(names),
                sum(state.arrays["labels"].nnz for state, _ in parts),
            ),
        }
        arrays: dict[str, Any] = {**joined, "label_names": names}
        if row_names:
            arrays["row_names"] = tuple(row_names)
        write_model(
            State(KIND, facts={"n_rows": n_rows}, arrays=arrays, parts={"features": made_by.to_state()}), target
        )


def _renumbered(labels: Any, numbers: Array | None) -> Any:
    """The same rows with other column numbers, ascending in each row; None keeps the numbers."""
    if numbers is None:
        return labels
    rows = np.repeat(np.arange(labels.shape[0]), np.diff(labels.indptr))
    columns = numbers[labels.indices]
    order = np.lexsort((columns, rows))
    return SimpleNamespace(indptr=labels.indptr, indices=columns[order], data=labels.data, shape=labels.shape)


def _join(stem: Path, parts: Iterable[Any], n_columns: int, entries: int) -> SpooledCsr:
    """The rows of CSR matrices, one after another, in files that begin with `stem`."""
    index = np.int32 if max(entries, n_columns) <= np.iinfo(np.int32).max else np.int64
    dtypes = {"data": np.float32, "indices": index, "indptr": index}
    with ExitStack() as opened:
        spools = {
            name: opened.enter_context(Spool(stem.with_name(f"{stem.name}-{name}.npy"), dtype))
            for name, dtype in dtypes.items()
        }
        spools["indptr"].append([0])
        before = 0
        for part in parts:
            spools["data"].append(part.data)
            spools["indices"].append(part.indices)
            spools["indptr"].append(part.indptr[1:].astype(np.int64) + before)
            before += len(part.indices)
    shape = len(spools["indptr"]) - 1, n_columns
    data, indices, indptr = (spools[name].finished() for name in dtypes)
    return SpooledCsr(data, indices, indptr, shape)
