"""Training in pieces: the bytes of a model do not depend on who trains it, nor on interruptions."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from longtail import LabelTree, OneVsRest, Ridge, in_pieces, memory
from longtail.errors import InvalidInput, NotEnoughMemory
from longtail.labels import LabelHierarchy, bisection, vectors
from longtail.ridge import pieces
from longtail.store import Spooled, read_piece
from longtail.trees import training
from longtail.work import is_in_pieces
from longtail.work.task import Task
from tests.work.models import LEARNERS, data, model_bytes


@pytest.fixture(autouse=True)
def many_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Divide small data into many tasks."""
    monkeypatch.setattr(training, "_WORK_OF_A_PIECE", 500)
    monkeypatch.setattr(training, "_ROWS_SEARCHED", 20)
    monkeypatch.setattr(vectors, "_BLOCK_ENTRIES", 50)
    monkeypatch.setattr(bisection, "_SMALL", 20)
    monkeypatch.setattr(pieces, "_ENTRIES", 200)
    monkeypatch.setattr(pieces, "_SCANNED", 50)
    monkeypatch.setattr(pieces, "_PRODUCTS", 200)


def last_pieces(folder: Path) -> list[Path]:
    """The pieces of the stages that train classifiers or solve for labels."""
    return [path for stage in ("training-classifiers", "solving-for-labels") for path in folder.glob(f"*/*{stage}.*-*")]


def training_in(folder: Path) -> Path:
    """The folder of the only training."""
    [found] = folder.glob("training1-*")
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "model.unfinished"


@pytest.mark.parametrize("learner", LEARNERS, ids=repr)
def test_a_model_trained_in_pieces_has_the_same_bytes(learner: Any, folder: Path, tmp_path: Path) -> None:
    X, Y = data()
    expected = model_bytes(learner.fit(X, Y), tmp_path / "whole")
    with in_pieces(folder):
        found = model_bytes(learner.fit(X, Y), tmp_path / "pieces")
        n_nodes = sum(hierarchy.n_nodes for hierarchy in learner.hierarchies_) or 3
        assert len(last_pieces(folder)) >= min(3, n_nodes)
    assert found == expected
    assert not folder.exists()


@pytest.mark.parametrize("large", [0, 20, 10**9])
def test_large_nodes_give_the_same_tree_in_memory_and_in_pieces(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, large: int
) -> None:
    monkeypatch.setattr(bisection, "_LARGE", large)
    monkeypatch.setattr(bisection, "_SAMPLE", 5)
    monkeypatch.setattr(bisection, "_PROJECTED", 3)
    monkeypatch.setattr(bisection, "_SMALL", 0)
    X, Y = data()
    learner = LabelTree(leaf_size=2, branching=2)
    expected = model_bytes(learner.fit(X, Y), tmp_path / "whole")
    with in_pieces(folder):
        assert model_bytes(learner.fit(X, Y), tmp_path / "pieces") == expected
        assert bool(list(folder.glob("*/*sampling-labels.*"))) == (large < 10**9)


@pytest.mark.parametrize("learner", [LEARNERS[0], LEARNERS[4]], ids=repr)
def test_threads_of_an_executor_give_the_same_bytes(learner: Any, folder: Path, tmp_path: Path) -> None:
    X, Y = data()
    expected = model_bytes(learner.fit(X, Y), tmp_path / "whole")
    with ThreadPoolExecutor(3) as executor, in_pieces(folder, executor):
        assert model_bytes(learner.fit(X, Y), tmp_path / "pieces") == expected


@pytest.mark.slow
@pytest.mark.parametrize("learner", [LEARNERS[1], LEARNERS[6]], ids=repr)
def test_other_processes_give_the_same_bytes(learner: Any, folder: Path, tmp_path: Path) -> None:
    X, Y = data()
    expected = model_bytes(learner.fit(X, Y), tmp_path / "whole")
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as executor, in_pieces(folder, executor):
        assert model_bytes(learner.fit(X, Y), tmp_path / "pieces") == expected


