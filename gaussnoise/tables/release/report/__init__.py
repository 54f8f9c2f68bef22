"""One page that explains all of a plan or a release."""
