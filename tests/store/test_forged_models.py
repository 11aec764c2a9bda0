"""Forged models of every kind that can be saved: each is refused, or gives finite answers, within memory and time.

To look at a failure: ``python tests/store/forgery_child.py GROUP FOLDER SEED 1 "KIND"``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import longtail
from longtail import LabelTree, Ridge, Tagger, TextFeatures
from longtail.errors import InvalidInput, LongtailError, ModelFormatError
from longtail.parallel import count_cores
from longtail.store import State, read_model, write_model
from longtail.store.kinds import PACKAGES
from tests.store import forged_models
from tests.store.forgery import Forger
from tests.store.stored_states import fields_of, sealed

FORGERIES = 320  # of each kind
ROOT = Path(__file__).parents[2]


def forge_in_a_child(group: str, folder: Path, count: int) -> dict:
    # A process of its own, as a forgery that reaches a kernel unchecked can end it: the last line then names it.
    command = [sys.executable, "-m", "tests.store.forgery_child", group, str(folder), "0", str(count)]
    # Threads cost more than they bring in models so small.
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT)
    lines = done.stdout.splitlines()
    assert done.returncode == 0, f"status {done.returncode} at {lines[-1:]}: {done.stderr[-2000:]}"
    return json.loads(lines[-1])


@pytest.mark.slow
@pytest.mark.parametrize("group", forged_models.GROUPS)
def test_forged_models_are_refused_or_answer_with_finite_numbers(group: str, tmp_path: Path) -> None:
    if group in ("networks", "checkpoints"):
        pytest.importorskip("torch")
    found = forge_in_a_child(group, tmp_path, FORGERIES)
    assert found["failures"] == []
    for kind, (refused, answered) in found["counts"].items():
        assert refused + answered == FORGERIES
        # Neither so strange that all are refused, nor so tame that all are taken.
        assert min(refused, answered) > FORGERIES // 10, kind


def test_every_kind_that_can_be_loaded_is_forged(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    forged = set()
    for group in (forged_models.linear, forged_models.taggers, forged_models.networks):
        forged |= {build().to_state().kind for build in group().values()}
    assert forged == set(PACKAGES)


def test_the_same_seed_gives_the_same_forgery(tmp_path: Path) -> None:
    Ridge().fit(*forged_models.planted()).save(tmp_path / "sound")
    forger = Forger(tmp_path / "sound", tmp_path / "forged")
    for seed in range(20):
        first = forger.forge(seed), {path.name: path.read_bytes() for path in forger.target.iterdir()}
        assert first == (forger.forge(seed), {path.name: path.read_bytes() for path in forger.target.iterdir()})


def reseal(directory: Path, **facts: int) -> None:
    """Set these facts everywhere."""

    def change(node: dict) -> None:
        node["facts"].update({name: value for name, value in facts.items() if name in node["facts"]})
        for part in node["parts"].values():
            change(part)

    fields = fields_of(directory)
    change(fields["model"])
    (directory / "manifest.json").write_bytes(sealed(fields))


def test_an_explanation_takes_memory_by_the_row_and_not_by_what_a_file_says(tmp_path: Path) -> None:
    import tracemalloc

    LabelTree(leaf_size=3, random_state=0).fit(*forged_models.planted()).save(tmp_path / "model")
    reseal(tmp_path / "model", n_features=2**31 - 1)
    model = longtail.load(tmp_path / "model")
    row = forged_models.rows_for(2**31 - 1)[[0]]
    tracemalloc.start()
    try:
        assert np.isfinite(model.explain(row, 0).margin)
        assert tracemalloc.get_traced_memory()[1] < 2**22
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", ["n_features", "n_labels"])
@pytest.mark.parametrize("value", [-1, 2**31, 2**40, 2**63 - 1, 2**63, 2**64 - 1])
@pytest.mark.parametrize("kind", ["LabelTree", "OneVsRest", "Ridge", "sparse Ridge", "RidgeCV", "RowScaling"])
def test_sizes_that_nothing_can_have_are_refused(kind: str, name: str, value: int, tmp_path: Path) -> None:
    state = forged_models.linear()[kind]().to_state()
    if name in state.facts:
        write_model(state, tmp_path / "model")
        reseal(tmp_path / "model", **{name: value})
        with pytest.raises(ModelFormatError, match=name):
            longtail.load(tmp_path / "model")


@pytest.mark.parametrize("value", [2**31, 2**63, 2**64 - 1])
@pytest.mark.parametrize("kind", ["one-hot", "dft", "DeepMIML"])
def test_networks_of_impossible_sizes_are_refused(kind: str, value: int, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    forged_models.networks()[kind]().save(tmp_path / "model")
    for name in ("n_labels", "n_features"):
        reseal(tmp_path / "model", **{name: value})
        with pytest.raises(ModelFormatError, match=name):
            longtail.load(tmp_path / "model")


def test_a_number_of_labels_without_an_array_is_held_to_the_memory_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    forged_models.networks()["one-hot"]().save(tmp_path / "model")
    reseal(tmp_path / "model", n_labels=2**31 - 1)
    model = longtail.load(tmp_path / "model")
    monkeypatch.setenv("LONGTAIL_MEMORY", "1G")
    rows = forged_models.rows_for(model.n_features_in_)
    assert (model.predict_topk(rows, 3)[0] < 9).all()
    with pytest.raises(LongtailError, match=r"needs 4\.0 GiB"):
        model.predict_topk(rows, 3, allow=[0])


def test_a_hierarchy_too_deep_to_walk_is_refused(tmp_path: Path) -> None:
    state = LabelTree(leaf_size=100, random_state=0).fit(*forged_models.planted()).to_state()
    tree, depth = state.parts["tree0"], 100_000
    children = np.concatenate([np.arange(1, depth), tree.arrays["children"]])
    pointers = np.concatenate([np.arange(depth), [len(children)]])
    deep = State(tree.kind, tree.params, tree.facts, {**tree.arrays, "children": children, "pointers": pointers})
    write_model(State(state.kind, state.params, state.facts, state.arrays, {"tree0": deep}), tmp_path / "model")
    with pytest.raises(ModelFormatError, match="more than 10000 levels"):
        longtail.load(tmp_path / "model")


@pytest.mark.parametrize("n_jobs", [10_000, 2**31, 2**63 - 1, -(2**63)])
@pytest.mark.parametrize("kind", ["one-hot", "Ridge", "LabelTree"])
def test_a_file_cannot_ask_for_any_number_of_threads(
    kind: str, n_jobs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = []
    if kind == "one-hot":
        torch = pytest.importorskip("torch")
        before = torch.set_num_threads
        monkeypatch.setattr(torch, "set_num_threads", lambda count: (started.append(count), before(count)))
    kinds = forged_models.networks() if kind == "one-hot" else forged_models.linear()
    kinds[kind]().save(tmp_path / "model")
    fields = fields_of(tmp_path / "model")
    fields["model"]["params"]["n_jobs"] = n_jobs
    (tmp_path / "model" / "manifest.json").write_bytes(sealed(fields))
    model = longtail.load(tmp_path / "model")
    labels, _ = model.predict_topk(np.tile(forged_models.rows_for(model.n_features_in_).toarray(), (400, 1)), 3)
    assert labels.shape == (1200, 3)
    assert all(count <= max(32, 4 * count_cores()) for count in started)


@pytest.mark.parametrize("value", [0, 1.5, "2", True])
def test_threads_that_are_none_are_refused(value: object, tmp_path: Path) -> None:
    Ridge().fit(*forged_models.planted()).save(tmp_path / "model")
    fields = fields_of(tmp_path / "model")
    fields["model"]["params"]["n_jobs"] = value
    (tmp_path / "model" / "manifest.json").write_bytes(sealed(fields))
    with pytest.raises(ModelFormatError, match="n_jobs"):
        longtail.load(tmp_path / "model")


@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4, 5, 6, 7, 9], [-1, *range(1, 9)], [0] * 9, [2**62, *range(8)]])
@pytest.mark.parametrize("kind", ["dft", "cascade", "product"])
def test_an_order_of_labels_that_is_none_is_refused(kind: str, order: list[int], tmp_path: Path) -> None:
    pytest.importorskip("torch")
    state = forged_models.networks()[kind]().to_state()
    weights = state.parts["network0"]
    name = "head.order" if kind == "dft" else "head.position"
    forged = State(weights.kind, arrays={**weights.arrays, name: np.array(order, dtype=np.int64)})
    write_model(State(state.kind, state.params, state.facts, state.arrays, {"network0": forged}), tmp_path / "model")
    with pytest.raises(ModelFormatError, match="permutation"):
        longtail.load(tmp_path / "model")


def test_runs_of_words_are_bounded_in_files(tmp_path: Path) -> None:
    Tagger(TextFeatures(min_df=1), Ridge()).fit(forged_models.TEXTS, forged_models.TAGS).save(tmp_path / "model")
    fields = fields_of(tmp_path / "model")
    fields["model"]["parts"]["features"]["params"]["ngrams"] = [1, 10**9]
    (tmp_path / "model" / "manifest.json").write_bytes(sealed(fields))
    with pytest.raises(ModelFormatError, match="ngrams is 1000000000; expected a whole number from 1 to 20"):
        longtail.load(tmp_path / "model")


@pytest.mark.parametrize("ids", [[0, 2**63 - 1, -(2**63), -1, 5], [-1, 3], [5, 3], [3, 3], [2, 9]])
def test_label_ids_whose_differences_overflow_are_refused(ids: list[int], tmp_path: Path) -> None:
    pytest.importorskip("torch")
    state = forged_models.networks()["one-hot"]().to_state()
    arrays = {**state.arrays, "labels": np.array(ids, dtype=np.int64)}
    write_model(State(state.kind, state.params, state.facts, arrays, state.parts), tmp_path / "model")
    with pytest.raises(ModelFormatError, match="do not rise"):
        longtail.load(tmp_path / "model")


@pytest.mark.parametrize("value", [np.nan, np.inf, 3e38])
def test_weights_that_no_training_gives_are_an_error_and_never_a_score(value: float, tmp_path: Path) -> None:
    state = Ridge().fit(*forged_models.planted()).to_state()
    coef = state.arrays["coef"].copy()
    coef[:] = value
    write_model(State(state.kind, state.params, state.facts, {**state.arrays, "coef": coef}), tmp_path / "model")
    model = longtail.load(tmp_path / "model")
    rows = 100 * forged_models.rows_for(20)
    with pytest.raises(InvalidInput, match="not a finite number"):
        model.decision_function(rows)
    with pytest.raises(InvalidInput, match="not a finite number"):
        model.predict_topk(rows, 3)
    if value != 3e38:  # which 64 bits can hold a hundred times
        with pytest.raises(InvalidInput, match="not a finite number"):
            model.explain(rows[[0]], 0)


@pytest.mark.parametrize(
    ("name", "value"), [("scales", 3e38), ("scales", -3e38), ("weights", np.inf), ("weights", np.nan)]
)
def test_an_explanation_by_trees_is_finite_whatever_the_weights(name: str, value: float) -> None:
    state = LabelTree(leaf_size=3, precision=32, random_state=0).fit(*forged_models.planted()).to_state()
    state.parts["tree0"].arrays[name] = np.full_like(state.parts["tree0"].arrays[name], value)
    model, rows = LabelTree.from_state(state), forged_models.planted()[0]
    with np.errstate(all="ignore"):
        for label in range(model.n_labels_):
            assert np.isfinite(forged_models.numbers_of(model.explain(rows[[0]], label))).all()


@pytest.mark.parametrize("kind", ["sampling", "dft in order", "DeepMIML", "cascade"])
def test_weights_of_a_network_that_overflow_are_an_error_and_never_a_score(kind: str, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    state = forged_models.networks()[kind]().to_state()
    weights = state.parts["network0"]
    huge = {name: np.copysign(np.float32(3e38), a) if a.dtype.kind == "f" else a for name, a in weights.arrays.items()}
    forged = State(weights.kind, arrays=huge)
    write_model(State(state.kind, state.params, state.facts, state.arrays, {"network0": forged}), tmp_path / "model")
    model = longtail.load(tmp_path / "model")
    with pytest.raises(InvalidInput, match="not a finite number"):
        model.predict_topk(forged_models.rows_for(20), 3)


def test_a_sound_model_is_read_as_before(tmp_path: Path) -> None:
    model = Ridge().fit(*forged_models.planted())
    model.save(tmp_path / "model")
    forger = Forger(tmp_path / "model", tmp_path / "again")
    forger.write(forger.fields)
    again = longtail.load(tmp_path / "again")
    rows = forged_models.planted()[0]
    assert (model.predict_topk(rows)[1] == again.predict_topk(rows)[1]).all()
    assert read_model(tmp_path / "again").kind == "Ridge"
