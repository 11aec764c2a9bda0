"""The options of `longtail train` for work in pieces: what is finished is kept, and a cluster can do the work."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from longtail.cli.inputs import STANDARD_INPUT, Data, called, each_of, read
from longtail.cli.options import option
from longtail.cli.prepare import sources_of
from longtail.cli.reading import ReaderOptions
from longtail.errors import InvalidInput, LongtailError
from longtail.files import unfinished

if TYPE_CHECKING:
    from longtail.cli.features import FeatureFlags
    from longtail.data import Corpus

# A row in memory takes about three times its bytes in a file; compressed files are about a fifth of the size.
_MEMORY_OF_A_BYTE = 3
_COMPRESSION = 5
_COMPRESSED = (".gz", ".parquet", ".pq", ".xlsx")


@dataclass(frozen=True)
class ClusterOptions:
    """Who does the work."""

    section = "Large data"

    cluster: str | None = option(
        metavar="ADDRESS",
        help="Let the workers of a Dask scheduler do the work, e.g. tcp://host:8786. They must see MODEL and DATA "
        "under the same paths.",
    )

    @contextmanager
    def opened(self, model: str) -> Iterator[None]:
        """Let the workers do the work inside the block, if there are any; their results go to a folder beside MODEL.

        For the URL of a model they go to the current folder.
        """
        from tempfile import TemporaryDirectory

        from longtail.work import connected, in_pieces

        if self.cluster is None:
            yield
            return
        path = unfinished(model)
        with (
            TemporaryDirectory(prefix=f"{path.stem}.work-", dir=path.parent) as folder,
            connected(self.cluster) as client,
            in_pieces(folder, client),
        ):
            yield


@dataclass(frozen=True)
class PieceOptions:
    """Who does the work, and whether it can be interrupted."""

    section = "Large data"

    resume: bool = option(
        is_flag=True,
        default=False,
        help="Train in pieces and keep those that are finished in MODEL.unfinished; after an interruption, the same "
        "command goes on.",
    )
    cluster: str | None = option(
        metavar="ADDRESS",
        help="Let the workers of a Dask scheduler train, e.g. tcp://host:8786. They must see DATA and MODEL under the "
        "same paths.",
    )
    work: str | None = option(
        metavar="FOLDER",
        help="Create MODEL.unfinished in FOLDER; all workers must see it.  [default: the folder that contains MODEL; "
        "for a URL, the current folder]",
    )

    def check_unused(self) -> None:
        """Refuse the options where they have no effect."""
        if self.resume or self.cluster is not None or self.work is not None:
            raise InvalidInput(
                "--resume, --cluster and --work need labels of rows, but DATA has only labels of groups; assign the "
                "labels to rows first with `longtail assign`"
            )

    def reason(self, data: Data) -> str | None:
        """Why to train in pieces; None trains in memory."""
        if self.cluster is not None:
            return f"the workers of {self.cluster} train in pieces"
        if self.resume:
            return "training in pieces, which can be interrupted"
        if needed := _does_not_fit(data):
            return f"{called(data)} takes about {needed} in memory, more than is available: training in pieces on disk"
        return None

    def folder(self, out: str) -> Path:
        """Where the pieces go."""
        return unfinished(out, self.work)

    @contextmanager
    def opened(self, folder: Path) -> Iterator[None]:
        """Train in pieces that are kept in a folder."""
        from longtail.work import connected, in_pieces

        if self.cluster is None:
            with in_pieces(folder):
                yield
            return
        with connected(self.cluster) as client, in_pieces(folder, client):
            yield


def read_in_pieces(data: Data, folder: Path, reader: ReaderOptions, features: FeatureFlags) -> Corpus:
    """A corpus that is mapped: one that is prepared already or, for a file, one that is prepared in the folder."""
    from longtail.prepared import is_prepared, open_prepared, prepare
    from longtail.store import abandon, claim_folder_of_job

    paths = each_of(data)
    if STANDARD_INPUT in paths:
        raise InvalidInput("training in pieces cannot read standard input; write it to a file first")
    if len(paths) == 1 and not Path(paths[0]).is_file():
        corpus = read(paths[0], "train", reader)
        features.check(corpus, paths[0])
        return corpus
    sources, options = sources_of(paths, reader), features.options()
    job = {"files": [source.facts() for source in sources], "features": repr(options)}
    if reader.merge_by is not None:
        job["merge_by"] = reader.merge_by
    target = claim_folder_of_job(folder, "data", job) / "prepared"
    if is_prepared(target):
        return open_prepared(target)
    try:
        return prepare(sources, target, options, merge_by=reader.merge_by)
    except LongtailError:
        abandon(target.parent)
        raise


def _does_not_fit(data: Data) -> str | None:
    """How much memory the rows of files take, if there is less."""
    from longtail.memory import available_memory, format_bytes

    needed = 0
    for path in each_of(data):
        try:
            size = os.path.getsize(path) if os.path.isfile(path) else 0
        except OSError:
            return None
        needed += _MEMORY_OF_A_BYTE * size * (_COMPRESSION if path.endswith(_COMPRESSED) else 1)
    return format_bytes(needed) if needed > available_memory() else None
