"""Comma- or tab-separated files with a column that names the group of each row, and labels of groups."""

from __future__ import annotations

from collections import Counter

import numpy as np

from longtail.data.corpus import encode_labels
from longtail.data.formats.delimited import doubt_separator, iter_delimited
from longtail.data.formats.tables import Column, Columns
from longtail.data.grouped import GroupedCorpus, memberships
from longtail.data.streams import LINE_LIMIT
from longtail.errors import DataFormatError
from longtail.files import PathName


def read_grouped_delimited(
    path: PathName,
    *,
    group: Column,
    text: Columns = "text",
    labels: Column = "labels",
    delimiter: str | None = None,
    label_separator: str = ";",
    header: bool = True,
    id: Column | None = None,
    encoding: str | None = None,
    field_limit: int = LINE_LIMIT,
) -> GroupedCorpus:
    """Read groups of texts and their labels from a comma- or tab-separated file, plain or gzipped.

    Rows with the same value in the column `group` form a group, wherever they are. The group has the labels of all its
    rows; the count of a label is the largest number of times that one row lists it.

    Parameters
    ----------
    path : str or path-like
    group, text, labels : str or int
        The columns of the group, the text and the label names; see `read_delimited`.
    delimiter, label_separator, header, id, encoding, field_limit
        See `read_delimited`.

    Returns
    -------
    corpus : GroupedCorpus
        Rows in the order of the file; groups in the order of their first rows, named by the values of the column.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "pages.csv"
    >>> _ = path.write_text("page,text,labels\\n1,a red apple,fruit; weather\\n1,grey sky,\\n2,rain,weather\\n")
    >>> corpus = read_grouped_delimited(path, group="page")
    >>> corpus.group_names, corpus.label_names, corpus.group_labels.toarray().tolist()
    (['1', '2'], ('fruit', 'weather'), [[1, 1], [0, 1]])
    """
    numbers: dict[str, int] = {}
    owners: list[int] = []
    texts: list[str] = []
    row_names: list[str] = []
    listed: list[Counter[str]] = []
    for row in iter_delimited(
        path,
        text=text,
        labels=labels,
        group=group,
        delimiter=delimiter,
        label_separator=label_separator,
        header=header,
        id=id,
        encoding=encoding,
        field_limit=field_limit,
    ):
        if not row.group:
            raise DataFormatError(
                path, row.line, f"the column {group!r} is empty; every row needs the name of its group"
            )
        number = numbers.setdefault(row.group, len(numbers))
        if number == len(listed):
            listed.append(Counter())
        listed[number] |= Counter(row.labels)
        owners.append(number)
        texts.append(row.text)
        if row.row_name is not None:
            row_names.append(row.row_name)
    counts, names = encode_labels([list(found.elements()) for found in listed], None, counted=True, what="group")
    doubt_separator(path, counts, names, label_separator)
    return GroupedCorpus(
        groups=memberships(np.array(owners, dtype=np.int64), len(numbers)),
        group_labels=counts,
        label_names=names,
        texts=texts,
        row_names=row_names or None,
        group_names=list(numbers),
    )
