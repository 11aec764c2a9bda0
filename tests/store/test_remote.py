"""Models in object stores: a real server that speaks S3, on this machine."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import numpy as np
import pytest

from longtail import Ridge, load
from longtail.errors import InvalidInput, LongtailError, ModelFormatError, Unavailable
from longtail.store import State, inspect_model, read_card, read_model, remote_behind, update_card, write_model
from longtail.store.remote import RemoteDirectory

s3fs = pytest.importorskip("s3fs")
LARGE = np.arange(400_000.0)  # more than what is read at once, so it is mapped
SMALL = np.array([0.5, 2.0])


@pytest.fixture
def store(bucket: str) -> Any:
    return s3fs.S3FileSystem(skip_instance_cache=True, use_listings_cache=False)


@pytest.fixture
def url(bucket: str) -> str:
    """A model of two files."""
    write_model(State("Mean", arrays={"large": LARGE, "small": SMALL}), f"{bucket}/models/mean")
    return f"{bucket}/models/mean"


@pytest.fixture
def clear_cache(bucket: str, tmp_path: Path) -> Callable[[], None]:
    def clear() -> None:
        for path in cached(tmp_path):
            path.unlink()

    return clear


def cached(folder: Path) -> list[Path]:
    return sorted((path for path in (folder / "cache").rglob("*") if path.is_file()), key=lambda path: path.name)


def from_now_on(object_store: str, requests: bytes) -> None:
    """Let the server answer so many requests before it checks keys."""
    urlopen(Request(f"{object_store}/moto-api/reset-auth", requests, {"Content-Type": "text/plain"})).close()


def object_with(store: Any, url: str, name: str) -> str:
    return next(path for path in store.ls(url) if name in path)


def test_a_bucket_holds_the_files_of_a_directory(bucket: str, store: Any, tmp_path: Path) -> None:
    model = Ridge().fit([[1.0, 0.0], [0.0, 1.0]], [[1, 0], [0, 1]])
    model.save(tmp_path / "model")
    model.save(f"{bucket}/deep/model")
    found = {Path(path).name: store.cat_file(path) for path in store.ls(f"{bucket}/deep/model")}
    assert found == {path.name: path.read_bytes() for path in (tmp_path / "model").iterdir()}
    again = load(f"{bucket}/deep/model/")
    assert again.directory_ == f"{bucket}/deep/model/"
    assert np.array_equal(again.coef_, model.coef_)


def test_what_is_in_the_cache_is_not_fetched_again(url: str, store: Any, clear_cache: Callable[[], None]) -> None:
    clear_cache()
    read_model(url)
    for name in ("large", "small"):
        store.rm_file(object_with(store, url, name))
    for verify in (False, True):
        found = read_model(url, verify=verify)
        assert np.array_equal(found.arrays["large"], LARGE)
        assert np.array_equal(found.arrays["small"], SMALL)


def test_a_new_model_fetches_only_what_has_changed(
    url: str, store: Any, clear_cache: Callable[[], None], tmp_path: Path
) -> None:
    write_model(State("Mean", arrays={"large": LARGE, "small": SMALL + 1}), url)
    assert len(store.ls(url)) == 3  # the file that the new model does not have is gone
    (only,) = [path for path in cached(tmp_path) if "large" in path.name]
    clear_cache()
    store.get_file(object_with(store, url, "large"), os.fspath(only))
    store.rm_file(object_with(store, url, "large"))
    assert np.array_equal(read_model(url).arrays["small"], SMALL + 1)


def test_describing_a_model_fetches_no_array(url: str, clear_cache: Callable[[], None], tmp_path: Path) -> None:
    clear_cache()
    assert inspect_model(url)["kind"] == "Mean"
    assert not cached(tmp_path)


@pytest.mark.parametrize("name", ["large", "small"])
@pytest.mark.parametrize("change", [lambda old: old[:-1] + b"!", lambda old: old[:-8], lambda old: old + b"!"])
def test_a_damaged_object_is_refused_and_not_kept(
    url: str, store: Any, clear_cache: Callable[[], None], tmp_path: Path, name: str, change: Any
) -> None:
    clear_cache()
    path = object_with(store, url, name)
    store.pipe_file(path, change(store.cat_file(path)))
    with pytest.raises(ModelFormatError, match=f"{name}-.* does not match its checksum"):
        read_model(url)
    assert not [path for path in cached(tmp_path) if name in path.name or path.suffix != ".npy"]


@pytest.mark.parametrize("name", ["large", "small"])
def test_a_missing_object_is_refused(url: str, store: Any, clear_cache: Callable[[], None], name: str) -> None:
    clear_cache()
    store.rm_file(object_with(store, url, name))
    with pytest.raises(ModelFormatError, match=rf"{url}: {name}-.*\.npy is missing"):
        read_model(url)


def test_a_damaged_manifest_is_refused(url: str, store: Any) -> None:
    path = f"{url}/manifest.json"
    store.pipe_file(path, store.cat_file(path).replace(b"Mean", b"Mode"))
    with pytest.raises(ModelFormatError, match=f"{url}: the manifest does not match its checksum"):
        read_model(url)
    store.pipe_file(path, bytes(5 * 2**20))
    with pytest.raises(ModelFormatError, match="the manifest is larger than"):
        read_model(url)


def test_a_damaged_cache_is_made_again(url: str, tmp_path: Path) -> None:
    large, small = cached(tmp_path)
    for damage, verify in ((b"", False), (bytes(large.stat().st_size), True)):
        large.write_bytes(damage)
        small.write_bytes(bytes(small.stat().st_size))
        found = read_model(url, verify=verify)
        assert np.array_equal(found.arrays["large"], LARGE)
        assert np.array_equal(found.arrays["small"], SMALL)


def test_readers_at_once_fetch_each_file_once(
    url: str, clear_cache: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    clear_cache()
    fetched, checked = [], RemoteDirectory._checked

    def noting(self: RemoteDirectory, stored: Any) -> Any:
        fetched.append(stored.name)
        return checked(self, stored)

    monkeypatch.setattr(RemoteDirectory, "_checked", noting)
    with ThreadPoolExecutor(4) as executor:
        found = list(executor.map(read_model, [url] * 8))
    assert len(fetched) == len(set(fetched)) == 2
    assert all(np.array_equal(each.arrays["large"], LARGE) for each in found)


def test_mapped_arrays_know_their_url(url: str, clear_cache: Callable[[], None]) -> None:
    arrays = read_model(url).arrays
    assert remote_behind(arrays["small"]) is None
    file = remote_behind(arrays["large"])
    assert file.url == url
    file.check()
    clear_cache()
    assert np.array_equal(file.values, LARGE)


def test_an_unknown_bucket_is_told(bucket: str) -> None:
    for call in (read_model, lambda url: write_model(State("Mean"), url)):
        with pytest.raises(Unavailable, match="there is no such bucket") as caught:
            call("s3://nobody-has-this-bucket/model")
        assert caught.value.code == "no_bucket"


def test_an_empty_place_is_told(bucket: str) -> None:
    with pytest.raises(ModelFormatError, match=r"there is no model here \(manifest.json is missing\)"):
        read_model(f"{bucket}/nothing")


@pytest.mark.parametrize("call", [read_model, lambda url: write_model(State("Mean"), url)])
def test_a_server_that_does_not_answer_is_told(
    bucket: str, monkeypatch: pytest.MonkeyPatch, call: Callable[[str], Any], tmp_path: Path
) -> None:
    from fsspec.config import conf

    options = {"connect_timeout": 1, "read_timeout": 1, "retries": {"max_attempts": 0}}
    monkeypatch.setitem(conf, "s3", {"endpoint_url": "http://127.0.0.1:9", "config_kwargs": options})
    monkeypatch.setattr(s3fs.S3FileSystem, "retries", 1)
    with pytest.raises(Unavailable, match="does not answer") as caught:
        call(f"{bucket}/model")
    assert caught.value.code == "no_answer"
    assert not cached(tmp_path)


def test_denied_access_is_told_without_credentials(
    url: str, object_store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fsspec.config import conf

    monkeypatch.setitem(conf, "s3", {"key": "stranger", "secret": "very secret"})
    from_now_on(object_store, b"0")
    try:
        for call in (read_model, lambda url: write_model(State("Mean"), url)):
            with pytest.raises(Unavailable, match="access was denied") as caught:
                call(url)
            assert caught.value.code == "access_denied"
            assert "stranger" not in str(caught.value)
            assert "secret" not in str(caught.value)
    finally:
        from_now_on(object_store, b"inf")


@pytest.mark.parametrize(
    "url", ["s3://key:secret@bucket/model", "https://host/model?signature=secret", "https://secret@host/model"]
)
def test_urls_with_credentials_are_refused(url: str) -> None:
    with pytest.raises(InvalidInput, match="a password or a query") as caught:
        load(url)
    assert caught.value.code == "credentials_in_url"
    assert "secret" not in str(caught.value)


def test_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gcsfs", None)
    with pytest.raises(Unavailable, match="needs gcsfs") as caught:
        load("gs://bucket/model")
    assert (caught.value.code, caught.value.name) == ("missing_package", "gcsfs")
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(Unavailable, match=r"pip install 'longtail\[storage\]'") as caught:
        load("s3://bucket/model")
    assert (caught.value.code, caught.value.name) == ("missing_package", "fsspec")


@pytest.mark.parametrize("url", ["s3://", "memory:///"])
def test_a_url_without_a_place_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput, match="names no bucket"):
        load(url)


def test_an_unknown_scheme_is_told() -> None:
    with pytest.raises(InvalidInput, match="fsspec does not know cloud9 URLs"):
        load("cloud9://bucket/model")


def test_an_interrupted_upload_leaves_the_old_model(
    url: str, store: Any, clear_cache: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = inspect_model(url)["fingerprint"]
    new = State("Mean", arrays={"first": LARGE + 1, "second": LARGE + 2})
    write = s3fs.core.S3File.write

    def failing(self: Any, data: Any) -> Any:
        if "first" in self.path:
            return write(self, data)
        write(self, data[:1000])
        raise ConnectionResetError("the line is dead")

    with monkeypatch.context() as patch:
        patch.setattr(s3fs.core.S3File, "write", failing)
        with pytest.raises(Unavailable) as caught:
            write_model(new, url)
        assert caught.value.code == "no_answer"
    clear_cache()
    assert read_model(url).fingerprint == before
    assert np.array_equal(read_model(url).arrays["large"], LARGE)

    first = object_with(store, url, "first")
    content = store.cat_file(first)
    store.pipe_file(first, bytes(len(content)))
    write_model(new, url)
    assert store.cat_file(first) == bytes(len(content))  # an object of this name and size is not uploaded again
    store.pipe_file(first, content)
    assert np.array_equal(read_model(url).arrays["second"], LARGE + 2)


def test_only_models_are_replaced(bucket: str, store: Any) -> None:
    store.pipe_file(f"{bucket}/notes/notes.txt", b"mine")
    store.pipe_file(f"{bucket}/app/manifest.json", b"{}")
    for name, reason in (("notes", "is not a model and not empty"), ("app", "of something else")):
        with pytest.raises(InvalidInput, match=reason):
            write_model(State("Mean"), f"{bucket}/{name}")


def test_a_card_belongs_to_the_model_at_the_url(url: str) -> None:
    assert read_card(url) is None
    update_card(url, data={"source": "two rows", "rows": 2})
    assert read_card(url) == {"data": {"source": "two rows", "rows": 2}}
    write_model(State("Mean", arrays={"small": SMALL}), url)
    assert read_card(url) is None
    write_model(State("Mean", arrays={"small": SMALL}), url, card={"data": {"rows": 3}})
    assert read_card(url) == {"data": {"rows": 3}}


def test_a_file_url_is_a_directory(tmp_path: Path) -> None:
    url = (tmp_path / "a model").as_uri()
    write_model(State("Mean", arrays={"small": SMALL}), url)
    assert (tmp_path / "a model" / "manifest.json").is_file()
    assert np.array_equal(read_model(url).arrays["small"], SMALL)


def test_other_stores_of_fsspec_work(bucket: str) -> None:
    write_model(State("Mean", arrays={"small": SMALL}), "memory://models/mean")
    assert np.array_equal(read_model("memory://models/mean").arrays["small"], SMALL)
    with pytest.raises(ModelFormatError, match="there is no model here"):
        read_model("memory://models/other")


def test_a_cache_that_cannot_be_written_is_told(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("LONGTAIL_CACHE", str(tmp_path / "file"))
    with pytest.raises(LongtailError, match=r"the cache .* cannot be used: .*\$LONGTAIL_CACHE"):
        read_model(url)


def test_fsspec_is_imported_only_for_urls() -> None:
    program = "import sys, longtail.store, longtail.cli, longtail.prepared; sys.exit('fsspec' in sys.modules)"
    assert subprocess.run([sys.executable, "-I", "-c", program]).returncode == 0
