"""Output layers for very many labels, and networks that learn their features, in torch.

The one package that needs torch; ``pip install 'longtail[neural]'`` brings it.
"""

from longtail.errors import Unavailable

try:
    import torch  # noqa: F401
except ImportError:
    raise Unavailable("longtail.neural needs torch: pip install 'longtail[neural]'") from None

from longtail.neural.classifier import MultiHeadClassifier
from longtail.neural.deep_miml import DeepMIML
from longtail.neural.network import Network, predict_rows
from longtail.neural.targets import LabelRows
from longtail.neural.training import History, Settings, train

__all__ = [
    "DeepMIML",
    "History",
    "LabelRows",
    "MultiHeadClassifier",
    "Network",
    "Settings",
    "predict_rows",
    "train",
]
