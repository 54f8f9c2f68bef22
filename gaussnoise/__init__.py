"""Unbiased private averages with the least Gaussian noise, and a proof of both claims."""

import os as _os
import sys as _sys
from typing import TYPE_CHECKING as _TYPE_CHECKING

# ``python -m gaussnoise`` looks for modules in the current folder first, and would run an untrusted
# numpy.py there. This file runs before __main__.py; then sys.argv[0] is "-m", and the module name
# is the last word before the module's own arguments.
if getattr(_sys, "argv", [])[:1] == ["-m"] and not _sys.flags.safe_path:
    _asked = _sys.orig_argv[-len(_sys.argv)]
    _found_here = _sys.path[0] == _os.path.dirname(_os.path.dirname(__file__))
    if _asked in ("gaussnoise", "-mgaussnoise") and not _found_here:
        del _sys.path[0]

import domains

__version__ = "0.1.0"

if getattr(domains, "__gaussnoise_version__", None) != __version__:
    raise ImportError(
        f"gaussnoise {__version__}: expected its own package 'domains', "
        f"found {domains.__file__ or list(domains.__path__)}; "
        "hint: rename that folder or file, or reinstall gaussnoise if the versions differ"
    )

from domains import (
    Arcs,
    Base,
    Bins,
    Clipped,
    Ellipsoid,
    FiniteSet,
    Groups,
    Identity,
    Leading,
    LpBall,
    Marginals,
    Moments,
    Polytope,
    Prefix,
    Products,
    Ranges,
    SchattenBall,
    TensorPower,
    Total,
    Windows,
    Zonotope,
    hull,
    kron,
    product,
)

from . import errors, estimators, plots, results, streams
from .bounds import lower_bound
from .bounds.certify import certify
from .bounds.comparison import compare
from .errors import GaussNoiseError
from .mechanisms.gaussian import GaussianMechanism
from .mechanisms.local import LocalMechanism
from .mechanisms.release import Release
from .noise.dual_norms import dual_norm
from .noise.factorize import Factorization, factorize
from .noise.optimal_noise import OptimalNoise
from .noise.own import Covariance
from .noise.solve import gamma, optimal_noise
from .privacy.definitions import GDP, KL, ApproxDP, LocalDP, PureDP, zCDP
from .privacy.ledger import Ledger
from .privacy.per_record import PerRecord
from .tables import (
    About,
    Attribute,
    Dialect,
    Plan,
    Schema,
    TableRelease,
    Target,
    Weight,
    budgets,
    combine,
    difference,
    discover_categories,
    plan,
)

__all__ = [  # noqa: RUF022 (plain alphabetical order, capitals first)
    "About",
    "ApproxDP",
    "Arcs",
    "Attribute",
    "Base",
    "Bins",
    "Clipped",
    "Covariance",
    "Dialect",
    "Ellipsoid",
    "Factorization",
    "FiniteSet",
    "GDP",
    "GaussNoiseError",
    "GaussianMechanism",
    "Groups",
    "Identity",
    "KL",
    "Leading",
    "Ledger",
    "LocalDP",
    "LocalMechanism",
    "LpBall",
    "Marginals",
    "Moments",
    "OptimalNoise",
    "PerRecord",
    "Plan",
    "Polytope",
    "Prefix",
    "Products",
    "PureDP",
    "Ranges",
    "Release",
    "SchattenBall",
    "Schema",
    "TableRelease",
    "Target",
    "TensorPower",
    "Total",
    "Weight",
    "Windows",
    "Zonotope",
    "budgets",
    "certify",
    "combine",
    "compare",
    "difference",
    "discover_categories",
    "domains",
    "dual_norm",
    "errors",
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
    "results",
    "streams",
    "zCDP",
]

if not _TYPE_CHECKING:  # otherwise type checkers would accept any name

    def __getattr__(name: str) -> object:
        """Raise AttributeError for a name that does not exist; a hint says where it may be."""
        rooms = (domains, estimators, streams, results, errors)
        known = [
            f"gn.{room.__name__.removeprefix('gaussnoise.')}.{name}"
            for room in rooms
            if name in dir(room)
        ]
        hint = f"; hint: {known[0]}" if known and not name.startswith("_") else ""
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}")
