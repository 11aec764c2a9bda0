"""Models over HTTP, with limits and a web page. Needs the extra ``longtail[serve]``."""

from longtail.errors import Unavailable
from longtail.serve.limits import Limits

try:
    from longtail.serve.app import create_app
    from longtail.serve.program import is_loopback, run
except ModuleNotFoundError as missing:
    if missing.name is None or missing.name.partition(".")[0] == "longtail":
        raise
    raise Unavailable(f"serving needs {missing.name}: pip install 'longtail[serve]'") from None

__all__ = ["Limits", "create_app", "is_loopback", "run"]
