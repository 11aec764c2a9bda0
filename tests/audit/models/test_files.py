"""Output layers from files that other programs write, and what is said of damaged or unsafe ones."""

from __future__ import annotations

import json
import pickle
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from longtail.arrays import Array
from longtail.audit import read_model
from longtail.errors import DataFormatError, InvalidInput, NotEnoughMemory

HERE = Path(__file__).parent
W = np.array([[1.25, 0.5, 0.0], [-1.0, -1.0, -2.0], [-1.75, -2.0, -1.5], [1.25, 0.5, 1.5], [0.0, 0.25, 1.75]])
B = np.array([0.75, 0.5, 0.0, 0.0, 1.5])
KINDS = {"float64": "F64", "float32": "F32", "float16": "F16", "int32": "I32"}


def write_safetensors(path: Path, arrays: dict[str, Array], **changes: Any) -> None:
    """The format by its specification, written here so that damage can be written too."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    content = b""
    for name, array in arrays.items():
        stored = array.tobytes()
        places = [len(content), len(content) + len(stored)]
        facts = {"dtype": KINDS[str(array.dtype)], "shape": list(array.shape), "data_offsets": places}
        header[name] = facts | changes.get(name, {})
        content += stored
    encoded = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(encoded)) + encoded + content)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder as transformers writes it; another matrix has as many rows as there are labels."""
    place = tmp_path / "bert"
    place.mkdir()
    arrays = {
        "bert.embeddings.token_type_embeddings.weight": np.ones((5, 3)),
        "bert.pooler.dense.weight": np.ones((3, 3)),
        "bert.pooler.dense.bias": np.ones(3),
        "classifier.weight": W.astype(np.float32),
        "classifier.bias": B.astype(np.float32),
    }
    write_safetensors(place / "model.safetensors", arrays)
    names = {str(number): f"topic {number}" for number in range(5)}
    facts = {"id2label": names, "problem_type": "multi_label_classification"}
    (place / "config.json").write_text(json.dumps(facts), encoding="utf-8")
    return place


def test_a_folder_of_transformers_tells_layer_names_and_rule(folder: Path) -> None:
    layer = read_model(folder)
    assert (layer.weights == W).all()
    assert (layer.offsets == B).all()
    assert (layer.rule, layer.at_least) == ("predict", False)
    assert layer.label_names == tuple(f"topic {number}" for number in range(5))
    facts = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    for kind, rule in (("single_label_classification", "topk"), (None, "topk")):
        (folder / "config.json").write_text(json.dumps(facts | {"problem_type": kind}), encoding="utf-8")
        assert read_model(folder).rule == rule
    assert read_model(folder, rule="predict", threshold=1.0).offsets.tolist() == (B - 1).tolist()
    assert read_model(folder, layer="bert.pooler.dense").label_names is None


