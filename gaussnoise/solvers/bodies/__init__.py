"""Optimal covariances for sets that are known through oracles, not as lists of points."""
