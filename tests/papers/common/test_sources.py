"""Records outlive changes of code that the experiment does not use, and only those."""

from __future__ import annotations

from pathlib import Path

import pytest

import longtail_papers
from longtail_papers.common.sources import ROOT, source_digest, used_sources

FILES = {
    "longtail/__init__.py": "from longtail.trees import LabelTree as LabelTree\n",
    "longtail/trees/__init__.py": (
        "from longtail.trees.tree import LabelTree\nfrom longtail.trees.other import Other\n\nLIMIT = 3\n"
    ),
    "longtail/trees/tree.py": "from longtail.native import kernels\n\nclass LabelTree: pass\n",
    "longtail/trees/other.py": "class Other: pass\n",
    "longtail/lazy.py": "import numpy\n\ndef late(): pass\n",
    "longtail/native/__init__.py": "kernels = None\n",
    "longtail/native/dot.cpp": "int dot();\n",
    "longtail/native/dot.h": "int dot();\n",
    "longtail/plain.py": "x = 1\n",
    "longtail_papers/experiment.py": (
        "from longtail import LabelTree\n\ndef run():\n    from longtail.lazy import late\n    return late\n"
    ),
    "longtail_papers/plain.py": "import longtail.plain\n",
    "longtail_papers/limit.py": "from longtail.trees import LIMIT\n",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path


def names(module: str, root: Path) -> list[str]:
    return [path.relative_to(root).as_posix() for path in used_sources(module, root)]


def test_names_are_followed_through_packages_to_where_they_are_defined(root: Path) -> None:
    assert names("longtail_papers.experiment", root) == [
        "longtail/lazy.py",
        "longtail/native/__init__.py",
        "longtail/native/dot.cpp",
        "longtail/native/dot.h",
        "longtail/trees/tree.py",
        "longtail_papers/experiment.py",
    ]
    assert names("longtail_papers.plain", root) == ["longtail/plain.py", "longtail_papers/plain.py"]


def test_a_package_that_defines_the_name_itself_counts_with_all_it_imports(root: Path) -> None:
    used = names("longtail_papers.limit", root)
    assert {"longtail/trees/__init__.py", "longtail/trees/other.py", "longtail/trees/tree.py"} < set(used)


@pytest.mark.parametrize(
    ("changed", "forgotten"),
    [
        ("longtail/trees/other.py", False),
        ("longtail/trees/__init__.py", False),
        ("longtail/plain.py", False),
        ("longtail_papers/plain.py", False),
        ("longtail_papers/experiment.py", True),
        ("longtail/trees/tree.py", True),
        ("longtail/lazy.py", True),
        ("longtail/native/dot.cpp", True),
        ("longtail/native/dot.h", True),
    ],
)
def test_records_are_forgotten_only_if_used_code_changes(root: Path, changed: str, forgotten: bool) -> None:
    before = source_digest("longtail_papers.experiment", root)
    path = root / changed
    path.write_text(f"{path.read_text(encoding='utf-8')}\n", encoding="utf-8")
    source_digest.cache_clear()
    assert (source_digest("longtail_papers.experiment", root) != before) is forgotten


def test_a_name_that_moves_to_another_module_forgets_records(root: Path) -> None:
    before = source_digest("longtail_papers.experiment", root)
    path = root / "longtail/trees/__init__.py"
    path.write_text("from longtail.trees.other import Other as LabelTree\n", encoding="utf-8")
    source_digest.cache_clear()
    assert source_digest("longtail_papers.experiment", root) != before


def test_an_installed_package_has_the_compiled_kernels_in_place_of_their_sources(root: Path) -> None:
    (root / "longtail/native/dot.h").unlink()
    (root / "longtail/native/dot.cpp").rename(root / "longtail/native/_kernels.so")
    assert "longtail/native/_kernels.so" in names("longtail_papers.experiment", root)
    before = source_digest("longtail_papers.experiment", root)
    (root / "longtail/native/_kernels.so").write_bytes(b"other")
    source_digest.cache_clear()
    assert source_digest("longtail_papers.experiment", root) != before


@pytest.mark.parametrize("name", longtail_papers.EXPERIMENTS)
def test_experiments_use_neither_the_service_nor_the_commands(name: str) -> None:
    used = names(longtail_papers.EXPERIMENTS[name].module, ROOT)
    assert f"{longtail_papers.EXPERIMENTS[name].module.replace('.', '/')}.py" in used
    assert any(path.startswith("longtail/native/") and not path.endswith(".py") for path in used)
    assert not [path for path in used if path.startswith(("longtail/serve", "longtail/cli", "longtail/report"))]


def test_only_the_command_reproduce_imports_the_papers() -> None:
    found = [
        path.relative_to(ROOT).as_posix()
        for path in sorted((ROOT / "longtail").rglob("*.py"))
        if "longtail_papers" in path.read_text(encoding="utf-8")
    ]
    assert found == ["longtail/cli/reproduce.py"]
