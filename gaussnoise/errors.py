"""The errors and warnings. Messages say expected, got, hint, and never show a value of the data."""

from domains.errors import (
    DimensionError,
    DomainError,
    DomainTooLargeError,
    GaussNoiseError,
    InvalidDomainError,
)

__all__ = [
    "BudgetError",
    "CertificateError",
    "ConvergenceWarning",
    "CovarianceError",
    "DataError",
    "DimensionError",
    "DomainError",
    "DomainTooLargeError",
    "GaussNoiseError",
    "InvalidDomainError",
    "LedgerError",
    "LedgerWarning",
    "NotAvailableError",
    "OutputError",
    "ParameterError",
    "PolicyWarning",
    "PrivacyWarning",
    "SchemaError",
    "SchemaWarning",
    "StreamError",
    "StreamWarning",
]


class ParameterError(GaussNoiseError, ValueError):
    """An argument that is invalid for every data set.

    >>> try:
    ...     gn.zCDP(-1)
    ... except gn.errors.ParameterError as error:
    ...     print(error)
    zCDP: expected finite rho > 0, got -1.0; hint: 0.1 is a common choice
    """


class NotAvailableError(GaussNoiseError, NotImplementedError):
    """A feature that does not exist or is not installed; the message names an alternative.

    >>> import pyarrow as pa
    >>> people = pa.table({"sex": ["F", "M", "F"] * 400, "age": [7, 33, 61] * 400})
    >>> schema = gn.Schema(
    ...     [gn.Attribute("sex", ["F", "M"]), gn.Attribute("age", edges=[0, 18, 40, 65])]
    ... )
    >>> workloads = [("age",)], [{"age": "ranges"}]
    >>> one, two = (
    ...     gn.plan(schema, workload, gn.zCDP(0.1)).release(people) for workload in workloads
    ... )
    >>> try:
    ...     gn.combine([one, two])
    ... except gn.errors.NotAvailableError as error:
    ...     print(str(error).split(" in all")[0])
    combine: expected 'age' to be measured by the same contrasts
    """


class CovarianceError(GaussNoiseError, ValueError):
    """A noise covariance without noise in a direction in which data sets can differ.

    >>> try:
    ...     mechanism = gn.GaussianMechanism(gn.gamma(gn.LpBall(2, 2)), gn.zCDP(1.0), n=100)
    ... except gn.errors.CovarianceError:
    ...     print("some direction has no noise")
    """


class CertificateError(GaussNoiseError, ValueError):
    """A saved result, such as a certificate, makes claims that a new computation does not confirm.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     gn.gamma(gn.LpBall(2, 2)).save(f"{folder}/disc.npz")
    ...     try:
    ...         noise = gn.OptimalNoise.load(f"{folder}/disc.npz")
    ...     except gn.errors.CertificateError:
    ...         print("its proof does not hold")
    """


class SchemaError(GaussNoiseError, ValueError):
    r"""A schema file or object that does not describe a table; the message points at the line.

    >>> try:
    ...     gn.Schema.loads("[attributes.sex]\ncategories = 3")
    ... except gn.errors.SchemaError as error:
    ...     print(str(error).split("; hint")[0])
    schema:2: attributes.sex.categories: expected a list of strings, integers or booleans
    """


class DataError(GaussNoiseError, ValueError):
    """Data that do not obey a stated rule. The message has column and rule, but no value or count.

    >>> import pyarrow as pa
    >>> people = pa.table({"sex": ["F", "M", "F"] * 400})
    >>> survey = gn.plan(gn.Schema([gn.Attribute("sex", ["F", "M"])]), 1, gn.zCDP(0.1))
    >>> try:
    ...     survey.release(pa.table({"sex": ["F", "m"]}))
    ... except gn.errors.DataError as error:
    ...     print(str(error).split("; hint")[0])
    column 'sex': expected only its declared categories, got a null or another value
    """


class OutputError(GaussNoiseError, OSError):
    """A path for output exists already or cannot be written, or a file cannot be read.

    >>> try:
    ...     gn.OptimalNoise.load("missing.npz")
    ... except gn.errors.OutputError as error:
    ...     print(error)
    load: cannot read missing.npz (FileNotFoundError)
    """


class LedgerError(GaussNoiseError, RuntimeError):
    """A ledger or a result in it is missing, damaged, in use, or another kind of file.

    >>> try:
    ...     gn.Ledger.open("/missing")
    ... except gn.errors.LedgerError as error:
    ...     print(str(error).split("; hint")[0])
    ledger: no ledger at /missing
    """


