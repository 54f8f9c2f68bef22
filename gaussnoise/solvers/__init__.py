"""Solvers that find the best covariance for a set, and a measure that proves it to be the best."""
