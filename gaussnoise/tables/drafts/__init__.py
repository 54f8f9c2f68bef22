"""First schemas, drafted from the data: the content of columns, and their probable meaning."""
