from __future__ import annotations

from itertools import product

import numpy as np

from longtail.audit import ARGMAXABLE, UNDETERMINED, count_argmaxable, verify, verify_thoroughly


def test_nothing_is_left_open_in_few_dimensions_with_a_bias(rng: np.random.Generator) -> None:
    sets = np.array(list(product((0, 1), repeat=6)))
    for d in (1, 2, 3):
        W, bias = 0.05 * rng.normal(size=(6, d)), rng.normal(size=6)
        audit = verify_thoroughly(W, sets, bias)
        assert audit.count(UNDETERMINED) == 0
        assert audit.count(ARGMAXABLE) == count_argmaxable(6, d, bias=True)
        assert audit.recheck(exact=True).all()
        decided = verify(W, sets, bias).verdicts
        assert (audit.verdicts[decided != 0] == decided[decided != 0]).all()
