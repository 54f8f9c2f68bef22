"""One page that says all there is to say of a plan or a release."""
