from __future__ import annotations

import re
from itertools import pairwise

import pytest

from longtail.metrics import Band
from longtail.report.charts import band_chart


@pytest.mark.parametrize(
    ("n_bands", "last", "n_ticks"),
    [(1, "1", 1), (10, "512-1,023", 10), (11, "1k", 11), (21, "1M", 21), (26, "34M", 13)],
)
def test_the_ticks_of_the_frequency_chart_do_not_overlap(n_bands: int, last: str, n_ticks: int) -> None:
    bands = [Band(2**number // 2, 2**number - 1, 5, 4, 3, 2) for number in range(1, n_bands + 1)]
    chart = band_chart(bands)
    found = re.findall(r'<text x="([\d.]+)" y="288" class="tick middle">([^<]+)', chart)
    ticks = [(float(x), tick) for x, tick in found]
    assert (len(ticks), ticks[-1][1]) == (n_ticks, last)
    for (left, first), (right, second) in pairwise(ticks):
        assert right - left >= 2 + 7 * max(len(first), len(second))
    whole = f"({last} stands for {bands[-1].low:,}-{bands[-1].high:,})"
    assert (whole in chart) == last.endswith(("k", "M"))
