"""Errors about domains. Messages show the expected and the given value, a hint, and no record."""


class GaussNoiseError(Exception):
    """The base class of all errors of both packages.

    >>> try:
    ...     gn.zCDP(-1)
    ... except gn.GaussNoiseError as error:
    ...     print(error)
    zCDP: expected finite rho > 0, got -1.0; hint: 0.1 is a common choice
    """


class DomainError(GaussNoiseError):
    """The base class of errors about sets and tables.

    >>> try:
    ...     gn.FiniteSet([])
    ... except gn.errors.DomainError as error:
    ...     print(str(error).split("; hint")[0])
    FiniteSet: expected points of shape (N, d) with N, d >= 1, got (0,)
    """


class InvalidDomainError(DomainError, ValueError):
    """The numbers given do not define a nonempty bounded set.

    >>> try:
    ...     gn.LpBall(2, 2, radius=-1)
    ... except gn.errors.InvalidDomainError as error:
    ...     print(error)
    LpBall: expected a finite radius > 0, got -1
    """


class UnknownClassError(InvalidDomainError):
    """The description of a domain names a class that is not defined in this process."""


class DimensionError(DomainError, ValueError):
    """The shape of an argument does not fit the dimension of the domain.

    >>> try:
    ...     gn.LpBall(2, 2).contains([1, 2, 3])
    ... except gn.errors.DimensionError as error:
    ...     print(error)
    contains: expected x of shape (2,), got integers with 1 dimensions and another length
    """


class DomainTooLargeError(DomainError, ValueError):
    """An exact answer would need too much memory or time; the message says how much.

    >>> try:
    ...     gn.Marginals.all_kway([10] * 9, 2).to_finite_set()
    ... except gn.errors.DomainTooLargeError as error:
    ...     print(str(error).split("; hint")[0])
    to_finite_set: 1e+09 records × 3.6e+03 coordinates are more than 134217728 numbers
    """
