"""Participation over time: the ticks one person may occupy, and what these add to all answers."""
