"""Slower, independent solvers for comparison: semidefinite programmes and the ellipsoid method."""
