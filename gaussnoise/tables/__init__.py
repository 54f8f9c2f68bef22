"""Tables: schemas, plans without data, private releases of consistent marginals."""

from ._biased import BiasedTable
from ._plan import Plan, plan
from ._release import Measurement, TableRelease
from ._schema import Attribute, Schema
from ._table import MarginalTable, ProportionTable, QueryTable
from ._targets import Target

__all__ = [
    "Attribute",
    "BiasedTable",
    "MarginalTable",
    "Measurement",
    "Plan",
    "ProportionTable",
    "QueryTable",
    "Schema",
    "TableRelease",
    "Target",
    "plan",
]
