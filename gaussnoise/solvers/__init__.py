"""Optimisation without privacy: from the set that must be covered to a design."""
