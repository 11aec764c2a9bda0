"""What is fuzzed: functions of any bytes that raise only where the program broke a promise.

`python -m tests.fuzz TARGET` lets a coverage-guided fuzzer look for such bytes; `test_corpus.py` replays the inputs
that were interesting so far.
"""

from __future__ import annotations

import io
import os
import tempfile
import warnings
import zipfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from scipy import sparse

from longtail import Ridge, load, native
from longtail.data import (
    Corpus,
    GroupedCorpus,
    read_corpus,
    read_grouped_delimited,
    read_grouped_jsonl,
    read_groups,
    read_idx,
    read_label_texts,
    write_corpus,
    write_grouped_jsonl,
)
from longtail.errors import InvalidInput, LongtailError
from longtail.labels import read_taxonomy
from longtail.store import manifest as manifests
from longtail.store import read_card, write_model
from longtail.text.tokens import page_of_code_points, tokenize, word_spans
from tests.store import forged_models
from tests.store.forgery import Forger
from tests.store.stored_states import sealed_text

Target = Callable[[bytes], None]

_LINE_LIMIT = 2**12
_SEPARATOR = b"\xff\xfe\xff"
_folder = tempfile.TemporaryDirectory(prefix="longtail-fuzz-")


def _path(name: str) -> Path:
    return Path(_folder.name, name)


def _file(name: str, content: bytes) -> Path:
    path = _path(name)
    path.write_bytes(content)
    return path


def _one_of(data: bytes, *targets: Target) -> None:
    """Let the first byte choose a target for the rest."""
    targets[data[0] % len(targets) if data else 0](data[1:])


def repository_text(data: bytes) -> None:
    """Both forms of the parser give the same arrays or the same error, wherever the blocks are cut."""
    header, cut, content = bool(data[:1] < b"\x80"), data[1:2], data[2:]
    place = min(cut[0] if cut else 0, len(content))
    found = []
    for kernels in (native.kernels, native.twins):
        parser = kernels.RepositoryText(header, _LINE_LIMIT)
        _ = parser.feed(content[:place]) and parser.feed(content[place:])
        found.append((parser.finish(), parser.error))
    (ours, error), (theirs, other) = found
    assert error == other, (error, other)
    assert (ours is None) == (theirs is None) == (error is not None)
    for one, two in zip(ours or (), theirs or (), strict=True):
        assert one.dtype == two.dtype, (one.dtype, two.dtype)
        assert one.tobytes() == two.tobytes(), (one, two)


@cache
def _code_points(kernels: str) -> Any:
    return getattr(native, kernels).CodePoints(page_of_code_points)


