"""Solvers that find the best covariance for a set, and a measure as proof."""
