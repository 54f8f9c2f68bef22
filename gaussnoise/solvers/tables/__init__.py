"""Optimal noise for tables of counts: by symmetry, and for products of queries."""
