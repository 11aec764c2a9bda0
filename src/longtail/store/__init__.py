"""The model directory: a manifest and plain arrays; the one place that writes models."""

from longtail.store.card import corrections_until, read_card, update_card
from longtail.store.files import LOCK, alone_in, locked, open_plain
from longtail.store.invariants import rises
from longtail.store.kinds import FEATURES, put_learner_together, put_together, register
from longtail.store.layout import MAX_DIMENSIONS, NAME
from longtail.store.mapped import file_behind, map_whole, release_pages, remote_behind, scratch_behind
from longtail.store.persistent import Persistent, load, part_state
from longtail.store.piece import is_sound, join_pieces, read_piece, write_piece
from longtail.store.pieces import Pieces, abandon, claim_folder_of_job
from longtail.store.read import RemoteFile, inspect_model, read_model, saved_at
from longtail.store.spool import Spool, Spooled, SpooledCsr
from longtail.store.state import State, check_params, rebuilt, same_state, saved_params
from longtail.store.strings import StringTable, similar_names
from longtail.store.write import check_replaceable, write_model

__all__ = [
    "FEATURES",
    "LOCK",
    "MAX_DIMENSIONS",
    "NAME",
    "Persistent",
    "Pieces",
    "RemoteFile",
    "Spool",
    "Spooled",
    "SpooledCsr",
    "State",
    "StringTable",
    "abandon",
    "alone_in",
    "check_params",
    "check_replaceable",
    "claim_folder_of_job",
    "corrections_until",
    "file_behind",
    "inspect_model",
    "is_sound",
    "join_pieces",
    "load",
    "locked",
    "map_whole",
    "open_plain",
    "part_state",
    "put_learner_together",
    "put_together",
    "read_card",
    "read_model",
    "read_piece",
    "rebuilt",
    "register",
    "release_pages",
    "remote_behind",
    "rises",
    "same_state",
    "saved_at",
    "saved_params",
    "scratch_behind",
    "similar_names",
    "update_card",
    "write_model",
    "write_piece",
]
