from __future__ import annotations

from pathlib import Path

import pytest

from longtail import reproduce
from longtail.errors import InvalidInput


def test_an_unknown_experiment_is_refused_with_the_known_names(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"'alchemy'; known are .*ridge"):
        reproduce.run("alchemy", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_every_name_has_a_module_and_one_line() -> None:
    for name, description in reproduce.NAMES.items():
        assert (Path(reproduce.__file__).parent / f"{name.replace('-', '_')}.py").is_file()
        assert description
        assert "\n" not in description
