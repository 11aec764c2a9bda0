"""`writing_tags`: rows with their tags as a table, with one record for each row or for each tag."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple

from longtail.data.columns import Column
from longtail.data.streams import suffix_of
from longtail.data.tables.files import DELIMITERS, writing_table
from longtail.files import PathName

Layout = Literal["row", "tag"]

_DECIMALS = 6


class TaggedRow(NamedTuple):
    """A row with its tags, best first.

    Parameters
    ----------
    name : str or int
        The name of the row or, without one, its number counted from 1.
    text : str or None
        None if the row is a row of features.
    tags : sequence of (str, float)
        Labels with scores.
    fields : sequence or None
        The values of the columns that are kept.
    """

    name: str | int
    text: str | None
    tags: Sequence[tuple[str, float]]
    fields: Sequence[Any] | None = None


class TagTable:
    """The columns of a table of tags, and the records of its rows.

    Parameters
    ----------
    layout : {"row", "tag"}
        One record for each row, with lists of labels and scores; or one for each tag, with its rank.
    kept : sequence of Column or None
        Original columns, which stand in front. None means id and, if the rows are texts, text.
    with_texts : bool

    Examples
    --------
    >>> table = TagTable("tag", None, False)
    >>> [column.name for column in table.columns]
    ['id', 'rank', 'label', 'score']
    >>> list(table.records(TaggedRow("a", None, [("red", 0.5)])))
    [['a', 1, 'red', 0.5]]
    """

    def __init__(self, layout: Layout, kept: Sequence[Column] | None, with_texts: bool) -> None:
        own = [Column("rank", "whole"), Column("label"), Column("score", "number")]
        if layout == "row":
            own = [Column("labels", "labels"), Column("scores", "scores")]
        front = [Column("id"), *([Column("text")] if with_texts else [])] if kept is None else list(kept)
        taken = {column.name for column in front}
        self.columns = [*front, *(column._replace(name=_free(column.name, taken)) for column in own)]
        self._layout = layout
        self._keeps, self._with_texts = kept is not None, with_texts

    def records(self, row: TaggedRow) -> Iterator[list[Any]]:
        """The records of a row: one, or one for each tag."""
        front = [row.name, row.text] if self._with_texts else [row.name]
        if self._keeps:
            front = list(row.fields or ())
        tags = [(label, round(score, _DECIMALS)) for label, score in row.tags]
        if self._layout == "row":
            yield [*front, [label for label, _ in tags], [score for _, score in tags]]
            return
        for rank, (label, score) in enumerate(tags, start=1):
            yield [*front, rank, label, score]


def _free(name: str, taken: set[str]) -> str:
    """A name for a column that no original column has."""
    while name in taken:
        name = f"predicted_{name}"
    return name


def joins_labels(path: PathName, layout: Layout) -> bool:
    """Whether the labels of a row go into one cell of the file, joined by a separator."""
    return layout == "row" and suffix_of(path) in DELIMITERS


@contextmanager
def writing_tags(
    path: PathName,
    *,
    layout: Layout = "row",
    kept: Sequence[Column] | None = None,
    with_texts: bool = True,
    label_separator: str = ";",
) -> Iterator[Callable[[TaggedRow], None]]:
    """A function that writes rows with their tags to a file, as `writing_table` does.

    Parameters
    ----------
    path : str or path-like
        The ending decides on the kind of file.
    layout : {"row", "tag"}
        One record for each row, with all its labels; or one for each tag, with rank, label and score.
    kept : sequence of Column or None
        Original columns to keep in front, in place of id and text, see `read_originals`.
    with_texts : bool
        Whether the rows have texts.
    label_separator : str
        As for `writing_table`.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "tags.tsv"
    >>> with writing_tags(path) as write:
    ...     write(TaggedRow("a", "a red apple", [("fruit", 0.9), ("red", 0.8)]))
    >>> path.read_text().splitlines()
    ['id\\ttext\\tlabels\\tscores', 'a\\ta red apple\\tfruit;red\\t0.9;0.8']
    """
    table = TagTable(layout, kept, with_texts)
    with writing_table(path, table.columns, label_separator=label_separator) as write_record:

        def write(row: TaggedRow) -> None:
            for record in table.records(row):
                write_record(record)

        yield write
