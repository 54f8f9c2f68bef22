"""First schemas, drafted from the data: what columns contain, and their probable meaning."""
