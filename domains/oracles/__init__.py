"""Algorithms for maxima of quadratic forms, vertices and distances."""
