"""Answers to questions in words about all ticks of a stream, single ticks, or changes."""

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ..errors import ParameterError
from ..numerics.intervals import quantile
from ..tables.release.answer import Answer
from ..tables.release.ask import MOST_NUMBERS, answered, change, trend
from ..tables.release.nouns import nouns_of
from ..tables.release.question import ByTick, Change, Question, Trend
from ..tables.release.suggestion import answer_or_hint
from ..tables.release.tidy import LEVEL
from .trend import fitted

if TYPE_CHECKING:
    from .tables import StreamTables

_FEWEST = 3  # fewest ticks of a trend


def ask(tables: "StreamTables", question: str, level: float = LEVEL) -> Answer:
    """Return the answer to a question in words about all ticks so far.

    Questions of :meth:`TableRelease.ask` are about all rows so far. Further questions are

    * ``share of employed=yes by tick``: one answer for the rows of each tick
    * ``count in tick 3``, ``in ticks 2 to 5``, ``since tick 4``, ``in the last tick``: only these
      ticks' rows
    * ``change of share of employed=yes from tick 3 to tick 7``
    * ``trend of count of sex=F``: the slope per tick, with a test of whether the count is constant
    * if the :class:`Ticks` state the time of the ``first``: ``count in January 2026``, ``from
      January 2026 to March 2026``, ``since May 2026``, ``count by month``; if an attribute has this
      time too, ask for the tick by its number

    Changes and trends use the exact covariance of the noise between ticks; for shares and means
    they are first-order approximations. If the :class:`Ticks` have a ``period`` column, write its
    name instead of ``tick``.

    Args:
        tables: the tables of the stream.
        question: a question of one of the forms above.
        level: the level of the intervals.

    Returns:
        An :class:`Answer`. For questions by tick, its first axis is ``"tick"``.

    Raises:
        ParameterError: as for :meth:`TableRelease.ask`; or the stream has no such tick so far.

    >>> import pyarrow as pa
    >>> schema = gn.Schema([gn.Attribute("sex", ["F", "M"])])
    >>> plan = gn.plan(schema, 1, gn.zCDP(0.1), over=gn.streams.Ticks(12))
    >>> days = [pa.table({"sex": ["F", "M", "F"] * n}) for n in (400, 500, 600)]
    >>> so_far = plan.simulate(days, np.random.default_rng(0))
    >>> more = so_far.ask("change of count of sex=F from tick 1 to tick 3")
    >>> bool(more.low < 400 < more.high), so_far.ask("count by tick").labels
    (True, ((1, 2, 3),))
    """
    from ..tables.release.grammar import parsed  # imported here: only questions need the parser

    quantile(level)  # refuses a level outside (0, 1)
    plan = tables.plan
    tick, nouns = plan.over.period or "tick", nouns_of(plan, plan.over.most_reports)
    read = partial(parsed, schema=plan.schema, tick=tick, nouns=nouns, times=plan.over.times)
    return answer_or_hint(
        question,
        plan.schema,
        tick,
        plan.marginals,
        read,
        lambda asked, text: _answer(tables, asked, text, level),
    )


def _answer(tables: "StreamTables", asked: Question, question: str, level: float) -> Answer:
    """Return the answer to the parsed question ``asked``; messages quote the text ``question``."""
    done, over, said = len(tables), tables.plan.over, tables.plan.over.said
    if isinstance(asked, Trend):
        if done < _FEWEST:
            raise ParameterError(
                f"ask: {question}: expected at least {_FEWEST} ticks so far, got {done}"
            )
        return trend(tables, asked, question, level, fitted)
    if isinstance(asked, Change):
        if max(asked.ticks) > done:
            raise ParameterError(f"ask: {question}: expected two of the {done} ticks so far")
        return change(tables, asked, question, level)
    if not isinstance(asked, ByTick):
        return answered(tables.total(), asked, question, level)
    ticks, which = tuple(range(1, done + 1)), "by tick"
    if asked.only is not None:
        last = asked.only[1] or done
        first = asked.only[0] or last
        if not first <= last <= done:
            raise ParameterError(
                f"ask: {question}: expected one of the {done} ticks so far, or some in their order"
            )
        if first < last:
            found = answered(tables.window(first, last), asked.of, question, level)
            return replace(found, meaning=f"{found.meaning} in {said(first, last)}")
        ticks, which = (last,), f"in {said(last)}"
    listed = []
    for tick in ticks:
        listed.append(answered(tables.period(tick), asked.of, question, level))
        if listed[0].estimate.size * len(ticks) > MOST_NUMBERS:
            raise ParameterError(
                f"ask: {question}: expected at most {MOST_NUMBERS} numbers, got "
                f"{listed[0].estimate.size} at each of {len(ticks)} ticks"
            )
    one = listed[0]
    estimate, low, high = (
        np.stack([getattr(found, name) for found in listed]) for name in ("estimate", "low", "high")
    )
    deviations = [own for found in listed if (own := found.standard_deviation) is not None]
    pvalues = [own for found in listed if (own := found.pvalue) is not None]
    texts = [f"{said(t)}: {own.printed}" for t, own in zip(ticks, listed, strict=True)]
    return replace(
        one,
        meaning=f"{one.meaning} {which}",
        attributes=("tick", *one.attributes),
        headings=("tick", *one.headings),
        labels=(ticks, *one.labels),
        estimate=estimate,
        standard_deviation=np.stack(deviations) if deviations else None,
        low=low,
        high=high,
        method="; ".join(filter(None, dict.fromkeys(found.method for found in listed))),
        pvalue=np.stack(pvalues) if pvalues else None,
        printed="\n\n".join(texts) if one.printed else "",
        times=tuple(map(over.time, ticks)) if over.times else (),
    )
