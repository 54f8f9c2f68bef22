"""The meaning of questions in words, for :meth:`TableRelease.ask`.

* ``sex=F`` takes one label; ``age=[0, 18)|[18, 65)`` and ``age in ([0, 18), [18, 65))`` add up
  several. An attribute with edges also takes ``age=[0, 65)``, ``age<65``, ``age>=18`` and ``age
  between 18 and 65``, if 18 and 65 are edges; dates take ``born<2020-04-01``. A name alone,
  ``sex``, means one answer for each of its labels.
* ``given`` (or ``by``) precedes the groups: names, labels, or both, ``given sex=F, age``.
* If counties have a level ``region`` in the schema, ``region=North`` means the counties of North,
  and ``region`` alone means one answer for each region: ``share of employed=yes given region``.
  Shares are taken within groups: ``share of county given region`` is the share of every county in
  its region, ``share of county given region=North`` only of the counties of North.
* Both parts of a ratio or difference can have groups of their own, in brackets:
  ``difference of (mean of income, sex=F) and (mean of income, sex=M)``. A shorter form is
  ``difference of share of employed=yes given sex=F and sex=M``: the second number is the same share
  for the group ``sex=M``.
* Times stand for labels or bins that are times: ``in March 2023``, ``from January to June``,
  ``since 2022``, ``before Q2 2023``. Times are refused if no labels or bins represent them exactly.
* ``rows``, ``people``, the noun that a title begins with (``Stays in hospitals``) and the noun in
  the name of a column of persons (``patient_id``) mean all that is counted: ``how many stays in
  North``. Such a noun is refused if the tables count something else.
* Names and labels that contain commas, bars, brackets or words of the grammar must be in quotes,
  ``"…"``; a quote inside is written twice. Case is ignored, unless names or labels differ by case
  only.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias, final

from ...errors import ParameterError
from ..schema.dates import ISO
from ..schema.groups import level_base, level_labels
from ..schema.schema import Attribute, Category, Schema

Cells = tuple[int, ...]

HELD = ("yes", "true")  # labels of rows to which the attribute's name applies

NUMBER = r"[-+]?(?:inf|(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)"
ENDPOINT = rf"(?:{ISO}|{NUMBER})"
INTERVAL = re.compile(rf"([\[(])\s*({ENDPOINT})\s*,\s*({ENDPOINT})\s*([\])])")


class RefusedError(ParameterError):
    """The error for a refused question, with questions to ask instead, the likeliest first.

    ``same`` are the same question in other words; ``others`` are questions that have answers.
    """

    def __init__(
        self,
        message: str,
        asks: Iterable[str] = (),
        same: Iterable[str] = (),
        others: Iterable[str] = (),
    ) -> None:
        super().__init__(message)
        self.asks, self.same, self.others = tuple(asks), tuple(same), tuple(others)


@final
@dataclass(frozen=True)
class Level:
    """A condition that asks for one answer for each group of a level.

    A level is a named grouping of the categories of an attribute, such as ages in decades.
    """

    name: str
    labels: tuple[Category, ...]
    cells: tuple[Cells, ...]

    @classmethod
    def of(cls, attribute: Attribute, name: str) -> "Level":
        """Return the condition for the level with this name, of an attribute with groups."""
        return cls(name, level_labels(attribute, name), level_base(attribute, name).members)


@final
@dataclass(frozen=True)
class Wholes:
    """A condition of a share: each part is divided by the group of this level that contains it."""

    name: str
    cells: tuple[Cells, ...]


@final
@dataclass(frozen=True)
class Summed:
    """A condition that asks for the sum of a number clipped to a public interval.

    The sum is a weighted sum of virtual cells: the few cells over which a row spreads its number.
    """

    weights: tuple[float, ...]
    is_nonnegative: bool


# by attribute index; None means one answer for each label
Condition = Cells | Level | Wholes | Summed | None
Conditions = Mapping[int, Condition]


class Count(NamedTuple):
    """A question about the number of rows that meet conditions, or a number's sum over them.

    With several numbers, the question is about the sum of their product over these rows.
    """

    where: Conditions

    @property
    def summed(self) -> dict[int, Summed]:
        """{attribute index: condition} for the numbers that are summed; {} for counts."""
        return {i: cells for i, cells in self.where.items() if isinstance(cells, Summed)}


class Share(NamedTuple):
    """A question about the share of a group's rows that meet conditions."""

    of: Conditions
    given: Conditions
    per_cent: bool = False


