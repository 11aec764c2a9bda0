"""Input data: corpora, file formats, named data sets and the embedded corpus."""

from longtail.data.batches import Batch, iter_batches, iter_records
from longtail.data.changes import Change, LabelDrop, LabelRename, RowChange, RowFeedback, RowRemoval, read_changes
from longtail.data.columns import Column
from longtail.data.corpus import Corpus, encode_labels
from longtail.data.files import read_corpus, write_corpus
from longtail.data.formats.arff import read_arff
from longtail.data.formats.arrow import read_arrow
from longtail.data.formats.cells import is_missing
from longtail.data.formats.delimited import read_delimited, write_delimited
from longtail.data.formats.excel import read_excel
from longtail.data.formats.frames import filled
from longtail.data.formats.grouped_delimited import read_grouped_delimited
from longtail.data.formats.grouped_file import looks_like_groups, read_groups, write_groups
from longtail.data.formats.grouped_jsonl import (
    GroupRecord,
    holds_groups,
    iter_grouped_jsonl,
    read_grouped_jsonl,
    write_grouped_jsonl,
)
from longtail.data.formats.idx import read_idx
from longtail.data.formats.json_records import as_line
from longtail.data.formats.jsonl import Record, iter_jsonl, read_jsonl, write_jsonl
from longtail.data.formats.label_texts import read_label_texts
from longtail.data.formats.npy_headers import read_header
from longtail.data.formats.repository import read_repository, write_repository
from longtail.data.formats.scipy_files import read_matrix, read_scipy, write_scipy
from longtail.data.formats.splits import read_splits, split_corpus
from longtail.data.grouped import GroupedCorpus, aggregate_labels, memberships
from longtail.data.label_texts import LabelTexts
from longtail.data.originals import Originals, read_originals
from longtail.data.row_ids import row_id
from longtail.data.sets.catalogue import CATALOGUE, DataSet, data_set, fetch, find_data_set, load_data_set, part_files
from longtail.data.sets.python_api import load_python_api, python_api_versions
from longtail.data.sources import TEXT_FORMATS, Data, Source, format_of, sources_of
from longtail.data.streams import read_lines, read_names, read_text_lines
from longtail.data.tables.files import check_table_file, writing_table
from longtail.data.tables.tags import Layout, TaggedRow, joins_labels, writing_tags
from longtail.files import cache_directory

__all__ = [
    "CATALOGUE",
    "TEXT_FORMATS",
    "Batch",
    "Change",
    "Column",
    "Corpus",
    "Data",
    "DataSet",
    "GroupRecord",
    "GroupedCorpus",
    "LabelDrop",
    "LabelRename",
    "LabelTexts",
    "Layout",
    "Originals",
    "Record",
    "RowChange",
    "RowFeedback",
    "RowRemoval",
    "Source",
    "TaggedRow",
    "aggregate_labels",
    "as_line",
    "cache_directory",
    "check_table_file",
    "data_set",
    "encode_labels",
    "fetch",
    "filled",
    "find_data_set",
    "format_of",
    "holds_groups",
    "is_missing",
    "iter_batches",
    "iter_grouped_jsonl",
    "iter_jsonl",
    "iter_records",
    "joins_labels",
    "load_data_set",
    "load_python_api",
    "looks_like_groups",
    "memberships",
    "part_files",
    "python_api_versions",
    "read_arff",
    "read_arrow",
    "read_changes",
    "read_corpus",
    "read_delimited",
    "read_excel",
    "read_grouped_delimited",
    "read_grouped_jsonl",
    "read_groups",
    "read_header",
    "read_idx",
    "read_jsonl",
    "read_label_texts",
    "read_lines",
    "read_matrix",
    "read_names",
    "read_originals",
    "read_repository",
    "read_scipy",
    "read_splits",
    "read_text_lines",
    "row_id",
    "sources_of",
    "split_corpus",
    "write_corpus",
    "write_delimited",
    "write_grouped_jsonl",
    "write_groups",
    "write_jsonl",
    "write_repository",
    "write_scipy",
    "writing_table",
    "writing_tags",
]
