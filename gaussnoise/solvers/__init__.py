"""Optimisation without privacy: from what must be covered to a design."""
