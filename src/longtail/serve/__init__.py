"""A model behind HTTP: a service with limits, and a page to try it on. Needs the extra ``longtail[serve]``."""

from longtail.errors import Unavailable
from longtail.serve.limits import Limits

try:
    from longtail.serve.app import create_app
    from longtail.serve.program import run
except ModuleNotFoundError as missing:
    if missing.name is None or missing.name.partition(".")[0] == "longtail":
        raise
    raise Unavailable(f"serving needs {missing.name}: pip install 'longtail[serve]'") from None

__all__ = ["Limits", "create_app", "run"]
