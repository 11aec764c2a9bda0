from __future__ import annotations

import io

import pytest

from longtail.pictures import Line, Panel, Picture, draw

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
