"""Look at data before training: findings with codes, counts, examples and advice."""

from longtail.checking.brief import check_briefly
from longtail.checking.checking import check
from longtail.checking.finding import (
    SEVERITIES,
    Bin,
    Check,
    Distribution,
    Example,
    Finding,
    LabelsInTexts,
    Severity,
    Spread,
    shown,
    told,
)
from longtail.checking.rows import Rows, rows_of_corpus, rows_of_file

__all__ = [
    "SEVERITIES",
    "Bin",
    "Check",
    "Distribution",
    "Example",
    "Finding",
    "LabelsInTexts",
    "Rows",
    "Severity",
    "Spread",
    "check",
    "check_briefly",
    "rows_of_corpus",
    "rows_of_file",
    "shown",
    "told",
]
