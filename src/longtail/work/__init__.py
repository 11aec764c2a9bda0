"""Training as stages of tasks: threads, an executor or a Dask cluster do them, in memory or in pieces on disk."""

from longtail.work.cluster import connected
from longtail.work.folder import in_pieces
from longtail.work.results import Kept, Piece, Range, Results
from longtail.work.rows import Rows, Stacked, even_ranges
from longtail.work.work import InMemory, Work, begin, is_in_pieces

__all__ = [
    "InMemory",
    "Kept",
    "Piece",
    "Range",
    "Results",
    "Rows",
    "Stacked",
    "Work",
    "begin",
    "connected",
    "even_ranges",
    "in_pieces",
    "is_in_pieces",
]
