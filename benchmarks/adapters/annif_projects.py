"""Annif: lexical matching with the names of the labels (mllm), omikuji and tf-idf, alone or averaged in an ensemble.

It gets texts and the texts of the labels, as a SKOS vocabulary. Training leaves the model in its data folder, so `save`
has nothing to do. An ensemble has no training of its own: its sources are trained one after the other.
"""

from __future__ import annotations

import json
import sysconfig
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any

import annif.parallel  # type: ignore[import-not-found]
import nltk  # type: ignore[import-not-found]
import numpy as np
from annif.corpus import Document, DocumentList, SubjectSet
from annif.registry import AnnifRegistry
from annif.vocab import VocabFileSKOS

from benchmarks.adapters.annif_files import URI, projects_config, skos
from benchmarks.adapters.base import Adapter
from benchmarks.arrays import read_matrix, top_labels

TOKENIZERS = Path(sysconfig.get_paths()["purelib"]) / "llama_index/core/_static/nltk_cache"


class Annif(Adapter):
    """`projects` are keys of `annif_files.BACKENDS`; `mllm` learns from the first `mllm_rows` rows only."""

    def __init__(self, threads: int, projects: list[str], mllm_rows: int | None = None) -> None:
        super().__init__(threads)
        self.projects = projects
        self.rows = {"mllm": mllm_rows}
        nltk.data.path.append(str(TOKENIZERS))

    def version(self) -> str:
        return version("annif")

    def read_training(self, data: Path) -> tuple[Any, Any]:
        texts = json.loads((data / "train_texts.json").read_text(encoding="utf-8"))
        return texts, read_matrix(data / "train_labels")

    def prepare(self, X: Any, Y: Any, data: Path, folder: Path) -> tuple[Any, Any]:
        language = json.loads((data / "facts.json").read_text(encoding="utf-8"))["language"]
        self.config, self.folder = folder / "projects.cfg", folder / "model"
        self.folder.mkdir()
        self.config.write_text(projects_config(self.projects, language), encoding="utf-8")
        self._open()
        vocabulary = folder / "vocabulary.ttl"
        label_texts = json.loads((data / "label_texts.json").read_text(encoding="utf-8"))
        vocabulary.write_text(skos(label_texts, language), encoding="utf-8")
        self.registry.get_vocab("labels").load_vocabulary(VocabFileSKOS(str(vocabulary)))
        subjects = self.model.subjects
        subject_of = [subjects.by_uri(f"{URI}{label}", warnings=False) for label in range(len(label_texts))]
        documents = [
            Document(text, SubjectSet(subject_of[label] for label in Y.indices[start:stop].tolist()))
            for text, start, stop in zip(X, Y.indptr[:-1].tolist(), Y.indptr[1:].tolist(), strict=True)
        ]
        return documents, None

    def _open(self) -> None:
        self.registry = AnnifRegistry(str(self.config), str(self.folder), init_projects=False)
        self.model = self.registry.get_project("all")

    def train(self, X: Any, Y: Any) -> None:
        for name in self.projects:
            corpus = DocumentList(X[: self.rows.get(name)])
            self.registry.get_project(name).train(corpus, jobs=self.threads)

    def save(self, path: Path) -> None:
        assert path == self.folder

    def forget(self) -> None:
        self.model = self.registry = None

    def load(self, path: Path) -> None:
        self._open()
        self.model.initialize(parallel=True)
        subjects = self.model.subjects
        uris = [subject.uri if (subject := subjects[each]) else "" for each in range(len(subjects))]
        self.columns = np.array([int(uri.removeprefix(URI) or -1) for uri in uris] + [-1])

    def read_test(self, data: Path) -> Any:
        return json.loads((data / "test_texts.json").read_text(encoding="utf-8"))

    def predict(self, X: Any, k: int) -> Any:
        """As ``annif eval --jobs``: batches of documents go to several processes."""
        ask = annif.parallel.ProjectSuggestMap(self.registry, ["all"], None, k, 0.0)
        jobs, pool_class = annif.parallel.get_pool(self.threads)
        batches = list(DocumentList([Document(text) for text in X]).doc_batches)
        with pool_class(jobs) as pool:
            found = [suggested["all"] for suggested, _ in pool.imap(ask.suggest_batch, batches)]
        return self.columns[np.concatenate([top_labels(batch.array, k) for batch in found])]

    def single_input(self, row: Any) -> Any:
        return [Document(row)]

    def predict_one(self, single: Any, k: int) -> Any:
        [suggested] = self.model.suggest(single).filter(limit=k)
        return list(islice(suggested, k))
