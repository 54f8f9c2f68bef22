"""Files: atomic writing, archives read with limits, and pickles that hold arguments only."""
