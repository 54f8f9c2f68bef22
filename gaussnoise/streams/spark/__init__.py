"""Ticks made by Spark: executors count, draw noise and write; no process holds all tables."""
