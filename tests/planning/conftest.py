"""Costs that do not depend on the machine."""

from __future__ import annotations

import pytest

from longtail.planning import Costs


@pytest.fixture
def costs() -> Costs:
    return Costs(
        prepare=1e-7,
        sort=5e-8,
        add=1.5e-8,
        cluster=1.5e-8,
        train=1e-9,
        train_row=1e-8,
        again=0.5,
        search=7e-9,
        score=1.5e-9,
        join=2e-9,
        model=3.0,
    )
