"""What comes in: corpora, file formats, named data sets, the embedded corpus."""

from longtail.data.corpus import Corpus, encode_labels

__all__ = ["Corpus", "encode_labels"]
