"""Designs on bodies that are known through oracles."""
