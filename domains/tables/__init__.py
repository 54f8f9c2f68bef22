"""Tables of counts as sets: attributes, queries about them, marginals and products."""
