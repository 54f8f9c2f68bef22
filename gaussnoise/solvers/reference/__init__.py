"""Slower, independent solvers: semidefinite programmes and the ellipsoid method."""
