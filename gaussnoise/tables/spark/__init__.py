"""A release that Spark's executors count, draw, decode and write; no process holds all tables."""
