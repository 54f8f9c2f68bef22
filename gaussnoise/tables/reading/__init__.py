"""Opening tables in any engine, and reading values, CSV files above all, exactly as written."""
