"""Optimal noise for workloads over time, also if people take part more than once.

A stream has n ticks; answers are A x for the contributions x_t of all ticks, A lower triangular.
A strategy C answers from C x plus independent noise, and X = CᵀC. A set, or pattern, of ticks is a
possible choice of the ticks at which one person takes part. Leverages are a_i'N⁻¹a_i, for columns
a_i of A and a covariance N.
"""
