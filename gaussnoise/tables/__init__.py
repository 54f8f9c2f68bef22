"""Tables: schemas, plans without data, private releases of consistent marginals."""

from .planning.budgets import Budgets, budgets
from .planning.door import plan
from .planning.plan import Plan
from .planning.targets import Target
from .release.biased import BiasedTable
from .release.categories import Categories, discover_categories
from .release.quantiles import QuantileTable
from .release.release import Measurement, TableRelease
from .release.sums import MeanTable, SumTable
from .release.table import MarginalTable, ProportionTable, QueryTable
from .schema.numbers import Weight
from .schema.schema import Attribute, Schema

__all__ = [
    "Attribute",
    "BiasedTable",
    "Budgets",
    "Categories",
    "MarginalTable",
    "MeanTable",
    "Measurement",
    "Plan",
    "ProportionTable",
    "QuantileTable",
    "QueryTable",
    "Schema",
    "SumTable",
    "TableRelease",
    "Target",
    "Weight",
    "budgets",
    "discover_categories",
    "plan",
]
