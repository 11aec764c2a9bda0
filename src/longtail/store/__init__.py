"""The model directory: a manifest and plain arrays; the one place that writes models."""

from longtail.store.card import read_card, update_card
from longtail.store.invariants import rises
from longtail.store.kinds import FEATURES, put_learner_together, put_together, register
from longtail.store.loading import load
from longtail.store.persistent import Persistent, part_state
from longtail.store.read import inspect_model, read_model
from longtail.store.state import State, check_params, rebuilt, saved_params
from longtail.store.strings import StringTable
from longtail.store.write import write_model

__all__ = [
    "FEATURES",
    "Persistent",
    "State",
    "StringTable",
    "check_params",
    "inspect_model",
    "load",
    "part_state",
    "put_learner_together",
    "put_together",
    "read_card",
    "read_model",
    "rebuilt",
    "register",
    "rises",
    "saved_params",
    "update_card",
    "write_model",
]
