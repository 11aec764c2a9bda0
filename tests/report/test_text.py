from __future__ import annotations

from longtail.report.text import percent


def test_shares_are_rounded_to_all_or_nothing_only_where_they_are() -> None:
    assert [percent(share) for share in (0, 0.004, 0.005, 0.5, 0.995, 0.9999, 1)] == [
        "0%",
        "<1%",
        "<1%",
        "50%",
        ">99%",
        ">99%",
        "100%",
    ]
    assert [percent(share, 1) for share in (0.0001, 0.9996, 1)] == ["<0.1%", ">99.9%", "100.0%"]
