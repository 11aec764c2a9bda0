"""Models over HTTP, with limits and a web page. Needs the extra ``longtail[serve]``, except for `Limits`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from longtail.errors import Unavailable
from longtail.serve.limits import Limits

if TYPE_CHECKING:
    from longtail.serve.app import create_app as create_app
    from longtail.serve.program import is_loopback as is_loopback
    from longtail.serve.program import run as run

__all__ = ["Limits", "create_app", "is_loopback", "run"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'longtail.serve' has no attribute {name!r}")
    try:
        return getattr(import_module(f"longtail.serve.{'app' if name == 'create_app' else 'program'}"), name)
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.partition(".")[0] == "longtail":
            raise
        raise Unavailable(f"serving needs {missing.name}: pip install 'longtail[serve]'", name=missing.name) from None
