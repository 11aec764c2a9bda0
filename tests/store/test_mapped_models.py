"""Large arrays are mapped, not read: loading costs the same for any size, and damage in them does no harm.

Every verdict on damage is passed on real predictions: with `verify=True` it is found, without it the labels given are
labels of the model, or `ModelFormatError` says why there are none.
"""

from __future__ import annotations

import os
import shutil
from hashlib import file_digest

import numpy as np
import psutil
import pytest
from scipy import sparse

import longtail
from longtail import Ridge, Tagger
from longtail.data import Corpus
from longtail.errors import ModelFormatError
from longtail.store import State, StringTable, files, read_model, write_model
from longtail.store import read as store_read
from longtail.store.layout import DTYPES, file_length, header
from longtail.store.read import SMALLEST_MAPPED
from longtail.text import RowScaling
from tests.store.stored_states import example_state, fields_of, same, sealed

MAPPED_DTYPES = sorted(DTYPES)


@pytest.fixture
def bytes_read(monkeypatch):
    """Counts the bytes read from files, to hash or to keep them."""
    counted = {"bytes": 0}

    class Counting:
        def __init__(self, file):
            self.file = file

        def __enter__(self):
            return self

        def __exit__(self, *error):
            self.file.close()

        def fileno(self):
            return self.file.fileno()

        def read(self, length):
            content = self.file.read(length)
            counted["bytes"] += len(content)
            return content

    def counting_digest(file, name):
        digest = file_digest(file.file, name)
        counted["bytes"] += file.file.tell()
        return digest

    opened = store_read.open_plain
    for module in (store_read, files):
        monkeypatch.setattr(module, "open_plain", lambda path: Counting(opened(path)))
    monkeypatch.setattr(store_read, "file_digest", counting_digest)
    return counted


def enlarge(directory, entries, dtype, shape):
    """Replace the file that `entries` describe in the manifest by a sparse file of zeros of any size."""
    fields = fields_of(directory)
    array = fields["model"]
    for entry in entries:
        array = array[entry]
    array["shape"] = list(shape)
    entry = array["files"]["values"]
    entry.update(dtype=dtype, shape=list(shape), length=file_length(dtype, shape))
    with (directory / entry["name"]).open("r+b") as file:
        file.write(header(dtype, shape))
        file.truncate(entry["length"])
    return fields


