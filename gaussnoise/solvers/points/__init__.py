"""Designs on listed points."""
