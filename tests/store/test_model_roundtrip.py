"""What is written is what is read: every dtype, shape, matrix, string and part."""

from __future__ import annotations

import os
import tempfile
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from longtail.errors import InvalidInput, ModelFormatError, Unavailable
from longtail.store import Persistent, State, inspect_model, read_model, write_model
from longtail.store.layout import DTYPES
from tests.store.stored_states import example_state, same

text = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=8)
names = st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,5}", fullmatch=True)
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | text
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3), max_leaves=6
)
shapes = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)
dense = st.sampled_from(sorted(DTYPES)).flatmap(lambda dtype: hnp.arrays(dtype, shapes))


@st.composite
def matrices(draw):
    dtype = draw(st.sampled_from(sorted(set(DTYPES) - {"<f2"})))
    shape = draw(st.tuples(st.integers(0, 5), st.integers(0, 5)))
    pattern = draw(hnp.arrays(bool, shape))
    matrix = sparse.csr_array(pattern)
    index = draw(st.sampled_from([np.int32, np.int64]))
    data = draw(hnp.arrays(dtype, matrix.nnz))
    return sparse.csr_array((data, matrix.indices.astype(index), matrix.indptr.astype(index)), shape=shape)


arrays = dense | matrices() | st.lists(text, max_size=4).map(tuple)


def states(parts=None):
    return st.builds(
        State,
        kind=names,
        params=st.dictionaries(text, values, max_size=3),
        facts=st.dictionaries(text, values, max_size=3),
        arrays=st.dictionaries(names, arrays, max_size=4),
        parts=st.just({}) if parts is None else st.dictionaries(names, parts, max_size=2),
    )


@given(states(states(states())), st.booleans(), st.booleans())
def test_any_state_comes_back_exactly(state, verify, mmap):
    with tempfile.TemporaryDirectory() as folder:
        write_model(state, Path(folder) / "model")
        assert same(read_model(Path(folder) / "model", verify=verify, mmap=mmap), state)


@given(states(states()), states(states()))
def test_saving_over_a_model_leaves_only_the_new_one(old, new):
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model"
        write_model(old, model)
        write_model(new, model)
        assert same(read_model(model), new)
        fresh = Path(folder) / "fresh"
        write_model(new, fresh)
        assert sorted(os.listdir(model)) == sorted(os.listdir(fresh))
        assert sorted(os.listdir(folder)) == ["fresh", "model"]


@pytest.mark.parametrize("mmap", [True, False])
def test_loaded_arrays_cannot_be_written_to(tmp_path, mmap):
    write_model(example_state(large=True), tmp_path / "model")
    inner = read_model(tmp_path / "model", mmap=mmap).parts["estimator"]
    for array in (inner.arrays["bias"], inner.arrays["mask"], inner.arrays["coef"].data):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_a_mapped_model_keeps_its_values_while_another_is_saved_over_it(tmp_path):
    write_model(example_state(1, large=True), tmp_path / "model")
    mapped = read_model(tmp_path / "model")
    write_model(example_state(2, large=True), tmp_path / "model")
    assert same(mapped, example_state(1, large=True))
    assert same(read_model(tmp_path / "model"), example_state(2, large=True))


def test_a_mapped_model_can_be_saved_over_itself(tmp_path):
    write_model(example_state(large=True), tmp_path / "model")
    write_model(read_model(tmp_path / "model"), tmp_path / "model")
    assert same(read_model(tmp_path / "model"), example_state(large=True))


def test_unchanged_files_are_not_written_again(tmp_path):
    write_model(example_state(1), tmp_path / "model")
    before = {entry.name: entry.inode() for entry in os.scandir(tmp_path / "model")}
    write_model(example_state(2), tmp_path / "model")
    after = {entry.name: entry.inode() for entry in os.scandir(tmp_path / "model")}
    kept = [name for name in before if name in after and name != "manifest.json"]
    assert {name.rsplit("-", 1)[0] for name in kept} >= {"counts", "estimator-coef-indices"}
    assert all(before[name] == after[name] for name in kept)
    assert "estimator-bias" in {name.rsplit("-", 1)[0] for name in after.keys() - before.keys()}


