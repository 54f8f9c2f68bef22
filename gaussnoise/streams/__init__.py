"""Data that arrive over time: workloads, noise generators, certificates for anybody's strategy, tables that go on."""

from .plan import StreamPlan
from .running import Stream
from .tables import StreamTables
from .ticks import Ticks
from .time_strategy import TimeStrategy

__all__ = ["Stream", "StreamPlan", "StreamTables", "Ticks", "TimeStrategy"]
