"""Privacy guarantees and conversions between them; the noise sampler and the ledger."""

from .definitions import GDP, KL, TV, ApproxDP, LocalDP, PureDP, dp_event, gaussian_epsilon, zCDP
from .guarantee import AbstractPrivacy
from .per_record import PerRecord
from .testing import implied, most_posterior, most_power, total_variation

__all__ = [
    "GDP",
    "KL",
    "TV",
    "AbstractPrivacy",
    "ApproxDP",
    "LocalDP",
    "PerRecord",
    "PureDP",
    "dp_event",
    "gaussian_epsilon",
    "implied",
    "most_posterior",
    "most_power",
    "total_variation",
    "zCDP",
]
