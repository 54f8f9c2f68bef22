"""First schemas, drafted from the data: what a column holds, and what it may mean."""
