"""What can go wrong with a domain. Messages say expected, got, hint, and never show a record."""


class DomainError(Exception):
    """Root of every error raised by this package."""


class InvalidDomainError(DomainError, ValueError):
    """The numbers given do not define a nonempty bounded set."""


class UnknownClassError(InvalidDomainError):
    """The description of an object whose class this process does not know."""


class DimensionError(DomainError, ValueError):
    """An argument does not live in the space of the domain."""


class DomainTooLargeError(DomainError, ValueError):
    """An exact answer would need too much memory or time; the message says how much."""
