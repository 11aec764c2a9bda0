"""The model directory: a manifest and plain arrays; the one place that writes models."""

from longtail.store.card import read_card, update_card
from longtail.store.files import locked, open_plain
from longtail.store.invariants import rises
from longtail.store.kinds import FEATURES, put_learner_together, put_together, register
from longtail.store.layout import MAX_DIMENSIONS, NAME
from longtail.store.persistent import Persistent, load, part_state
from longtail.store.pieces import Pieces
from longtail.store.read import inspect_model, read_model
from longtail.store.spool import Spool, Spooled, SpooledCsr
from longtail.store.state import State, check_params, rebuilt, same_state, saved_params
from longtail.store.strings import StringTable
from longtail.store.write import write_model

__all__ = [
    "FEATURES",
    "MAX_DIMENSIONS",
    "NAME",
    "Persistent",
    "Pieces",
    "Spool",
    "Spooled",
    "SpooledCsr",
    "State",
    "StringTable",
    "check_params",
    "inspect_model",
    "load",
    "locked",
    "open_plain",
    "part_state",
    "put_learner_together",
    "put_together",
    "read_card",
    "read_model",
    "rebuilt",
    "register",
    "rises",
    "same_state",
    "saved_params",
    "update_card",
    "write_model",
]
