"""What comes in: corpora, file formats, named data sets, the embedded corpus."""

from longtail.data.cache import cache_directory
from longtail.data.corpus import Corpus, encode_labels
from longtail.data.python_api import load_python_api, python_api_versions

__all__ = ["Corpus", "cache_directory", "encode_labels", "load_python_api", "python_api_versions"]