class BudgetError(GaussNoiseError, ValueError):
    """A release that would cost more than the rest of a ledger's budget; no noise was drawn.

    >>> import tempfile
    >>> mechanism = gn.GaussianMechanism(
    ...     gn.optimal_noise(gn.FiniteSet(np.eye(2))), gn.zCDP(0.25), n=10
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = gn.Ledger.create(f"{folder}/survey.ledger", gn.zCDP(0.1))
    ...     try:
    ...         mechanism.release(counts=[6, 4], ledger=ledger, id="first")
    ...     except gn.errors.BudgetError as error:
    ...         print(error)
    ledger: expected a cost of at most rho = 0.1, the rest of 0.1, got 0.25
    """


class StreamError(GaussNoiseError, RuntimeError):
    """A stream's folder is incomplete, was changed, is an older copy, or is at another tick.

    >>> import pyarrow as pa, tempfile
    >>> schema = gn.Schema([gn.Attribute("sex", ["F", "M"])])
    >>> plan = gn.plan(schema, 1, gn.zCDP(0.1), over=gn.streams.Ticks(52))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     stream = plan.start(f"{folder}/weekly")
    ...     try:
    ...         stream.tick(pa.table({"sex": ["F"]}), number=3)
    ...     except gn.errors.StreamError as error:
    ...         print(str(error).split("; hint")[0])
    tick: expected tick 1 next, got 3
    """


class ConvergenceWarning(UserWarning):
    """The proven distance of the noise from the best is above the requested one; privacy holds.

    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", gn.errors.ConvergenceWarning)  # an error from now on
    ...     noise = gn.optimal_noise(gn.LpBall(2, 2), tol=1e-6)
    """


class LedgerWarning(UserWarning):
    """A ledger is on a disk that machines share, where locks may not stop other machines.

    >>> import tempfile
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", gn.errors.LedgerWarning)  # an error from now on
    ...     with tempfile.TemporaryDirectory() as folder:
    ...         ledger = gn.Ledger.create(f"{folder}/survey.ledger", gn.zCDP(1.0))
    """


class PolicyWarning(UserWarning):
    """A policy graph under which some differences between records have no protection.

    >>> import networkx
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", gn.errors.PolicyWarning)  # an error from now on
    ...     noise = gn.optimal_noise(gn.FiniteSet(np.eye(3)), neighbors=networkx.path_graph(3))
    """


class PrivacyWarning(UserWarning):
    """A privacy guarantee whose numbers give hardly any protection.

    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", gn.errors.PrivacyWarning)  # an error from now on
    ...     guarantee = gn.ApproxDP(1.0, 1e-6)
    """


class SchemaWarning(UserWarning):
    """A drafted schema that leaves out some columns of the table.

    >>> import pyarrow as pa
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", gn.errors.SchemaWarning)  # an error from now on
    ...     schema = gn.Schema.draft(pa.table({"sex": ["F", "M", "F"] * 400}))
    """


class StreamWarning(UserWarning):
    """A stream protects some persons less than others, or counts a file twice on request.

    Suppose that the plan allows a person one row in a tick. If a row is taken back and counted
    again, changed, in the same tick, the person has two rows there, and is protected less. A file
    that an earlier tick counted is counted again only on request.

    >>> import pyarrow as pa, tempfile
    >>> schema = gn.Schema([gn.Attribute("sex", ["F", "M"])])
    >>> plan = gn.plan(schema, 1, gn.zCDP(0.1), over=gn.streams.Ticks(52))
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", gn.errors.StreamWarning)  # an error from now on
    ...     with tempfile.TemporaryDirectory() as folder:
    ...         stream = plan.start(f"{folder}/weekly")
    ...         tables = stream.tick(pa.table({"sex": ["F", "M", "F"] * 400}))
    """


def not_a_generator(got: object) -> ParameterError:
    """Return the error of ``simulate`` for an argument that is no numpy Generator."""
    return ParameterError(
        "simulate: expected a numpy Generator, like np.random.default_rng(0), got "
        f"{type(got).__name__}"
    )


def exists_already(who: str, place: object) -> OutputError:
    """Return the error for an output path that exists already."""
    return OutputError(f"{who}: {place} exists already; hint: name a new one")


def another_format(who: str, wanted: str, folder: object) -> OutputError:
    """Return the error for a folder whose files another version of gaussnoise wrote."""
    return OutputError(
        f"{who}: expected format {wanted!r} in {folder}, got another; hint: the version that wrote "
        "it"
    )


def too_coarse(who: str, scale: float) -> GaussNoiseError:
    """Return the error for a noise scale of only a few steps of the lattice of its values."""
    return GaussNoiseError(f"{who}: a scale of {scale:.3g} is too coarse; hint: another rho")
