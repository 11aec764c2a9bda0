from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import longtail_papers
from longtail.cli import program
from longtail.data import data_set
from longtail.data.sets import catalogue
from longtail.errors import InvalidInput, Unavailable
from longtail_papers.common import Context, Section
from longtail_papers.common import experiment as runner

# The sections that need no data.
WITHOUT_DATA = {
    "ridge": ("scaling",),
    "eagle": ("simulations",),
    "multi-head": ("rank_one", "costs"),
    "argmaxable": ("counts", "small_layers", "parameters"),
    "dft": ("steps",),
}


@pytest.fixture
def no_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("LONGTAIL_DATA", "LONGTAIL_CACHE"):
        monkeypatch.setenv(variable, str(tmp_path / "nothing"))
    monkeypatch.setattr(catalogue, "_SHARED", tmp_path / "nothing")


def module_of(name: str) -> Any:
    if name in ("miml", "multi-head", "dft"):
        pytest.importorskip("torch")
    if name == "argmaxable":
        pytest.importorskip("highspy")
    return import_module(longtail_papers.EXPERIMENTS[name].module)


def nothing(*arguments: Any, **options: Any) -> Iterator[Section]:
    return iter(())


def only_data(name: str, monkeypatch: pytest.MonkeyPatch, *more: Any) -> Any:
    """The module of an experiment, whose sections that need no data are replaced by `more`."""
    module = module_of(name)
    sections = [
        each for each in module.EXPERIMENT.sections if getattr(each, "__name__", "") not in WITHOUT_DATA.get(name, ())
    ]
    monkeypatch.setattr(module, "EXPERIMENT", replace(module.EXPERIMENT, sections=(*more, *sections)))
    if name == "argmaxable":
        monkeypatch.setattr(module, "EXPERIMENT", replace(module.EXPERIMENT, parts={}))
        monkeypatch.setattr(module.radii, "radii", nothing)
        monkeypatch.setattr(module.random_layers, "random_layers", nothing)
        monkeypatch.setattr(module.Proofs, "section", nothing)
    return module


@pytest.mark.usefixtures("no_data")
@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("name", longtail_papers.EXPERIMENTS)
def test_without_data_an_experiment_says_what_is_missing_and_writes_no_empty_report(
    name: str, quick: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module = only_data(name, monkeypatch)
    monkeypatch.setattr(runner, "call_side_by_side", lambda *_: pytest.fail("measured without data"))
    code = program.run(["reproduce", name, "--out", str(tmp_path / "out"), *(["--quick"] if quick else [])])
    found = capsys.readouterr()
    assert (code, found.out) == (1, "")
    assert "nothing was written" in found.err
    for data in module.EXPERIMENT.data_sets_of(quick=quick):
        assert f"{data_set(data).title} is not on this machine. Looked for the folders" in found.err
        assert f"into a folder named {data} and set LONGTAIL_DATA to the folder that contains it" in found.err
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


@pytest.mark.usefixtures("no_data")
@pytest.mark.parametrize("name", WITHOUT_DATA)
def test_without_data_the_parts_that_need_none_are_written(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = only_data(name, monkeypatch, lambda context: iter([Section("Drawn", "Needs no data.")]))
    with pytest.raises(Unavailable) as raised:
        longtail_papers.run(name, tmp_path, quick=True)
    assert raised.value.code == "missing_data"
    assert f"only the parts that need no data are in {tmp_path / name}.md" in str(raised.value)
    text = (tmp_path / f"{name}.md").read_text(encoding="utf-8")
    assert "## Drawn" in text
    assert all(data_set(data).title in text for data in module.EXPERIMENT.data_sets_of(quick=True))


@pytest.mark.usefixtures("no_data")
def test_missing_data_sets_are_named_and_the_others_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from longtail_papers.ridge import experiment as ridge

    for part in ("train", "test"):
        path = tmp_path / "data" / "bibtex" / f"{part}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("2 2 1\n0 0:1\n0 1:1\n", encoding="utf-8")
    monkeypatch.setenv("LONGTAIL_DATA", str(tmp_path / "data"))

    def measured(context: Context) -> Iterator[Section]:
        yield from (Section(benchmark.title, "Measured.") for benchmark in context.benchmarks)

    monkeypatch.setattr(ridge, "EXPERIMENT", replace(ridge.EXPERIMENT, sections=(measured,)))
    with caplog.at_level(logging.WARNING):
        assert [path.name for path in longtail_papers.run("ridge", tmp_path)] == ["ridge.md", "ridge.json"]
    told = [record.getMessage() for record in caplog.records if record.getMessage().startswith("left out: ")]
    assert [line.split()[2] for line in told] == ["Delicious", "EURLex-4K"]
    text = (tmp_path / "ridge.md").read_text(encoding="utf-8")
    assert "the system: Delicious, EURLex-4K." in text
    assert "## Bibtex" in text


def test_an_unknown_experiment_is_refused_with_the_known_names(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"'alchemy'; choose from ridge, .*dft") as raised:
        longtail_papers.run("alchemy", tmp_path / "out")
    assert (raised.value.code, raised.value.name) == ("unknown_experiment", "alchemy")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", longtail_papers.EXPERIMENTS)
def test_every_experiment_is_defined_where_the_table_says(name: str) -> None:
    entry = longtail_papers.EXPERIMENTS[name]
    experiment = module_of(name).EXPERIMENT
    assert (experiment.name, experiment.module) == (name, entry.module)
    assert entry.line
    assert "\n" not in entry.line


def test_an_experiment_on_networks_says_that_torch_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def missing(name: str) -> Any:
        raise ModuleNotFoundError("No module named 'torch'", name="torch")

    monkeypatch.setattr(longtail_papers, "import_module", missing)
    with pytest.raises(Unavailable, match=r"torch is not installed; .* 'longtail\[neural\]'") as raised:
        longtail_papers.run("dft", tmp_path)
    assert (raised.value.code, raised.value.name) == ("missing_package", "torch")
