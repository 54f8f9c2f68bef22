"""The request of a plan as plain data, which identifies its release and is machine-independent."""

import itertools
from typing import TYPE_CHECKING

from domains import Leading

from ..schema.bases import base_value

if TYPE_CHECKING:
    from .planned import Planned


def request_of(plan: "Planned") -> dict[str, object]:
    """Return schema, workload, norm, relation and budget; numbers are rounded to nine digits."""
    terms, attributes = plan.domain.terms, plan.schema.attributes
    asked: dict[str, object] = {}
    if not plan.domain.is_cells:
        bases = [[base_value(base, attributes[i]) for i, base in term] for term in terms]
        asked["bases"] = bases
        written = zip(itertools.chain(*bases), itertools.chain(*terms), strict=True)
        # a matrix says so itself, and is planned again as such
        if any(isinstance(b, Leading) and not isinstance(value, list) for value, (_, b) in written):
            asked["catch-alls"] = "in no query that takes cells in order"
    if plan.weight is not None:
        asked["weight"] = [plan.weight.column, f"{plan.weight.most:.9g}"]
    if plan.person is not None:
        asked["person"] = plan.person
    if plan.public:
        asked["public"] = list(plan.public)
    return asked | {
        "schema": plan.schema.to_toml(),
        "marginals": plan.domain.subsets,
        "weights": [f"{weight:.9g}" for weight in plan.domain.weights],
        "p": str(plan.noise.p),
        "neighbors": plan.neighbors,
        "rho": f"{plan.rho:.9g}",
        "rows_per_person": plan.rows_per_person,
    }