def interrupted_after(monkeypatch: pytest.MonkeyPatch, count: int) -> list[str]:
    """Let `count` tasks finish, then interrupt; returns the names of the tasks that were started."""
    started: list[str] = []
    run = Task.run

    def counted(task: Task) -> bool:
        if len(started) == count:
            raise KeyboardInterrupt
        started.append(task.name)
        return run(task)

    monkeypatch.setattr(Task, "run", counted)
    return started


@pytest.mark.parametrize(
    ("learner", "count"),
    [(LEARNERS[1], count) for count in (0, 1, 3, 7, 12, 20, 30)] + [(LEARNERS[4], count) for count in (1, 8, 14)],
)
def test_an_interrupted_training_goes_on_where_it_stopped(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, learner: Any, count: int
) -> None:
    X, Y = data()
    learner = clone(learner).set_params(n_jobs=1)
    expected = model_bytes(learner.fit(X, Y), tmp_path / "whole")

    def train() -> Any:
        with in_pieces(folder):
            return model_bytes(learner.fit(X, Y), tmp_path / "pieces")

    with monkeypatch.context() as patch:
        interrupted_after(patch, count)
        with pytest.raises(KeyboardInterrupt):
            train()
    made = []
    monkeypatch.setattr("longtail.work.task.write_piece", _noting(made))
    assert train() == expected
    pieces = [name for name in made if not name.endswith(".index") and "-" in name.rsplit(".", 1)[-1]]
    assert len(pieces) == len(set(pieces))
    with monkeypatch.context() as patch:
        all_made: list[str] = []
        patch.setattr("longtail.work.task.write_piece", _noting(all_made))
        assert train() == expected
    every = [name for name in all_made if not name.endswith(".index") and "-" in name.rsplit(".", 1)[-1]]
    assert len(pieces) == len(every) - count


def _noting(names: list[str]) -> Callable[..., None]:
    from longtail.store import write_piece

    def noted(path: Path, arrays: Any) -> None:
        names.append(path.name)
        write_piece(path, arrays)

    return noted


@pytest.mark.parametrize(
    ("learner", "stage", "count"), [(LEARNERS[0], "label-vectors", 15), (LEARNERS[4], "float64_Gram-matrix", 18)]
)
def test_a_damaged_piece_is_made_again(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, learner: Any, stage: str, count: int
) -> None:
    X, Y = data()
    learner = clone(learner).set_params(n_jobs=1)
    expected = model_bytes(learner.fit(X, Y), tmp_path / "whole")
    with monkeypatch.context() as patch:
        interrupted_after(patch, count)
        with pytest.raises(KeyboardInterrupt), in_pieces(folder):
            learner.fit(X, Y)
    [damaged, *_] = sorted(folder.glob(f"*/{stage}.0-*"))
    content = bytearray(damaged.read_bytes())
    content[-1] ^= 1
    damaged.write_bytes(content)
    made: list[str] = []
    monkeypatch.setattr("longtail.work.task.write_piece", _noting(made))
    with in_pieces(folder):
        assert model_bytes(learner.fit(X, Y), tmp_path / "pieces") == expected
    assert damaged.name in made


