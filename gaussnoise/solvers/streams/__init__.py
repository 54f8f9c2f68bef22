"""Optimal noise for workloads over time, also if people take part more than once.

A stream has n ticks, and x_t is the contribution at tick t. The answers are A x, for a lower
triangular workload matrix A. A strategy C answers from C x plus independent noise, and X = CᵀC. A
pattern, or set, of ticks is a possible choice of the ticks at which one person takes part. The
leverage of tick i is a_i'N⁻¹a_i, for column a_i of A and a covariance N of the answers.
"""
