"""Optimal noise for workloads over time, in linear time, and where people take part more
than once.
"""
