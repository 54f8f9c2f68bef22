"""What a stream says of the tables that are read from it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True)
class OverTime:
    """Ticks of a stream, what all of its ticks together promise, and how good their noise is.

    Attributes:
        times: which ticks the tables are about.
        unit: whom the budget protects.
        neighbors: what may change about them.
        privacy: the promise, as plain data.
        integers: noisy ones that are drawn in all ticks.
        gap: how much more error than the least possible the whole stream has, at most.
        verdict: how good its noise is, in sentences.
    """

    times: str
    unit: str
    neighbors: str
    privacy: Mapping[str, object]
    integers: int
    gap: float
    verdict: Sequence[str]
