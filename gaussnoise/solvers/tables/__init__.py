"""Designs for tables of counts, by symmetry and by products."""
