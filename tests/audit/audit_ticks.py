"""Attacks on streams of tables: all that is measured in a whole run, with and without one person;
faults to be caught; and kill -9 while a tick is counted, drawn and published.
"""

import audit_kit as kit
import audit_ledger as ledger
import numpy as np

import gaussnoise as gn
from gaussnoise.privacy.sampler import noise_stream
from gaussnoise.streams import measure as _measure
from gaussnoise.streams.time_strategy import TimeStrategy

TICKS, DRAWS = 4, 5000
BUDGET = 0.1  # of every stream that is killed
ROWS = 3  # of every tick of it


def planned(reports=1, apart=1, neighbors="add-remove"):
    """Two categories, so that a tick has few integers; whole streams are drawn."""
    schema = gn.Schema([gn.Attribute("a", range(2))])
    over = gn.streams.Ticks(TICKS, reports, apart=apart)
    return gn.plan(schema, [("a",)], gn.zCDP(kit.RHO), neighbors=neighbors, over=over)


def sides(plan, ticks):
    """Counts of each tick with and without one person, who has a row in these ticks; or has another
    one.
    """
    one, other = np.array([1, 0]), np.array([0, 1 if plan.neighbors == "replace" else 0])
    base = np.array([5, 3])
    with_person = [{(0,): base + (one if t in ticks else 0)} for t in range(TICKS)]
    without = [{(0,): base + (other if t in ticks else 0)} for t in range(TICKS)]
    return with_person, without


def measured(plan, tables, noise):
    """All that is measured in one run of the stream, one row, in standard deviations of
    the noise.
    """
    found = [_measure.measured(plan, tables[: t + 1], noise) for t in range(TICKS)]
    return (
        np.array(
            [x for noisy in found for values in noisy.values() for x in values], dtype=np.float64
        )
        / plan.scale
    )


class Nothing:
    """Noise that is zero."""

    def take(self, count):
        return np.zeros(count, dtype=np.int64)


def found_epsilon(plan, ticks, draws=DRAWS):
    """Lower bound on ε of all ticks together, for a person with rows in ``ticks``: exact integers,
    then noise.
    """
    left, right = (measured(plan, side, Nothing()) for side in sides(plan, ticks))
    return epsilon_of(plan, left, right, draws)


def epsilon_of(plan, left, right, draws=DRAWS):
    """Lower bound on ε from what would be measured without noise on either side."""
    noise = np.array(plan.query.query.draw(draws * len(left))).reshape(draws, -1) / plan.scale
    return kit.epsilon_bound(left + noise, right + noise, kit.likelihood_ratio(left - right))


def found_epsilon_as_run(plan, ticks, draws):
    """The same from whole runs, tick by tick, with the noise that each of them takes."""
    left, right = sides(plan, ticks)
    difference = measured(plan, left, Nothing()) - measured(plan, right, Nothing())
    with noise_stream(plan.query.query.draw, 2 * draws * TICKS * plan.query.count, 1) as noise:
        samples = [
            np.array([measured(plan, side, noise) for _ in range(draws)]) for side in (left, right)
        ]
    return kit.epsilon_bound(*samples, kit.likelihood_ratio(difference))


def _found_epsilon_redrawn(draws):
    """As if every tick were drawn and published, then drawn again after a crash."""
    plan = planned()
    left, right = (measured(plan, side, Nothing()) for side in sides(plan, [0]))
    noise = np.array(plan.query.query.draw(2 * draws * len(left))) / plan.scale
    left, right = (np.concatenate([side, side]) for side in (left, right))
    noise = noise.reshape(draws, -1)
    return kit.epsilon_bound(left + noise, right + noise, kit.likelihood_ratio(left - right))


def _nothing(patch):
    pass


def _one_report(patch):
    """Noise for the longest column, whatever a person adds up."""
    one = property(lambda strategy: int((strategy.matrix.astype(object) ** 2).sum(axis=0).max()))
    patch.setattr(TimeStrategy, "sensitivity_squared", one)


def _one_tick(patch):
    """Noise for what a row moves at one tick, as if others did not see it again."""
    one = property(lambda strategy: int((strategy.matrix.astype(object) ** 2).max()))
    patch.setattr(TimeStrategy, "sensitivity_squared", one)


def _counted_again(patch):
    """Rows of a tick are counted once more at the next one."""
    right = _measure.measured

    def again(plan, ticks, noise):
        pairs = zip(ticks, [None, *ticks], strict=False)
        added = [
            now if before is None else {S: now[S] + before[S] for S in now} for now, before in pairs
        ]
        return right(plan, added, noise)

    patch.setattr(_measure, "measured", again)


def _stale_noise(patch):
    """The first tick's noise at every tick: differences of what is measured have none."""
    right, kept = _measure.measured, []

    class Again:
        def __init__(self, noise, first):
            self.noise, self.first, self.at = noise, first, 0

        def take(self, count):
            if self.first:
                kept.append(self.noise.take(count))
            self.at += 1
            return kept[self.at - 1]

    def stale(plan, ticks, noise):
        if len(ticks) == 1:
            kept.clear()
        return right(plan, ticks, Again(noise, len(ticks) == 1))

    patch.setattr(_measure, "measured", stale)


MUTANTS = [
    kit.Mutant(
        "ticks: noise × 0.6",
        kit.scaled_noise(0.6),
        lambda: found_epsilon(planned(), [0], 8000),
    ),
    kit.Mutant(
        "ticks: one report charged of people with one in every tick",
        _one_report,
        lambda: found_epsilon(planned(TICKS), range(TICKS)),
    ),
    kit.Mutant(
        "ticks: one tick charged of rows that all later ticks see",
        _one_tick,
        lambda: found_epsilon(planned(TICKS), range(TICKS)),
    ),
    kit.Mutant(
        "ticks: more reports than planned",
        _nothing,
        lambda: found_epsilon(planned(), range(TICKS)),
    ),
    kit.Mutant(
        "ticks: rows counted again at the next tick",
        _counted_again,
        lambda: found_epsilon(planned(), [0]),
    ),
    kit.Mutant(
        "ticks: the first tick's noise at every tick",
        _stale_noise,
        lambda: found_epsilon_as_run(planned(), [0], 1000),
    ),
    kit.Mutant("ticks: drawn again after a crash", _nothing, lambda: _found_epsilon_redrawn(8000)),
]


def killed(folder, points, *kinds):
    """What was found of each kind of stream, killed at some lines (see ``stream_child.py``)."""
    return ledger.answer_of("stream_child.py", folder, points, *kinds)


def damage(found, rows=(ROWS, ROWS)):
    """What became of one stream whose first tick was killed: then it was asked for twice, and
    the second tick once. A draw that was not committed is told to nobody, and drawn anew. A tick
    is lost if it is not there, or without its rows.
    """
    first, again, second = [*found["answers"], None, None, None][:3]
    drawn_anew = found["drawn"] and not found["committed"]
    told = first is not None and first == again and second is not None
    whole = told and (first[0], second[0], found["ticks"]) == (1, 2, 2)
    whole = whole and found["rows"] == [*rows]
    early = found["published"] and not found["committed"]
    spent = found["spent"]
    return ledger.Damage(
        runs=4,
        published=found["ticks"],
        twice=max(len(found["draws"]) - 2 - bool(drawn_anew), 0),
        lost=int(not whole or early or found["failed"] > 0 or bool(found["scratch"])),
        beyond=int(spent is not None and spent > BUDGET * (1 + 1e-9)),
    )
