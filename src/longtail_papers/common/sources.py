"""Which source files a module uses, read from its imports without running it."""

from __future__ import annotations

import ast
from functools import cache
from hashlib import blake2b
from pathlib import Path

ROOT = Path(__file__).parents[2]
_PACKAGES = ("longtail", "longtail_papers")
_NATIVE = "longtail.native"


@cache
def source_digest(module: str, root: Path = ROOT) -> str:
    """A digest of the names and contents of the files that `module` uses."""
    digest = blake2b(digest_size=8)
    for path in used_sources(module, root):
        digest.update(f"{path.relative_to(root).as_posix()}\n".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def used_sources(module: str, root: Path = ROOT) -> list[Path]:
    """The files of our packages that a module uses: itself, what it imports, what those import, and so on.

    Imports inside functions count. An import from a package counts for the module that defines the name, not for
    everything that the package's ``__init__`` imports: ``from longtail.trees import LabelTree`` uses
    ``longtail/trees/label_tree.py``. The ``__init__`` itself counts only if it defines the name. The C++ kernels,
    or the compiled library of an installed package, count as soon as ``longtail.native`` is used. Modules that are
    imported by a computed name are not seen.

    Parameters
    ----------
    module : str
    root : path
        The folder with the packages.
    """
    used: set[Path] = set()
    waiting = {module}
    while waiting:
        path = _file_of(waiting.pop(), root)
        if path is not None and path not in used:
            used.add(path)
            imported = _imported_names(path.read_text(encoding="utf-8"))
            waiting.update(_home(module, name, root) for module, name, _ in imported)
    native = root / Path(*_NATIVE.split("."))
    if any(native in path.parents for path in used):
        kernels = [path for path in native.iterdir() if path.suffix in (".cpp", ".h")]
        used.update(kernels or (path for path in native.iterdir() if path.suffix in (".so", ".pyd")))
    return sorted(used)


def _file_of(module: str, root: Path) -> Path | None:
    base = root.joinpath(*module.split("."))
    for path in (base / "__init__.py", base.with_suffix(".py")):
        if path.is_file():
            return path
    return None


@cache
def _imported_names(source: str) -> tuple[tuple[str, str, str], ...]:
    """Module, name and local name of each import from our packages; the name is empty for a whole module."""
    found: list[tuple[str, str, str]] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [(alias.name, "", alias.asname or alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found += [(node.module, alias.name, alias.asname or alias.name) for alias in node.names]
    return tuple(each for each in found if each[0].split(".")[0] in _PACKAGES)


def _home(module: str, name: str, root: Path) -> str:
    """The module that defines what ``from module import name`` gives; `module` itself if that cannot be told."""
    if not name:
        return module
    if _file_of(f"{module}.{name}", root) is not None:
        return f"{module}.{name}"
    path = _file_of(module, root)
    if path is not None and path.name == "__init__.py":
        for other, original, local in _imported_names(path.read_text(encoding="utf-8")):
            if local == name:
                return _home(other, original, root)
    return module
