"""Data that arrive over time: workloads, noise generators, certificates for anybody's strategy, tables that go on."""

from domains.participation.patterns import AnyOf, Apart, Epochs, Window

from .certify import StrategyCertificate, certify
from .participations import participations

__all__ = ["AnyOf", "Apart", "Epochs", "StrategyCertificate", "Window", "certify", "participations"]
