"""Plain twin of the parser of the repository text format."""

from __future__ import annotations


class RepositoryText:
    """Placeholder."""
