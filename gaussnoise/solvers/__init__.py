"""Solvers: for a set that an ellipsoid must cover, the best covariance, and a measure as proof."""
