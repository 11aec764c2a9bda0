"""What comes in: corpora, file formats, named data sets, the embedded corpus."""

from longtail.data.cache import cache_directory
from longtail.data.catalogue import CATALOGUE, DataSet, data_set, fetch, find_data_set, load_data_set
from longtail.data.corpus import Corpus, encode_labels
from longtail.data.idx import read_idx
from longtail.data.python_api import load_python_api, python_api_versions

__all__ = [
    "CATALOGUE",
    "Corpus",
    "DataSet",
    "cache_directory",
    "data_set",
    "encode_labels",
    "fetch",
    "find_data_set",
    "load_data_set",
    "load_python_api",
    "python_api_versions",
    "read_idx",
]
