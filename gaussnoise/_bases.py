"""What an attribute contributes to tables over it: three numbers, and one integer matrix of contrasts."""

from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True)
class Identity:
    """The attribute whose every category is counted.

    A table over attributes S is the sum of what is measured on every T ⊆ S: ``⊗_{i∈T} B_i ⊗_{i∉T} 1'``, where the
    columns of B have unit length. Here ``B = √(n/(n−1)) (I − 11'/n)``, a multiple of the integer matrix ``nI − 11'``.

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
    def square(self) -> int:
        """Squared length of a column of the integer contrasts ``nI − 11'``."""
        return self.size * (self.size - 1)

    @property
    def least(self) -> int:
        """Least inner product of two columns of the integer contrasts."""
        return -self.size

    @property
    def correlation(self) -> float:
        """Least inner product of two columns of B."""
        return self.least / self.square
