"""Output layers with one interface: what differs is how the labels share the work and the weights."""

from longtail.neural.heads.cascade import Cascade
from longtail.neural.heads.decisions import Decisions
from longtail.neural.heads.dense import Bottleneck, DenseHead, OneHot
from longtail.neural.heads.dft import DFT
from longtail.neural.heads.head import Head, HeadOutput
from longtail.neural.heads.kronecker import Kronecker
from longtail.neural.heads.powerset import PowersetCascade, PowersetHead, PowersetProduct, PowersetSampling
from longtail.neural.heads.product import Product
from longtail.neural.heads.sampling import Sampling, draw_distinct

__all__ = [
    "DFT",
    "Bottleneck",
    "Cascade",
    "Decisions",
    "DenseHead",
    "Head",
    "HeadOutput",
    "Kronecker",
    "OneHot",
    "PowersetCascade",
    "PowersetHead",
    "PowersetProduct",
    "PowersetSampling",
    "Product",
    "Sampling",
    "draw_distinct",
]
