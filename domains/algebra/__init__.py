"""Sets made of other sets: images, translates, sums, products, hulls."""
