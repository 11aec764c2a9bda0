"""Prepared corpora: features and labels of data of any size in a directory of mapped arrays."""

from longtail.data import Source
from longtail.prepared.corpus import is_prepared, open_prepared
from longtail.prepared.preparing import prepare

__all__ = ["Source", "is_prepared", "open_prepared", "prepare"]