def test_a_damaged_file_is_repaired_by_the_next_save(tmp_path):
    write_model(example_state(), tmp_path / "model")
    victim = next((tmp_path / "model").glob("counts-*.npy"))
    victim.write_bytes(victim.read_bytes()[:-1] + b"\xff")
    with pytest.raises(ModelFormatError, match=r"counts-.*checksum"):
        read_model(tmp_path / "model")
    write_model(example_state(), tmp_path / "model")
    assert same(read_model(tmp_path / "model"), example_state())


def test_the_same_state_gives_the_same_bytes(tmp_path):
    for name in ("one", "other"):
        write_model(example_state(), tmp_path / name)
    one, other = ({path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in ("one", "other"))
    assert one == other


def test_files_are_plain_arrays_for_any_program(tmp_path):
    write_model(example_state(), tmp_path / "model")
    counts = next((tmp_path / "model").glob("counts-*.npy"))
    np.testing.assert_array_equal(np.load(counts, allow_pickle=False), [[0, 1, 2], [3, 4, 5]])


def test_names_that_differ_only_in_case_keep_files_of_their_own(tmp_path):
    state = State("Pair", arrays={"W": np.ones(3), "w": np.ones(3)})
    write_model(state, tmp_path / "model")
    assert len({name.lower() for name in os.listdir(tmp_path / "model")}) == 3
    assert same(read_model(tmp_path / "model"), state)


def test_other_layouts_are_stored_in_c_order(tmp_path):
    array = np.asfortranarray(np.arange(12.0).reshape(3, 4))[:, ::2]
    big_endian = np.arange(3, dtype=">i4")
    write_model(State("Layout", arrays={"a": array, "b": big_endian}), tmp_path / "model")
    read = read_model(tmp_path / "model")
    np.testing.assert_array_equal(read.arrays["a"], array)
    assert read.arrays["b"].tolist() == [0, 1, 2]
    assert read.arrays["b"].dtype == np.dtype("<i4")


def test_a_place_that_is_not_a_model_is_refused_and_left_alone(tmp_path):
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "thesis.txt").write_text("mine", encoding="utf-8")
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "manifest.json").write_text('{"name": "an app"}', encoding="utf-8")
    for place in ("file", "folder", "app"):
        with pytest.raises(InvalidInput, match=place):
            write_model(example_state(), tmp_path / place)
    assert (tmp_path / "file").read_text(encoding="utf-8") == "mine"
    assert os.listdir(tmp_path / "folder") == ["thesis.txt"]
    assert os.listdir(tmp_path / "app") == ["manifest.json"]


def test_an_empty_directory_and_missing_parents_are_accepted(tmp_path):
    (tmp_path / "empty").mkdir()
    for place in ("empty", "deep/er/model"):
        write_model(example_state(), tmp_path / place)
        assert same(read_model(tmp_path / place), example_state())


def test_a_file_of_the_user_beside_the_model_stays(tmp_path):
    write_model(example_state(1), tmp_path / "model")
    (tmp_path / "model" / "notes.txt").write_text("mine", encoding="utf-8")
    write_model(example_state(2), tmp_path / "model")
    assert (tmp_path / "model" / "notes.txt").read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (State("A", facts={"x": float("nan")}), "facts.x is nan"),
        (State("A", params={"x": [1, object()]}), r"params.x\[1\] is of type object"),
        (State("A", facts={"x": 2**64}), "64 bits"),
        (State("A", facts={"x": "\ud800"}), "Unicode"),
        (State("A", facts={1: 2}), "keys are strings"),
        (State("A", arrays={"x": np.array([None])}), "dtype object"),
        (State("A", arrays={"x": np.zeros(2, dtype=complex)}), "dtype complex128"),
        (State("A", arrays={"x": np.zeros((1, 1, 1, 1))}), "4 dimensions"),
        (State("A", arrays={"x": [1.0]}), "list"),
        (State("A", arrays={"x": ("a", 1)}), "values that are not strings"),
        (State("A", arrays={"x": ("\udfff",)}), "Unicode"),
        (State("A", arrays={"x": sparse.csc_array((2, 2))}), "csc_array"),
        (State("A", arrays={"../x": np.zeros(1)}), r"'\.\./x'"),
        (State("", arrays={}), "name"),
        (
            State("A", arrays={"x": sparse.csr_array((np.ones(2), np.array([1, 0]), np.array([0, 2])), shape=(1, 2))}),
            "sorted",
        ),
        (State("A", facts={"x": "x" * 2**22}), "limit"),
    ],
)
def test_what_cannot_be_stored_is_refused_before_anything_is_written(tmp_path, state, reason):
    with pytest.raises(InvalidInput, match=reason):
        write_model(state, tmp_path / "model")
    assert os.listdir(tmp_path) == []


