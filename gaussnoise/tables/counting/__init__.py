"""The exact counting of rows, in any engine."""
