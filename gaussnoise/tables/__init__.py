"""Tables: schemas, plans without data, private releases of consistent marginals."""

from ._plan import Plan, plan
from ._release import MarginalTable, TableRelease
from ._schema import Attribute, Schema
from ._targets import Target

__all__ = ["Attribute", "MarginalTable", "Plan", "Schema", "TableRelease", "Target", "plan"]
