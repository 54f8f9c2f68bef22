"""The errors and warnings. Messages say expected, got, hint, and never show a value of the data."""


class GaussNoiseError(Exception):
    """The base class of all errors of this package.

    Invalid sets and tables raise errors of :mod:`domains`, whose base class is ``gn.DomainError``.
    """


class ParameterError(GaussNoiseError, ValueError):
    """An argument that is invalid for every data set."""


class NotAvailableError(GaussNoiseError, NotImplementedError):
    """A feature that does not exist or is not installed; the message says what to use instead."""


class CovarianceError(GaussNoiseError, ValueError):
    """A covariance that leaves some direction of the sensitivity set without noise."""


class CertificateError(GaussNoiseError, ValueError):
    """A stored answer whose claims are not confirmed when they are computed again."""


class SchemaError(GaussNoiseError, ValueError):
    """A schema file or object that does not describe a table; the message points at the line."""


class DataError(GaussNoiseError, ValueError):
    """Data that break a stated rule. The message names column and rule, no value and no count."""


class OutputError(GaussNoiseError, OSError):
    """The place to write to is taken or cannot be written, or a file cannot be read."""


class LedgerError(GaussNoiseError, RuntimeError):
    """A ledger, or a result under it, that is missing, damaged, busy, or another kind of file."""


class BudgetError(GaussNoiseError, ValueError):
    """A release that would cost more than is left of a ledger's budget; nothing was drawn."""


class StreamError(GaussNoiseError, RuntimeError):
    """A stream's folder that is incomplete, changed, an older copy, or at another tick."""


class ConvergenceWarning(UserWarning):
    """The certified gap is wider than asked for; the noise is still feasible, hence private."""


class LedgerWarning(UserWarning):
    """A ledger on a disk that machines share, where locks may not reach other machines."""


class PolicyWarning(UserWarning):
    """A policy graph that leaves some differences between records without any protection."""


class PrivacyWarning(UserWarning):
    """A privacy guarantee whose numbers give hardly any protection."""


class SchemaWarning(UserWarning):
    """Columns of a table that a drafted schema leaves out."""


class StreamWarning(UserWarning):
    """A file comes in again that an earlier tick of a stream has counted."""


def not_a_generator(got: object) -> ParameterError:
    """Return the error of ``simulate`` for anything but a numpy Generator."""
    return ParameterError(
        "simulate: expected a numpy Generator, like np.random.default_rng(0), got "
        f"{type(got).__name__}"
    )
