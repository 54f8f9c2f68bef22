"""The named sets: one class, one file."""
