"""ARFF files, sparse or dense, with the list of their labels in an XML file, as Mulan uses them.

Attributes in the XML file are labels, the others are features. Attributes must be numeric, or nominal with numbers as
values, such as ``{0,1}``.
"""

from __future__ import annotations

import re
from array import array
from pathlib import Path
from typing import Any, NoReturn
from xml.parsers import expat

import numpy as np
from scipy import sparse

from longtail.data.corpus import Corpus
from longtail.data.formats.rows import corpus_from_file
from longtail.data.streams import read_blocks, read_text_lines
from longtail.errors import DataFormatError
from longtail.files import PathName
from longtail.validation import own

_QUOTED = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_ATTRIBUTE = re.compile(
    rf"@attribute\s+({_QUOTED}|[^\s{{}},%'\"]+)(?:\s*(\{{(?:{_QUOTED}|[^{{}}'\"])*\}})|\s+([^\s{{}}]+))\s*(?:%.*)?",
    re.IGNORECASE,
)
# Possessive, so that no line can make the search backtrack.
_VALUES = re.compile(rf"\s*+({_QUOTED}|[^,'\"]*+)\s*+(?:,|\Z)")
_ENTRY = re.compile(rf"\s*+([0-9]{{1,18}})\s++({_QUOTED}|[^\s,'\"{{}}]++)\s*+")
_NUMERIC = {"numeric", "real", "integer"}


def read_arff(arff_path: PathName, xml_path: PathName | None = None) -> Corpus:
    """Read an ARFF file, plain or gzipped, with its Mulan-style label list.

    Parameters
    ----------
    arff_path : str or path-like
    xml_path : str, path-like or None
        The label list; the default is the file of the same name (without ``-train`` or ``-test``) with ``.xml``.

    Returns
    -------
    corpus : Corpus
        Labels in the order of the XML file, features in the order of the ARFF file.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "tiny.xml").write_text('<labels><label name="red"/></labels>')
    >>> _ = (folder / "tiny.arff").write_text(
    ...     "@relation tiny\\n@attribute size numeric\\n@attribute red {0,1}\\n@data\\n{0 2.5, 1 1}\\n{}\\n"
    ... )
    >>> corpus = read_arff(folder / "tiny.arff")
    >>> corpus.label_names, corpus.labels.toarray().tolist(), corpus.features.toarray().tolist()
    (('red',), [[1.0], [0.0]], [[2.5], [0.0]])
    """
    label_names = read_label_list(_find_xml(arff_path) if xml_path is None else xml_path)
    reader = _Reader(arff_path)
    for number, line in read_text_lines(arff_path, comment=b"%"):
        reader.feed(number, line.strip())
    matrix, names = reader.finish()
    position = {name: column for column, name in enumerate(names)}
    missing = [name for name in label_names if name not in position]
    if missing:
        raise DataFormatError(
            arff_path,
            None,
            f"{len(missing)} labels of the XML file are not attributes here, the first is {missing[0]!r}",
        )
    label_columns = np.array([position[name] for name in label_names], dtype=np.intp)
    is_feature = np.ones(len(names), dtype=bool)
    is_feature[label_columns] = False
    columns = sparse.csc_array(matrix)
    return corpus_from_file(
        arff_path,
        labels=own(sparse.csr_array(columns[:, label_columns])),
        features=own(sparse.csr_array(columns[:, np.flatnonzero(is_feature)])),
        label_names=label_names,
    )


def _find_xml(arff_path: PathName) -> Path:
    path = Path(arff_path)
    stem = path.name.removesuffix(".gz").removesuffix(".arff")
    candidates = [path.with_name(f"{name}.xml") for name in (stem, re.sub(r"[-_](train|test)$", "", stem))]
    for candidate in candidates:
        if candidate.is_file():
            return candidate
    raise DataFormatError(
        path, None, f"the label list {candidates[-1].name} is missing; put it beside this file, or give xml_path"
    )


def read_label_list(path: PathName) -> list[str]:
    """Names of the ``label`` elements of a Mulan XML file, including nested ones, in order.

    Document types are refused, so no entity can expand.
    """
    names: dict[str, int] = {}
    parser = expat.ParserCreate()

    def refuse(*_: object) -> NoReturn:
        raise DataFormatError(path, parser.CurrentLineNumber, "the XML file has a DOCTYPE, which is refused; remove it")

    def start(tag: str, attributes: dict[str, str]) -> None:
        if tag.rpartition(":")[2] != "label":
            return
        line = parser.CurrentLineNumber
        if "name" not in attributes:
            raise DataFormatError(path, line, "a label without a name")
        if attributes["name"] in names:
            raise DataFormatError(path, line, f"the label {attributes['name']!r} appears twice")
        names[attributes["name"]] = line

    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler = start
    try:
        for block in read_blocks(path):
            parser.Parse(block, False)
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        raise DataFormatError(path, error.lineno, f"not valid XML: {expat.ErrorString(error.code)}") from None
    if not names:
        raise DataFormatError(path, None, "no label elements; expected <labels><label name='...'/>...</labels>")
    return list(names)


