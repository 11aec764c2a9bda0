"""`longtail audit`, driven as a user would."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

PLANE = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
SETS = """\
{"text": "", "labels": ["A", "B"]}
{"text": "", "labels": ["A", "C"]}
{"text": "", "labels": ["A", "B", "C"]}
{"text": "", "labels": ["B", "A"]}
{"text": "", "labels": []}
"""


@pytest.fixture
def plane() -> list[str]:
    """Three labels in a plane of which the third is the sum of the others."""
    np.save("plane.npy", PLANE)
    Path("sets.jsonl").write_text(SETS, encoding="utf-8")
    return ["audit", "--weights", "plane.npy", "--labels", "sets.jsonl"]


def test_a_matrix_and_its_conflict(longtail: Callable, plane: list[str], check_golden: Callable) -> None:
    found = longtail(*plane)
    assert found.code == 0, found.err
    assert "no input can have A and B without C" in found.out
    check_golden("audit", found.out)


def test_json_has_every_set_that_no_input_gets(longtail: Callable, plane: list[str]) -> None:
    facts = json.loads(longtail(*plane, "--json").out)
    assert (facts["label_sets"], facts["rows"], facts["unargmaxable"], facts["rows_unargmaxable"]) == (4, 5, 1, 2)
    assert facts["rank"] == 2
    [example] = facts["examples"]
    assert example["conflict"] == {"with": ["A", "B"], "without": ["C"]}
    assert example["row"] == 1
    assert sum(example["weights"].values()) == pytest.approx(1)


def test_a_bias_brings_the_set_into_reach(longtail: Callable, plane: list[str]) -> None:
    np.save("bias.npy", np.array([0.0, 0.0, -5.0]))
    facts = json.loads(longtail(*plane, "--bias", "bias.npy", "--json").out)
    assert facts["unargmaxable"] == 0
    assert json.loads(longtail(*plane, "--threshold", "1", "--json").out)["unargmaxable"] == 1


def test_a_model_whose_labels_are_independent_has_nothing_wrong(longtail: Callable, model: str) -> None:
    found = longtail("audit", model, "notes.jsonl")
    assert found.code == 0, found.err
    assert "linearly independent" in found.out
    facts = json.loads(longtail("audit", model, "notes.jsonl", "--json").out)
    assert facts["argmaxable"] == facts["label_sets"] == 5
    assert facts["undetermined"] == 0


def test_a_sweep_over_ranks_and_its_picture(longtail: Callable, model: str) -> None:
    found = longtail("audit", model, "notes.jsonl", "--ranks", "1,2", "--picture", "audit.png")
    assert found.code == 0, found.err
    assert "at rank" in found.out
    assert Path("audit.png").read_bytes().startswith(b"\x89PNG")
    facts = json.loads(longtail("audit", model, "notes.jsonl", "--ranks", "2,1", "--json").out)
    assert [cut["rank"] for cut in facts["ranks"]] == [1, 2]
    assert facts["ranks"][0]["unargmaxable"] >= facts["ranks"][1]["unargmaxable"]


def test_the_width_that_is_needed_is_told_with_its_proof(
    longtail: Callable, plane: list[str], check_golden: Callable
) -> None:
    found = longtail(*plane, "--widths", "--examples", "0")
    assert found.code == 0, found.err
    check_golden("audit-widths", found.out)
    facts = json.loads(longtail(*plane, "--widths", "--json").out)
    assert facts["truncation"] == {"reaches": None, "fails": 2}
    # No set and all labels are complements; four sets have three patterns, which fit into a plane.
    assert (facts["width"]["lower"], facts["width"]["upper"]) == (2, 2)
    assert json.loads(longtail(*plane, "--json").out)["width"] is None


def test_what_would_help_a_bottleneck_counts_its_projection(longtail: Callable) -> None:
    pytest.importorskip("torch")
    lines = [json.dumps({"text": f"word{i} word{j}", "labels": [f"l{i}", f"l{j}"]}) for i in range(9) for j in range(i)]
    Path("pairs.jsonl").write_text("\n".join(lines), encoding="utf-8")
    network = ["--learner", "network", "--head", "bottleneck", "--head-width", "2", "--width", "16", "--epochs", "2"]
    assert longtail("train", "pairs.jsonl", "--out", "narrow", *network).code == 0
    found = longtail("audit", "narrow", "pairs.jsonl")
    assert "What would help:" in found.out
    [remedy] = [
        each
        for each in json.loads(longtail("audit", "narrow", "pairs.jsonl", "--json").out)["remedies"]
        if each["kind"] == "dft"
    ]
    assert (remedy["columns"], remedy["parameters"], remedy["guaranteed"]) == (5, 17 * 5, True)


@pytest.mark.parametrize("head", ["one-hot", "bottleneck", "dft"])
def test_a_network_is_audited_as_any_model(longtail: Callable, head: str) -> None:
    pytest.importorskip("torch")
    network = ["--learner", "network", "--width", "16", "--epochs", "3", "--min-df", "1", "--head", head]
    assert longtail("train", "notes.jsonl", "--out", "network", *network).code == 0
    found = longtail("audit", "network", "notes.jsonl")
    assert found.code == 0, found.err
    assert "A label is predicted if its probability is at least one half." in found.out
    facts = json.loads(longtail("audit", "network", "notes.jsonl", "--rule", "topk", "--ranks", "1", "--json").out)
    assert facts["label_sets"] == 5
    [cut] = facts["ranks"]
    assert cut["rank"] <= 1  # equal singular values are cut together
    assert cut["argmaxable"] + cut["unargmaxable"] + cut["undetermined"] == 5
    assert cut["argmaxable"] <= facts["argmaxable"]


def test_a_network_without_a_linear_layer_is_refused_with_what_to_do(longtail: Callable) -> None:
    pytest.importorskip("torch")
    network = ["--learner", "network", "--width", "16", "--epochs", "1", "--min-df", "1"]
    assert longtail("train", "notes.jsonl", "--out", "network", *network).code == 0
    found = longtail("audit", "network", "notes.jsonl")
    assert found.code == 1
    assert "the head 'cascade' scores only the members" in found.err
    assert "'bottleneck' and 'dft' have one (--head)" in found.err


def test_a_tree_is_explained_instead(longtail: Callable, tree_model: str, check_golden: Callable) -> None:
    found = longtail("audit", tree_model, "notes.jsonl", "--picture", "tree.png")
    assert found.code == 0, found.err
    assert "not known" not in found.out
    check_golden("audit-tree", found.out)
    assert "no radii to draw" in found.err
    assert not Path("tree.png").exists()
    for option in (["--ranks", "1"], ["--widths"], ["--exact-radii"], ["--rule", "predict"]):
        refused = longtail("audit", tree_model, "notes.jsonl", *option)
        assert refused.code == 2
        assert "a label tree has none" in refused.err


def test_a_tree_tells_the_sets_it_never_gives(longtail: Callable) -> None:
    """With a beam of 1 a single tree gives the labels of one leaf only."""
    arguments = ["--trees", "1", "--leaf-size", "1", "--beam", "1", "--min-df", "1"]
    assert longtail("train", "notes.jsonl", "--out", "narrow", *arguments).code == 0
    found = longtail("audit", "narrow", "notes.jsonl")
    assert found.code == 0, found.err
    assert "of these sets, found in" in found.out
    assert "A wider beam reaches them." in found.out
    assert "not known" not in found.out


def test_exact_radii_are_those_of_the_box_and_of_inputs_seen(longtail: Callable, model: str, plane: list[str]) -> None:
    assert "gets: at least" not in longtail("audit", model, "notes.jsonl", "--exact-radii").out
    np.save("seen.npy", np.array([[0.0, -2.0], [2.0, 0.0]]))
    found = longtail(*plane, "--exact-radii", "--box", "10", "--seen", "seen.npy")
    assert "some input gets: 4.1 (inputs between -10 and 10)" in found.out
    # No input between (0, -2) and (2, 0) gets all three labels, or none.
    assert "some input gets: 0 (inputs in the range of the data)" in found.out
    by_data = longtail("audit", model, "notes.jsonl", "--seen", "notes.jsonl")
    assert "(inputs in the range of the data)" in by_data.out
    assert "only ridge models have features" in longtail(*plane, "--seen", "sets.jsonl").err
    np.save("seen.npy", np.zeros(3))
    assert "expected a matrix with an input per row" in longtail(*plane, "--seen", "seen.npy").err
    assert "is not in the range x>0" in longtail(*plane, "--box", "0").err


def test_a_ranking_of_labels_without_weights_goes_by_their_order(longtail: Callable, plane: list[str]) -> None:
    np.save("zeros.npy", np.zeros((3, 2)))
    facts = json.loads(longtail("audit", "--weights", "zeros.npy", *plane[3:], "--rule", "topk", "--json").out)
    assert (facts["argmaxable"], facts["unargmaxable"], facts["undetermined"]) == (3, 1, 0)
    assert facts["examples"][0]["says"] == "no input ranks C above B"


@pytest.mark.parametrize(
    "stored",
    [
        np.asfortranarray(PLANE),
        PLANE.astype(">f8"),
        PLANE.astype("<f2"),
        PLANE.astype(">i4"),
        np.repeat(PLANE, 2, axis=1)[:, ::2],
    ],
    ids=["fortran", "big-endian", "half", "whole", "strided"],
)
def test_any_layout_of_numbers_is_read(longtail: Callable, plane: list[str], stored: np.ndarray) -> None:
    expected = longtail(*plane).out
    np.save("plane.npy", stored)
    assert longtail(*plane).out == expected


def _with_header(text: str) -> bytes:
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


def test_arrays_that_are_no_weights_are_named(longtail: Callable, plane: list[str]) -> None:
    np.save("plane.npy", PLANE)
    whole = Path("plane.npy").read_bytes()
    cases: list[tuple[bytes | np.ndarray, str]] = [
        (b"", "an empty file"),
        (whole[:6], "as numpy.save writes it"),
        (whole[:40], "as numpy.save writes it"),
        (whole[:-8], "as numpy.save writes it"),
        (whole.replace(b"(3, 2)", b"(3, -2)"), "as numpy.save writes it"),
        (whole.replace(b"(3, 2), }      ", b"(99999999, 99999999), }"), "as numpy.save writes it"),
        (_with_header("((("), "as numpy.save writes it"),
        (_with_header("  1\n 2"), "as numpy.save writes it"),
        (_with_header("{[]: 1}"), "as numpy.save writes it"),
        (_with_header("-" * 5000 + "1"), "as numpy.save writes it"),
        (_with_header("{'descr': ('<f8',), 'fortran_order': False, 'shape': (3, 2)}"), "as numpy.save writes it"),
        (_with_header("{'descr': '<f8', 'fortran_order': False, 'shape': (True,)}"), "as numpy.save writes it"),
        (np.array([[1, None]], dtype=object), "as numpy.save writes it"),
        (PLANE.astype(complex), "dtype complex128"),
        (PLANE.astype(bool), "dtype bool"),
        (np.zeros((3, 2), dtype=[("a", "f8")]), "expected real numbers"),
        (np.array([["a", "b"]]), "expected real numbers"),
        (np.zeros((3, 2, 1)), "expected a matrix"),
        (np.zeros(()), "expected a matrix"),
        (np.zeros((0, 2)), "expected a matrix"),
        (np.zeros((3, 0)), "expected a matrix"),
        (np.full((3, 2), np.finfo(np.longdouble).max), "NaN or infinity"),
    ]
    for content, message in cases:
        if isinstance(content, bytes):
            Path("plane.npy").write_bytes(content)
        else:
            np.save("plane.npy", content, allow_pickle=True)
        found = longtail(*plane)
        assert found.code == 1, message
        assert found.err.startswith("error: plane.npy: "), found.err
        assert message in found.err
    np.savez("archive.npz", PLANE)
    assert "an .npz archive" in longtail("audit", "--weights", "archive.npz", *plane[3:]).err
    assert "cannot be opened" in longtail("audit", "--weights", "missing.npy", *plane[3:]).err


def test_a_names_file_in_another_encoding_is_named(longtail: Callable, plane: list[str]) -> None:
    Path("names.txt").write_bytes("C\nB\nÄ\n".encode("latin-1"))
    assert "names.txt:3: byte 1 of the line is not UTF-8" in longtail(*plane, "--label-names", "names.txt").err
    Path("names.txt").write_text("C\nB\nB\n", encoding="utf-8")
    assert "names.txt:3: the name 'B' is already in line 2" in longtail(*plane, "--label-names", "names.txt").err


def test_files_of_another_kind_are_told(longtail: Callable, model: str) -> None:
    Path("groups.jsonl").write_text('{"texts": ["a", "b"], "labels": ["fruit"]}\n', encoding="utf-8")
    Path("empty.jsonl").write_bytes(b"")
    Path("empty.txt").write_bytes(b"")
    np.save("array.npy", PLANE)
    for data, message in (
        ("groups.jsonl", "these are groups, not rows: an audit needs a file with the labels of each row"),
        ("empty.jsonl", "empty.jsonl"),
        ("empty.txt", "empty.txt"),
        ("array.npy", "the extension '.npy' of array.npy is unknown"),
        ("model", "model holds a Tagger, not a prepared corpus"),
        ("missing.jsonl", "there is no file missing.jsonl"),
    ):
        found = longtail("audit", model, data)
        assert found.code == 1, data
        assert message in found.err
        assert "unexpected" not in found.err
    swapped = longtail("audit", "notes.jsonl", "notes.jsonl")
    assert swapped.code == 1
    assert "notes.jsonl" in swapped.err


def test_rows_with_labels_that_the_model_does_not_know_are_told(longtail: Callable, model: str) -> None:
    Path("more.jsonl").write_text(
        '{"text": "", "labels": ["fruit", "vegetable"]}\n{"text": "", "labels": ["red"]}\n', encoding="utf-8"
    )
    facts = json.loads(longtail("audit", model, "more.jsonl", "--json").out)
    assert facts["rows_with_unknown_labels"] == 1
    assert facts["label_sets_with_unknown_labels"] == 1
    assert facts["label_sets"] == 1
    lines = longtail("audit", model, "more.jsonl").out.splitlines()
    assert lines[0] == "1 different label set of 1 row; 3 labels"
    assert "1 row has labels that the model does not know; it can never predict their label sets." in lines
    [told] = [line.split() for line in lines if line.startswith("has an unknown label")]
    assert told[-3:] == ["1", "-", "1"]


def test_weights_the_wrong_way_round_are_recognised(longtail: Callable, plane: list[str]) -> None:
    np.save("turned.npy", PLANE.T)
    told = longtail("audit", "--weights", "turned.npy", *plane[3:]).err
    assert "the weights have 2 rows, the file of label sets has 3 labels; the weights have 3 columns" in told
    assert "if the matrix is transposed, save W.T" in told
    np.save("bias.npy", np.zeros(3))
    assert "save W.T" in longtail("audit", "--weights", "turned.npy", "--bias", "bias.npy", *plane[3:]).err
    np.save("wide.npy", np.ones((4, 5)))
    assert "name the rows with --label-names" in longtail("audit", "--weights", "wide.npy", *plane[3:]).err


def test_the_label_of_each_row_of_weights_is_told(longtail: Callable, plane: list[str]) -> None:
    assert (
        "the rows of the weights belong to these labels, in the order of sets.jsonl: A, B, C\n" in longtail(*plane).err
    )
    names = [f"n{number}" for number in range(9)]
    Path("names.txt").write_text("\n".join(names), encoding="utf-8")
    Path("some.jsonl").write_text('{"text": "", "labels": ["n1", "n2"]}\n', encoding="utf-8")
    np.save("nine.npy", np.eye(9))
    found = longtail("audit", "--weights", "nine.npy", "--labels", "some.jsonl", "--label-names", "names.txt")
    assert "in the order of names.txt: n0, n1, n2, n3, n4, ..., n8\n" in found.err


def test_rows_of_weights_can_be_named(longtail: Callable, plane: list[str]) -> None:
    Path("names.txt").write_text("C\nB\nA\n", encoding="utf-8")
    facts = json.loads(longtail(*plane, "--label-names", "names.txt", "--json").out)
    assert facts["unargmaxable"] == 0  # now A is the sum of the others, and no row has these without it
    assert facts["label_sets"] == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["audit"], "give MODEL and DATA, or --weights and --labels"),
        (["audit", "model", "--labels", "sets.jsonl"], "--weights and --labels"),
        (["audit", "--weights", "plane.npy", "--labels", "notes.jsonl", "--label-names", "names.txt"], "has 2 labels"),
        (["audit", "--weights", "sets.jsonl", "--labels", "sets.jsonl"], "as numpy.save writes it"),
        (["audit", "--weights", "line.npy", "--labels", "sets.jsonl"], "expected a matrix"),
        (["audit", "--weights", "nan.npy", "--labels", "sets.jsonl"], "NaN or infinity"),
        (["audit", "--weights", "four.npy", "--labels", "sets.jsonl"], "the weights have 4 rows"),
        (["audit", "--weights", "plane.npy", "--bias", "four.npy", "--labels", "sets.jsonl"], "expected 3 numbers"),
        (["audit", "--weights", "plane.npy", "--labels", "sets.jsonl", "--ranks", "3"], "a rank of at most 2"),
        (["audit", "--weights", "plane.npy", "--labels", "sets.jsonl", "--ranks", "1,²"], "expected ranks such as"),
        (["audit", "--weights", "plane.npy", "--labels", "sets.jsonl", "--ranks", "9" * 5000], "expected ranks such"),
        (["audit", "--weights", "plane.npy", "--labels", "sets.jsonl", "--ranks", "0"], "expected ranks such as"),
        (["audit", "--weights", "plane.npy", "--labels", "sets.jsonl", "--threshold", "nan"], "a finite number"),
        (
            ["audit", "--weights", "plane.npy", "--labels", "sets.jsonl", "--rule", "topk", "--threshold", "0"],
            "a ranking has no threshold",
        ),
        (["audit", "--weights", "plane.npy", "--labels", "sets.jsonl", "--ranks", "x"], "expected ranks such as"),
        (
            ["audit", "--weights", "plane.npy", "--labels", "sets.jsonl", "--picture", "a.jpg"],
            "pictures are written as .png, not as a.jpg",
        ),
        (["audit", "--weights", "plane.npy", "--widths"], "--widths needs DATA"),
        (["audit", "absent", "absent.jsonl", "--picture", "none/a.png"], "cannot write none/a.png: there is no folder"),
        (["audit", "absent", "absent.jsonl", "--picture", "folder.png"], "folder.png is a folder"),
    ],
)
def test_what_does_not_fit_is_told(longtail: Callable, plane: list[str], arguments: list[str], message: str) -> None:
    Path("names.txt").write_text("x\ny\n", encoding="utf-8")
    Path("folder.png").mkdir()
    np.save("line.npy", np.ones(3))
    np.save("nan.npy", np.full((3, 2), np.nan))
    np.save("four.npy", np.ones((4, 2)))
    found = longtail(*arguments)
    assert found.code in (1, 2)
    assert message in found.err


def test_a_model_of_another_program_is_audited_as_any(longtail: Callable, plane: list[str]) -> None:
    np.savez("plane.npz", weights=PLANE)
    found = longtail("audit", "plane.npz", "sets.jsonl")
    assert found.code == 0, found.err
    assert found.out == longtail(*plane).out
    assert "the rows of the weights belong to these labels" in found.err
    Path("names.txt").write_text("C\nB\nA\n", encoding="utf-8")
    renamed = longtail("audit", "plane.npz", "sets.jsonl", "--label-names", "names.txt", "--threshold", "1")
    assert "A label is predicted if its score is above 1." in renamed.out
    assert "in the order of names.txt: C, B, A" in renamed.err
    np.savez("plane.npz", first=PLANE, second=PLANE[:2])
    assert "Name the matrix with layer= (--layer)" in longtail("audit", "plane.npz", "sets.jsonl").err
    assert longtail("audit", "plane.npz", "sets.jsonl", "--layer", "first").out == found.out


def test_models_of_other_programs_that_cannot_be_audited_are_told_why(longtail: Callable, plane: list[str]) -> None:
    Path("model.pt").write_bytes(b"\x80\x04N.")
    assert "can run any program while it is loaded" in longtail("audit", "model.pt", "sets.jsonl").err
    Path("pecos").mkdir()
    Path("pecos/param.json").write_text("{}", encoding="utf-8")
    assert "a model of PECOS, a label tree" in longtail("audit", "pecos", "sets.jsonl").err
    np.savez("plane.npz", weights=PLANE)
    for option in (["--card"], ["--bias", "plane.npy"], ["--rule", "topk", "--threshold", "1"]):
        assert longtail("audit", "plane.npz", "sets.jsonl", *option).code == 2


def test_the_names_in_a_folder_of_transformers_are_used(longtail: Callable, plane: list[str]) -> None:
    from safetensors.numpy import save_file

    Path("bert").mkdir()
    save_file({"classifier.weight": PLANE, "classifier.bias": np.zeros(3)}, "bert/model.safetensors")
    facts = {"id2label": {"0": "C", "1": "B", "2": "A"}, "problem_type": "multi_label_classification"}
    Path("bert/config.json").write_text(json.dumps(facts), encoding="utf-8")
    found = longtail("audit", "bert", "sets.jsonl", "--examples", "3")
    assert found.code == 0, found.err
    # Here A is the sum of C and B: what was said of A, B and C above is said of C, B and A.
    assert "A and B without C" not in found.out
    assert longtail("audit", "bert", "sets.jsonl", "--label-names", "missing.txt").code == 1


def test_without_data_sets_are_audited_by_their_size(longtail: Callable, plane: list[str]) -> None:
    found = longtail("audit", "--weights", "plane.npy", "--up-to", "2", "--examples", "1")
    assert found.code == 0, found.err
    assert found.out.splitlines()[0] == "Some input gets 66.7% of all 6 sets of 1 to 2 labels."
    assert found.out.splitlines()[-1] == "  no input can have label 2 without one of label 0 and label 1"
    np.savez("plane.npz", weights=PLANE)
    assert longtail("audit", "plane.npz", "--examples", "1").out == found.out
    facts = json.loads(longtail("audit", "plane.npz", "--up-to", "3", "--json").out)
    assert (facts["complete"], facts["sets_of_these_sizes"], facts["unargmaxable"]) == (True, 7, 2)
    safe = longtail("audit", "plane.npz", "--safe-size", "--examples", "0")
    assert safe.out.splitlines() == [
        "Some input gets 66.7% of all 3 sets of 1 label.",
        "Not every single label has an input. There are sets of 1 label without an input.",
    ]
    assert json.loads(longtail("audit", "plane.npz", "--safe-size", "--json").out)["safe_size"] == 0
    sampled = longtail("audit", "plane.npz", "--up-to", "3", "--limit", "3").out
    assert "of the 7 sets of 1 to 3 labels (95% confidence, from 3 random ones)" in sampled


def test_without_data_the_training_rows_of_an_updatable_model_are_audited(longtail: Callable, model: str) -> None:
    assert "sets of 1 to 2 labels" in longtail("audit", model).out
    assert longtail("train", "notes.jsonl", "--out", "kept", "--learner", "ridge", "--updatable").code == 0
    found = longtail("audit", "kept", "--json")
    assert found.code == 0, found.err
    assert "rows that the model keeps" in found.err
    by_file = json.loads(longtail("audit", "kept", "notes.jsonl", "--json").out)
    assert json.loads(found.out)["label_sets"] == by_file["label_sets"]


def test_sizes_and_data_contradict_each_other(longtail: Callable, plane: list[str]) -> None:
    for options in (["--up-to", "2"], ["--safe-size"]):
        assert "leave out DATA" in longtail(*plane, *options).err
    assert "give --up-to or --safe-size" in longtail(*plane[:3], "--up-to", "2", "--safe-size").err
    assert "need DATA" in longtail(*plane[:3], "--ranks", "1").err


def test_a_page_is_written_and_replaced_only_if_it_is_a_page(longtail: Callable, plane: list[str]) -> None:
    found = longtail(*plane, "--report", "audit.html")
    assert found.code == 0, found.err
    page = Path("audit.html").read_text(encoding="utf-8")
    assert "No input can have A and B without C." in page
    assert longtail(*plane, "--report", "audit.html").code == 0
    Path("notes.html").write_text("notes", encoding="utf-8")
    assert "is not a report" in longtail(*plane, "--report", "notes.html").err
    assert longtail(*plane, "--report", "audit.txt").code == 1
    assert "need DATA" in longtail(*plane[:3], "--report", "audit.html").err


def test_findings_are_kept_for_the_next_run(longtail: Callable, plane: list[str]) -> None:
    first = longtail(*plane, "--resume", "findings")
    assert first.code == 0, first.err
    files = {path.name: path.stat().st_mtime_ns for path in Path("findings").iterdir()}
    assert len(files) == 1
    assert longtail(*plane, "--resume", "findings").out == first.out == longtail(*plane).out
    assert files == {path.name: path.stat().st_mtime_ns for path in Path("findings").iterdir()}


def test_findings_need_a_folder(longtail: Callable, plane: list[str]) -> None:
    found = longtail(*plane, "--resume", "sets.jsonl")
    assert found.code != 0
    assert "cannot keep findings in sets.jsonl" in found.err
