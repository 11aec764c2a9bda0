"""The services under load: their models, the texts of the requests, and their processes.

All models are trained on the same paragraphs of the embedded corpus. Texts are paragraphs of held-out documents.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import joblib
import numpy as np
import psutil

from benchmarks.load import ResponseParser, Target
from benchmarks.measure import ROOT
from longtail import native, text, trees
from longtail.data import load_python_api, python_api_versions
from longtail.errors import Unavailable
from longtail.files import whole_file
from longtail.tagger import Tagger
from longtail.text import TextFeatures
from longtail.trees import LabelTree

FORMAT = 1
HOST = "127.0.0.1"
FEWEST_WORDS, MOST_WORDS = 5, 200
NGRAMS, MOST_FEATURES = (1, 2), 20_000
TITLES = {
    "longtail": "longtail serve, LabelTree",
    "stacked": "plain FastAPI, scikit-learn, weights stacked",
    "scikit-learn": "plain FastAPI, scikit-learn OneVsRest",
}


@dataclass(frozen=True)
class Service:
    """How to start a service and where it takes texts; ``{port}`` in `command` stands for the port.

    `imports` is Python code that imports everything the service imports at its start.
    """

    key: str
    title: str
    command: tuple[str, ...]
    path: str
    ready: str
    imports: str
    live: str = "/health/live"
    environment: Mapping[str, str] = field(default_factory=dict)


def longtail_service(model: Path, options: Sequence[str] = ()) -> Service:
    program = (sys.executable, "-I", "-m", "longtail")
    command = (*program, "serve", str(model), "--host", HOST, "--port", "{port}", *options)
    return Service("longtail", TITLES["longtail"], command, "/v1/tag", "/health/ready", "import longtail.serve")


def plain_service(model: Path, *, stacked: bool = False) -> Service:
    """The plain app under uvicorn with its defaults, except for the log line per request."""
    uvicorn = (sys.executable, "-I", "-m", "uvicorn", "--app-dir", str(ROOT))
    command = (*uvicorn, "benchmarks.plain_app:app", "--host", HOST, "--port", "{port}")
    key = "stacked" if stacked else "scikit-learn"
    environment = {"PLAIN_MODEL": str(model), "PLAIN_STACKED": "1" if stacked else ""}
    imports = "import fastapi, joblib, uvicorn, sklearn.multiclass, sklearn.svm, sklearn.feature_extraction.text"
    quiet = ("--no-access-log", "--log-level", "warning")
    return Service(key, TITLES[key], (*command, *quiet), "/tag", "/health/live", imports, environment=environment)


def held_out_texts(count: int, seed: int = 0) -> list[str]:
    """Paragraphs of held-out documents, of 5 to 200 words: a sentence to a long paragraph."""
    texts = load_python_api(rows="paragraphs", split="test").texts or ()
    usable = [text for text in texts if FEWEST_WORDS <= len(text.split()) <= MOST_WORDS]
    order = np.random.default_rng(seed).permutation(len(usable))
    return [usable[place] for place in order[:count]]


def describe(texts: Sequence[str]) -> str:
    """Describe the lengths of the texts.

    >>> describe(["two words", "and three words"])
    '2 texts of 2 to 3 words (quartiles 2, 2, 3; 9 to 15 characters, 12 on average)'
    """
    words = np.array([len(text.split()) for text in texts])
    characters = np.array([len(text) for text in texts])
    quartiles = ", ".join(f"{value:.0f}" for value in np.percentile(words, (25, 50, 75)))
    return (
        f"{len(texts):,} texts of {words.min()} to {words.max()} words (quartiles {quartiles}; {characters.min()} to "
        f"{characters.max():,} characters, {characters.mean():.0f} on average)"
    )


def longtail_model(cache: Path) -> Path:
    """The tree of the demo, trained on the paragraphs of the training documents; kept in `cache`."""
    folder = cache / f"longtail-{_key(text, trees, native)}"
    if not folder.is_dir():
        corpus = load_python_api(rows="paragraphs", split="train")
        features = TextFeatures(ngrams=NGRAMS, max_features=MOST_FEATURES)
        Tagger(features, LabelTree(negatives="beam")).fit_corpus(corpus).save(folder)
    return folder


def plain_model(cache: Path) -> Path:
    """scikit-learn's one-vs-rest on the same rows and labels; kept in `cache`, because it takes minutes."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import LinearSVC

    path = cache / f"scikit-learn-{_key()}.joblib"
    if not path.is_file():
        corpus = load_python_api(rows="paragraphs", split="train")
        vectorizer = TfidfVectorizer(ngram_range=NGRAMS, max_features=MOST_FEATURES, min_df=2, sublinear_tf=True)
        pipeline = make_pipeline(vectorizer, OneVsRestClassifier(LinearSVC(), n_jobs=-1))
        pipeline.fit(corpus.texts, corpus.labels)
        with whole_file(path, parents=True) as file:
            joblib.dump((pipeline, list(corpus.label_names)), file)
    return path


