"""ARFF files with their label lists: both row forms, quoting, and faults with their line."""

from __future__ import annotations

import gzip

import pytest

from longtail.data import read_arff
from longtail.data.formats.arff import read_label_list
from longtail.errors import DataFormatError

XML = """<?xml version="1.0" encoding="utf-8"?>
<labels xmlns="http://mulan.sourceforge.net/labels">
<label name="warm"><label name="it's red"></label></label>
</labels>
"""
HEADER = """% a comment
@RELATION 'tiny set: -C 2'

@attribute 'it\\'s red' {0, 1}
@attribute size numeric
@ATTRIBUTE "the weight" REAL % in kilograms
@attribute warm {0,1}
@data
"""
SPARSE = HEADER + "{0 1, 1 2.5}\n% another\n{}\n{3 1,2 -1e-1 }\n"
DENSE = HEADER + "1, 2.5,0,'0'\n0,0,0,0\n\n0,0,-0.1,1\n"


@pytest.fixture
def write(tmp_path):
    def to_files(arff, xml=XML, name="tiny.arff"):
        (tmp_path / "tiny.xml").write_text(xml, encoding="utf-8")
        path = tmp_path / name
        path.write_bytes(gzip.compress(arff.encode()) if name.endswith(".gz") else arff.encode())
        return path

    return to_files


@pytest.mark.parametrize("arff", [SPARSE, DENSE, SPARSE.replace("\n", "\r\n")], ids=["sparse", "dense", "windows"])
@pytest.mark.parametrize("name", ["tiny.arff", "tiny-train.arff", "tiny-test.arff.gz"])
def test_labels_are_told_from_features_by_the_xml_file(write, arff, name):
    corpus = read_arff(write(arff, name=name))
    assert corpus.label_names == ("warm", "it's red")
    assert corpus.labels.toarray().tolist() == [[0, 1], [0, 0], [1, 0]]
    assert corpus.features.toarray().round(3).tolist() == [[2.5, 0], [0, 0], [0, pytest.approx(-0.1)]]


def broken(old, new):
    assert old in SPARSE
    return SPARSE.replace(old, new)


FAULTS = [
    (broken("@attribute size numeric", "@attribute size string"), 5, "'size' is of type 'string'"),
    (broken("@attribute size numeric", "@attribute warm numeric"), 7, "the attribute 'warm' is already in line 5"),
    (broken("@attribute size numeric", "@attribute size"), 5, "expected @attribute name type"),
    (broken("@attribute size numeric", "@atribute size numeric"), 5, "expected @relation, @attribute or @data"),
    (broken("warm {0,1}", "warm {no,yes}"), 7, "the value 'no' of 'warm' is not a finite number"),
    (broken("warm {0,1}", "warm {1,0}"), 7, "the first value of 'warm' must be 0"),
    (broken("warm {0,1}", "warm {0,'1}"), 7, "expected @attribute name type, found"),
    (DENSE.replace("'0'", "'0"), 9, "unclosed quote"),
    (DENSE.replace("'0'", "'0' 1"), 9, "unclosed quote"),
    (broken("{0 1, 1 2.5}", "{0 1, 1 2.5"), 9, "does not end with }"),
    (broken("{0 1, 1 2.5}", "{0 1 1 2.5}"), 9, "expected 'attribute value' pairs, found '0 1 1 2.5'"),
    (broken("{0 1, 1 2.5}", "{0 1, 4 2.5}"), 9, "attribute 4 is too large: there are 4"),
    (broken("{0 1, 1 2.5}", "{0 1, 0 1}"), 9, "attribute 0 appears twice"),
    (broken("{0 1, 1 2.5}", "{0 1, 1 ?}"), 9, "the value of 'size' is missing"),
    (broken("{0 1, 1 2.5}", "{0 1, 1 nan}"), 9, "the value 'nan' of 'size' is not a finite number"),
    (broken("{0 1, 1 2.5}", "{0 2, 1 2.5}"), 9, "the value '2' of \"it's red\" is not among its 2 declared values"),
    (broken("{0 1, 1 2.5}", "1,2,3"), 9, "3 values for 4 attributes"),
    (broken("@data", "% data"), 9, "expected @relation, @attribute or @data"),
    (HEADER.replace("@data\n", ""), None, "the file has no @data"),
    (broken("warm {0,1}", "cold {0,1}"), None, "1 labels of the XML file are not attributes here, the first is 'warm'"),
]


@pytest.mark.parametrize(("arff", "line", "reason"), FAULTS, ids=[reason for _, _, reason in FAULTS])
def test_faults_name_the_line_and_the_reason(write, arff, line, reason):
    with pytest.raises(DataFormatError) as caught:
        read_arff(write(arff))
    assert caught.value.line == line
    assert reason in str(caught.value)


XML_FAULTS = [
    ('<!DOCTYPE labels [<!ENTITY a "aaaa">]><labels><label name="&a;"/></labels>', "DOCTYPE"),
    ("<labels><label name='a'></labels>", "not valid XML: mismatched tag"),
    ("<labels><label/></labels>", "a label without a name"),
    ("<labels>\n<label name='a'/>\n<label name='a'/></labels>", "3: the label 'a' appears twice"),
    ("<labels></labels>", "no label elements"),
    ("", "not valid XML: no element found"),
    ("<labels><label name='&unknown;'/></labels>", "not valid XML: undefined entity"),
]


@pytest.mark.parametrize(("xml", "reason"), XML_FAULTS, ids=[reason for _, reason in XML_FAULTS])
def test_a_faulty_label_list_is_refused(write, xml, reason):
    with pytest.raises(DataFormatError, match=r"tiny\.xml:?.*" + reason):
        read_arff(write(SPARSE, xml=xml))


def test_nested_labels_come_in_the_order_of_the_file(tmp_path):
    (tmp_path / "a.xml").write_text(XML, encoding="utf-8")
    assert read_label_list(tmp_path / "a.xml") == ["warm", "it's red"]


def test_a_missing_label_list_is_an_error(tmp_path):
    (tmp_path / "lonely-train.arff").write_text(SPARSE, encoding="utf-8")
    with pytest.raises(
        DataFormatError, match=r"label list lonely\.xml is missing; put it beside this file, or give xml_path"
    ):
        read_arff(tmp_path / "lonely-train.arff")
