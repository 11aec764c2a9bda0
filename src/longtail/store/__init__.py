"""The model directory: a manifest and plain arrays; the one place that writes models."""

from longtail.store.card import read_card, update_card
from longtail.store.persistent import Persistent
from longtail.store.read import inspect_model, read_model
from longtail.store.state import State, check_params, saved_params
from longtail.store.strings import StringTable
from longtail.store.write import write_model

__all__ = [
    "Persistent",
    "State",
    "StringTable",
    "check_params",
    "inspect_model",
    "read_card",
    "read_model",
    "saved_params",
    "update_card",
    "write_model",
]
