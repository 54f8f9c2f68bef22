"""Errors about domains. Messages say what was expected and got, with a hint, but no record."""


class DomainError(Exception):
    """Base class of every error raised by this package."""


class InvalidDomainError(DomainError, ValueError):
    """The numbers given do not define a nonempty bounded set."""


class UnknownClassError(InvalidDomainError):
    """The description of an object whose class this process does not know."""


class DimensionError(DomainError, ValueError):
    """An argument does not live in the space of the domain."""


class DomainTooLargeError(DomainError, ValueError):
    """An exact answer would need too much memory or time; the message says how much."""
