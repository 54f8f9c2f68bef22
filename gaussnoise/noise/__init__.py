"""The optimal noise: the problem, the answer, its certificate, and the check of both."""
