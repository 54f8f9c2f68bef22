"""Opening tables in any engine, and reading CSV files exactly as they are written."""
