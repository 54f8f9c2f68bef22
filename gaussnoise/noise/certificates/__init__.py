"""Proofs of the lower bounds of answers: each certificate can check and store itself."""
