"""What can go wrong. Messages say expected, got, hint, and never show a value taken from data."""


class GaussNoiseError(Exception):
    """Root of every error raised by this package.

    Sets and tables that cannot be raise those of :mod:`domains`, whose root is ``gn.DomainError``.
    """


class ParameterError(GaussNoiseError, ValueError):
    """An argument that no data set could make valid."""


class NotAvailableError(GaussNoiseError, NotImplementedError):
    """A feature that is not there yet; the message names what to use instead."""


class CovarianceError(GaussNoiseError, ValueError):
    """A covariance that leaves some direction of the sensitivity set without noise."""


class CertificateError(GaussNoiseError, ValueError):
    """A stored answer whose claims do not survive being recomputed."""


class SchemaError(GaussNoiseError, ValueError):
    """A schema file or object that does not describe a table; the message points at the line."""


class DataError(GaussNoiseError, ValueError):
    """Data that break a stated rule. The message names column and rule, no value and no count."""


class OutputError(GaussNoiseError, OSError):
    """The place to write to is taken or cannot be written, or a file cannot be read."""


class LedgerError(GaussNoiseError, RuntimeError):
    """A ledger, or a result under it, that is missing, damaged, busy, or of something else."""


class BudgetError(GaussNoiseError, ValueError):
    """A release that would cost more than what is left of a ledger's budget; nothing was drawn."""


class StreamError(GaussNoiseError, RuntimeError):
    """A stream's folder that is incomplete, changed, an older copy, or at another tick."""


class ConvergenceWarning(UserWarning):
    """The certified gap is wider than asked for; the answer is still feasible, hence private."""


class LedgerWarning(UserWarning):
    """A ledger on a disk that machines share: their locks may not see each other."""


class PolicyWarning(UserWarning):
    """A policy graph that leaves some differences between records without any protection."""


class PrivacyWarning(UserWarning):
    """A privacy definition whose numbers protect hardly anybody."""


class SchemaWarning(UserWarning):
    """Columns of a table that a drafted schema leaves out."""


class StreamWarning(UserWarning):
    """A file that an earlier tick of a stream counted comes in again."""


def not_a_generator(got: object) -> ParameterError:
    """What ``simulate`` says of anything but a numpy Generator."""
    return ParameterError(
        "simulate: expected a numpy Generator, like np.random.default_rng(0), got "
        f"{type(got).__name__}"
    )
