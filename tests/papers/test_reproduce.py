from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import longtail_papers
from longtail.cli import program
from longtail.data import data_set
from longtail.data.sets import catalogue
from longtail.errors import InvalidInput, Unavailable
from longtail_papers.common.tables import Section

# The parts of experiments that need no data.
WITHOUT_DATA = {
    "ridge": ("scaling",),
    "eagle": ("simulations",),
    "multi-head": ("rank_one", "costs"),
    "argmaxable": ("counts", "radii"),
}


@pytest.fixture
def no_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("LONGTAIL_DATA", "LONGTAIL_CACHE"):
        monkeypatch.setenv(variable, str(tmp_path / "nothing"))
    monkeypatch.setattr(catalogue, "_SHARED", tmp_path / "nothing")


def experiment(name: str) -> Any:
    if name in ("miml", "multi-head", "dft"):
        pytest.importorskip("torch")
    if name == "argmaxable":
        pytest.importorskip("highspy")
    return import_module(f"longtail_papers.{longtail_papers._HOMES[name]}")


def nothing(*arguments: Any, **options: Any) -> Iterator[Section]:
    return iter(())


@pytest.mark.usefixtures("no_data")
@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("name", longtail_papers.NAMES)
def test_without_data_an_experiment_says_what_is_missing_and_writes_no_empty_report(
    name: str, quick: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module = experiment(name)
    for part in WITHOUT_DATA.get(name, ()):
        monkeypatch.setattr(module, part, nothing)
    if name == "argmaxable":
        monkeypatch.setattr(module.Proofs, "section", nothing)
    monkeypatch.setattr(module, "measure_parts", nothing, raising=False)
    code = program.run(["reproduce", name, "--out", str(tmp_path / "out"), *(["--quick"] if quick else [])])
    found = capsys.readouterr()
    assert (code, found.out) == (1, "")
    for data in module.data_sets(quick=quick):
        assert f"{data_set(data).title} is not here. Looked for the folders" in found.err
        assert f"into a folder named {data} and set LONGTAIL_DATA to the folder that contains it" in found.err
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


@pytest.mark.usefixtures("no_data")
@pytest.mark.parametrize("name", WITHOUT_DATA)
def test_without_data_what_needs_none_is_written_and_the_rest_is_missed(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = experiment(name)
    first, *others = WITHOUT_DATA[name]
    monkeypatch.setattr(module, first, lambda *arguments, **options: iter([Section("Drawn", "Needs no data.")]))
    for part in others:
        monkeypatch.setattr(module, part, nothing)
    with pytest.raises(Unavailable, match=rf"only what needs no data is in .*{name}\.md\. .* is not here"):
        longtail_papers.run(name, tmp_path, quick=True)
    text = (tmp_path / f"{name}.md").read_text(encoding="utf-8")
    assert "## Drawn" in text
    assert all(data_set(data).title in text for data in module.data_sets(quick=True))


@pytest.mark.usefixtures("no_data")
def test_where_some_data_is_here_the_rest_is_named_and_nothing_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from longtail_papers.ridge import experiment as ridge

    for part in ("train", "test"):
        path = tmp_path / "data" / "bibtex" / f"{part}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("2 2 1\n0 0:1\n0 1:1\n", encoding="utf-8")
    monkeypatch.setenv("LONGTAIL_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(ridge, "_sections", lambda benchmarks, quick: iter([Section(benchmarks[0].title, "Measured.")]))
    assert [path.name for path in longtail_papers.run("ridge", tmp_path)] == ["ridge.md", "ridge.json"]
    told = [record.getMessage() for record in caplog.records if record.getMessage().startswith("left out: ")]
    assert [line.split()[2] for line in told] == ["Delicious", "EURLex-4K"]
    assert "the system: Delicious, EURLex-4K." in (tmp_path / "ridge.md").read_text(encoding="utf-8")


def test_an_unknown_experiment_is_refused_with_the_known_names(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"'alchemy'; known are .*ridge"):
        longtail_papers.run("alchemy", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_every_name_has_a_module_and_one_line() -> None:
    for name, description in longtail_papers.NAMES.items():
        assert (
            Path(longtail_papers.__file__).parent / f"{longtail_papers._HOMES[name].replace('.', '/')}.py"
        ).is_file()
        assert description
        assert "\n" not in description


def test_an_experiment_on_networks_says_where_torch_is_missing(monkeypatch, tmp_path):
    def missing(name):
        raise ModuleNotFoundError("No module named 'torch'", name="torch")

    monkeypatch.setattr(longtail_papers, "import_module", missing)
    with pytest.raises(Unavailable, match=r"torch is not installed; .* 'longtail\[neural\]'"):
        longtail_papers.run("dft", tmp_path)
