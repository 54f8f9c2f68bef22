"""Unbiased private averages with the least Gaussian noise, and a proof of both claims."""

import os as _os
import sys as _sys

# ``python -m gaussnoise`` first looks for modules in the current folder, and would run an untrusted
# numpy.py there. This file runs before __main__.py. At that time sys.argv[0] is "-m", and the name
# of the module is what stands before the module's own arguments.
if getattr(_sys, "argv", [])[:1] == ["-m"] and not _sys.flags.safe_path:
    _asked = _sys.orig_argv[-len(_sys.argv)]
    _found_here = _sys.path[0] == _os.path.dirname(_os.path.dirname(__file__))
    if _asked in ("gaussnoise", "-mgaussnoise") and not _found_here:
        del _sys.path[0]

import domains as _domains

__version__ = "0.1.0"

if getattr(_domains, "__gaussnoise_version__", None) != __version__:
    raise ImportError(
        f"gaussnoise {__version__}: expected its own package 'domains', "
        f"found {_domains.__file__ or list(_domains.__path__)}; "
        "hint: rename that folder or file, or reinstall gaussnoise if the versions differ"
    )

from domains import (
    AbstractBase,
    AbstractDomain,
    AbstractFiniteDomain,
    AbstractPolytope,
    Arcs,
    Base,
    Bins,
    Clipped,
    DimensionError,
    DomainError,
    DomainTooLargeError,
    Ellipsoid,
    FiniteSet,
    Groups,
    Identity,
    InvalidDomainError,
    Leading,
    LpBall,
    Marginals,
    Moments,
    Polytope,
    Prefix,
    Products,
    QuadraticMax,
    Ranges,
    SchattenBall,
    StreamWorkload,
    TensorPower,
    Total,
    TwoConvex,
    Windows,
    Zonotope,
    hull,
    kron,
    product,
)

from . import estimators, plots, streams
from .bounds import Bound, lower_bound
from .bounds.comparison import Comparison, compare
from .errors import (
    BudgetError,
    CertificateError,
    ConvergenceWarning,
    CovarianceError,
    DataError,
    GaussNoiseError,
    LedgerError,
    LedgerWarning,
    NotAvailableError,
    OutputError,
    ParameterError,
    PolicyWarning,
    PrivacyWarning,
    SchemaError,
    SchemaWarning,
    StreamError,
    StreamWarning,
)
from .mechanisms.gaussian import GaussianMechanism
from .mechanisms.local import LocalEstimate, LocalMechanism
from .mechanisms.projection import BiasedRelease
from .mechanisms.release import Release
from .noise.certificates.certificate import Certificate
from .noise.covariance import Covariance
from .noise.dual_norms import DualNorm, dual_norm
from .noise.factorize import Factorization, Witness, factorize
from .noise.optimal_noise import OptimalNoise, Status, Verification
from .noise.policy import PolicyGraph
from .noise.solve import gamma, optimal_noise
from .numerics.intervals import ConfidenceInterval, Contrast, Contrasts
from .privacy.definitions import GDP, KL, TV, ApproxDP, LocalDP, PureDP, zCDP
from .privacy.ledger import Ledger
from .privacy.ledger_entries import LedgerEntry
from .solvers.progress import Progress
from .tables import (
    Answer,
    Attribute,
    BiasedTable,
    Budgets,
    Categories,
    CellList,
    Dialect,
    MarginalTable,
    MeanTable,
    Measurement,
    Plan,
    ProportionTable,
    QuantileTable,
    QueryTable,
    Schema,
    SumTable,
    TableRelease,
    Target,
    Weight,
    budgets,
    combine,
    discover_categories,
    plan,
)

__all__ = [  # noqa: RUF022 (plain alphabetical order, capitals first)
    "AbstractBase",
    "AbstractDomain",
    "AbstractFiniteDomain",
    "AbstractPolytope",
    "Answer",
    "ApproxDP",
    "Arcs",
    "Attribute",
    "Base",
    "BiasedRelease",
    "BiasedTable",
    "Bins",
    "Bound",
    "BudgetError",
    "Budgets",
    "Categories",
    "CellList",
    "Certificate",
    "CertificateError",
    "Clipped",
    "Comparison",
    "ConfidenceInterval",
    "Contrast",
    "Contrasts",
    "ConvergenceWarning",
    "Covariance",
    "CovarianceError",
    "DataError",
    "Dialect",
    "DimensionError",
    "DomainError",
    "DomainTooLargeError",
    "DualNorm",
    "Ellipsoid",
    "Factorization",
    "FiniteSet",
    "GDP",
    "GaussNoiseError",
    "GaussianMechanism",
    "Groups",
    "Identity",
    "InvalidDomainError",
    "KL",
    "Leading",
    "Ledger",
    "LedgerEntry",
    "LedgerError",
    "LedgerWarning",
    "LocalDP",
    "LocalEstimate",
    "LocalMechanism",
    "LpBall",
    "MarginalTable",
    "Marginals",
    "MeanTable",
    "Measurement",
    "Moments",
    "NotAvailableError",
    "OptimalNoise",
    "OutputError",
    "ParameterError",
    "Plan",
    "PolicyGraph",
    "PolicyWarning",
    "Polytope",
    "Prefix",
    "PrivacyWarning",
    "Products",
    "Progress",
    "ProportionTable",
    "PureDP",
    "QuadraticMax",
    "QuantileTable",
    "QueryTable",
    "Ranges",
    "Release",
    "SchattenBall",
    "Schema",
    "SchemaError",
    "SchemaWarning",
    "Status",
    "StreamError",
    "StreamWarning",
    "StreamWorkload",
    "SumTable",
    "TV",
    "TableRelease",
    "Target",
    "TensorPower",
    "Total",
    "TwoConvex",
    "Verification",
    "Weight",
    "Windows",
    "Witness",
    "Zonotope",
    "budgets",
    "combine",
    "compare",
    "discover_categories",
    "dual_norm",
    "estimators",
    "factorize",
    "gamma",
    "hull",
    "kron",
    "lower_bound",
    "optimal_noise",
    "plan",
    "plots",
    "product",
    "streams",
    "zCDP",
]
