"""One page that explains a plan or a release, with all that it contains."""
