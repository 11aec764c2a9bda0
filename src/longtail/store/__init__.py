"""The model directory: a manifest and plain arrays; the one place that writes models."""

from longtail.store.state import State

__all__ = ["State"]
