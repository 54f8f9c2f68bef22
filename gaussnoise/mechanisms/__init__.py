"""Private answers: Gaussian noise on points and bodies, local messages, and releases."""
