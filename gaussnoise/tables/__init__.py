"""Tables: schemas, plans without data, private releases of consistent marginals."""

from .counting.check_result import CheckResult, FailureCase
from .planning.budgets import Budgets, budgets
from .planning.door import plan
from .planning.plan import Plan
from .planning.targets import Target
from .release.answer import Answer
from .release.biased import BiasedTable
from .release.categories import Categories, discover_categories
from .release.cells import CellList
from .release.coefficients import CoefficientTest, Prediction
from .release.combine import combine
from .release.comparison import ComparisonTable
from .release.difference import Changes, difference
from .release.functions import FunctionEstimate
from .release.independence import IndependenceTest
from .release.likeness import Likeness, LikenessTable
from .release.logistic import LogisticRegression
from .release.loglinear import LogLinearModel
from .release.measurements import Measurement
from .release.quantiles import QuantileTable
from .release.regression import Regression
from .release.release import TableRelease
from .release.sums import MeanTable, SumTable
from .release.table import MarginalTable, ProportionTable, QueryTable
from .release.verdict import Inspection
from .schema.about import About
from .schema.dialect import Dialect
from .schema.numbers import Weight
from .schema.schema import Attribute, Schema

__all__ = [
    "About",
    "Answer",
    "Attribute",
    "BiasedTable",
    "Budgets",
    "Categories",
    "CellList",
    "Changes",
    "CheckResult",
    "CoefficientTest",
    "ComparisonTable",
    "Dialect",
    "FailureCase",
    "FunctionEstimate",
    "IndependenceTest",
    "Inspection",
    "Likeness",
    "LikenessTable",
    "LogLinearModel",
    "LogisticRegression",
    "MarginalTable",
    "MeanTable",
    "Measurement",
    "Plan",
    "Prediction",
    "ProportionTable",
    "QuantileTable",
    "QueryTable",
    "Regression",
    "Schema",
    "SumTable",
    "TableRelease",
    "Target",
    "Weight",
    "budgets",
    "combine",
    "difference",
    "discover_categories",
    "plan",
]
