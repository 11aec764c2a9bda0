from __future__ import annotations

import io

import pytest

from longtail.pictures import HeatMap, Line, Panel, Picture, draw

figure = pytest.importorskip("matplotlib.figure")


def test_names_beside_equal_points_stand_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    written: dict[str, tuple[float, float]] = {}
    axes_type = figure.Figure().subplots().__class__
    original = axes_type.text

    def text(self: object, x: float, y: float, name: str, **options: object) -> object:
        written[name] = (x, y)
        return original(self, x, y, name, **options)

    monkeypatch.setattr(axes_type, "text", text)
    lines = [Line(name, [2.0], [1.0], style) for style, name in enumerate(("one", "two", "three"))]
    lines.append(Line("far", [50.0], [3.0]))
    file = io.BytesIO()
    draw(Picture("a.png", "", [[Panel("", "x", "y", lines, log_x=True, named_points=True)]]), file)
    assert file.getvalue().startswith(b"\x89PNG")
    assert len(set(written.values())) == 4
    assert all(0 <= x <= 1 for x, _ in written.values())


def test_a_heat_map_has_a_cell_and_a_number_for_each_value() -> None:
    axes = figure.Figure().subplots()
    panel = HeatMap("t", "x", "y", [[0.5, 2.0, 1.0], [0.0, 3.0, 0.25]], ["a", "$b$", "c" * 40], ["one", "two"])
    assert panel.draw_on(axes) == []
    [image] = axes.images
    assert image.get_array().tolist() == [[0.5, 2.0, 1.0], [0.0, 3.0, 0.25]]
    assert [text.get_text() for text in axes.texts] == ["0.50", "2.00", "1.00", "0.00", "3.00", "0.25"]
    names = [text.get_text() for text in axes.get_xticklabels()]
    assert names == ["a", r"\$b\$", "c" * 27 + "…"]
    colours = {text.get_text(): text.get_color() for text in axes.texts}
    assert (colours["3.00"], colours["0.00"]) == ("white", "#333333")
    file = io.BytesIO()
    draw(Picture("a.png", "", [[panel]]), file)
    assert file.getvalue().startswith(b"\x89PNG")
