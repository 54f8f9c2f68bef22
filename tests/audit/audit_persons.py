"""Attacks on the limit of rows per person: neighbours that differ in one person with very many
rows, and limits with one thing wrong.
"""

import audit_kit as kit
import numpy as np
import pyarrow as pa

import gaussnoise as gn
from gaussnoise.tables.counting import persons as _persons
from gaussnoise.tables.counting import records as _records
from gaussnoise.tables.planning import measure as _measure
from gaussnoise.tables.release import publish as _publish

OTHERS = 40
_KEYS = 40  # a mechanism that draws one of so many keys is private too, if it is for every key


def planned(rows=1, neighbors="add-remove"):
    schema = gn.Schema([gn.Attribute("x", [0, 1])])
    asked = {"rows_per_person": rows, "person": "who", "neighbors": neighbors}
    return gn.plan(schema, [("x",)], gn.zCDP(kit.RHO), **asked)


def neighbours(rows, categories=(0, 1)):
    """Others with a row of each category; in front of them, or not, a person with so many rows."""
    others = [(f"p{i}", x) for i in range(OTHERS) for x in categories]
    return [*[("mallory", 0)] * rows, *others], others


def exchanged(rows, other_rows):
    """Others, and a person with so many rows of one category or another with some of the other."""
    others = [(f"p{i}", 1) for i in range(OTHERS)]
    return [*[("mallory", 0)] * rows, *others], [*[("oscar", 1)] * other_rows, *others]


def table_of(records):
    who, x = zip(*records, strict=True)
    return pa.table({"who": list(who), "x": list(x)})


def audit(plan, high, low, draws=4000):
    """A lower bound on ε from whole counts, each draw by one of a few keys."""
    rng = np.random.default_rng(0)  # of keys already drawn: which, not what they are
    samples, middles = [], []
    for side in (high, low):
        table = table_of(side)
        exact = np.array(
            [
                np.concatenate(kit.answers(plan, dict(_publish._count(plan, table, "drop"))))
                for _ in range(_KEYS)
            ]
        )
        noise = np.array(plan.query.query.draw(draws * exact.shape[1])).reshape(draws, -1)
        samples.append((exact[rng.integers(_KEYS, size=draws)] + noise) / plan.query.query.scale)
        middles.append(exact.mean(axis=0) / plan.query.query.scale)
    return kit.epsilon_bound(*samples, kit.likelihood_ratio(middles[0] - middles[1]))


def _no_limit(patch):
    patch.setattr(_records, "limited_arrays", lambda columns, people, limit: columns)


def _one_row_more(patch):
    right = _records.limited_arrays

    def limited(columns, people, limit):
        return right(columns, people, _persons.PersonLimit(limit.column, limit.rows + 1))

    patch.setattr(_records, "limited_arrays", limited)


def _ordered_by(place):
    """Keep the rows of each person that come first by a number of the whole table's columns."""

    def limited(columns, people, limit):
        order = np.lexsort([place(columns), people.index])
        begins = np.diff(people.index[order], prepend=-1) != 0
        return [column[order][_persons._since(begins) < limit.rows] for column in columns]

    return lambda patch: patch.setattr(_records, "limited_arrays", limited)


def _rarity(columns):
    """How many rows of the table are in the row's cell."""
    return np.bincount(columns[0])[columns[0]]


def _persons_as_rows(patch):
    patch.setattr(gn.Plan, "row_rho", property(lambda plan: plan.rho))


def _half_of_an_exchange(patch):
    right = _measure.squared_sensitivity
    patch.setattr(_measure, "squared_sensitivity", lambda *given: -(-right(*given) // 2))


MUTANTS = [
    kit.Mutant(
        "noise for one row of several that are exchanged",
        _persons_as_rows,
        lambda: audit(planned(3, "replace"), *exchanged(20, 20)),
    ),
    kit.Mutant(
        "an exchange charged as if a person only came",
        _half_of_an_exchange,
        lambda: audit(planned(3, "replace"), *exchanged(20, 20), draws=20_000),
    ),
    kit.Mutant(
        "rows of a person not limited", _no_limit, lambda: audit(planned(), *neighbours(20))
    ),
    kit.Mutant(
        "one row more than the limit", _one_row_more, lambda: audit(planned(), *neighbours(20))
    ),
    kit.Mutant(
        "rows chosen by their place in the file",
        _ordered_by(lambda columns: np.arange(len(columns[0])) % 2),
        lambda: audit(planned(), *neighbours(1)),
    ),
    kit.Mutant(
        "rows chosen by how many others are like them",
        _ordered_by(_rarity),
        lambda: audit(planned(), *neighbours(1)),
    ),
    kit.Mutant(
        "noise for one row of several that are counted",
        _persons_as_rows,
        lambda: audit(planned(3), *neighbours(20)),
    ),
]
