"""First schemas, drafted from the data: what was seen, and what could be meant by it."""
