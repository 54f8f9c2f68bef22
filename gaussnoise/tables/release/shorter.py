"""Questions as text, and questions with fewer conditions, for which fewer tables are needed."""

from collections.abc import Iterator, Sequence
from typing import Any

from ..schema.schema import Schema
from .question import (
    Amount,
    Between,
    ByTick,
    Cdf,
    Change,
    Condition,
    Conditions,
    Count,
    Difference,
    Independence,
    Indicator,
    Mean,
    Quantile,
    Question,
    Ratio,
    Regressed,
    Share,
    Summed,
    Top,
    Trend,
    Variance,
    conditions_text,
    quoted,
)

_MOST = 60  # most questions with fewer conditions


def shorter(asked: Question) -> Iterator[Question]:
    """Yield shorter questions: those without one condition, then those without two, and so on."""
    waiting, seen = [asked], [asked]
    while waiting and len(seen) < _MOST:
        one = waiting.pop(0)
        for i in reversed(dict.fromkeys(i for i, _ in _conditions(one))):
            less = _without(one, i)
            if less is not None and less not in seen:
                yield less
                seen.append(less)
                waiting.append(less)


def _conditions(asked: Any) -> Iterator[tuple[int, Condition]]:
    """Yield (attribute index, condition) for all conditions in a question."""
    if isinstance(asked, Ratio | Difference):
        yield from _conditions(asked.first)
        yield from _conditions(asked.second)
    elif isinstance(asked, Top | Change | Trend | ByTick):
        yield from _conditions(asked.of)
    else:
        for name in ("where", "of", "given"):
            yield from getattr(asked, name, {}).items()


def _without(asked: Any, i: int) -> Any:
    """Return a question without its condition on attribute i; None if no question remains."""
    if isinstance(asked, Ratio | Difference):
        one, other = (_without(part, i) for part in (asked.first, asked.second))
        return None if one is None or other is None or one == other else type(asked)(one, other)
    if isinstance(asked, Top | Change | Trend | ByTick):
        of = _without(asked.of, i)
        return None if of is None else asked._replace(of=of)
    if isinstance(asked, Count):
        rest = {k: cells for k, cells in asked.where.items() if k != i}
        return None if isinstance(asked.where.get(i), Summed) else Count(rest)
    if i in asked.given:
        return asked._replace(given={k: cells for k, cells in asked.given.items() if k != i})
    if isinstance(asked, Share) and len(asked.of) > 1 and i in asked.of:
        return asked._replace(of={k: cells for k, cells in asked.of.items() if k != i})
    return asked if isinstance(asked, Amount) else None


def question_text(schema: Schema, asked: Any) -> str:
    """Return a question as text, which has the same meaning when it is asked."""
    if isinstance(asked, Top):
        word = "top" if asked.is_largest else "bottom"
        return f"{word} {asked.many} of ({question_text(schema, asked.of)})"
    if isinstance(asked, Change):
        first, second = asked.ticks
        return f"change of ({question_text(schema, asked.of)}) from tick {first} to tick {second}"
    if isinstance(asked, Trend):
        return f"trend of ({question_text(schema, asked.of)})"
    if isinstance(asked, ByTick):
        return f"{question_text(schema, asked.of)} {_ticks_text(asked.only)}"
    if isinstance(asked, Ratio | Difference):
        one, other = (f"({question_text(schema, part)})" for part in (asked.first, asked.second))
        return (
            f"ratio of {one} to {other}"
            if isinstance(asked, Ratio)
            else (f"difference of {one} and {other}")
        )
    return _plain_text(schema, asked)


def _plain_text(schema: Schema, asked: Any) -> str:
    names = schema.names
    if isinstance(asked, Count):
        summed = {i: cells for i, cells in asked.where.items() if isinstance(cells, Summed)}
        rest = {i: cells for i, cells in asked.where.items() if i not in summed}
        if summed:
            return conditions_text(schema, summed) + _given(schema, rest)
        return f"count of {conditions_text(schema, rest)}" if rest else "count"
    if isinstance(asked, Regressed):
        terms = (":".join(quoted(names[i]) for i in term) for term in asked.on)
        what = quoted(names[asked.attribute])
        if asked.category is not None:
            what = conditions_text(schema, {asked.attribute: (asked.category,)})
        kind = "" if asked.category is None else "logistic "
        return f"{kind}regression of {what} on {', '.join(terms)}"
    if isinstance(asked, Independence):
        pair = " and ".join(quoted(names[i]) for i in (asked.first, asked.second))
        return f"independence of {pair}{_given(schema, asked.given)}"
    if isinstance(asked, Between):
        pair = " and ".join(quoted(names[i]) for i in (asked.first, asked.second))
        return f"{asked.name} of {pair}{_given(schema, asked.given)}"
    if isinstance(asked, Share | Indicator):
        what = "per cent" if isinstance(asked, Share) and asked.per_cent else "share"
        what = asked.name.replace("_", " ") if isinstance(asked, Indicator) else what
        return f"{what} of {conditions_text(schema, asked.of)}{_given(schema, asked.given)}"
    words = {Mean: "mean", Variance: "variance", Cdf: "cdf"}
    if isinstance(asked, Quantile):
        what = f"quantile {', '.join(f'{p:g}' for p in asked.probabilities)}"
    else:
        what = words[type(asked)]
    return f"{what} of {quoted(names[asked.attribute])}{_given(schema, asked.given)}"


def _given(schema: Schema, given: Conditions) -> str:
    return f" given {conditions_text(schema, given)}" if given else ""


def _ticks_text(only: Sequence[int | None] | None) -> str:
    if only is None:
        return "by tick"
    first, last = only
    if first is None:
        return "in the last tick"
    if last is None:
        return f"since tick {first}"
    return f"in tick {first}" if first == last else f"in ticks {first} to {last}"
