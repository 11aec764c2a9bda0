"""The fused steps of conjugate gradients compared with NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from longtail import native


@pytest.mark.parametrize("width", [1, 7, 64])
def test_each_step_equals_its_twin(rng, width):
    if not native.is_native():
        pytest.skip("the native kernels are not built here")
    rows = 33

    def matrix():
        return rng.normal(size=(rows, width)).astype(np.float32)

    alphas, step, turn = (rng.random(width).astype(np.float32) for _ in range(3))
    inverse = rng.random(rows).astype(np.float32)
    direction, image, solution, residual, correction = (matrix() for _ in range(5))
    results = []
    for kernels in (native.kernels, native.twins):
        d, m, s, r = (part.copy() for part in (direction, image, solution, residual))
        curvature, energy = np.full((2, width), np.nan, dtype=np.float32)
        kernels.cg_curvature(alphas, d, m, curvature)
        kernels.cg_descend(step, inverse, d, m, s, r, energy)
        kernels.cg_turn(turn, inverse, r, correction, d)
        results.append((curvature, energy, d, m, s, r))
    for one, other in zip(*results, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)
