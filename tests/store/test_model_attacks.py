"""Hostile and damaged model directories: each gives a valid state or raises `ModelFormatError`, nothing else.

Damage is what happens to a file; an attack comes from someone who recomputes every checksum afterwards.
"""

from __future__ import annotations

import copy
import json
import os
import pickle
import shutil
import struct
import tracemalloc
from hashlib import sha256

import numpy as np
import pytest

from longtail.errors import ModelFormatError
from longtail.store import State, inspect_model, read_model, write_model
from longtail.store.layout import header
from tests.store.stored_states import check_sound, example_state, fields_of, replace_file, same, sealed, sealed_text

PEAK = 48 * 2**20


@pytest.fixture
def model(tmp_path):
    write_model(example_state(), tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def small_model(tmp_path):
    """Small enough that every byte of it can be attacked."""
    state = State("Mean", params={"k": 5}, facts={"mean": 0.5, "name": "ä"}, arrays={"x": np.arange(3)})
    write_model(state, tmp_path / "small")
    return tmp_path / "small"


@pytest.fixture(autouse=True)
def without_pickle(monkeypatch):
    def refuse(*arguments, **options):
        raise AssertionError("something was unpickled")

    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, refuse)


def outcome(directory, **options):
    """The state or None; any error other than `ModelFormatError` fails the test."""
    try:
        state = read_model(directory, **options)
    except ModelFormatError:
        return None
    check_sound(state)
    return state


def expect_refusal(directory, reason="."):
    """Expect refusal with and without checksums, mapped or not, naming the directory, with little memory."""
    for verify, mmap in ((True, True), (False, True), (False, False)):
        tracemalloc.start()
        try:
            with pytest.raises(ModelFormatError, match=reason) as caught:
                read_model(directory, verify=verify, mmap=mmap)
            assert str(directory) in str(caught.value)
            assert tracemalloc.get_traced_memory()[1] < PEAK
        finally:
            tracemalloc.stop()


