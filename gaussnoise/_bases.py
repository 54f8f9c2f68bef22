"""What an attribute contributes to tables over it: three numbers, and one integer matrix of contrasts."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray


@final
@dataclass(frozen=True)
class Identity:
    """The attribute whose every category is counted.

    A table over attributes S is the sum of what is measured on every T ⊆ S: ``⊗_{i∈T} B_i ⊗_{i∉T} 1'``, where the
    columns of B have unit length. Here ``B = √(n/(n−1)) (I − 11'/n)``, a multiple of the integer matrix
    ``C = nI − 11'``. Two categories need one row of it only, ``C = (1, −1)``.

    Attributes:
        size: n, the number of categories.
    """

    size: int

    @property
    def spread(self) -> float:
        """Total variance that unit noise on the total leaves in the table."""
        return 1 / self.size

    @property
    def gain(self) -> float:
        """Total variance that unit noise on every contrast leaves in the table."""
        return (self.size - 1) ** 2 / self.size

    @property
    def rows(self) -> int:
        """Number of integer contrasts C that are measured."""
        return self.size if self.size > 2 else 1

    @property
    def stretch(self) -> int:
        """The number a in ``C'C = a (I − 11'/n)``."""
        return self.size**2 if self.size > 2 else 2

    @property
    def square(self) -> int:
        """Squared length of a column of C."""
        return self.stretch * (self.size - 1) // self.size

    @property
    def least(self) -> int:
        """Least inner product of two columns of C."""
        return -(self.stretch // self.size)

    @property
    def correlation(self) -> float:
        """Least inner product of two columns of B."""
        return self.least / self.square

    def contrast(self, counts: NDArray[Any], axis: int) -> NDArray[Any]:
        """C along an axis of an integer array."""
        if self.size == 2:
            first, second = np.split(counts, 2, axis)
            return first - second
        return self.size * counts - counts.sum(axis=axis, keepdims=True)

    def decode(self, contrasts: NDArray[np.float64], axis: int) -> NDArray[np.float64]:
        """The pseudo-inverse of C along an axis."""
        if self.size == 2:
            return np.concatenate([contrasts / 2, contrasts / -2], axis)
        return (contrasts - contrasts.mean(axis=axis, keepdims=True)) / self.size
