"""Where the tags of `longtail predict` go: JSON lines or tables on standard output, or a file for other programs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import click

from longtail.cli.inputs import Batch
from longtail.cli.options import option
from longtail.cli.outputs import check_out, out_field, print_json
from longtail.cli.reading import ReaderOptions
from longtail.cli.terminal import on_terminal
from longtail.printable import printable

if TYPE_CHECKING:
    from longtail.data import Column, TaggedRow
    from longtail.tagger import Tag, Tagger

_DECIMALS = 6
_SEPARATOR = ";"


@dataclass(frozen=True)
class TaggedOptions:
    """Where the tags go, and in which form."""

    out: str | None = out_field("Write to FILE (.csv, .tsv, .jsonl or .parquet) instead of standard output.")
    layout: Literal["row", "tag"] | None = option(
        type=click.Choice(["row", "tag"]), help="With --out: one record per row, or one per tag.  [default: row]"
    )
    keep_columns: bool = option(
        is_flag=True, default=False, help="With --out: keep the columns, or keys, of DATA in front."
    )
    output: str | None = option(
        type=click.Choice(["table", "jsonl"]),
        help="Format on standard output.  [default: table on a terminal, else jsonl]",
    )

    def check(self, *read: str | None) -> str:
        """Refuse options that contradict each other, and a file that cannot be written; return as `check_out` does."""
        from longtail.data import check_table_file

        if self.as_table() and self.out:
            raise click.UsageError("--out writes a file for other programs; a table can only be printed")
        if self.out is None:
            for flag, given in (("--layout", self.layout), ("--keep-columns", self.keep_columns)):
                if given:
                    raise click.UsageError(f"{flag} is for files; give --out FILE")
            return ""
        check_table_file(self.out, "tags are written")
        return check_out(self.out, *read)

    def as_table(self) -> bool:
        """Whether a table is printed for people."""
        return self.output == "table" or (self.output is None and self.out is None and on_terminal())

    def separator(self, tagger: Tagger, reader: ReaderOptions) -> tuple[str, ReaderOptions]:
        """What separates the labels in a cell of the file, and the options of the input without it."""
        from longtail.data import joins_labels

        separator = reader.label_separator or _SEPARATOR
        if self.out is None or not joins_labels(self.out, self.layout or "row"):
            return separator, reader
        tagger.check_separable(separator)
        return separator, replace(reader, label_separator=None)

    @contextmanager
    def opened(
        self, kept: list[Column] | None, with_texts: bool, separator: str
    ) -> Iterator[Callable[[TaggedRow], None]]:
        """A function that writes or prints a row with its tags."""
        if self.out is None:
            yield _show if self.as_table() else _print
            return
        from longtail.data import writing_tags

        layout = self.layout or "row"
        with writing_tags(
            self.out, layout=layout, kept=kept, with_texts=with_texts, label_separator=separator
        ) as write:
            yield write


def tagged_rows(batch: Batch, found: Iterable[list[Tag]]) -> Iterator[TaggedRow]:
    """The rows of a batch with their tags."""
    from longtail.data import TaggedRow

    for number, (name, tags) in enumerate(zip(batch.names, found, strict=True)):
        text = batch.rows[number] if isinstance(batch.rows, list) else None
        yield TaggedRow(name, text, tags, None if batch.fields is None else batch.fields[number])


def _print(row: TaggedRow) -> None:
    labels = [{"label": label, "score": round(score, _DECIMALS)} for label, score in row.tags]
    print_json({"id": row.name, "labels": labels})


def _show(row: TaggedRow) -> None:
    from rich.text import Text

    from longtail.cli.tables import show, tag_lines

    heading = Text(printable(str(row.name)), style="bold")
    if row.text is not None:
        heading.append("  " + " ".join(row.text.split()), style="dim")
        heading.truncate(100, overflow="ellipsis")
    show(heading, tag_lines(row.tags) if row.tags else Text("no label"), "")
