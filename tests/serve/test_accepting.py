"""Accepting connections where something is not as it should be, and limits on files that the system keeps to itself."""

from __future__ import annotations

import logging
import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from longtail.serve import accepting, program


def test_an_unexpected_error_while_accepting_ends_the_service_and_is_told(
    model_directory: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(*_: Any) -> None:
        raise KeyError("unforeseen")

    monkeypatch.setattr(program, "accept", broken)
    # A service that does not see the error would run for ever; then a signal ends it, and the test fails.
    late = threading.Timer(30, signal.raise_signal, [signal.SIGTERM])
    late.start()
    try:
        with caplog.at_level(logging.ERROR, "longtail"), pytest.raises(KeyError, match="unforeseen"):
            program.run({"topics": model_directory}, port=0)
    finally:
        late.cancel()
    assert "cannot accept connections any more, ending the service: KeyError: 'unforeseen'" in caplog.text


def test_files_are_counted_where_the_system_does_not_list_them(monkeypatch: pytest.MonkeyPatch) -> None:
    resource = pytest.importorskip("resource")

    def unlisted(path: str) -> list[str]:
        raise FileNotFoundError(2, "No such file or directory", path)

    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, 4096))
    monkeypatch.setattr(os, "listdir", unlisted)
    assert 900 < accepting.free_files() < 1024


@pytest.mark.parametrize("error", [ValueError("current limit exceeds maximum limit"), OSError(22, "Invalid argument")])
def test_a_limit_that_the_system_refuses_to_raise_stays(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    resource = pytest.importorskip("resource")
    asked: list[tuple[int, int]] = []

    def refuse(_: int, limits: tuple[int, int]) -> None:
        asked.append(limits)
        raise error

    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, resource.RLIM_INFINITY))
    monkeypatch.setattr(resource, "setrlimit", refuse)
    accepting.allow_files(20_000)
    assert asked == [(40_100, resource.RLIM_INFINITY)]
