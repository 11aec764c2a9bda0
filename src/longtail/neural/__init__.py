"""Networks that learn their features, and output layers for very many labels.

This is the only package that needs torch; ``pip install 'longtail[neural]'`` installs it. Output layers are in
`longtail.neural.heads`, encoders in `longtail.neural.encoders`.
"""

from longtail.errors import Unavailable
from longtail.estimator import HeadDiagnostics

try:
    import torch  # noqa: F401
except ImportError:
    raise Unavailable("longtail.neural needs torch: pip install 'longtail[neural]'") from None

from longtail.neural.batches import BagRows, DenseRows, Rows, SparseRows, TokenRows
from longtail.neural.classifier import MultiHeadClassifier
from longtail.neural.deep_miml import DeepMIML
from longtail.neural.diagnostics import HeadTally, assignment_picture, diagnose
from longtail.neural.encoding_cost import encoding_seconds
from longtail.neural.miml import BagLabels, BagScores, ConceptScores
from longtail.neural.network import Network, predict_rows
from longtail.neural.optimiser import RowAdamW, clip_gradients
from longtail.neural.sentence_features import SentenceFeatures
from longtail.neural.sentences import SentenceEncoder
from longtail.neural.targets import Collate, LabelRows
from longtail.neural.token_features import TokenFeatures
from longtail.neural.training import History, Settings, train

__all__ = [
    "BagLabels",
    "BagRows",
    "BagScores",
    "Collate",
    "ConceptScores",
    "DeepMIML",
    "DenseRows",
    "HeadDiagnostics",
    "HeadTally",
    "History",
    "LabelRows",
    "MultiHeadClassifier",
    "Network",
    "RowAdamW",
    "Rows",
    "SentenceEncoder",
    "SentenceFeatures",
    "Settings",
    "SparseRows",
    "TokenFeatures",
    "TokenRows",
    "assignment_picture",
    "clip_gradients",
    "diagnose",
    "encoding_seconds",
    "predict_rows",
    "train",
]