def test_files_of_the_libraries_themselves_are_read(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from safetensors.torch import save_file
    from transformers import BertConfig, BertForSequenceClassification

    tensors = {"out.weight": torch.tensor(W).bfloat16(), "out.bias": torch.tensor(B).half()}
    save_file(tensors, tmp_path / "model.safetensors")
    layer = read_model(tmp_path / "model.safetensors")
    assert (layer.weights == W).all()  # these numbers have few digits
    assert (layer.offsets == B).all()
    shape = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    torch.manual_seed(0)
    model = BertForSequenceClassification(BertConfig(vocab_size=20, num_labels=2, **shape))
    model.save_pretrained(tmp_path / "bert")
    found = read_model(tmp_path / "bert")
    assert (found.weights == model.classifier.weight.detach().double().numpy()).all()
    model.save_pretrained(tmp_path / "parts", max_shard_size="1KB")
    assert (tmp_path / "parts" / "model.safetensors.index.json").is_file()
    assert (read_model(tmp_path / "parts").weights == found.weights).all()


def test_the_matrix_is_named_where_several_can_be_meant(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    write_safetensors(path, {"a.weight": W, "b.weight": W, "b.bias": B})
    with pytest.raises(InvalidInput, match=r"not clear which .* a.weight \(5 x 3\), b.weight \(5 x 3\)"):
        read_model(path)
    for name in ("b", "b.weight"):
        assert (read_model(path, layer=name).offsets == B).all()
    with pytest.raises(InvalidInput, match="no matrix 'c'; the matrices are"):
        read_model(path, layer="c")


@pytest.mark.parametrize("name", ["gemm", "matmul_sigmoid", "transposed_softmax"])
def test_onnx_graphs_end_in_a_layer(name: str) -> None:
    layer = read_model(HERE / f"{name}.onnx")
    expected = {"gemm": (W / 2, 2 * B), "matmul_sigmoid": (W, B), "transposed_softmax": (W, np.zeros(5))}[name]
    assert (layer.weights == expected[0]).all()
    assert (layer.offsets == expected[1]).all()
    assert layer.rule == ("topk" if name == "transposed_softmax" else "predict")


def test_onnx_graphs_without_a_linear_end_are_refused() -> None:
    with pytest.raises(InvalidInput, match="the graph ends in 'Relu'"):
        read_model(HERE / "relu.onnx")


def test_archives_of_arrays_and_sparse_matrices_are_read(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    np.savez_compressed(path, weights=W, bias=B, names=np.array(["a"]))
    assert (read_model(path).offsets == B).all()
    sparse.save_npz(path, sparse.csr_matrix(W))
    assert (read_model(path, rule="topk").weights.toarray() == W).all()
    np.save(tmp_path / "model.npy", W)
    assert read_model(tmp_path / "model.npy", threshold=2.0).offsets.tolist() == [-2.0] * 5


@pytest.mark.parametrize("name", ["m.pt", "m.bin", "m.pkl", "m.joblib", "m.ckpt"])
def test_pickles_are_never_opened(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(pickle.dumps(W))
    with pytest.raises(DataFormatError, match=r"can run any program .*save_file"):
        read_model(tmp_path / name)


def test_a_folder_with_only_a_pickle_says_how_to_save_it(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(DataFormatError, match="save_pretrained"):
        read_model(folder)


@pytest.mark.parametrize(("program", "file"), [("PECOS", "param.json"), ("omikuji", "tree0.cbor")])
def test_trees_are_explained(tmp_path: Path, program: str, file: str) -> None:
    (tmp_path / file).write_text("{}", encoding="utf-8")
    with pytest.raises(InvalidInput, match=f"a model of {program}, a label tree") as caught:
        read_model(tmp_path)
    assert caught.value.code == "needs_linear_layer"


def test_damaged_tensors_are_named(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    cases: list[tuple[dict[str, Any], str]] = [
        ({"shape": [5, 4]}, "more or fewer bytes"),
        ({"shape": [-5, -3]}, "no sound type"),
        ({"shape": [2**70, 3]}, "no sound type"),
        ({"shape": "5"}, "no sound type"),
        ({"data_offsets": [0, 10**9]}, "no sound type"),
        ({"data_offsets": [8, 0]}, "no sound type"),
        ({"data_offsets": [True, 120]}, "no sound type"),
        ({"dtype": 3}, "no sound type"),
    ]
    for change, message in cases:
        write_safetensors(path, {"w": W}, w=change)
        with pytest.raises(DataFormatError, match=message):
            read_model(path)
    for content in (
        b"",
        b"\xff" * 40,
        struct.pack("<Q", 2) + b"[]",
        struct.pack("<Q", 3) + b"{{{",
        b"\x10" + b"\0" * 7,
    ):
        path.write_bytes(content)
        with pytest.raises(DataFormatError, match=r"no JSON|longer than the file"):
            read_model(path)
    write_safetensors(path, {"w": W * np.nan})
    with pytest.raises(DataFormatError, match="NaN"):
        read_model(path)


def test_damaged_graphs_are_refused(tmp_path: Path) -> None:
    """Every byte is cut off or turned once: the file is read or refused."""
    whole = (HERE / "gemm.onnx").read_bytes()
    path = tmp_path / "model.onnx"
    refused = 0
    for place in range(len(whole)):
        turned = whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :]
        for content in (whole[:place], turned):
            path.write_bytes(content)
            try:
                read_model(path)
            except (DataFormatError, InvalidInput, NotEnoughMemory):
                refused += 1
    assert refused > len(whole)


def test_a_graph_cannot_fill_the_memory_with_many_small_fields(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    whole = (HERE / "gemm.onnx").read_bytes()
    for content, size in ((b"\x0a\x00", 2_000_001), (b"\x2a\x84\x01\x0a\x81\x01" + b"\x01" * 129, 1)):
        graph = content * size
        length = bytes([len(graph) >> 7 * place & 0x7F | 0x80 for place in range(4)]) + bytes([len(graph) >> 28])
        path.write_bytes(whole + b"\x3a" + length + graph)
        with pytest.raises(DataFormatError, match="damaged"):
            read_model(path)


def test_a_header_that_is_too_long_is_not_said_to_be_no_json(tmp_path: Path, folder: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(struct.pack("<Q", 2**63) + b"{}")
    with pytest.raises(DataFormatError, match="longer than the file"):
        read_model(path)
    with open(folder / "config.json", "r+b") as file:
        file.truncate(50_000_001)
    with pytest.raises(DataFormatError, match=r"longer than 50,000,000 bytes"):
        read_model(folder)


def test_options_without_a_meaning_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "model.npy", W)
    sparse.save_npz(tmp_path / "model.npz", sparse.csr_matrix(W))
    for path in (tmp_path / "model.npy", tmp_path / "model.npz", HERE / "gemm.onnx"):
        with pytest.raises(InvalidInput, match="layer goes with files of named arrays"):
            read_model(path, layer="out")
        with pytest.raises(InvalidInput, match="a ranking has no threshold"):
            read_model(path, rule="topk", threshold=1.0)
        with pytest.raises(InvalidInput, match="threshold"):
            read_model(path, threshold=float("nan"))


def test_names_in_an_archive_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    np.savez(path, é=W)
    path.write_bytes(path.read_bytes().replace("\u00e9".encode(), b"\xff\xff"))
    with pytest.raises(DataFormatError, match="savez writes it"):
        read_model(path)


def test_damaged_archives_and_folders_are_named(tmp_path: Path, folder: Path) -> None:
    path = tmp_path / "model.npz"
    np.savez(path, weights=W)
    whole = path.read_bytes()
    for content in (b"", whole[:60], whole.replace(b"(5, 3)", b"(9, 9)")):
        path.write_bytes(content)
        with pytest.raises(DataFormatError, match=r"savez writes it|another size"):
            read_model(path)
    np.savez(path, weights=np.array([{}], dtype=object))
    with pytest.raises(InvalidInput, match="the matrices are none"):
        read_model(path)
    (folder / "config.json").write_text("[", encoding="utf-8")
    with pytest.raises(DataFormatError, match="no JSON"):
        read_model(folder)
    (folder / "config.json").unlink()
    with pytest.raises(DataFormatError, match="or one with config"):
        read_model(folder)
    with pytest.raises(DataFormatError, match="no model that is known here"):
        read_model(tmp_path / "model.h5")
    for name in ("missing.safetensors", "missing.npz", "missing.onnx", "missing.npy"):
        with pytest.raises(DataFormatError, match="cannot be opened"):
            read_model(tmp_path / name)


def test_an_index_cannot_point_outside_its_folder(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    index = {"weight_map": {"classifier.weight": "../model.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    with pytest.raises(DataFormatError, match="outside the folder"):
        read_model(folder)
