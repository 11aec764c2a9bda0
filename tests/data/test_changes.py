"""Changes are read in their order, and faults are told with file and line."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime

import pytest

from longtail.data import LabelDrop, LabelRename, RowChange, RowFeedback, RowRemoval, read_changes
from longtail.errors import DataFormatError, InvalidInput


def stream(*records):
    return io.BytesIO("\n".join(json.dumps(record) for record in records).encode())


def told(changes):
    return [type(change)(**{**vars(change), "place": ""}) for change in changes]


def test_every_kind_of_change_is_read_in_order():
    found = read_changes(
        stream(
            {"id": 7, "text": "a red apple", "labels": ["fruit", "fruit"]},
            {"id": "7", "remove": True},
            {"text": "a red apple", "remove": True},
            {"text": "kept", "labels": ["a"], "remove": False},
            {"time": "2026-01-31", "model": "m", "version": "v", "text": "sky", "accepted": ["a"], "added": ["b"]},
            {"time": "yesterday", "model": 3, "text": "rain", "rejected": ["a"]},
            {"rename": {"fruit": "fruits", "a": "b"}},
            {"drop_label": "sky"},
            {"text": "no labels", "labels": []},
            {"text": "one label", "label": 3},
        )
    )
    assert told(found) == [
        RowChange("a red apple", ("fruit",), "7"),
        RowRemoval("7"),
        RowRemoval(None, text="a red apple"),
        RowChange("kept", ("a",)),
        RowFeedback("sky", ("a",), (), ("b",), model="m", time=datetime(2026, 1, 31, tzinfo=UTC)),
        RowFeedback("rain", (), ("a",)),
        LabelRename("fruit", "fruits"),
        LabelRename("a", "b"),
        LabelDrop("sky"),
        RowChange("no labels", ()),
        RowChange("one label", ("3",)),
    ]


def test_labelled_files_are_new_rows(tmp_path):
    (tmp_path / "new.csv").write_text("id,text,labels\n1,a red apple,fruit; red\n")
    assert told(read_changes(tmp_path / "new.csv")) == [RowChange("a red apple", ("fruit", "red"), "1")]


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({"text": "a"}, "labels"),
        ({"remove": True}, "needs the 'id' or the text"),
        ({"id": "1", "remove": "yes"}, "expected true"),
        ({"rename": "a"}, "old and the new name"),
        ({"rename": {}}, "old and the new name"),
        ({"rename": {"a": 3}}, "labels are names"),
        ({"drop_label": ""}, "empty name"),
        ({"text": "a", "accepted": "b"}, "expected a list"),
        ({"text": 3, "labels": []}, "expected a text"),
        ([1], "expected an object"),
        ({"rename": {"a": "b"}, "text": "c", "labels": []}, "'rename' and 'labels' in one line"),
        ({"rename": {"a": "b"}, "drop_label": "c"}, "'rename' and 'drop_label' in one line"),
        ({"text": "a", "label": "b", "added": ["c"]}, "'label' and 'added' in one line"),
        ({"id": "1", "text": "a", "remove": True, "labels": []}, "'remove' and 'labels' in one line"),
    ],
)
def test_faults_name_the_file_and_the_line(tmp_path, record, reason):
    path = tmp_path / "changes.jsonl"
    path.write_text(json.dumps({"drop_label": "x"}) + "\n" + json.dumps(record))
    with pytest.raises(DataFormatError, match=reason) as caught:
        list(read_changes(path))
    assert (caught.value.path, caught.value.line) == (str(path), 2)


def test_files_of_features_hold_no_changes(tmp_path):
    with pytest.raises(InvalidInput, match="not a file of texts"):
        list(read_changes(tmp_path / "rows.txt"))
