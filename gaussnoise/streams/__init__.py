"""Data that arrive over time: workloads, noise generators, certificates for anybody's strategy, tables that go on."""

__all__: list[str] = []
