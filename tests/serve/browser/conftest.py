"""A real browser on a real service: skipped, with the reason, where one of them is missing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from longtail import Corpus, Tagger, TextFeatures
from longtail.ridge import Ridge
from longtail.trees import LabelTree, OneVsRest
from tests.serve.browser.stage import SLOW_MACHINE, UNTRAINED, Service, Visit, examples
from tests.tagger.two_stages import two_stages

_BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def _executable() -> str:
    if os.environ.get("LONGTAIL_EXPECT_SANITIZED"):
        pytest.skip("a browser does not start with the sanitizers loaded before it")
    found = os.environ.get("LONGTAIL_CHROMIUM") or next(filter(None, map(shutil.which, _BROWSERS)), None)
    if found is None:
        pytest.skip(f"no browser: none of {', '.join(_BROWSERS)} is on the path, and $LONGTAIL_CHROMIUM is not set")
    return found


# Of the package, not of the session: while Playwright runs, its event loop is the thread's, and no other can run there.
@pytest.fixture(scope="package")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    executable = _executable()
    playwright.expect.set_options(timeout=SLOW_MACHINE)
    is_root = hasattr(os, "geteuid") and os.geteuid() == 0
    with playwright.sync_playwright() as running:
        launched = running.chromium.launch(
            executable_path=executable, args=["--no-sandbox"] if is_root else [], timeout=4 * SLOW_MACHINE
        )
        yield launched
        launched.close()


@pytest.fixture(scope="package")
def taggers() -> dict[str, Tagger]:
    texts, labels = examples()
    known = Corpus.from_lists(texts, labels)
    rows = Corpus(label_names=known.label_names, labels=known.labels, features=known.labels.toarray())
    return {
        "tree": Tagger(TextFeatures(min_df=1), LabelTree(leaf_size=3, random_state=0)).fit(texts, labels),
        "flat": Tagger(TextFeatures(min_df=1), OneVsRest()).fit(texts, labels),
        "rows": Tagger(None, Ridge()).fit_corpus(rows),
        "stages": two_stages(known, UNTRAINED),
    }


@pytest.fixture(scope="package")
def models(taggers: dict[str, Tagger], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("models")
    for name, tagger in taggers.items():
        tagger.save(folder / name)
    return {name: folder / name for name in taggers}


@pytest.fixture(scope="package")
def service(browser: Any, models: dict[str, Path]) -> Iterator[Service]:
    running = Service(models, "--max-characters", "2000")
    yield running
    running.kill()


@pytest.fixture
def serve(browser: Any, models: dict[str, Path]) -> Iterator[Callable[..., Service]]:
    """A service of one model that the test has to itself."""
    running = []

    def start(*options: str, token: str | None = None, directory: Path = models["tree"]) -> Service:
        running.append(Service({"tree": directory}, *options, token=token))
        return running[-1]

    yield start
    for process in running:
        process.kill()


@pytest.fixture
def visit(browser: Any, serve: Any) -> Iterator[Callable[..., Visit]]:
    """Opens the page of a service; at the end of the test nothing may have gone wrong in it unless allowed.

    It shows `k` tags; "auto" is what people see first. Asks for `serve`, so that pages close before their services end.
    """
    visits = []

    def go(service: Service, k: str = "5", **options: Any) -> Visit:
        context = browser.new_context(
            **{"viewport": {"width": 1280, "height": 900}, "reduced_motion": "reduce", **options}
        )
        context.set_default_timeout(SLOW_MACHINE)
        visits.append(Visit(context.new_page(), service.address))
        visits[-1].watch()
        chosen = f"addEventListener('DOMContentLoaded', () => (document.getElementById('k').value = '{k}'))"
        visits[-1].page.add_init_script(chosen)
        visits[-1].page.goto(service.address)
        return visits[-1]

    yield go
    for made in visits:
        made.page.context.close()
    for made in visits:
        made.check()


@pytest.fixture(scope="package")
def screenshots() -> Path:
    folder = Path(os.environ.get("LONGTAIL_ARTEFACTS") or Path(__file__).parents[3] / "build" / "screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder
