"""`longtail serve` under load, beside a plain FastAPI app around scikit-learn: ``python -m benchmarks.serve``.

Client and service share the machine over loopback. `docs/benchmarks.md` explains what is measured and how to read it.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks.measure import ROOT, with_warning
from benchmarks.phases import QUICK, Measured, Plan, measure
from benchmarks.serve_report import bars_of, phases_table, pictures_of, start_table
from benchmarks.services import (
    TITLES,
    Service,
    describe,
    held_out_texts,
    longtail_model,
    longtail_service,
    plain_model,
    plain_service,
)
from longtail.errors import Unavailable
from longtail.files import whole_file
from longtail_papers.common import Column, Results, Section, Table

INTRODUCTION = (
    "The services ran one after the other on loopback, with the client on the same cores. Latency counts from the time "
    "a request was due and includes connecting and waiting. Every request holds one text: {texts}."
)


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse(arguments)
    plan = QUICK if options.quick else Plan(overload=options.seconds)
    cache = Path(options.cache).resolve()
    out = Path(options.out).resolve() if options.out else cache / "results"
    texts = held_out_texts(options.texts)
    introduction = with_warning(INTRODUCTION.format(texts=describe(texts)), "figures are worse than usual")
    results = Results(out, "serve", "Serving under load", introduction, quick=plan.overload < 60)
    measured: dict[str, Measured] = {}
    for key in options.only:
        try:
            measured[key] = measure(service_of(key, cache / "models"), texts, plan, out / f"serve-{key}.log")
        except Unavailable as missing:
            print(missing, flush=True)
            results.put(Section(TITLES[key], f"Not measured: {missing}"))
            continue
        write_raw(out / "serve-measurements.json", plan, measured)
        results.put(section_of(measured[key]))
    if "longtail" in measured:
        results.put(bars_section(measured["longtail"], plan))
    results.put(together(measured))
    for path in [*results.finish(), out / "serve-measurements.json"]:
        print(path)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=Plan.overload, help="duration of the overload (default 120)")
    parser.add_argument("--only", nargs="+", choices=list(TITLES), default=list(TITLES), help="services to measure")
    parser.add_argument("--texts", type=int, default=1_000, help="different texts, sent in turn")
    parser.add_argument("--quick", action="store_true", help="a few seconds per service: shows that everything works")
    parser.add_argument("--cache", default=str(ROOT / ".bench"), help="folder for the models")
    parser.add_argument("--out", help="folder for the results; default: results in the cache")
    return parser.parse_args(arguments)


def service_of(key: str, models: Path) -> Service:
    models.mkdir(parents=True, exist_ok=True)
    if key == "longtail":
        return longtail_service(longtail_model(models))
    return plain_service(plain_model(models), stacked=key == "stacked")


def section_of(measured: Measured) -> Section:
    text = (
        "The floor is a route that does nothing. Up to the capacity, each connection sends its next request when it is "
        "answered; then requests come at random times, at twice the capacity in the overload."
    )
    return Section(measured.title, text, [phases_table(measured)], pictures_of(measured))


def together(measured: Mapping[str, Measured]) -> Section:
    """The services side by side."""
    table = start_table(list(measured.values()))
    print(f"\n{table.to_markdown()}\n", flush=True)
    return Section("Side by side", "Medians and percentiles of answers with status 200.", [table])


def bars_section(measured: Measured, plan: Plan) -> Section:
    columns = (Column("bar"), Column("measured"), Column("wanted"), Column("verdict"))
    table = Table("Bars", columns, bars_of(measured, plan.settle))
    print(f"\n{table.to_markdown()}\n", flush=True)
    load = measured.phases["before"].load
    return Section("Bars of the service", f"The load of the machine was {load:.1f} before the steady phase.", [table])


def write_raw(path: Path, plan: Plan, measured: Mapping[str, Measured]) -> None:
    """Write all figures, with the timeline of each phase."""
    content = {"plan": asdict(plan), "services": {key: asdict(values) for key, values in measured.items()}}
    with whole_file(path, parents=True) as file:
        file.write((json.dumps(content, indent=1, allow_nan=False) + "\n").encode())


if __name__ == "__main__":
    main()
