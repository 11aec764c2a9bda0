"""The public objects of installed packages: each function, class and method once, under one name.

An object is public if a public module lists it in ``__all__`` or, without ``__all__``, defines it. An object with
several names gets the shortest; the others are its aliases.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

# Tests, deprecated modules, build tools, and modules that change a package or need others when they are imported.
_LEFT_OUT = frozenset(
    (
        "conftest",
        "core",
        "distutils",
        "estimator_checks",
        "experimental",
        "externals",
        "f2py",
        "fixes",
        "matlib",
        "misc",
        "mypy_plugin",
        "odr",
        "setup",
        "testutils",
        "tests",
        "version",
    )
)

# scikit-learn has these only after the module that enables them has been imported.
_EXPERIMENTAL = frozenset(
    (
        "sklearn.impute.IterativeImputer",
        "sklearn.model_selection.HalvingGridSearchCV",
        "sklearn.model_selection.HalvingRandomSearchCV",
    )
)


@dataclass(frozen=True)
class PublicObject:
    """A documented function, class or method.

    Parameters
    ----------
    name : str
        The qualified name, such as ``numpy.polyfit``.
    module : str
        The public module that it belongs to, such as ``numpy``.
    docstring : str
        Its own docstring, not an inherited one.
    aliases : tuple of str
        Its other names.
    """

    name: str
    module: str
    docstring: str
    aliases: tuple[str, ...] = ()


def public_objects(packages: Sequence[str]) -> list[PublicObject]:
    """Every public object of `packages` with a docstring of its own, in name order.

    Objects with the same docstring count as the same object.
    """
    found: list[PublicObject] = []
    for package in packages:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            modules = list(_public_modules(package))
        named: dict[int, list[tuple[str, str, Any]]] = {}
        for module in modules:
            for name, value in _public_values(module, package):
                named.setdefault(id(value), []).append((f"{module.__name__}.{name}", module.__name__, value))
        chosen = [min(names, key=_preference) for names in named.values()]
        classes = {id(value) for _, _, value in chosen if isinstance(value, type)}
        for name, module_name, value in chosen:
            if isinstance(value, type):
                for method_name, method in _methods(value, classes, package):
                    named.setdefault(id(method), []).append((f"{name}.{method_name}", module_name, method))
        for names in named.values():
            name, module_name, value = min(names, key=_preference)
            docstring = _own_docstring(value)
            if docstring:
                aliases = tuple(sorted(other for other, _, _ in names if other != name))
                found.append(PublicObject(name, module_name, docstring, aliases))
    return _without_copies(found)


def _preference(candidate: tuple[str, str, Any]) -> tuple[int, bool, str]:
    name, _, value = candidate
    return name.count("."), name.rpartition(".")[2] != getattr(value, "__name__", None), name


def _public_modules(name: str) -> Iterator[ModuleType]:
    try:
        module = importlib.import_module(name)
    except Exception:  # an optional part of a package can fail in any way, and is then not public here
        return
    yield module
    if hasattr(module, "__path__"):
        for entry in sorted(pkgutil.iter_modules(module.__path__), key=lambda entry: entry.name):
            if not entry.name.startswith(("_", "cython_")) and entry.name not in _LEFT_OUT:
                yield from _public_modules(f"{name}.{entry.name}")


def _public_values(module: ModuleType, package: str) -> Iterator[tuple[str, Any]]:
    listed = vars(module).get("__all__")
    for name in sorted(set(vars(module) if listed is None else listed)):
        if name.startswith("_") or f"{module.__name__}.{name}" in _EXPERIMENTAL:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                value = getattr(module, name)
            except (Warning, AttributeError, ImportError):  # deprecated names warn or are gone
                continue
        home = getattr(value, "__module__", None)
        own = home == module.__name__ if listed is None else home is None or home.partition(".")[0] == package
        if own and callable(value) and not inspect.ismodule(value):
            yield name, value


def _methods(owner: type, public_classes: set[int], package: str) -> Iterator[tuple[str, Any]]:
    """Methods that `owner`, or one of its private base classes in the same package, defines."""
    for name in sorted(set().union(*(vars(base) for base in owner.__mro__))):
        if name.startswith("_"):
            continue
        base = next(base for base in owner.__mro__ if name in vars(base))
        if base is not owner and (id(base) in public_classes or base.__module__.partition(".")[0] != package):
            continue
        value = vars(base)[name]
        value = value.__func__ if isinstance(value, classmethod | staticmethod) else value
        if isinstance(value, type | property) or inspect.isgetsetdescriptor(value) or inspect.ismemberdescriptor(value):
            continue
        if inspect.isroutine(value) or callable(value) or hasattr(value, "fn"):
            yield name, value


def _own_docstring(value: Any) -> str:
    docstring = vars(value).get("__doc__") if isinstance(value, type) else getattr(value, "__doc__", None)
    if not isinstance(docstring, str) or (not isinstance(value, type) and docstring == type(value).__doc__):
        return ""
    docstring = inspect.cleandoc(docstring)
    start = docstring[:400].lower()
    return "" if start.startswith("deprecated") or ".. deprecated::" in start else docstring


def _without_copies(objects: list[PublicObject]) -> list[PublicObject]:
    by_docstring: dict[str, PublicObject] = {}
    for candidate in sorted(objects, key=lambda known: (known.name.count("."), known.name)):
        first = by_docstring.setdefault(candidate.docstring, candidate)
        if first is not candidate:
            aliases = tuple(sorted({*first.aliases, candidate.name, *candidate.aliases}))
            by_docstring[candidate.docstring] = PublicObject(first.name, first.module, first.docstring, aliases)
    return sorted(by_docstring.values(), key=lambda known: known.name)
