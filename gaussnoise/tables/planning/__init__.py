"""What will be measured, how well, and at what cost: all without data."""