def test_parts_too_deep_are_refused_by_writer(tmp_path):
    state = State("A")
    for _ in range(8):
        state = State("A", parts={"p": state})
    write_model(state, tmp_path / "deepest")
    assert same(read_model(tmp_path / "deepest"), state)
    with pytest.raises(InvalidInput, match="8 parts deep"):
        write_model(State("A", parts={"p": state}), tmp_path / "model")


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="needs a user whom permissions bind")
def test_a_disk_that_refuses_is_reported(tmp_path):
    (tmp_path / "locked").mkdir(mode=0o500)
    with pytest.raises(Unavailable, match="locked"):
        write_model(example_state(), tmp_path / "locked" / "model")


def test_a_summary_needs_the_manifest_only(tmp_path):
    write_model(example_state(), tmp_path / "model")
    total = sum(path.stat().st_size for path in (tmp_path / "model").glob("*.npy"))
    for path in (tmp_path / "model").glob("*.npy"):
        path.unlink()
    summary = inspect_model(tmp_path / "model")
    assert (summary["kind"], summary["n_labels"], summary["bytes"]) == ("Tagger", 4, total)
    assert set(summary["written_by"]) == {"longtail", "numpy", "scipy", "python"}
    assert summary["parts"] == {"estimator": "Ridge"}
    coef = next(array for array in summary["arrays"] if array["name"] == "estimator.coef")
    assert (coef["type"], coef["dtype"], coef["shape"]) == ("csr", "float32", (3, 4))
    names = next(array for array in summary["arrays"] if array["name"] == "label_names")
    assert (names["type"], names["dtype"], names["shape"]) == ("strings", "str", (4,))


def test_savers_in_two_threads_leave_one_whole_model(tmp_path):
    failures = []

    def save(shift):
        try:
            for _ in range(15):
                write_model(example_state(shift), tmp_path / "model")
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=save, args=(shift,)) for shift in (1, 2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    loaded = read_model(tmp_path / "model")
    assert any(same(loaded, example_state(shift)) for shift in (1, 2, 3))
    assert os.listdir(tmp_path) == ["model"]


def test_a_model_that_appears_while_another_is_saved_is_saved_over(tmp_path, monkeypatch):
    target, other = tmp_path / "model", tmp_path / "other"
    write_model(example_state(1), other)

    def look_then_let_the_other_in(look):
        def looked(path):
            seen = look(path)
            if Path(path) == target and other.exists():
                other.rename(target)
            return seen

        return looked

    monkeypatch.setattr(os.path, "lexists", look_then_let_the_other_in(os.path.lexists))
    monkeypatch.setattr(Path, "is_dir", look_then_let_the_other_in(Path.is_dir))
    write_model(example_state(2), target)
    assert not other.exists()
    assert same(read_model(target), example_state(2))


def test_a_class_that_load_does_not_know_is_not_saved(tmp_path):
    class Mean(Persistent):
        def __init__(self, mean):
            self.mean = mean

        def to_state(self):
            return State("Mean", facts={"mean": self.mean})

        @classmethod
        def from_state(cls, state):
            return cls(state.fact("mean", float))

    with pytest.raises(InvalidInput, match=r"Mean cannot be saved.*the model is a 'Mean'; known classes are .*Ridge"):
        Mean(2.5).save(tmp_path / "model")
    assert not (tmp_path / "model").exists()
    write_model(Mean(2.5).to_state(), tmp_path / "model")
    assert Mean.from_state(read_model(tmp_path / "model")).mean == 2.5
