"""From rows in any engine to exact counts."""
