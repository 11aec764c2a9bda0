"""Trees for tests: any hierarchy, made from random parents."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from longtail.labels import from_parents


@st.composite
def hierarchies(draw, max_nodes=12, max_labels=20):
    """Any hierarchy: nodes below earlier nodes, labels below any node or absent."""
    n_nodes = draw(st.integers(1, max_nodes))
    n_labels = draw(st.integers(0, max_labels))
    labels = [draw(st.integers(-1, n_nodes - 1)) for _ in range(n_labels)]
    nodes = [-1, *(draw(st.integers(0, node - 1)) for node in range(1, n_nodes))]
    parents = np.array([*labels, *nodes])
    return from_parents(np.where(parents >= 0, parents + n_labels, -1), n_labels, missing="drop")
