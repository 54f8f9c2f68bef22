"""How maxima of quadratic forms, vertices and distances are computed."""
