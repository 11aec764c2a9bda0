"""The embedded corpus: the docstrings of the installed NumPy, SciPy and scikit-learn, tagged with API names.

It needs no download and has the long tail of real tagging tasks. `docs/python-api.md` describes its labels, its split,
and the rules that keep the name of an object out of its document.
"""

from __future__ import annotations

import hashlib
import json
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import numpy as np

from longtail.data.corpus import Corpus, encode_labels
from longtail.data.grouped import memberships
from longtail.data.sets.docstrings import parse_docstring
from longtail.data.sets.public_api import PublicObject, public_objects
from longtail.errors import InvalidInput, Unavailable
from longtail.files import cache_directory, whole_file
from longtail.progress import task

FORMAT = 2
_PACKAGES = {"numpy": "numpy", "scipy": "scipy", "sklearn": "scikit-learn"}
_ORDINARY_IN = 5
PROSE = ("summary", "description", "notes")  # the sections that ordinary words are counted in
_BOILERPLATE_IN = 5
_FEWEST_WORDS = 5
_TEST_SHARE = 0.2

_WORD = re.compile(r"(?<![\w.`])[A-Za-z]+(?![\w(`]|\.\w)")
_CODE = re.compile(r"`[^`]*`")


@dataclass(frozen=True)
class Document:
    """One docstring: its paragraphs, without the name of the object, and its labels.

    Parameters
    ----------
    name : str
        The qualified name of the object.
    labels : tuple of str
        The name of the object, its module, and the names in its See Also section.
    paragraphs : tuple of str
    is_test : bool
        Whether it belongs to the test part.
    """

    name: str
    labels: tuple[str, ...]
    paragraphs: tuple[str, ...]
    is_test: bool


def python_api_versions() -> dict[str, str]:
    """The versions of the packages whose docstrings make up the corpus.

    >>> sorted(python_api_versions())
    ['numpy', 'scikit-learn', 'scipy']
    """
    return {distribution: version(distribution) for distribution in _PACKAGES.values()}


def load_python_api(
    *, rows: Literal["documents", "paragraphs"] = "documents", split: Literal["train", "test"] | None = None
) -> Corpus:
    """Load the embedded corpus, building it on first use.

    Parameters
    ----------
    rows : {"documents", "paragraphs"}
        One row per docstring, or one row per paragraph with the docstrings as `groups`.
    split : {"train", "test"} or None
        The part of a fixed split. Both parts have the labels that occur in training. None returns all documents with
        all labels.

    Examples
    --------
    >>> corpus = load_python_api()
    >>> row = corpus.row_names.index("numpy.polyfit")
    >>> sorted(corpus.label_names[label] for label in corpus.labels[[row]].indices)
    ['numpy', 'numpy.linalg.lstsq', 'numpy.polyfit', 'numpy.polyval', 'scipy.interpolate.UnivariateSpline']
    """
    if rows not in ("documents", "paragraphs"):
        raise InvalidInput(f"rows is {rows!r}; expected 'documents' or 'paragraphs'")
    if split not in (None, "train", "test"):
        raise InvalidInput(f"split is {split!r}; expected 'train', 'test' or None")
    every = _cached_documents()
    training = [document for document in every if split is None or not document.is_test]
    names = tuple(sorted({label for document in training for label in document.labels}))
    documents = training if split != "test" else [document for document in every if document.is_test]
    known = set(names)
    labels, _ = encode_labels([[label for label in document.labels if label in known] for document in documents], names)
    if rows == "documents":
        return Corpus(
            labels=labels,
            label_names=names,
            texts=["\n\n".join(document.paragraphs) for document in documents],
            row_names=[document.name for document in documents],
        )
    group = np.repeat(np.arange(len(documents)), [len(document.paragraphs) for document in documents])
    return Corpus(
        labels=labels[group],
        label_names=names,
        texts=[text for document in documents for text in document.paragraphs],
        groups=memberships(group, len(documents)),
        row_names=[documents[number].name for number in group],
    )


def build_documents() -> list[Document]:
    """Build the corpus from the docstrings of the installed packages, in name order."""
    with task("Reading the docstrings of NumPy, SciPy and scikit-learn"):
        objects = public_objects(list(_PACKAGES))
        parsed = {known.name: parse_docstring(known.docstring, _last(known.name)) for known in objects}
    ordinary = ordinary_words(
        (_last(name), [text for section, text in docstring.paragraphs if section in PROSE])
        for name, docstring in parsed.items()
    )
    masked = {
        known.name: [
            (section, without_name(text, {_last(name) for name in (known.name, *known.aliases)}, ordinary))
            for section, text in parsed[known.name].paragraphs
        ]
        for known in objects
    }
    seen_in = Counter(text for paragraphs in masked.values() for text in {text for _, text in paragraphs})
    kept = {
        name: tuple(
            text
            for section, text in paragraphs
            if re.search(r"\w", text) and (section == "summary" or seen_in[text] < _BOILERPLATE_IN)
        )
        for name, paragraphs in masked.items()
    }
    objects = [known for known in objects if sum(len(text.split()) for text in kept[known.name]) >= _FEWEST_WORDS]
    if not objects:
        raise Unavailable(
            "the installed NumPy, SciPy and scikit-learn have no docstrings; run Python without -OO and PYTHONOPTIMIZE"
        )
    resolve = _Names(objects)
    held_out = _held_out({known.name: kept[known.name][0] for known in objects})
    return [
        Document(
            name=known.name,
            labels=tuple(dict.fromkeys([known.name, known.module, *resolve.all(known, parsed[known.name].see_also)])),
            paragraphs=kept[known.name],
            is_test=known.name in held_out,
        )
        for known in objects
    ]


