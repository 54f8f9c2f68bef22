"""Proofs of the lower end of an answer: each certificate checks and stores itself."""
