"""What comes in: corpora, file formats, named data sets, the embedded corpus."""

from longtail.data.arff import read_arff
from longtail.data.corpus import Corpus, encode_labels
from longtail.data.delimited import read_delimited, write_delimited
from longtail.data.files import read_corpus, write_corpus
from longtail.data.jsonl import Record, iter_jsonl, read_jsonl, write_jsonl
from longtail.data.repository import read_repository, write_repository
from longtail.data.scipy_files import read_scipy, write_scipy
from longtail.data.splits import read_splits, split_corpus

__all__ = [
    "Corpus",
    "Record",
    "encode_labels",
    "iter_jsonl",
    "read_arff",
    "read_corpus",
    "read_delimited",
    "read_jsonl",
    "read_repository",
    "read_scipy",
    "read_splits",
    "split_corpus",
    "write_corpus",
    "write_delimited",
    "write_jsonl",
    "write_repository",
    "write_scipy",
]
