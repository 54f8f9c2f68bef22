"""Data that arrive over time: workloads, noise generators, certificates for anybody's strategy, tables that go on."""

from .generator import NoiseGenerator
from .noise import noise
from .unknown_length import UnknownLength, unknown_length
from .unlimited import UnlimitedTotals
from .workloads import decayed_sums, matrix, momentum, prefix_sums, recurrence, running_means, sliding_windows

__all__ = [
    "NoiseGenerator",
    "UnknownLength",
    "UnlimitedTotals",
    "decayed_sums",
    "matrix",
    "momentum",
    "noise",
    "prefix_sums",
    "recurrence",
    "running_means",
    "sliding_windows",
    "unknown_length",
]
