"""Optimal noise for tables of counts and for products of queries."""