def places(value, path=()):
    """The path of every value inside nested JSON."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places(inner, (*path, key))


def at(value, path):
    for key in path:
        value = value[key]
    return value


def content_fields(model):
    return {key: value for key, value in fields_of(model).items() if key in ("written_by", "model")}


def entry_of(fields, array, role="values", part=None):
    owner = fields["model"] if part is None else fields["model"]["parts"][part]
    return owner["arrays"][array]["files"][role]


def test_a_flipped_bit_in_the_manifest_never_goes_unnoticed(small_model):
    manifest = small_model / "manifest.json"
    content = manifest.read_bytes()
    for position in range(len(content)):
        damaged = bytearray(content)
        damaged[position] ^= 1 << position % 8
        manifest.write_bytes(damaged)
        assert outcome(small_model, verify=False) is None, position


def test_a_truncated_manifest_is_refused_at_every_length(small_model):
    manifest = small_model / "manifest.json"
    content = manifest.read_bytes()
    for length in range(len(content)):
        manifest.write_bytes(content[:length])
        assert outcome(small_model) is None, length
    manifest.write_bytes(content + b" ")
    assert outcome(small_model) is None


def test_a_resealed_truncation_is_refused_at_every_length(small_model):
    text = json.dumps(content_fields(small_model)).encode()
    for length in range(1, len(text)):
        (small_model / "manifest.json").write_bytes(sealed_text(text[:length]))
        assert outcome(small_model) is None, length


def test_a_resealed_byte_is_refused_or_loads_soundly(small_model):
    text = json.dumps(content_fields(small_model)).encode()
    loaded = 0
    for position in range(1, len(text)):
        for replacement in (b"\x00", b"9", b'"', b"\xff"):
            changed = text[:position] + replacement + text[position + 1 :]
            (small_model / "manifest.json").write_bytes(sealed_text(changed))
            loaded += outcome(small_model) is not None
    # Letters of names and digits of values may change; nothing of the structure may.
    assert 0 < loaded < len(text) // 2


VALUES = [None, True, -1, 0, 2**31, 2**63, 10**30, 1e308, "", "x", [], {}, [[]], {"a": {}}, "\ud800", "../x"]


def test_every_value_of_the_manifest_replaced(model):
    manifest = model / "manifest.json"
    fields = content_fields(model)
    loaded = 0
    for path in list(places(fields))[1:]:
        for value in VALUES:
            changed = copy.deepcopy(fields)
            at(changed, path[:-1])[path[-1]] = value
            manifest.write_bytes(sealed(changed))
            state = outcome(model, verify=False)
            loaded += state is not None
            if state is not None and "files" in path and at(fields, path) != value:
                pytest.fail(f"{path} = {value!r} was not noticed")
    assert loaded > 0


def test_every_key_of_the_manifest_removed_doubled_or_joined_by_another(model):
    manifest = model / "manifest.json"
    fields = content_fields(model)
    for path in list(places(fields))[1:]:
        removed = copy.deepcopy(fields)
        del at(removed, path[:-1])[path[-1]]
        manifest.write_bytes(sealed(removed))
        outcome(model)
        owner = at(fields, path)
        if isinstance(owner, dict):
            added = copy.deepcopy(fields)
            at(added, path)["surprise"] = 1
            manifest.write_bytes(sealed(added))
            assert outcome(model) is None or path[-1] in ("params", "facts")
        marked = copy.deepcopy(fields)
        if isinstance(at(marked, path[:-1]), dict):
            at(marked, path[:-1])["@@"] = "@@"
            text = json.dumps(marked).replace('"@@": "@@"', f"{json.dumps(path[-1])}: {json.dumps(owner)}")
            manifest.write_bytes(sealed(text))
            expect_refusal(model, "twice")


@pytest.mark.parametrize(
    "literal",
    [
        *("NaN", "Infinity", "-Infinity", "1e999", "-1e999", "9" * 5000, "0." + "1" * 5000, "1" * 41, "1e" + "9" * 50),
        *("[" * 100_000, "[" * 500 + "]" * 500, "[" * 40 + "]" * 40, '{"a":' * 100_000, "tru", "\x00", "'x'"),
        *('"\\ud800"', '"\\', '"\t"', "// comment\n1", "01", "+1", ".5", "0x10", "1_000"),
    ],
)
def test_hostile_json_is_refused(model, literal):
    text = json.dumps(content_fields(model)).replace('"shift": 0', f'"shift": {literal}')
    (model / "manifest.json").write_bytes(sealed(text))
    expect_refusal(model)


def test_a_manifest_of_many_small_values_costs_little(model):
    fields = content_fields(model)
    fields["model"]["facts"]["many"] = [[]] * 100_000
    (model / "manifest.json").write_bytes(sealed(fields))
    assert outcome(model) is not None


def test_an_oversized_manifest_is_refused_before_it_is_parsed(model):
    with (model / "manifest.json").open("ab") as file:
        file.truncate(2**40)
    expect_refusal(model, "larger than")


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"[]", b"null", b"\xff\xfe", b"\x80\x04N.", b"PK\x03\x04", b"{" * 10**6]
)
def test_a_file_that_is_no_manifest_is_refused(model, content):
    (model / "manifest.json").write_bytes(content)
    expect_refusal(model, "begin")


@pytest.mark.parametrize("version", ["2", "0", "01", "-1", "9999", "10000", "1.0", '"1"', "null", "9" * 400])
def test_unknown_versions_are_refused(model, version):
    (model / "manifest.json").write_bytes(sealed(content_fields(model), version))
    expect_refusal(model, "version|begin")


def test_parts_nested_too_deep_are_refused(model):
    for depth in (9, 50, 2000):
        text = '{"kind": "A", "params": {}, "facts": {}, "arrays": {}, "parts": {"p": ' * depth + "1" + "}}" * depth
        (model / "manifest.json").write_bytes(sealed('{"written_by": {}, "model": ' + text + "}"))
        expect_refusal(model, "deep")


def test_too_many_files_are_refused(model):
    fields = content_fields(model)
    entry = entry_of(fields, "counts")
    arrays = {
        f"a{number}": {
            "type": "array",
            "shape": [2, 3],
            "files": {"values": {**entry, "name": f"a{number}-{entry['name'][-20:]}"}},
        }
        for number in range(10_001)
    }
    fields["model"]["arrays"] = arrays
    (model / "manifest.json").write_bytes(sealed(json.dumps(fields, separators=(",", ":"))))
    with pytest.raises(ModelFormatError, match="more than 10000 files"):
        read_model(model)


NAMES = [
    "../x",
    "/etc/passwd",
    "..\\x",
    "C:\\x",
    "a/b",
    "a\\b",
    "\x00",
    "CON",
    "con.npy",
    "NUL",
    ".",
    "..",
    "",
    "x" * 300,
]
NAMES += ["manifest.json", "a b-{}.npy", "a.b-{}.npy", "ä-{}.npy", "../a-{}.npy", "/a-{}.npy", "a-{}.npy\n", "A-{}.npy"]
NAMES += [
    "-{}.npy",
    "a-{}.npz",
    "a-{}.npy:stream",
    "a\x00-{}.npy",
    "x" * 200 + "-{}.npy",
    "~-{}.npy",
    "a-{}.NPY",
    "$(x)-{}.npy",
]


@pytest.mark.parametrize("name", NAMES)
def test_names_that_leave_the_directory_or_the_pattern_are_refused(model, name):
    fields = content_fields(model)
    entry = entry_of(fields, "counts")
    content = (model / entry["name"]).read_bytes()
    name = name.format(entry["sha256"][:16])
    try:
        (model / name).resolve().parent.mkdir(exist_ok=True)
        if "passwd" not in name and not (model / name).exists():
            (model / name).write_bytes(content)
    except (OSError, ValueError):
        pass
    entry["name"] = name
    (model / "manifest.json").write_bytes(sealed(fields))
    expect_refusal(model, r"\.name is")


def npy(
    descr="'<i8'",
    order="False",
    shape="(2, 3)",
    extra="",
    data=bytes(48),
    version=(1, 0),
    length=None,
    magic=b"\x93NUMPY",
):
    text = f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, {extra}}}".encode()
    size = 2 if version == (1, 0) else 4
    text += b" " * (-(len(magic) + 2 + size + len(text) + 1) % 64) + b"\n"
    stated = len(text) if length is None else length
    return magic + bytes(version) + stated.to_bytes(size, "little") + text + data


class Bomb:
    def __reduce__(self):
        return os.mkdir, ("the-code-ran",)


HEADERS = {
    "objects": npy("'|O'"),
    "pickle": npy("'|O'", data=pickle.dumps(np.array([Bomb()]))),
    "fortran": npy(order="True"),
    "big endian": npy("'>i8'"),
    "native": npy("'=i8'"),
    "unicode": npy("'<U2'"),
    "bytes": npy("'|S8'"),
    "void": npy("'|V8'"),
    "dates": npy("'<M8[s]'"),
    "complex": npy("'<c8'"),
    "record": npy("[('a', '<i8')]"),
    "subarray": npy("('<i8', (2,))"),
    "other dtype": npy("'<f8'"),
    "other shape": npy(shape="(3, 2)"),
    "more dimensions": npy(shape="(1, 2, 3)"),
    "huge shape": npy(shape="(1000000000000, 1000000000000)"),
    "overflowing shape": npy(shape="(4294967296, 4294967296)"),
    "negative shape": npy(shape="(-2, -3)"),
    "true shape": npy(shape="(True, 6)"),
    "long shape": npy(shape="(2L, 3L)"),
    "list shape": npy(shape="[2, 3]"),
    "expression": npy(shape="(2, __import__('os').mkdir('the-code-ran'))"),
    "extra key": npy(extra="'x': 1, "),
    "version 2": npy(version=(2, 0)),
    "version 3": npy(version=(3, 0)),
    "version 9": npy(version=(9, 9)),
    "header longer than the file": npy(length=65535),
    "header shorter than it is": npy(length=10),
    "header of length 0": npy(length=0),
    "no magic": npy(magic=b"\x93NUMPX"),
    "empty": b"",
    "magic only": b"\x93NUMPY",
    "zip": b"PK\x03\x04" + bytes(172),
    "text": b"x" * 176,
    "version 3 header of 4 GiB": b"\x93NUMPY\x03\x00" + struct.pack("<I", 2**32 - 1) + bytes(200),
}


@pytest.mark.parametrize("attack", HEADERS)
@pytest.mark.parametrize("honest_length", [True, False])
def test_hostile_array_files_are_refused(model, monkeypatch, attack, honest_length):
    monkeypatch.chdir(model.parent)
    fields = content_fields(model)
    entry = entry_of(fields, "counts")
    stated = entry["length"]
    content = HEADERS[attack]
    if not honest_length:
        content = content[:stated] + bytes(stated - len(content[:stated]))
    replace_file(model, fields, entry, content)
    expect_refusal(model)
    assert not (model.parent / "the-code-ran").exists()


def test_a_flipped_byte_in_an_array_file_is_found_by_its_checksum(model):
    for path in sorted(model.glob("*.npy")):
        content = path.read_bytes()
        for position in range(0, len(content), 3):
            damaged = bytearray(content)
            damaged[position] ^= 1 << position % 8
            path.write_bytes(damaged)
            assert outcome(model) is None, (path.name, position)
        path.write_bytes(content)
    assert same(read_model(model), example_state())


def test_array_files_of_any_other_length_are_refused_without_reading_them(model):
    for path in sorted(model.glob("*.npy")):
        content = path.read_bytes()
        for length in {*range(0, len(content), 7), len(content) - 1}:
            path.write_bytes(content[:length])
            assert outcome(model, verify=False) is None, (path.name, length)
        for length in (len(content) + 1, 2**40):
            with path.open("r+b") as file:
                file.truncate(length)
            for mmap in (True, False):
                assert outcome(model, verify=False, mmap=mmap) is None, (path.name, length)
        path.write_bytes(content)


def test_resealed_array_files_of_other_lengths_are_refused(model):
    original = content_fields(model)
    content = (model / entry_of(original, "counts")["name"]).read_bytes()
    for length in [*range(0, len(content), 5), len(content) + 1, len(content) + 8]:
        fields = copy.deepcopy(original)
        replace_file(model, fields, entry_of(fields, "counts"), content[:length].ljust(length, b"\0"))
        assert outcome(model) is None, length


@pytest.mark.parametrize(
    ("dtype", "shape"),
    [
        ("<f8", [2**62, 2**62]),
        ("<f8", [2**60]),
        ("<f8", [0, 2**62]),
        ("<f8", [0, 2**63]),
        ("|u1", [0, 2**64, 2**64]),
        ("<i8", [-2, -3]),
        ("<i8", [2, 3, 1, 1]),
        ("<i8", [6.0]),
        ("<i8", [True, 6]),
        ("|O", [6]),
        (">i8", [2, 3]),
        ("<c8", [2, 3]),
        ("<U2", [2, 3]),
        ("i8", [2, 3]),
        ("float64", [2, 3]),
        ("<i8 ", [2, 3]),
        (["<i8"], [2, 3]),
    ],
)
def test_hostile_dtypes_and_shapes_in_the_manifest_are_refused(model, dtype, shape):
    for length in (None, 0, 128, 2**62, 2**70):
        fields = content_fields(model)
        array = fields["model"]["arrays"]["counts"]
        array["shape"] = shape
        entry = array["files"]["values"]
        entry.update(dtype=dtype, shape=shape, length=entry["length"] if length is None else length)
        (model / "manifest.json").write_bytes(sealed(fields))
        expect_refusal(model, "manifest is malformed")


def test_an_array_without_values_may_be_wide_but_not_beyond_any_address(model):
    fields = content_fields(model)
    array = fields["model"]["arrays"]["empty"]
    array["shape"] = array["files"]["values"]["shape"] = [0, 2**50]
    array["files"]["values"]["dtype"] = "<f8"
    replace_file(model, fields, array["files"]["values"], header("<f8", (0, 2**50)))
    assert read_model(model).arrays["empty"].shape == (0, 2**50)


def test_swapped_files_are_refused(model):
    fields = content_fields(model)
    entries = [at(fields, path) for path in places(fields) if path and isinstance(at(fields, path), dict)]
    entries = [entry for entry in entries if "sha256" in entry]
    for one in entries:
        for other in entries:
            if one is not other:
                paths = model / one["name"], model / other["name"]
                contents = [path.read_bytes() for path in paths]
                paths[0].write_bytes(contents[1])
                assert outcome(model) is None
                paths[0].write_bytes(contents[0])
                changed = copy.deepcopy(fields)
                for path in places(fields):
                    if path and at(fields, path) is one:
                        at(changed, path).update(name=other["name"], sha256=other["sha256"])
                (model / "manifest.json").write_bytes(sealed(changed))
                expect_refusal(model, "another array uses already")
    (model / "manifest.json").write_bytes(sealed(fields))
    assert same(read_model(model), example_state())


def put(model, part, array, **replaced):
    """Replace files of an array by arrays of the attacker, and recompute all checksums."""
    fields = content_fields(model)
    owner = fields["model"]["parts"][part] if part else fields["model"]
    for role, values in replaced.items():
        if role == "shape":
            owner["arrays"][array]["shape"] = values
            continue
        values = np.asarray(values)
        entry = owner["arrays"][array]["files"][role]
        entry.update(dtype=values.dtype.str, shape=list(values.shape))
        replace_file(model, fields, entry, header(values.dtype.str, values.shape) + values.tobytes())
    (model / "manifest.json").write_bytes(sealed(fields))


def i4(*values):
    return np.array(values, dtype=np.int32)


@pytest.mark.parametrize(
    "replaced",
    [
        {"indptr": i4(1, 2, 2, 5)},
        {"indptr": i4(0, 2, 2, 4)},
        {"indptr": i4(0, 2, 2, 6)},
        {"indptr": i4(0, 3, 2, 5)},
        {"indptr": i4(0, -1, 2, 5)},
        {"indptr": i4(0, 2**31 - 1, 2, 5)},
        {"indptr": i4(0, 6, 6, 5)},
        {"indptr": i4(0, 2, 5)},
        {"indptr": i4()},
        {"indptr": i4(0)},
        {"indptr": i4(0), "shape": [0, 4]},
        {"indptr": i4(0, 2, 2, 5).astype(np.int64)},
        {"indptr": i4(0, 2, 2, 5).astype(np.uint32)},
        {"indptr": i4(0, 2, 2, 5).astype(np.float32)},
        {"indptr": i4(0, 2, 2, 5)[None]},
        {"indices": i4(2, 0, 0, 1, 3)},
        {"indices": i4(0, 0, 0, 1, 3)},
        {"indices": i4(0, 2, 0, 3, 3)},
        {"indices": i4(0, 2, 0, 1, 4)},
        {"indices": i4(-1, 2, 0, 1, 3)},
        {"indices": i4(0, 2**31 - 1, 0, 1, 3)},
        {"indices": i4(-(2**31), 2, 0, 1, 3)},
        {"indices": i4(0, 2, 0, 1)},
        {"indices": i4(0, 2, 0, 1, 3).astype(np.int16)},
        {"indices": i4(0, 2, 0, 1, 3).astype(np.int64)},
        {"data": np.ones(4, np.float32)},
        {"data": np.ones(5, np.float16)},
        {"data": np.ones((5, 1), np.float32)},
        {"data": np.full(5, 2, np.uint8).view(np.bool_)},
        {"shape": [3, 3]},
        {"shape": [3, 0]},
        {"shape": [2, 4]},
        {"shape": [4, 4]},
        {"shape": [3]},
        {"shape": [3, 4, 1]},
        {"shape": [3, 2**31]},
        {"shape": [3, 2**63]},
        {"shape": [3, -1]},
    ],
)
def test_sparse_matrices_that_would_send_a_kernel_astray_are_refused(model, replaced):
    put(model, "estimator", "coef", **replaced)
    expect_refusal(model)


def test_disorder_in_a_long_matrix_is_found_wherever_it_is(tmp_path):
    from longtail.store.invariants import _BLOCK, check_csr

    rows = 3 * _BLOCK // 4
    indptr = np.arange(rows + 1, dtype=np.int32) * 4
    indices = np.tile(np.arange(4, dtype=np.int32), rows)
    check_csr(indices, indptr, 4)
    for position in (1, 4 * rows - 1, _BLOCK - 3, _BLOCK - 1, _BLOCK + 1, 2 * _BLOCK + 3):
        broken = indices.copy()
        broken[position] = broken[position - 1]
        with pytest.raises(ValueError, match="sorted"):
            check_csr(broken, indptr, 4)
    one_row = np.arange(2 * _BLOCK + 1, dtype=np.int64)
    check_csr(one_row, np.array([0, len(one_row)]), len(one_row))
    one_row[_BLOCK] = one_row[_BLOCK - 1]
    with pytest.raises(ValueError, match="sorted"):
        check_csr(one_row, np.array([0, len(one_row)]), len(one_row))
    empty_rows = np.zeros(2 * _BLOCK + 3, dtype=np.int64)
    empty_rows[-1] = 2
    check_csr(np.array([0, 1]), empty_rows, 2)
    empty_rows[_BLOCK] = 1
    with pytest.raises(ValueError, match="falls"):
        check_csr(np.array([0, 1]), empty_rows, 2)


def i8(*values):
    return np.array(values, dtype=np.int64)


TEXT = "Äpfelnaïve 🍎label 0".encode()


@pytest.mark.parametrize(
    "replaced",
    [
        {"offsets": i8(1, 6, 6, 17, len(TEXT))},
        {"offsets": i8(0, 6, 6, 17, len(TEXT) + 1)},
        {"offsets": i8(0, 6, 6, 17, len(TEXT) - 1)},
        {"offsets": i8(0, 17, 6, 6, len(TEXT))},
        {"offsets": i8(0, -6, 6, 17, len(TEXT))},
        {"offsets": i8(0, 2**62, 6, 17, len(TEXT))},
        {"offsets": i8(0, 1, 6, 17, len(TEXT))},
        {"offsets": i8(0, 6, 17, len(TEXT))},
        {"offsets": i8()},
        {"offsets": i8(), "shape": [0]},
        {"offsets": i8(), "shape": [-1]},
        {"offsets": i8(0, 6, 6, 17, len(TEXT)).astype(np.int32)},
        {"offsets": i8(0, 6, 6, 17, len(TEXT)).astype(np.float64)},
        {"bytes": np.frombuffer(TEXT, np.int8)},
        {"bytes": np.frombuffer(TEXT[:-1] + b"\xff", np.uint8)},
        {"bytes": np.frombuffer(b"\xc0\x80" + TEXT[2:], np.uint8)},
        {"bytes": np.frombuffer(b"\xed\xa0\x80" + TEXT[3:], np.uint8)},
        {"bytes": np.frombuffer(b"\xf5\x80\x80\x80" + TEXT[4:], np.uint8)},
        {"bytes": np.frombuffer(TEXT, np.uint8)[None]},
        {"shape": [5]},
        {"shape": [3]},
        {"shape": [4, 1]},
        {"shape": []},
        {"shape": [2**63]},
    ],
)
def test_tables_of_strings_that_are_not_text_are_refused(model, replaced):
    put(model, None, "label_names", **replaced)
    expect_refusal(model)


def test_truth_values_other_than_0_and_1_are_refused(model):
    put(model, "estimator", "mask", values=np.array([1, 0, 2], np.uint8).view(np.bool_))
    expect_refusal(model, "neither 0 nor 1")


@pytest.mark.parametrize("victim", ["manifest.json", "counts"])
@pytest.mark.parametrize("trick", ["link", "dangling link", "loop", "pipe", "directory", "missing", "socket"])
def test_what_is_not_a_plain_file_is_refused(model, victim, trick):
    path = model / victim if victim == "manifest.json" else next(model.glob(f"{victim}-*.npy"))
    content = path.read_bytes()
    path.unlink()
    outside = model.parent / "outside"
    outside.write_bytes(content)
    try:
        if trick == "link":
            path.symlink_to(outside)
        elif trick == "dangling link":
            path.symlink_to(model / "nothing")
        elif trick == "loop":
            path.symlink_to(path)
        elif trick == "pipe":
            os.mkfifo(path)
        elif trick == "directory":
            path.mkdir()
        elif trick == "socket":
            import socket

            with socket.socket(socket.AF_UNIX) as server:
                server.bind(os.path.relpath(path))
    except (OSError, AttributeError) as error:
        pytest.skip(f"cannot be made here: {error}")
    expect_refusal(model, "missing" if trick == "missing" else "not a plain file")


def test_places_without_a_model_are_refused(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_bytes(b"")
    for place in ("nowhere", "empty", "file", "file/below", "x" * 5000, "a\x00b"):
        expect_refusal(tmp_path / place)
        with pytest.raises(ModelFormatError):
            inspect_model(tmp_path / place)


def test_a_linked_directory_is_the_user_s_own_choice(model):
    try:
        (model.parent / "current").symlink_to(model, target_is_directory=True)
    except OSError as error:
        pytest.skip(f"cannot be made here: {error}")
    assert same(read_model(model.parent / "current"), example_state())


def test_random_damage_to_a_whole_directory(model, rng):
    pristine = model.parent / "pristine"
    shutil.copytree(model, pristine)
    files = sorted(path.name for path in model.iterdir())
    for _ in range(200):
        name = files[rng.integers(len(files))]
        damaged = bytearray((pristine / name).read_bytes())
        for _ in range(rng.integers(1, 4)):
            begin = int(rng.integers(len(damaged) + 1))
            end = begin + int(rng.integers(20))
            damaged[begin:end] = rng.bytes(int(rng.integers(20)))
        (model / name).write_bytes(damaged)
        state = outcome(model)
        assert state is None or same(state, example_state())
        (model / name).write_bytes((pristine / name).read_bytes())


def test_a_model_from_strangers_can_be_inspected_without_its_arrays(model):
    put(model, "estimator", "coef", indptr=i4(0, 3, 2, 5))
    assert inspect_model(model)["parts"] == {"estimator": "Ridge"}


def test_names_may_repeat_across_parts_but_files_may_not(tmp_path):
    twin = State("A", arrays={"x": np.ones(2)})
    state = State("A", arrays={"x": np.ones(2)}, parts={"one": twin, "other": twin})
    write_model(state, tmp_path / "model")
    assert same(read_model(tmp_path / "model"), state)
    assert len({sha256(path.read_bytes()).digest() for path in (tmp_path / "model").glob("*.npy")}) == 1
    assert len(list((tmp_path / "model").glob("*.npy"))) == 3
