"""The description of a stream that is attached to the tables read from it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True)
class Guarantee:
    """The privacy guarantee of a release, or of all ticks of a stream together.

    Attributes:
        whole: "release" or "stream".
        unit: the unit that the budget protects.
        neighbors: the change between neighbouring data sets.
        privacy: the definition and its numbers.
        integers: the number of noisy integers that are drawn.
        noise: the distribution of the noise, in words.
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
    """Ticks of a stream, the privacy guarantee of all its ticks together, and its optimality.

    Attributes:
        times: the ticks that the tables are about.
        guarantee: the privacy guarantee of the whole stream.
        gap: a bound on how much more error the whole stream has than the least possible.
        verdict: how good its noise is, in sentences.
    """

    times: str
    guarantee: Guarantee
    gap: float
    verdict: Sequence[str]
