"""Answers to questions in words about a stream: so far, by tick, and from tick to tick."""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..errors import ParameterError
from ..tables.release.answer import Answer
from ..tables.release.ask import MOST_NUMBERS, answered, change
from ..tables.release.question import ByTick, Change
from ..tables.release.tidy import LEVEL

if TYPE_CHECKING:
    from .tables import StreamTables


def ask(tables: "StreamTables", question: str, level: float = LEVEL) -> Answer:
    """Return the answer to a question in words about all ticks so far.

    Besides the questions of :meth:`TableRelease.ask`, which are about all rows so far, it takes
    ``by tick``, one answer for the rows of each tick, as in ``share of employed=yes by tick``, ``in
    tick 3``, for the rows of that one, and
    ``change of share of employed=yes from tick 3 to tick 7``, with the exact covariance of the
    noise of both.

    Args:
        tables: the tables of the stream.
        question: see above.
        level: the level of the intervals.

    Returns:
        An :class:`Answer`; by tick, its first axis is ``"tick"``.

    Raises:
        ParameterError: as for :meth:`TableRelease.ask`; or a tick that is not there.

    >>> import pyarrow as pa
    >>> schema = gn.Schema([gn.Attribute("sex", ["F", "M"])])
    >>> plan = gn.plan(schema, 1, gn.zCDP(0.1), over=gn.streams.Ticks(12))
    >>> days = [pa.table({"sex": ["F", "M", "F"] * n}) for n in (400, 500, 600)]
    >>> so_far = plan.simulate(days, np.random.default_rng(0))
    >>> more = so_far.ask("change of count of sex=F from tick 1 to tick 3")
    >>> bool(more.low < 400 < more.high), so_far.ask("count by tick").labels
    (True, ((1, 2, 3),))
    """
    from ..tables.release.grammar import parsed  # imported here: the parser is for questions alone

    asked, done = parsed(question, tables.plan.schema), len(tables)
    if isinstance(asked, Change):
        if max(asked.ticks) > done:
            raise ParameterError(f"ask: {question}: expected two of the {done} ticks so far")
        return change(tables, asked, question, level)
    if not isinstance(asked, ByTick):
        return answered(tables.total(), asked, question, level)
    if asked.only is not None and asked.only > done:
        raise ParameterError(f"ask: {question}: expected one of the {done} ticks so far")
    ticks = tuple(range(1, done + 1)) if asked.only is None else (asked.only,)
    listed = []
    for tick in ticks:
        listed.append(answered(tables.period(tick), asked.of, question, level))
        if listed[0].estimate.size * len(ticks) > MOST_NUMBERS:
            raise ParameterError(
                f"ask: {question}: expected at most {MOST_NUMBERS} numbers, got "
                f"{listed[0].estimate.size} at each of {len(ticks)} ticks"
            )
    first = listed[0]
    estimate, low, high = (
        np.stack([getattr(one, name) for one in listed]) for name in ("estimate", "low", "high")
    )
    deviations = [one.standard_deviation for one in listed if one.standard_deviation is not None]
    return replace(
        first,
        meaning=f"{first.meaning} {'by tick' if asked.only is None else f'in tick {asked.only}'}",
        attributes=("tick", *first.attributes),
        labels=(ticks, *first.labels),
        estimate=estimate,
        standard_deviation=np.stack(deviations) if deviations else None,
        low=low,
        high=high,
    )
