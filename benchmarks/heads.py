"""The cost of the last layer: ``python -m benchmarks.heads`` prints the measurements of `longtail_papers.multi_head`.

With 10^6 labels the product must be at least 17, the sampling 8 and the cascade 4 times as fast as one-hot.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from benchmarks.timing import verdict
from longtail.parallel import count_cores
from longtail_papers.multi_head.head_costs import BAR_AT, BATCH, CONTESTANTS, SIZES, WIDTH, compare

_GIB = 2**30


def show(n_labels: int, measured: dict[str, dict[str, float]]) -> bool:
    """Print a table; return whether every bar at this size is met."""
    print(f"{n_labels:,} labels")
    print(
        f"  {'head':22} {'seconds':>9} {'faster':>8} {'(rounds)':>16} {'weights':>9} {'pass':>9} {'10^9 mul-add':>13}"
    )
    holds = True
    for name, row in measured.items():
        spread = f"({row['least']:.1f} to {row['most']:.1f})"
        line = (
            f"  {name:22} {row['seconds']:9.4f} {row['ratio']:8.1f} {spread:>16} {row['parameters'] / _GIB:5.2f} GiB "
            f"{row['growth'] / _GIB:5.2f} GiB {row['multiply_adds'] / 1e9:13.2f}"
        )
        bar = CONTESTANTS[name].at_least
        if bar is not None and n_labels >= BAR_AT:
            line += f"   at least {bar:g}: {verdict(row['ratio'] >= bar)}"
            holds &= row["ratio"] >= bar
        print(line, flush=True)
    return holds


def main(arguments: Sequence[str] | None = None) -> bool:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="numbers of labels")
    parser.add_argument("--rounds", type=int, default=3, help="processes of each head and size")
    parser.add_argument("--passes", type=int, default=3, help="timed passes in each process, after a warm-up")
    parser.add_argument("--threads", type=int, default=count_cores(), help="threads of torch")
    parser.add_argument("--only", nargs="+", metavar="HEAD", help="heads by the first word of their names")
    options = parser.parse_args(arguments)
    names = list(CONTESTANTS)
    if options.only:
        wanted = {"one-hot", *options.only}
        names = [name for name in names if name.replace(",", " ").split()[0] in wanted]
    print(f"width {WIDTH}, {BATCH} rows, {options.threads} threads; {options.rounds} rounds of {options.passes} passes")
    holds = True
    for n_labels in options.sizes:
        holds &= show(n_labels, compare(n_labels, names, options.rounds, options.passes, options.threads))
    return holds


if __name__ == "__main__":
    main()