def ordinary_words(documents: Iterable[tuple[str, Iterable[str]]]) -> set[str]:
    """Lower-case words that occur in the prose of several documents about other objects.

    Parameters
    ----------
    documents : iterable of (str, iterable of str)
        The last part of the name and the prose of each document.
    """
    counts: Counter[str] = Counter()
    for name, texts in documents:
        words = {word.lower() for text in texts for word in _WORD.findall(_CODE.sub("`", text))}
        counts.update(words - {name.lower()})
    return {word for word, count in counts.items() if count >= _ORDINARY_IN}


def without_name(text: str, names: Iterable[str], ordinary: set[str]) -> str:
    """Remove every mention of `names` as an identifier from a text.

    A name that is also an ordinary word stays where it is used as a word: outside backticks, not called, not dotted.

    Examples
    --------
    >>> without_name("`sort` will sort; see numpy.sort and sort(a).", ["sort"], {"sort"})
    '`` will sort; see and (a).'
    >>> without_name("polyfit warns. Polyfit of numpy.polyfit.", ["polyfit"], {"sort"})
    'warns. of .'
    """
    for name in sorted(names, key=len, reverse=True):
        if not is_ordinary(name, ordinary):  # also inside `name_like_this`, since tokens end at "_"
            part = rf"(?:(?<![\w.])(?:\w+\.)+)?(?<![^\W_]){re.escape(name)}(?![^\W_])"
            text = re.sub(part, "", text, flags=re.IGNORECASE)
            continue
        whole = rf"(?<!\w){re.escape(name)}(?!\w)"
        text = _CODE.sub(lambda code, whole=whole: re.sub(whole, "", code[0], flags=re.IGNORECASE), text)  # type: ignore[misc]
        code_like = rf"(?<![\w.])(?:\w+\.)+{re.escape(name)}(?!\w)|{whole}(?=\(|\.\w)"
        text = re.sub(code_like, "", text, flags=re.IGNORECASE)
    return re.sub(r"\s+", " ", text).strip()


def is_ordinary(name: str, ordinary: set[str]) -> bool:
    """Whether a name is a word: only letters, no capital inside, and used as a word elsewhere."""
    return re.fullmatch(r"[A-Z]?[a-z]+", name) is not None and name.lower() in ordinary


class _Names:
    """Finds the document that a name in a See Also section refers to."""

    def __init__(self, objects: list[PublicObject]) -> None:
        self._known = {alias: known.name for known in objects for alias in known.aliases}
        self._known |= {known.name: known.name for known in objects}
        last: dict[tuple[str, str], set[str]] = {}
        for known in objects:
            last.setdefault((known.name.partition(".")[0], _last(known.name)), set()).add(known.name)
        self._only = {key: names.pop() for key, names in last.items() if len(names) == 1}

    def all(self, known: PublicObject, written: Iterable[str]) -> list[str]:
        found = (self._one(known.name, name) for name in written)
        return [name for name in found if name is not None and name != known.name]

    def _one(self, home: str, written: str) -> str | None:
        written = re.sub(r"^np\.", "numpy.", written)
        package = home.partition(".")[0]
        while home:
            home = home.rpartition(".")[0]
            candidate = f"{home}.{written}" if home else written
            if candidate in self._known:
                return self._known[candidate]
        return self._only.get((package, written))


def _held_out(summaries: Mapping[str, str]) -> set[str]:
    """The documents of the test part: a fifth, by the hash of their name; equal summaries stay together."""
    first: dict[str, str] = {}
    for name in sorted(summaries):
        first.setdefault(summaries[name].lower(), name)
    return {name for name, summary in summaries.items() if _fraction(first[summary.lower()]) < _TEST_SHARE}


def _fraction(name: str) -> float:
    return int.from_bytes(hashlib.sha256(name.encode("utf-8")).digest()[:8], "big") / 2**64


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def python_api_cache_file() -> Path:
    """The cache file of the built corpus: one for each combination of package versions and corpus format."""
    versions = "-".join(f"{name}-{number}" for name, number in python_api_versions().items())
    return cache_directory() / "python-api" / f"format-{FORMAT}-{versions}.jsonl"


def _cached_documents() -> list[Document]:
    path = python_api_cache_file()
    documents = _read(path)
    if documents is None:
        documents = build_documents()
        try:
            with whole_file(path, parents=True) as file:
                file.write(_serialized(documents))
        except OSError as error:
            warnings.warn(f"the corpus could not be saved to {path} ({error}); set LONGTAIL_CACHE", stacklevel=3)
    return documents


def _serialized(documents: list[Document]) -> bytes:
    body = "".join(f"{json.dumps(vars(it), ensure_ascii=False)}\n" for it in documents).encode("utf-8")
    return hashlib.sha256(body).hexdigest().encode("ascii") + b"\n" + body


def _read(path: Path) -> list[Document] | None:
    """The documents of a cache file, or None if it is missing or damaged and has to be built again."""
    try:
        digest, _, body = path.read_bytes().partition(b"\n")
    except OSError:
        return None
    if hashlib.sha256(body).hexdigest().encode("ascii") != digest:
        return None
    return [_document(json.loads(line)) for line in body.decode("utf-8").splitlines()]


def _document(record: dict[str, Any]) -> Document:
    return Document(record["name"], tuple(record["labels"]), tuple(record["paragraphs"]), record["is_test"])
