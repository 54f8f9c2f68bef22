"""The classes of results that the public functions return."""

from .bounds.bound import Bound
from .bounds.comparison import Comparison
from .bounds.measured import TableCertificate
from .bounds.strategy import StrategyCertificate
from .mechanisms.local import LocalEstimate
from .mechanisms.projection import BiasedRelease
from .noise.certificates.certificate import Certificate, Verification
from .noise.covariance import AbstractCovariance
from .noise.dual_norms import DualNorm
from .noise.factorize import Witness
from .noise.optimal_noise import Status
from .noise.policy import PolicyGraph
from .numerics.intervals import ConfidenceInterval, Contrast, Contrasts
from .privacy.ledger_entries import LedgerEntry
from .solvers.progress import Progress
from .tables import (
    Answer,
    BiasedTable,
    Budgets,
    Categories,
    CellList,
    Changes,
    CheckResult,
    CoefficientTest,
    ComparisonTable,
    FailureCase,
    FunctionEstimate,
    IndependenceTest,
    Inspection,
    Likeness,
    LikenessTable,
    LogisticRegression,
    LogLinearModel,
    MarginalTable,
    MeanTable,
    Measurement,
    Prediction,
    ProportionTable,
    QuantileTable,
    QueryTable,
    Regression,
    SumTable,
)

__all__ = [
    "AbstractCovariance",
    "Answer",
    "BiasedRelease",
    "BiasedTable",
    "Bound",
    "Budgets",
    "Categories",
    "CellList",
    "Certificate",
    "Changes",
    "CheckResult",
    "CoefficientTest",
    "Comparison",
    "ComparisonTable",
    "ConfidenceInterval",
    "Contrast",
    "Contrasts",
    "DualNorm",
    "FailureCase",
    "FunctionEstimate",
    "IndependenceTest",
    "Inspection",
    "LedgerEntry",
    "Likeness",
    "LikenessTable",
    "LocalEstimate",
    "LogLinearModel",
    "LogisticRegression",
    "MarginalTable",
    "MeanTable",
    "Measurement",
    "PolicyGraph",
    "Prediction",
    "Progress",
    "ProportionTable",
    "QuantileTable",
    "QueryTable",
    "Regression",
    "Status",
    "StrategyCertificate",
    "SumTable",
    "TableCertificate",
    "Verification",
    "Witness",
]
