"""Output layers with one interface: what differs is how the labels share the work and the weights."""

from longtail.neural.heads.dense import DenseHead
from longtail.neural.heads.head import Head
from longtail.neural.heads.one_hot import OneHot

__all__ = ["DenseHead", "Head", "OneHot"]
