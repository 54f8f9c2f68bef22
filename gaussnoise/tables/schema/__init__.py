"""Schemas of tables, and the queries of a workload about them."""
