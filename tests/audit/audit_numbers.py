"""Clipped numbers and weights under the auditor: neighbours that differ in one odd record, and
faults to be caught.
"""

import math

import audit_kit as kit
import numpy as np
import pyarrow as pa

import gaussnoise as gn
from gaussnoise.tables.counting import numbers as _numbers
from gaussnoise.tables.counting.count import count_marginals
from gaussnoise.tables.planning import measure as _measure
from gaussnoise.tables.reading import columns as _columns

PAY = gn.Attribute("pay", clip=[0, 100])
SQUARES = gn.Attribute(
    "pay", clip=[-50, 100], base={"kind": "moments", "degrees": [0, 1, 2]}, other="none"
)
RECORD = {"sex": "F", "pay": 60.0, "w": 1.0}
ODD = {
    "at the end": RECORD | {"pay": 100.0, "w": 2.0},
    "far outside": RECORD | {"pay": 1e9, "w": 1e9},
    "infinite": RECORD | {"pay": math.inf, "w": math.inf},
    "below": RECORD | {"pay": -1e300, "w": 2.0},
}


def planned(number=PAY, **options):
    schema = gn.Schema([gn.Attribute("sex", ["F", "M"]), number])
    return gn.plan(schema, [("sex", "pay"), "sex"], gn.zCDP(kit.RHO), **options)


def integers(plan, rows):
    """The exact integers of a release of these rows."""
    kinds = pa.schema([("sex", pa.string()), ("pay", pa.float64()), ("w", pa.float64())])
    table, subsets = pa.Table.from_pylist(rows, schema=kinds), plan.domain.subsets
    counted = count_marginals(
        table, plan.schema.attributes, list(subsets), "refuse", None, plan.weight, plan.unit
    )
    return np.concatenate(kit.answers(plan, dict(counted))).astype(np.float64)


def audit(plan, odd, draws=8000):
    """Lower bound on ε: a record, or a list of one person's, more or less, or exchanged."""
    odd = odd if isinstance(odd, list) else [odd]
    fewer = [RECORD] if plan.neighbors == "add-remove" else [RECORD, RECORD | {"sex": "M"}]
    high, low = (integers(plan, rows) for rows in ([RECORD, *odd], fewer))
    query = plan.query.query
    noise = np.array(query.draw(draws * len(high)), dtype=np.float64).reshape(draws, -1)
    left, right = ((side + noise) / query.scale for side in (high, low))
    return kit.epsilon_bound(left, right, kit.likelihood_ratio((high - low) / query.scale))


def _unclipped(only):
    """Steps that follow numbers beyond one end of their interval."""

    def inject(patch):
        def steps_of(numbers, attribute):
            low, high = attribute.clip
            t = (np.clip(np.nan_to_num(numbers), low, 1e6) - low) / (high - low)
            t = t if attribute.name == only else np.minimum(t, 1)
            return 1 + np.floor(t * _numbers.STEPS + 0.5).astype(np.int64)

        patch.setattr(_columns, "steps_of", steps_of)
        patch.setattr(_columns, "width_of", lambda _: _columns.nw.Int64)
        patch.setitem(_columns.NUMPY, _columns.nw.Int64, np.int64)

    return inject


def _unit_forgotten(patch):
    """What a row moves, as if it were one count."""
    right = _measure.squared_sensitivity
    patch.setattr(
        _measure, "squared_sensitivity", lambda *arguments: -(-right(*arguments) // 2**40)
    )


def _nearly_the_unit(patch):
    """Units that add up to one and a half of a record."""
    right = _numbers.spread_over

    def spread_over(mass, a, q):
        return [part + part // 2 for part in right(mass, a, q)]

    patch.setattr(_numbers, "spread_over", spread_over)


WEIGHT = gn.Weight("w", 2.0)
MUTANTS = [
    kit.Mutant(
        "numbers not clipped", _unclipped("pay"), lambda: audit(planned(), ODD["far outside"])
    ),
    kit.Mutant(
        "weights not clipped",
        _unclipped("w"),
        lambda: audit(planned(weight=WEIGHT), ODD["far outside"]),
    ),
    kit.Mutant(
        "parts of a row forgotten in its sensitivity",
        _unit_forgotten,
        lambda: audit(planned(), ODD["at the end"]),
    ),
    kit.Mutant(
        "half of a row counted twice", _nearly_the_unit, lambda: audit(planned(), ODD["at the end"])
    ),
]
