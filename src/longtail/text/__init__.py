"""Turn texts, or ready-made features, into the feature rows of learners; saved without pickle."""

from longtail.text.drift import WordCount, count_words, usual_unknown_share
from longtail.text.encoder_place import EncoderPlace
from longtail.text.encoders import (
    ENCODER_VARIABLE,
    EncoderSettings,
    check_encoder_folder,
    encoder_fingerprint,
    find_installed_encoder,
    missing_encoder_packages,
    read_encoder_settings,
    require_encoder_packages,
)
from longtail.text.features import TextFeatures
from longtail.text.fitting import FeatureOptions, fit_features, inputs_of, rows_of
from longtail.text.joined import JoinedFeatures, join_columns
from longtail.text.marking import Segment, segments
from longtail.text.output import SparseOutput
from longtail.text.scaling import RowScaling
from longtail.text.subwords import readable_feature
from longtail.text.tokens import WordSpan, tokenize, word_spans

__all__ = [
    "ENCODER_VARIABLE",
    "EncoderPlace",
    "EncoderSettings",
    "FeatureOptions",
    "JoinedFeatures",
    "RowScaling",
    "Segment",
    "SparseOutput",
    "TextFeatures",
    "WordCount",
    "WordSpan",
    "check_encoder_folder",
    "count_words",
    "encoder_fingerprint",
    "find_installed_encoder",
    "fit_features",
    "inputs_of",
    "join_columns",
    "missing_encoder_packages",
    "read_encoder_settings",
    "readable_feature",
    "require_encoder_packages",
    "rows_of",
    "segments",
    "tokenize",
    "usual_unknown_share",
    "word_spans",
]
