"""The files that Annif reads: the configuration of projects, and a vocabulary in SKOS."""

from __future__ import annotations

import json
from typing import Any

STEMMERS = {"sv": "swedish", "fi": "finnish", "en": "english"}
# Settings of Bonsai in Annif's own documentation.
BACKENDS: dict[str, dict[str, Any]] = {
    "mllm": {},
    "tfidf": {},
    "bonsai": {"backend": "omikuji", "cluster_balanced": False, "cluster_k": 100, "max_depth": 3},
}
URI = "http://labels.example/"


def projects_config(names: list[str], language: str) -> str:
    """The file of projects: one for each name, and the project ``all`` that averages them."""
    shared = {"language": language, "vocab": "labels", "limit": 100}
    analyzed = {**shared, "analyzer": f"snowball({STEMMERS[language]})"}
    projects = {name: {"name": name, "backend": name, **analyzed, **BACKENDS[name]} for name in names}
    projects["all"] = {"name": "all", **shared, "backend": "ensemble", "sources": ",".join(names)}
    return "\n".join(
        "\n".join([f"[{name}]", *(f"{key}={value}" for key, value in settings.items()), ""])
        for name, settings in projects.items()
    )


def skos(label_texts: list[list[str]], language: str) -> str:
    """A vocabulary in Turtle; labels without texts have their number as a name.

    >>> print(skos([["apple", "apples"]], "en").splitlines()[-1])
    <http://labels.example/0> a skos:Concept ; skos:prefLabel "apple"@en ; skos:altLabel "apples"@en .
    """
    lines = ["@prefix skos: <http://www.w3.org/2004/02/skos/core#> ."]
    for label, texts in enumerate(label_texts):
        preferred, *others = texts or [str(label)]
        told = [f"skos:prefLabel {json.dumps(preferred, ensure_ascii=False)}@{language}"]
        told += [f"skos:altLabel {json.dumps(other, ensure_ascii=False)}@{language}" for other in others]
        lines.append(f"<{URI}{label}> a skos:Concept ; {' ; '.join(told)} .")
    return "\n".join(lines)
