"""`Measures`: the metrics of `/metrics`, in a Prometheus registry of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_TEXTS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


class Measures:
    """Counts requests, and records their times, batch sizes and queue lengths.

    Examples
    --------
    >>> measures = Measures()
    >>> measures.request("/v1/tag", 200, 0.002)
    >>> b'longtail_requests_total{route="/v1/tag",status="200"} 1.0' in measures.text()
    True
    """

    content_type = CONTENT_TYPE_PLAIN_0_0_4

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "longtail_requests", "Requests answered.", ["route", "status"], registry=self._registry
        )
        self._seconds = Histogram(
            "longtail_request_seconds",
            "Seconds from the headers to the answer.",
            ["route"],
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._batches = Histogram(
            "longtail_batch_texts", "Texts scored together.", buckets=_TEXTS, registry=self._registry
        )
        self._corrections = Counter("longtail_corrections", "Corrections written.", ["model"], registry=self._registry)
        self._reloads = Counter(
            "longtail_reloads", "New versions loaded, or failed to load.", ["model", "outcome"], registry=self._registry
        )
        self._labels = Gauge("longtail_model_labels", "Labels of a model.", ["model", "kind"], registry=self._registry)
        self._children: dict[tuple[str, int], tuple[Any, Any]] = {}

    def request(self, route: str, status: int, seconds: float) -> None:
        """Count an answer; `route` must be one of a fixed set, never text from a client."""
        count, times = self._of(route, status)
        count.inc()
        times.observe(seconds)

    def refused(self, route: str, status: int) -> None:
        """Count a request that a connection refused."""
        self._of(route, status)[0].inc()

    def _of(self, route: str, status: int) -> tuple[Any, Any]:
        children = self._children.get((route, status))
        if children is None:
            children = self._requests.labels(route, str(status)), self._seconds.labels(route)
            self._children[route, status] = children
        return children

    def batch(self, texts: int) -> None:
        """Count a batch."""
        self._batches.observe(texts)

    def watch(self, name: str, about: str, value: Callable[[], float]) -> None:
        """Add a gauge that calls `value` when the metrics are read."""
        Gauge(name, about, registry=self._registry).set_function(value)

    def correction(self, model: str) -> None:
        """Count a correction; `model` must be the name of a model of the service."""
        self._corrections.labels(model).inc()

    def reload(self, model: str, succeeded: bool) -> None:
        """Count a new version of a model, or one that failed to load."""
        self._reloads.labels(model, "loaded" if succeeded else "failed").inc()

    def models(self, models: Iterable[tuple[str, str, int]]) -> None:
        """Set the models: name, kind and number of labels of each."""
        self._labels.clear()
        for name, kind, n_labels in models:
            self._labels.labels(name, kind).set(n_labels)

    def text(self) -> bytes:
        """The metrics in the exposition format."""
        return generate_latest(self._registry)
