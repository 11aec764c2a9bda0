"""docs/architecture.md tells the truth: its layers are those of the import contracts, and what it names exists."""

from __future__ import annotations

import re
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
CONTRACTS = {contract["name"]: contract for contract in PROJECT["tool"]["importlinter"]["contracts"]}
LAYERS = CONTRACTS["Data flows one way"]["layers"]
SOURCES = ROOT / "src"


def members(layers: list[str]) -> set[str]:
    return {name.strip() for layer in layers for name in layer.split("|")}


def test_the_page_lists_the_layers_of_the_contract() -> None:
    found = re.search(r"```text layers\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    assert found[1].splitlines() == LAYERS


def test_every_package_and_module_has_a_layer() -> None:
    there = {
        f"longtail.{path.stem}"
        for path in (SOURCES / "longtail").iterdir()
        if (path / "__init__.py").is_file() or (path.suffix == ".py" and not path.stem.startswith("__"))
    }
    assert members(LAYERS) == there | {"longtail_papers"}


def test_every_package_is_described() -> None:
    rows = re.findall(r"^\| (`longtail[^|]*) \|", PAGE, re.MULTILINE)
    described = {name for row in rows for name in re.findall(r"`([\w.]+)`", row)}
    assert described == members(LAYERS)


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`(longtail(?:_papers)?(?:\.\w+)+)`", PAGE))))
def test_every_module_that_the_page_names_exists(name: str) -> None:
    assert find_spec(name) is not None


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`((?:tests|docs|benchmarks)/[\w/.-]+)`", PAGE))))
def test_every_path_that_the_page_names_exists(path: str) -> None:
    assert (ROOT / path).exists()


def test_every_kernel_that_the_page_names_exists() -> None:
    for name in re.findall(r"`(\w+\.cpp)`", PAGE):
        assert (SOURCES / "longtail" / "native" / name).is_file()


def test_imports_of_inner_modules_are_few() -> None:
    assert len(CONTRACTS["A package is imported through its __init__"]["ignore_imports"]) < 30


def test_the_tests_of_a_package_are_in_a_folder_of_its_name() -> None:
    packages = {path.parent.name for path in (SOURCES / "longtail").glob("*/__init__.py")}
    folders = {path.parent.name for path in (ROOT / "tests").glob("*/__init__.py")}
    assert packages <= folders
    assert folders - packages == {"benchmarks", "fuzz", "papers"}