@pytest.mark.parametrize("fault", ["damaged", "shorter", "missing"])
def test_a_joined_file_with_a_fault_is_joined_again(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    X, Y = data()
    learner = LEARNERS[0].set_params(n_jobs=1)
    expected = model_bytes(learner.fit(X, Y), tmp_path / "whole")
    with contextlib.suppress(KeyboardInterrupt), in_pieces(folder):
        learner.fit(X, Y)
        raise KeyboardInterrupt
    joined = training_in(folder) / "tree0_joining-classifiers-weights.npy"
    content = bytearray(joined.read_bytes())
    content[-1] ^= 1
    joined.unlink()
    if fault != "missing":
        joined.write_bytes(content if fault == "damaged" else content[:-2])
    made: list[str] = []
    monkeypatch.setattr("longtail.work.task.write_piece", _noting(made))
    with in_pieces(folder):
        assert model_bytes(learner.fit(X, Y), tmp_path / "pieces") == expected
    assert [name for name in made if "joining" in name and not name.endswith(".index")] == [
        "tree0_joining-classifiers.0-1"
    ]


def test_the_client_reads_no_weights(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    X, Y = data()
    hashed: list[str] = []
    read = Spooled.read_sha256
    monkeypatch.setattr(Spooled, "read_sha256", lambda file: (hashed.append(file.path.name), read(file))[1])
    with in_pieces(folder):
        tree = LEARNERS[1].fit(X, Y)
        before = sum(path.stat().st_size for path in folder.rglob("*") if "joining" not in path.name)
        tree.save(tmp_path / "model")
        search = training_in(folder) / "tree0_search"
        joined = training_in(folder) / "tree0_joining-classifiers-again-weights.npy"
        assert set(read_piece(search)).isdisjoint({"weights", "slots", "masks", "counts"})
        assert joined.stat().st_nlink == 2
        assert sum(path.stat().st_size for path in folder.rglob("*") if "joining" not in path.name) == before
    assert not hashed


def test_only_one_process_works_in_a_folder(folder: Path) -> None:
    code = f"""
from longtail import in_pieces
with in_pieces({str(folder)!r}):
    print("inside", flush=True)
    input()
"""
    other = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert other.stdout is not None
    assert other.stdout.readline() == "inside\n"
    with pytest.raises(InvalidInput, match="another process is working in") as caught, in_pieces(folder):
        pass
    assert caught.value.code == "folder_in_use"
    other.kill()
    other.communicate()
    with in_pieces(folder):
        pass
    assert not folder.exists()


def test_another_training_does_not_use_the_pieces(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    X, Y = data()
    with monkeypatch.context() as patch:
        interrupted_after(patch, 2)
        with pytest.raises(KeyboardInterrupt), in_pieces(folder):
            LabelTree(n_jobs=1).fit(X, Y)
    changed = X.copy()
    changed.data[0] += 1
    for learner, features in ((LabelTree(C=2), X), (OneVsRest(), X), (LabelTree(), changed)):
        with pytest.raises(InvalidInput, match="unfinished work of another job") as caught, in_pieces(folder):
            learner.fit(features, Y)
        assert caught.value.code == "other_job"
    with in_pieces(folder):
        LabelTree(n_jobs=2).fit(X, Y)  # the number of threads does not matter
    assert not folder.exists()


@pytest.mark.parametrize("learner", [LEARNERS[0], LEARNERS[4]], ids=repr)
def test_little_memory_divides_tasks_and_changes_nothing(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, learner: Any
) -> None:
    X, Y = data()
    expected = model_bytes(learner.fit(X, Y), tmp_path / "whole")
    monkeypatch.setattr(training, "_WORK_OF_A_PIECE", 10**9)
    monkeypatch.setattr(pieces, "_PRODUCTS", 10**9)
    refused: list[str] = []
    run = Task.run

    def refusing(task: Task) -> bool:
        if task.stage.endswith(("training-classifiers", "Gram-matrix")) and task.stop - task.start > 2:
            refused.append(task.name)
            return False
        return run(task)

    monkeypatch.setattr(Task, "run", refusing)
    with in_pieces(folder):
        assert model_bytes(learner.fit(X, Y), tmp_path / "pieces") == expected
    assert refused


def test_a_task_that_never_fits_is_told_with_its_size(folder: Path) -> None:
    X, Y = data()
    told = r"the largest task needs about .*more memory"
    with memory.limit("1K"), pytest.raises(NotEnoughMemory, match=told), in_pieces(folder):
        LabelTree().fit(X, Y)
    assert folder.exists()


def test_only_one_training_in_pieces_is_open(tmp_path: Path) -> None:
    assert not is_in_pieces()
    with in_pieces(tmp_path / "one"):
        assert is_in_pieces()
        with pytest.raises(InvalidInput, match="already open"), in_pieces(tmp_path / "two"):
            pass
    assert not is_in_pieces()


def test_mapped_matrices_are_not_copied_into_the_folder(folder: Path, tmp_path: Path) -> None:
    from longtail.store import Spool

    X, Y = data()
    with in_pieces(folder):
        LabelTree(n_jobs=1).fit(X, Y)
        assert (training_in(folder) / "features1.npy").exists()
        names = {path.name for path in training_in(folder).iterdir()}
    assert {"features0.npy", "features1.npy", "features2.npy", "labels1.npy"} <= names
    with Spool(tmp_path / "values.npy", np.float32) as spool:
        spool.append(X.data)
    X.data = spool.finished().values
    with in_pieces(folder):
        LabelTree(n_jobs=1).fit(X, Y)
        assert (training_in(folder) / "features1.npy").exists()
        index = read_piece(training_in(folder) / "rows-of-labels.index")
        assert index["ranges"][:, 1].max() == Y.shape[1]


def test_files_of_others_are_neither_accepted_nor_removed(folder: Path) -> None:
    X, Y = data()
    folder.mkdir()
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(InvalidInput, match=r"holds other files, such as 'notes\.txt'"), in_pieces(folder):
        pass
    (folder / "notes.txt").unlink()
    (folder / "data").mkdir()
    with pytest.raises(InvalidInput, match="holds other files, such as 'data'"), in_pieces(folder):
        pass
    assert [path.name for path in folder.iterdir()] == ["data"]
    (folder / "data").rmdir()
    with in_pieces(folder):
        LabelTree(n_jobs=1).fit(X, Y).save(folder / "model")
    assert [path.name for path in folder.iterdir()] == ["model"]


def test_a_lock_that_cannot_be_removed_while_it_is_open_does_not_fail_a_training(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unlink = Path.unlink

    def refused(path: Path, missing_ok: bool = False) -> None:
        if path.name == "lock":
            raise PermissionError("the file is open, as on Windows")
        unlink(path, missing_ok)

    monkeypatch.setattr(Path, "unlink", refused)
    with in_pieces(folder):
        pass


def test_another_tree_over_the_labels_is_another_training(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    X, Y = data()
    halves = np.array_split(np.arange(Y.shape[1]), 2)
    one, other = (
        LabelHierarchy([0, 2, 2 + len(halves[0]), 2 + Y.shape[1]], [1, 2, *~order], n_labels=Y.shape[1])
        for order in (np.concatenate(halves), np.concatenate(halves)[::-1])
    )
    assert repr(one) == repr(other)
    with monkeypatch.context() as patch:
        interrupted_after(patch, 2)
        with pytest.raises(KeyboardInterrupt), in_pieces(folder):
            LabelTree(hierarchy=one, n_jobs=1).fit(X, Y)
    with pytest.raises(InvalidInput, match="unfinished work of another job"), in_pieces(folder):
        LabelTree(hierarchy=other, n_jobs=1).fit(X, Y)


def test_a_ridge_goes_on_with_its_solver_on_a_machine_with_other_memory(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, Y = data()
    expected = model_bytes(Ridge(solver="dual", n_jobs=1).fit(X, Y), tmp_path / "dual")

    def chosen(solver: str) -> Callable[..., Any]:
        def changed(ridge: Ridge, training: Any, shape: Any, alphas: Any) -> Any:
            [found] = [each for each in ridge._estimates(shape) if each.solver == solver][:1]
            return found, None

        return changed

    with monkeypatch.context() as patch:
        patch.setattr(Ridge, "_choose", chosen("dual"))
        interrupted_after(patch, 20)
        with pytest.raises(KeyboardInterrupt), in_pieces(folder):
            Ridge(n_jobs=1).fit(X, Y)
    monkeypatch.setattr(Ridge, "_choose", chosen("primal"))
    with in_pieces(folder):
        found = Ridge(n_jobs=1).fit(X, Y)
        assert found.solver_ == "dual"
        assert model_bytes(found, tmp_path / "pieces") == expected
