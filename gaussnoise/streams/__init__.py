"""Data that arrive over time: workloads, noise generators, certificates, and streams of tables."""

from domains.participation.patterns import AnyOf, Apart, Epochs, Window

from ..noise.patterns import participations
from .generator import NoiseGenerator
from .noise import noise
from .plan import StreamPlan
from .running import Stream
from .series import SeriesTable
from .tables import StreamTables
from .ticks import Ticks
from .time_strategy import TimeStrategy
from .trend import TrendTable
from .unknown_length import UnknownLength, unknown_length
from .unlimited import UnlimitedTotals
from .workloads import (
    decayed_sums,
    matrix,
    momentum,
    prefix_sums,
    recurrence,
    running_means,
    sliding_windows,
)

__all__ = [
    "AnyOf",
    "Apart",
    "Epochs",
    "NoiseGenerator",
    "SeriesTable",
    "Stream",
    "StreamPlan",
    "StreamTables",
    "Ticks",
    "TimeStrategy",
    "TrendTable",
    "UnknownLength",
    "UnlimitedTotals",
    "Window",
    "decayed_sums",
    "matrix",
    "momentum",
    "noise",
    "participations",
    "prefix_sums",
    "recurrence",
    "running_means",
    "sliding_windows",
    "unknown_length",
]
