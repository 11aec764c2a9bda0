from __future__ import annotations

from longtail_papers.common import Claim, Column, Spread, means, spread_columns, spreads, statements


def test_statements_that_fail_are_told() -> None:
    claims = [Claim("water is wet", "9", True), Claim("the moon is cheese", "0", False)]
    section = statements(claims)
    assert section.text == "1 of 2 statements hold in this run. These do not hold: the moon is cheese (0)."
    assert [row["holds"] for row in section.to_dict()["tables"][0]["rows"]] == ["yes", "no"]
    told = statements(claims[:1], "By the mean", "So be it.")
    assert told.text == "By the mean, 1 of 1 statements hold in this run. So be it."


def test_one_seed_has_no_spread() -> None:
    assert Spread.of([4.0]) == (4.0, None)
    assert Spread.of(iter([1.0, 2.0, 3.0])) == (2.0, 1.0)


def test_figures_of_several_runs_fill_a_pair_of_columns_each() -> None:
    runs = [{"P@1": 1.0, "P@3": 5.0}, {"P@1": 3.0, "P@3": 5.0}]
    assert spread_columns(["P@1"], ".1f") == [Column("P@1", ".1f"), Column("± P@1", ".1f")]
    assert spreads(runs, ["P@1", "P@3"]) == [2.0, 2**0.5, 5.0, 0.0]
    assert means({"a": runs, "b": runs[:1]}, "P@1") == {"a": 2.0, "b": 1.0}
