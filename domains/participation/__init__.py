"""Participation over time: the ticks that one person may occupy, and their effect on answers."""
