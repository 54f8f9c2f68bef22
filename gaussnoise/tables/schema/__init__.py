"""What a table is declared to hold, and what is asked of it."""