def _unquote(text: str) -> str:
    if text[:1] in ("'", '"') and len(text) > 1:
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return text.rstrip()


class _Reader:
    """Reads attributes, then rows, line by line."""

    def __init__(self, path: PathName) -> None:
        self.path = path
        self.names: dict[str, int] = {}
        self.nominal: list[frozenset[float] | None] = []
        self.zero_is_first: list[bool] = []
        self.in_data = False
        self.indptr = array("q", [0])
        self.indices = array("q")
        self.values = array("d")

    def fail(self, line: int | None, reason: str) -> NoReturn:
        raise DataFormatError(self.path, line, reason)

    def feed(self, number: int, line: str) -> None:
        if not line or line.startswith("%"):
            return
        if self.in_data:
            self._sparse_row(number, line) if line.startswith("{") else self._dense_row(number, line)
            self.indptr.append(len(self.indices))
            return
        word = line.split(None, 1)[0].lower()
        if word == "@data":
            self.in_data = True
        elif word == "@attribute":
            self._attribute(number, line)
        elif word != "@relation":
            self.fail(number, f"expected @relation, @attribute or @data, found {line[:40]!r}")

    def finish(self) -> tuple[sparse.csr_array[Any], list[str]]:
        if not self.in_data:
            self.fail(None, "the file has no @data")
        shape = len(self.indptr) - 1, len(self.names)
        matrix = sparse.csr_array((np.array(self.values), np.array(self.indices), np.array(self.indptr)), shape=shape)
        matrix.sort_indices()
        matrix.eliminate_zeros()
        return matrix, list(self.names)

    def _attribute(self, number: int, line: str) -> None:
        match = _ATTRIBUTE.fullmatch(line)
        if match is None:
            self.fail(number, f"expected @attribute name type, found {line[:60]!r}")
        name, kind = _unquote(match[1]), match[2] or match[3]
        if name in self.names:
            self.fail(number, f"the attribute {name!r} is already in line {self.names[name]}")
        self.names[name] = number
        if not kind.startswith("{"):
            if kind.lower() not in _NUMERIC:
                self.fail(number, f"the attribute {name!r} is of type {kind!r}; expected numeric or {{0,1}}")
            self.nominal.append(None)
            self.zero_is_first.append(True)
            return
        values = [self._number(number, value, name) for value in self._split(number, kind[1:-1])]
        self.nominal.append(frozenset(values))
        self.zero_is_first.append(values[0] == 0)

    def _split(self, number: int, text: str) -> list[str]:
        values, start = [], 0
        while True:
            match = _VALUES.match(text, start)
            if match is None:
                self.fail(number, f"unclosed quote in {text[start : start + 40]!r}")
            values.append(_unquote(match[1]))
            if match.end() == len(text) and not match[0].endswith(","):
                return values
            start = match.end()

    def _number(self, number: int, text: str, name: str) -> float:
        if text == "?":
            self.fail(number, f"the value of {name!r} is missing ('?'); fill it in before reading")
        try:
            value = float(text) if text.isascii() and "_" not in text else np.nan
        except ValueError:
            value = np.nan
        if not np.isfinite(value):
            self.fail(number, f"the value {text!r} of {name!r} is not a finite number")
        return float(value)

    def _add(self, number: int, column: int, text: str, name: str) -> None:
        value = self._number(number, text, name)
        allowed = self.nominal[column]
        if allowed is not None and value not in allowed:
            self.fail(number, f"the value {text!r} of {name!r} is not among its {len(allowed)} declared values")
        if value != 0:
            self.indices.append(column)
            self.values.append(value)

    def _dense_row(self, number: int, line: str) -> None:
        values = self._split(number, line)
        if len(values) != len(self.names):
            self.fail(number, f"{len(values)} values for {len(self.names)} attributes")
        for column, (text, name) in enumerate(zip(values, self.names, strict=True)):
            self._add(number, column, text, name)

    def _sparse_row(self, number: int, line: str) -> None:
        if not line.endswith("}"):
            self.fail(number, "the row starts with { but does not end with }")
        if len(self.indptr) == 1:
            self._prepare_sparse(number)
        body = line[1:-1].strip()
        seen: set[int] = set()
        start = 0
        while start < len(body):
            match = _ENTRY.match(body, start)
            if match is None or (match.end() < len(body) and body[match.end()] != ","):
                self.fail(number, f"expected 'attribute value' pairs, found {body[start : start + 40]!r}")
            column = int(match[1])
            if column >= len(self.names):
                self.fail(number, f"attribute {column} is too large: there are {len(self.names)}, numbered from 0")
            if column in seen:
                self.fail(number, f"attribute {column} appears twice")
            seen.add(column)
            self._add(number, column, _unquote(match[2]), self._listed[column])
            start = match.end() + 1

    def _prepare_sparse(self, number: int) -> None:
        """Check that the first value of every attribute, which sparse rows leave out, is 0."""
        self._listed = list(self.names)
        for name, zero in zip(self._listed, self.zero_is_first, strict=True):
            if not zero:
                self.fail(
                    self.names[name], f"in a sparse file the first value of {name!r} must be 0, since rows leave it out"
                )
