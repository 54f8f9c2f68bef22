"""Counts of all runs of consecutive categories on a circle."""

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from ..floats import Array
from .bases import AbstractRuns, check_entries, settle_size


@final
@dataclass(frozen=True)
class Arcs(AbstractRuns):
    """The count of every run of categories on a circle, such as 22 to 3 o'clock.

    Runs of one category come first, then runs of two, and so on; the last is the whole circle.
    :class:`Ranges` has only runs that do not pass the end. :class:`Windows` has only runs of one
    width.

    >>> Arcs(3).labels(["a", "b", "c"])
    ('a', 'b', 'c', 'a to b', 'b to c', 'c to a', 'a to c')
    """

    size: int

    stored_as = "arcs"

    def __post_init__(self) -> None:
        settle_size(self)

    @property
    def queries(self) -> int:
        return self.size * (self.size - 1) + 1

    def _runs(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        more, first = np.divmod(np.arange(self.queries), self.size)
        return first, first + more

    def gram(self) -> Array:
        check_entries(self, self.size)
        places = np.arange(self.size)
        apart = np.abs(np.subtract.outer(places, places))
        # arcs of L < n categories that hold two given ones, d apart: max(L − d, 0) contain the
        # short way between them, max(L − n + d, 0) the other way
        one, other = self.size - 1 - apart, apart - 1
        shared = one * (one + 1) // 2 + other * (other + 1) // 2 + 1
        return shared.astype(np.float64)