def _key(*modules: ModuleType) -> str:
    """A digest of what a model depends on: the packages whose documentation it learns, and our sources."""
    folders = [Path(module.__file__ or "").parent for module in modules]
    sources = b"".join(path.read_bytes() for folder in folders for path in sorted(folder.glob("*.[pch]*")))
    described = json.dumps([FORMAT, python_api_versions(), hashlib.sha256(sources).hexdigest()])
    return hashlib.sha256(described.encode()).hexdigest()[:12]


def post(path: str, text: str) -> bytes:
    """The bytes of a request for the tags of one text.

    >>> post("/v1/tag", "a")[-13:]
    b'{"text": "a"}'
    """
    body = json.dumps({"text": text}, ensure_ascii=False).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: application/json\r\nAccept: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode("ascii") + body


def get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode("ascii")


@dataclass(frozen=True)
class Running:
    """A running service."""

    service: Service
    process: psutil.Process
    port: int
    seconds_to_ready: float

    def target(self, requests: Sequence[bytes], expected: Sequence[bytes | None] = ()) -> Target:
        return Target(HOST, self.port, requests, expected)

    def memory(self) -> int:
        """The resident memory of the process and its children, in bytes."""
        return sum(_of(process, "memory_info").rss for process in self._family())

    def cpu_seconds(self) -> float:
        return sum(sum(_of(process, "cpu_times")[:2]) for process in self._family())

    def _family(self) -> list[psutil.Process]:
        return [self.process, *self.process.children(recursive=True)]


def _of(process: psutil.Process, figure: str) -> Any:
    return getattr(process, figure)()


@contextmanager
def started(service: Service, log: Path, patience: float = 120.0) -> Iterator[Running]:
    """Start a service on a free port and wait until it is ready; terminate it afterwards, or kill it if it hangs."""
    port = free_port()
    command = [part.replace("{port}", str(port)) for part in service.command]
    environment = {**os.environ, **service.environment}
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        begun = time.perf_counter()
        child = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
        )
        try:
            while not is_ready(port, service.ready):
                waited = time.perf_counter() - begun
                if child.poll() is not None or waited > patience:
                    ended = f"ended with status {child.returncode}" if child.returncode is not None else "is not ready"
                    said = log.read_text(encoding="utf-8", errors="replace").strip()[-500:]
                    raise Unavailable(f"{service.title} {ended} after {waited:.1f} s; it said: {said or 'nothing'}")
                time.sleep(0.002)
            yield Running(service, psutil.Process(child.pid), port, time.perf_counter() - begun)
        finally:
            child.terminate()
            try:
                child.wait(30)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()


def seconds_to_import(service: Service) -> float:
    """Seconds that a new interpreter takes to import the service's modules, after a warm-up."""
    took = 0.0
    for _ in range(2):
        begun = time.perf_counter()
        subprocess.run([sys.executable, "-I", "-c", service.imports], cwd=ROOT, check=True)
        took = time.perf_counter() - begun
    return took


def free_port() -> int:
    with socket.create_server((HOST, 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


def is_ready(port: int, path: str) -> bool:
    """Whether a GET of `path` is answered with 200."""
    try:
        return ask(port, get(path), timeout=5.0)[0] == 200
    except OSError:
        return False


def ask(port: int, request: bytes, timeout: float = 60.0) -> tuple[int, bytes, float]:
    """Send one request on a new connection; return status, body and seconds, including the connection."""
    begun = time.perf_counter()
    parser = ResponseParser()
    with socket.create_connection((HOST, port), timeout=timeout) as connection:
        connection.sendall(request)
        while True:
            data = connection.recv(2**16)
            if not data:
                raise ConnectionError("the service closed the connection without an answer")
            for answer in parser.feed(data):
                return answer.status, answer.body, time.perf_counter() - begun
