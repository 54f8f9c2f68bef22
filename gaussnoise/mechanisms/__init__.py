"""Private answers: Gaussian noise on points and bodies, local messages, and what a release is."""
