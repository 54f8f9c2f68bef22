"""Files: atomic writing, archives with limits on size, and pickles of constructor arguments."""
