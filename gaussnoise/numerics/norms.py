"""Norms of numbers of any size."""

import numpy as np
from numpy.typing import NDArray


def norm(values: NDArray[np.float64], order: float) -> float:
    """``‖values‖_order`` of nonnegative numbers of any size."""
    largest = float(values.max(initial=0.0))
    return largest * float(np.linalg.norm(values / largest, order)) if largest != 0 else 0.0