def texts(data: bytes) -> None:
    """Both forms of the text kernels count alike, and tokens are where `word_spans` says."""
    shortest, more, min_length = (byte % 3 for byte in data[:3].ljust(3, b"\0"))
    rule = (min_length + 1, shortest + 1, shortest + more + 1, (0, 3, 5, 20)[sum(data[:3]) // 3 % 4])
    pieces = data[3:].decode("utf-8", "replace").split("\n")
    given = [piece if piece.isascii() else piece.encode() for piece in pieces]
    counted = []
    for name in ("kernels", "twins"):
        kernels: Any = getattr(native, name)
        growing = kernels.GrowingVocabulary()
        rows = growing.count(given, _code_points(name), *rule, True)
        ids = growing.sorted(np.arange(len(growing.frequencies())))
        table = growing.tokens(ids)
        fixed = kernels.Vocabulary(*table).count(given, _code_points(name), *rule)
        counted.append((*rows[:1], *table, growing.frequencies()[ids], *fixed, np.array(kernels.ascending(*table))))
    for one, two in zip(*counted, strict=True):
        assert one.tobytes() == two.tobytes(), (one, two)
    for piece in pieces:
        spans = word_spans(piece, rule[0])
        assert [span.token for span in spans] == tokenize(piece, rule[0]), piece
        assert all(0 <= span.start < span.end <= len(piece) for span in spans)


def _check_corpus(corpus: Corpus | GroupedCorpus) -> None:
    matrices = [corpus.labels] if isinstance(corpus, Corpus) else [corpus.groups, corpus.group_labels]
    if corpus.features is not None:
        matrices.append(corpus.features)
    for matrix in matrices:
        checked = sparse.csr_array((matrix.data, matrix.indices, matrix.indptr), shape=matrix.shape)
        checked.check_format(full_check=True)
        assert checked.has_canonical_format
        assert np.isfinite(matrix.data).all()
    assert len(set(corpus.label_names)) == len(corpus.label_names)


def _same_corpus(one: Any, two: Any) -> bool:
    """Whether two corpora hold the same rows; labels may be numbered otherwise."""

    def rows(corpus: Any) -> list[Any]:
        matrix = corpus.labels if isinstance(corpus, Corpus) else corpus.group_labels
        names = corpus.label_names
        return [
            sorted((names[label], float(value)) for label, value in zip(row.indices, row.data, strict=True))
            for row in (matrix[[number]] for number in range(matrix.shape[0]))
        ]

    return one.texts == two.texts and rows(one) == rows(two)


def _round_trip(corpus: Any, suffix: str, write: Callable[..., None], read: Callable[..., Any]) -> None:
    path = _path(f"again{suffix}")
    try:
        write(corpus, path)
    except InvalidInput:  # a name that holds what the format cannot say
        return
    assert _same_corpus(corpus, read(path))


def _json_lines(data: bytes) -> None:
    corpus = read_corpus(_file("rows.jsonl", data))
    _check_corpus(corpus)
    _round_trip(corpus, ".jsonl", write_corpus, read_corpus)


def _grouped_json_lines(data: bytes) -> None:
    corpus = read_grouped_jsonl(_file("groups.jsonl", data))
    _check_corpus(corpus)
    _round_trip(corpus, ".groups.jsonl", write_grouped_jsonl, read_grouped_jsonl)


def _commas(data: bytes, name: str = "rows.csv") -> None:
    path = _file(name, data)
    with suppress(LongtailError):
        _check_corpus(read_grouped_delimited(path, group="group"))
    corpus = read_corpus(path)
    _check_corpus(corpus)
    _round_trip(corpus, path.suffix, write_corpus, read_corpus)


def _tabs(data: bytes) -> None:
    _commas(data, "rows.tsv")


def _gzipped(data: bytes) -> None:
    _check_corpus(read_corpus(_file("rows.jsonl.gz", data)))


def rows(data: bytes) -> None:
    """Rows and groups of texts: what was read is sound, and reads the same after it was written."""
    _one_of(data, _json_lines, _grouped_json_lines, _commas, _tabs, _gzipped)


def _arff(data: bytes) -> None:
    listed, _, content = data.partition(_SEPARATOR)
    _file("rows.xml", listed)
    _check_corpus(read_corpus(_file("rows.arff", content)))


def _scipy_pair(data: bytes) -> None:
    """Each member of the zip is any bytes; the zip itself is sound, or its checksums would stop everything."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, member in zip(_MEMBERS, data.split(_SEPARATOR), strict=False):
            archive.writestr(f"{name}.npy", member)
    features, labels = _file("X.npz", content.getvalue()), _file("Y.npz", content.getvalue())
    _check_corpus(read_corpus(features, labels_path=labels))


_MEMBERS = ("format", "shape", "indptr", "indices", "data")


def _groups_file(data: bytes) -> None:
    three = Corpus.from_lists(["a", "b", "c"], [["x"], [], ["y"]])
    _check_corpus(read_groups(_file("groups.txt", data), three))


def _taxonomy(data: bytes) -> None:
    names = [f"l{number}" for number in range(4)]
    hierarchy = read_taxonomy(_file("taxonomy.tsv", data), names, missing="root")
    assert sorted(hierarchy.labels.tolist()) == list(range(4))
    hierarchy.format(names)


def _images(data: bytes) -> None:
    read_idx(_file("images", data))


def other_files(data: bytes) -> None:
    """The other file formats: what was read is sound."""
    _one_of(data, _arff, _scipy_pair, _groups_file, _taxonomy, _images)


def label_texts(data: bytes) -> None:
    """Label texts: every label has a name, and a corpus takes them or says why not."""
    name = ("a.jsonl", "a.json", "a.tsv", "a.csv")[data[0] % 4 if data else 0]
    found = read_label_texts(_file(name, data[1:]))
    assert len(set(found.labels)) == len(found.labels) == len(found.texts)
    assert all(texts and all(text.strip() for text in texts) for texts in found.texts)
    _check_corpus(Corpus.from_lists(["a", "b"], [["x"], ["y"]]).with_label_texts(found))


def _manifest(data: bytes) -> None:
    """A manifest whose checksum fits is refused, or means the same when it is written again."""
    read = manifests.decode(sealed_text(b"{" + data))
    assert manifests.decode(manifests.encode(read)).model == read.model


@cache
def _carded() -> tuple[Path, bytes]:
    directory = _path("carded")
    Ridge().fit([[1.0, 0.0], [0.0, 1.0]], [[1, 0], [0, 1]]).save(directory)
    return directory, sha256((directory / "manifest.json").read_bytes()).hexdigest().encode()


def _card(data: bytes) -> None:
    """A card is shown, or left out with a warning."""
    directory, fingerprint = _carded()
    (directory / "card.json").write_bytes(data.replace(b"FINGERPRINT", fingerprint))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        read_card(directory)


def manifest(data: bytes) -> None:
    """The two JSON files of a model directory."""
    _one_of(data, _manifest, _card)


@cache
def _forgers() -> list[Forger]:
    """One for each kind of model without a network; the models are made once."""
    found = []
    for number, build in enumerate([*forged_models.linear().values(), *forged_models.taggers().values()]):
        source = _path(f"sound{number}")
        write_model(build().to_state(), source)
        found.append(Forger(source, _path(f"forged{number}")))
    return found


def model(data: bytes) -> None:
    """A forged model is refused, or answers with finite numbers; a byte chooses its kind, four each make a change."""
    forgers = _forgers()
    forger = forgers[data[0] % len(forgers) if data else 0]
    forger.forge_by(int.from_bytes(data[place : place + 4], "big") for place in range(1, min(len(data), 33), 4))
    with warnings.catch_warnings(), patch.dict(os.environ, LONGTAIL_MEMORY="256M"):
        warnings.simplefilter("ignore")
        loaded = load(forger.target)
        for question in forged_models.questions(loaded, forger.target):
            with suppress(LongtailError):
                forged_models.check(question(), getattr(loaded, "n_labels_", None))


TARGETS: dict[str, Target] = {
    target.__name__: target for target in (repository_text, texts, rows, other_files, label_texts, manifest, model)
}


def run(target: Target, data: bytes) -> None:
    """Call a target. An error of ours tells a user what is wrong with a file: that is a good end."""
    with suppress(LongtailError):
        target(data)
