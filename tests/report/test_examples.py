from __future__ import annotations

import numpy as np

from longtail.metrics import Judgement
from longtail.report.examples import PARTLY, RIGHT, WRONG, choose_rows


def test_documents_are_the_surest_and_the_least_sure_of_each_kind() -> None:
    truth = np.array([[1, 0, 0], [1, 0, 0], [1, 0, 0], [1, 1, 0], [1, 0, 0], [0, 0, 0]])
    top = np.array([[0, 1], [0, 2], [1, 2], [0, 2], [2, 0], [0, 1]])
    scores = np.array([0.9, 0.8, 0.7, 0.6, 0.5, 0.4])
    chosen = choose_rows(Judgement.of(truth, top), scores, 6)
    assert chosen == [(RIGHT, 0), (RIGHT, 1), (PARTLY, 3), (PARTLY, 4), (WRONG, 2)]
    assert choose_rows(Judgement.of(truth, top), scores, 3) == [(RIGHT, 0), (PARTLY, 3), (WRONG, 2)]


def test_places_that_one_kind_cannot_fill_go_to_the_others() -> None:
    truth, top = np.ones((9, 1), dtype=int), np.zeros((9, 1), dtype=int)
    top[7:] = -1
    chosen = choose_rows(Judgement.of(truth, top), np.linspace(1, 0, 9), 6)
    assert [kind for kind, _ in chosen] == [RIGHT] * 4 + [WRONG] * 2
    assert [row for _, row in chosen] == [0, 1, 5, 6, 7, 8]
