"""Optimal noise for workloads over time, also where people take part more than once."""
