"""Tables: schemas, plans without data, private releases of consistent marginals."""

from .planning.door import plan
from .planning.plan import Plan
from .planning.targets import Target
from .release.biased import BiasedTable
from .release.cells import CellList
from .release.release import Measurement, TableRelease
from .release.table import MarginalTable, ProportionTable, QueryTable
from .schema.schema import Attribute, Schema

__all__ = [
    "Attribute",
    "BiasedTable",
    "CellList",
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
