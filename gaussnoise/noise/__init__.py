"""The optimal noise: what is solved, the answer, its certificate, and the check of both."""
