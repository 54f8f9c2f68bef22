"""Routes to the optimal covariance; :func:`gaussnoise.optimal_noise` chooses among them."""
