"""The type of a NumPy array in annotations: any shape, any dtype."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
