"""What a stream says of the tables that are read from it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True)
class Promise:
    """What a release, or all ticks of a stream together, promise.

    Attributes:
        whole: "release" or "stream".
        unit: whom the budget protects.
        neighbors: what may change about them.
        privacy: the definition and its numbers.
        integers: how many noisy ones are drawn.
        noise: what is drawn, in words.
    """

    whole: str
    unit: str
    neighbors: str
    privacy: Mapping[str, object]
    integers: int
    noise: str


@final
@dataclass(frozen=True)
class OverTime:
    """Ticks of a stream, what all of its ticks together promise, and how good their noise is.

    Attributes:
        times: which ticks the tables are about.
        promise: of the whole stream.
        gap: how much more error than the least possible the whole stream has, at most.
        verdict: how good its noise is, in sentences.
    """

    times: str
    promise: Promise
    gap: float
    verdict: Sequence[str]
