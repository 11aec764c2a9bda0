"""What the tests of the page stand on: texts with awkward label names, a service process, a watched page."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SCRIPT = "<script>alert(1)</script>"
IMAGE = '"><img src=x onerror=alert(1)>'
EMOJI = "🎉 party 🎈"
RIGHT_TO_LEFT = "موسيقى כלי"
LONG = "label " + "x" * 300
SUBJECTS = {
    "weather": "rain wind storm cloud sunny forecast",
    "cooking": "bake oven flour butter recipe simmer",
    "gardening": "soil seed prune rose compost watering",
    "football": "goal striker referee penalty league match",
    "medicine": "fever antibiotic patient dose nurse clinic",
    SCRIPT: "exploit payload injection browser sanitise markup",
    IMAGE: "picture broken attribute handler quote element",
    EMOJI: "balloon cake music dance birthday guests",
    RIGHT_TO_LEFT: "violin melody orchestra harmony concert rhythm",
    LONG: "endless lengthy prolonged verbose protracted interminable",
}
UNTRAINED = {"astronomy": "telescope planet"}
SLOW_MACHINE = 20_000


@dataclass
class Visit:
    """What a page did while a test had it open; `allowed` are parts of console lines that the test provokes."""

    page: Any
    address: str
    allowed: list[str] = field(default_factory=list)
    trouble: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def watch(self) -> None:
        self.page.on("console", lambda line: line.type in ("error", "warning") and self.trouble.append(line.text))
        self.page.on("pageerror", lambda error: self.trouble.append(f"uncaught {error}"))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("dialog", self._refuse)
        self.page.add_init_script(
            "addEventListener('securitypolicyviolation', (event) => console.error('violates', event.violatedDirective))"
        )

    def _refuse(self, dialog: Any) -> None:
        self.trouble.append(f"dialog {dialog.message}")
        dialog.dismiss()

    def put_card(self, card: dict[str, Any]) -> None:
        """Show the page with a card on the first model."""

        def with_card(route: Any) -> None:
            answer = route.fetch()
            content = answer.json()
            content["models"][0]["card"] = card
            route.fulfill(response=answer, json=content)

        self.page.route("**/v1/models", with_card)
        self.page.reload()

    def check(self) -> None:
        assert [line for line in self.trouble if not any(part in line for part in self.allowed)] == []
        assert [url for url in self.requests if not url.startswith((self.address, "data:"))] == []


class Service:
    """A `longtail serve` process."""

    def __init__(self, models: dict[str, Path], *options: str, port: int = 0, token: str | None = None) -> None:
        self._models = [f"{name}={directory}" for name, directory in models.items()]
        self._options = options
        self._environment = {**os.environ, **({"LONGTAIL_TOKEN": token} if token else {})}
        self.start(port)

    def start(self, port: int) -> None:
        command = [sys.executable, "-m", "longtail", "serve", *self._models, "--port", str(port), *self._options]
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=self._environment, text=True
        )
        assert self._process.stdout is not None
        said = self._process.stdout.readline()
        address = re.search(r"http://[\d.]+:(\d+)", said)
        assert address, f"the service said {said!r}"
        self.address, self.port = address[0], int(address[1])

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()

    def hang_up(self) -> None:
        self._process.send_signal(signal.SIGHUP)

    def restart(self) -> None:
        self.start(self.port)


def examples() -> tuple[list[str], list[list[str]]]:
    """Six texts for each subject, each with a word of another one, so that no label is certain."""
    names = list(SUBJECTS)
    texts, labels = [], []
    for place, name in enumerate(names):
        words = SUBJECTS[name].split()
        for turn in range(6):
            other = names[(place + turn + 1) % len(names)]
            own = [words[(turn + step) % 6] for step in range(3)]
            texts.append(" ".join([*own, SUBJECTS[other].split()[turn]]))
            labels.append([name, other] if turn < 2 else [name])
    return texts, labels
