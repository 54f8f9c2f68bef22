"""Data that arrive over time: workloads, noise generators, certificates for anybody's strategy, tables that go on."""

from .workloads import decayed_sums, matrix, momentum, prefix_sums, recurrence, running_means, sliding_windows

__all__ = [
    "decayed_sums",
    "matrix",
    "momentum",
    "prefix_sums",
    "recurrence",
    "running_means",
    "sliding_windows",
]
