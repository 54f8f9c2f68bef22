"""Files: atomic writing, archives read with limits, pickles of arguments only."""