class Mean(NamedTuple):
    """A question about the mean of a clipped number within groups."""

    attribute: int
    given: Conditions


Amount: TypeAlias = Count | Share | Mean


class Ratio(NamedTuple):
    """A question about one quantity divided by another."""

    first: Amount
    second: Amount


class Difference(NamedTuple):
    """A question about one quantity minus another."""

    first: Amount
    second: Amount


class Cdf(NamedTuple):
    """A question about the cumulative shares of an attribute within groups."""

    attribute: int
    given: Conditions


class Quantile(NamedTuple):
    """A question about quantiles of an attribute within groups."""

    attribute: int
    probabilities: tuple[float, ...]
    given: Conditions


class Indicator(NamedTuple):
    """A question about an indicator of :mod:`gaussnoise.indicators`, of counts within groups."""

    name: str
    of: Conditions
    given: Conditions


class Variance(NamedTuple):
    """A question about the variance of a clipped number within groups."""

    attribute: int
    given: Conditions


class Between(NamedTuple):
    """A question about the covariance or correlation of two clipped numbers within groups."""

    name: str
    first: int
    second: int
    given: Conditions


class Regressed(NamedTuple):
    """A question about the coefficients of a regression on terms of attributes.

    If ``category`` is given, the probability of this category is regressed; otherwise a number is.
    """

    attribute: int
    on: tuple[tuple[int, ...], ...]
    category: int | None = None


class Independence(NamedTuple):
    """A question for a test of whether two attributes are independent within groups."""

    first: int
    second: int
    given: Conditions  # names, without labels


class Top(NamedTuple):
    """A question about the ``many`` largest, or smallest, answers to another question."""

    of: Amount
    many: int
    is_largest: bool


class Change(NamedTuple):
    """A question about a quantity at one tick (release) of a stream minus that at another tick."""

    of: Amount
    ticks: tuple[int, int]  # the tick whose number is subtracted is the first


OfFunction: TypeAlias = Indicator | Variance | Between | Regressed | Independence
AtOnce: TypeAlias = Amount | Ratio | Difference | Cdf | Quantile | Top | OfFunction


class Trend(NamedTuple):
    """A question about the slope of a quantity over the ticks (releases) of a stream."""

    of: Amount


class ByTick(NamedTuple):
    """A question for one answer at each tick (release) of a stream, or for some ticks together."""

    of: AtOnce
    only: tuple[int | None, int | None] | None = None  # first and last; None for the latest


Question: TypeAlias = AtOnce | Change | Trend | ByTick


def is_within(asked: Question, groups: Iterable[int]) -> bool:
    """Return whether each quantity of a question is about one label of each given attribute.

    Return True also if the question asks for one answer for each label.
    """
    if isinstance(asked, Ratio | Difference):
        return is_within(asked.first, groups) and is_within(asked.second, groups)
    if isinstance(asked, Top):
        return is_within(asked.of, groups)
    if not isinstance(asked, Count | Mean):
        return False
    where = asked.where if isinstance(asked, Count) else asked.given
    found = [where.get(i, ()) for i in groups]
    return all(cells is None or (isinstance(cells, tuple) and len(cells) == 1) for cells in found)


def conditions_text(schema: Schema, where: Conditions, *, titled: bool = False) -> str:
    """Return conditions as questions write them, like "sex=F, age"; by titles if ``titled``."""
    names = [quoted(a.title if titled and a.title else a.name) for a in schema.attributes]
    parts: list[str] = []
    numbers = [i for i, cells in where.items() if isinstance(cells, Summed)]
    for i, cells in where.items():
        attribute = schema.attributes[i]
        if isinstance(cells, Level | Wholes):
            parts.append(quoted(cells.name))
            continue
        if isinstance(cells, Summed):
            if i == numbers[0]:
                parts.append(f"sum of {' times '.join(names[k] for k in numbers)}")
            continue
        labels = "|".join(quoted(str(attribute.labels[k])) for k in cells or ())
        parts.append(names[i] + ("" if cells is None else f"={labels}"))
    return ", ".join(parts)


def quoted(text: str) -> str:
    """Return a name or label as questions write it: in quotes if it has special characters."""
    plain = INTERVAL.fullmatch(text) or not re.search(r'[\s,|()=<>"]', text)
    return text if plain else '"' + text.replace('"', '""') + '"'
