"""Output layers with one interface: what differs is how the labels share the work and the weights."""

from longtail.neural.heads.head import Head

__all__ = ["Head"]
