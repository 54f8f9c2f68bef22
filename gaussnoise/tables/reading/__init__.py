"""Opening a table in any engine, and CSV files exactly as they are written."""