@pytest.mark.parametrize("dtype", MAPPED_DTYPES)
def test_every_dtype_is_mapped_read_only(tmp_path, dtype):
    values = (np.arange(SMALLEST_MAPPED // DTYPES[dtype].itemsize) % 2).astype(dtype)
    write_model(State("A", arrays={"x": values, "none": values[:0], "flat": values[:0].reshape(3, 0)}), tmp_path / "a")
    state = read_model(tmp_path / "a")
    read = state.array("x", DTYPES[dtype], (None,))
    np.testing.assert_array_equal(read, values)
    assert not read.flags.writeable
    assert read.flags.aligned
    assert state.array("none", DTYPES[dtype], (0,)).shape == (0,)
    assert state.array("flat", DTYPES[dtype], (3, 0)).shape == (3, 0)
    with pytest.raises(ValueError, match="read-only"):
        read[0] = 1


def test_what_a_load_reads_does_not_grow_with_the_arrays(tmp_path, bytes_read):
    costs = []
    for scale in (1, 8):
        size = scale * SMALLEST_MAPPED
        names = tuple(f"{number:015d}" for number in range(size // 15 + 1))
        state = State("A", facts={"n": 1}, arrays={"x": np.ones(size, np.float32), "names": names})
        write_model(state, tmp_path / str(scale))
        bytes_read["bytes"] = 0
        read_model(tmp_path / str(scale))
        costs.append(bytes_read["bytes"])
    manifest = (tmp_path / "8" / "manifest.json").stat().st_size
    offsets = file_length("<i8", (SMALLEST_MAPPED // 15 + 2,))
    assert offsets < SMALLEST_MAPPED
    assert costs[1] == manifest
    assert costs[0] <= manifest + offsets
    bytes_read["bytes"] = 0
    read_model(tmp_path / "8", verify=True)
    assert bytes_read["bytes"] == sum(path.stat().st_size for path in (tmp_path / "8").iterdir())


@pytest.mark.skipif(os.name == "nt", reason="a file made long there takes its whole length on the disk")
def test_a_model_of_several_gigabytes_loads_and_predicts_without_being_read(tmp_path, bytes_read):
    n_features, n_labels = 2**21, 512
    model = Ridge().fit(np.eye(2, 3, dtype=np.float32), np.eye(2, n_labels, dtype=np.float32))
    model.coef_ = np.zeros((3, n_labels), dtype=np.float32)
    model.intercept_ = np.linspace(0, 1, n_labels, dtype=np.float32)
    model.save(tmp_path / "model")
    fields = enlarge(tmp_path / "model", ("arrays", "coef"), "<f4", (n_features, n_labels))
    fields["model"]["facts"]["n_features"] = n_features
    (tmp_path / "model" / "manifest.json").write_bytes(sealed(fields))
    size = sum(path.stat().st_size for path in (tmp_path / "model").iterdir())
    assert size > 4 * 2**30

    before = psutil.Process().memory_info().rss
    loaded = longtail.load(tmp_path / "model")
    row = sparse.csr_array(([1.0], [n_features - 1], [0, 1]), shape=(1, n_features), dtype=np.float32)
    labels, _ = loaded.predict_topk(row, k=2)
    assert labels.tolist() == [[n_labels - 1, n_labels - 2]]
    assert bytes_read["bytes"] < 2 * SMALLEST_MAPPED
    # Pages of a mapping that were touched count as memory of the process.
    assert psutil.Process().memory_info().rss - before < 2**28


def test_a_wrong_length_or_header_of_a_large_array_is_found_without_verification(tmp_path):
    write_model(State("A", arrays={"x": np.zeros(SMALLEST_MAPPED, np.float32)}), tmp_path / "model")
    [path] = (tmp_path / "model").glob("*.npy")
    content = path.read_bytes()
    for damaged in (content[:-1], content + b"\0", content[:64], b""):
        path.write_bytes(damaged)
        with pytest.raises(ModelFormatError, match="bytes long"):
            read_model(tmp_path / "model")
    for position in range(128):
        path.write_bytes(content[:position] + bytes([content[position] ^ 1]) + content[position + 1 :])
        with pytest.raises(ModelFormatError, match="is not the array"):
            read_model(tmp_path / "model")


def test_a_small_file_is_compared_with_its_checksum_at_every_load(tmp_path):
    write_model(example_state(large=True), tmp_path / "model")
    mapped = [path for path in (tmp_path / "model").glob("*.npy") if path.stat().st_size >= SMALLEST_MAPPED]
    assert len(mapped) == 1
    for path in sorted((tmp_path / "model").glob("*.npy")):
        content = path.read_bytes()
        path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        with pytest.raises(ModelFormatError, match="checksum"):
            read_model(tmp_path / "model", verify=path in mapped)
        path.write_bytes(content)
    assert same(read_model(tmp_path / "model", verify=True), example_state(large=True))


def test_truth_values_are_checked_however_many_there_are(tmp_path):
    write_model(State("A", arrays={"x": np.zeros(2 * SMALLEST_MAPPED, np.bool_)}), tmp_path / "model")
    [path] = (tmp_path / "model").glob("*.npy")
    path.write_bytes(path.read_bytes()[:-1] + b"\x02")
    with pytest.raises(ModelFormatError, match="neither 0 nor 1"):
        read_model(tmp_path / "model")


N_LABELS = 140_000


@pytest.fixture(scope="module")
def large_models(tmp_path_factory):
    """A dense and a sparse ridge with arrays large enough to be mapped."""
    folder = tmp_path_factory.mktemp("large")
    rng = np.random.default_rng(0)
    n_features = 8
    features = sparse.csr_array(np.eye(n_features, dtype=np.float32))
    names = tuple(f"label {number}" for number in range(N_LABELS))
    labels = sparse.csr_array((n_features, N_LABELS), dtype=np.float32)
    corpus = Corpus(features=features, labels=labels, label_names=names)
    for form in ("dense", "sparse"):
        estimator = Ridge().fit(features, sparse.csr_array(np.eye(n_features, dtype=np.float32)))
        coef = rng.standard_normal((n_features, N_LABELS), dtype=np.float32)
        if form == "sparse":
            coef[np.abs(coef) < 0.5] = 0
            coef = sparse.csr_array(coef)
        estimator.coef_, estimator.n_labels_ = coef, N_LABELS
        estimator.intercept_ = np.zeros(N_LABELS, dtype=np.float32)
        estimator.inverse_propensity_ = np.ones(N_LABELS, dtype=np.float32)
        Tagger.from_fitted(RowScaling().fit(features), estimator, corpus).save(folder / form)
    return folder


@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_damage_in_a_mapped_array_is_found_by_verification_and_harmless_without(large_models, tmp_path, form, rng):
    shutil.copytree(large_models / form, tmp_path / "model")
    rows = np.eye(8, dtype=np.float32)
    mapped = [path for path in (tmp_path / "model").glob("*.npy") if path.stat().st_size >= SMALLEST_MAPPED]
    roles = {path.name.rsplit("-", 1)[0] for path in mapped}
    assert roles >= {"label_names-bytes", "label_names-offsets", "label_counts"}
    assert roles >= ({"estimator-coef"} if form == "dense" else {"estimator-coef-data", "estimator-coef-indices"})
    loaded = 0
    for path in sorted(mapped):
        content = path.read_bytes()
        for position in (128, len(content) - 1, *rng.integers(128, len(content), 6)):
            damaged = bytearray(content)
            # Up to four neighbours: in an index that is a wild value, not only a near one.
            damaged[position : position + 4] = bytes(byte ^ 0xFF for byte in damaged[position : position + 4])
            path.write_bytes(damaged)
            with pytest.raises(ModelFormatError, match="checksum"):
                longtail.load(tmp_path / "model", verify=True)
            try:
                model = longtail.load(tmp_path / "model")
                loaded += 1
                labels, _ = model.predict_topk(rows, k=3)
                assert ((labels >= -1) & (labels < N_LABELS)).all()
                for tags in model.predict(rows, k=3):
                    assert all(isinstance(tag.label, str) for tag in tags)
                list(model.label_names_)
            except ModelFormatError:
                pass
        path.write_bytes(content)
    assert loaded
    assert isinstance(longtail.load(tmp_path / "model", verify=True).label_names_, StringTable)
