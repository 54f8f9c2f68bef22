"""Facts about the privacy and accuracy of a plan, as texts, pages and records state them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import scipy

from ...numerics.rounding import SAFE_SIDE
from ...privacy.definitions import gaussian_epsilon, zCDP
from ...privacy.lattice_bound import TABLE_STEPS, lattice_distance
from ...privacy.protected import Protected
from ...privacy.testing import most_posterior
from ...text import SHOWN_DELTA, capital
from ..schema.numbers import PER_PERSON
from .noun import persons_of

if TYPE_CHECKING:
    from ..schema.schema import Attribute
    from .plan import Plan

EVERY_ROW = "every row"
CLOSED = 1e-3  # a smaller certified gap is called optimal
EPSILON_METHOD = "analytic Gaussian (Balle & Wang 2018, Theorem 8), corrected for the lattice"


@final
@dataclass(frozen=True)
class Facts:
    """The facts about the privacy and accuracy of a plan or a stream, each in one sentence.

    Attributes:
        whole: the thing whose budget is charged once: a "release", or a "stream" with all ticks.
        relation: the change between neighbouring data sets.
        unit: the unit that the budget protects, like one row or one person.
        counted: which rows the tables count.
        privacy: the privacy guarantee with its parameters.
        budget: the privacy guarantee and what it implies.
        integers: the number of noisy integers that are drawn.
        noise: the distribution of the noise.
        exact: the tables that are published without noise.
        gap: an upper bound on the relative excess over the least possible error.
        verdict: the comparison with the least possible error, and its proof.
        steps: the least scale of the noise, in steps of its lattice.
    """

    whole: str
    relation: str
    unit: str
    counted: str
    privacy: Mapping[str, object]
    budget: str
    integers: int
    noise: str
    exact: Sequence[str]
    gap: float
    verdict: Sequence[str]
    steps: float = TABLE_STEPS

    def epsilon(self, rho: float, delta: float = SHOWN_DELTA) -> float:
        """Return the ε of the (ε, δ) guarantee of the noise that is drawn for the budget ρ."""
        return gaussian_epsilon(rho, delta, draws=self.integers, steps=self.steps)

    def surest(self, rho: float) -> float:
        """Return how sure a reader can become that one row (or person) is in the data.

        The prior probability is 50 %, and the release has the budget ρ. The result is a bound,
        which fails with a probability of at most :data:`SHOWN_DELTA`.
        """
        return surest(rho, SHOWN_DELTA, self.integers, self.steps)

    def guessed(self, rho: float) -> float:
        """Return an upper bound on the probability that a reader's guess is right.

        The guess is whether one row (or person) is in the data. Before the release, yes and no are
        equally likely. A test between two Gaussians √(2ρ) apart is right with probability at most
        Φ(√(ρ/2)). The drawn noise is not exactly Gaussian, so half of its distance from a Gaussian
        is added for each of the two.
        """
        far = lattice_distance(int(self.integers), self.steps)
        right = float(scipy.special.ndtr(math.sqrt(rho / 2))) * SAFE_SIDE + far
        return min(1.0, right) if rho > 0 else 0.5


@final
@dataclass(frozen=True)
class OverTime:
    """The facts about a release that is part of a stream, where a tick is one release.

    ``times``: the ticks of the stream that the release is about, in words. ``facts``: the facts
    about the whole stream. ``tick``: the tick whose rows the tables count, None if they count the
    rows of several ticks. ``columns``: attributes beyond those of the tables that must have a valid
    value in each row. ``enforced``: whether rows may be left out since the person was counted at
    earlier ticks. ``once``: whether the tables count a person in one tick at most.
    """

    times: str
    facts: Facts
    tick: int | None = None
    columns: "Sequence[Attribute]" = ()
    enforced: bool = False
    once: bool = True


def facts_of(plan: "Plan") -> Facts:
    """Return the facts about the privacy and accuracy of a plan."""
    query = plan.query.query
    if query is None:
        why = "all tables are public" if plan.public else "no row can change these tables"
        noise = f"none is needed: {why}"
    else:
        noise = (
            f"discrete Gaussian, {plan.query.count:,} independent draws of one scale, "
            f"σ = {query.scale:.10g}, on an integer query whose squared sensitivity is "
            f"{query.sensitivity_squared}"
        )
    return Facts(
        whole="release",
        relation=relation_text(plan),
        unit=plan.privacy_unit,
        counted=counted_text(plan),
        privacy=plan.privacy.as_dict(plan.draws, plan.steps),
        budget=plan.privacy.budget(plan.rho, plan.draws, plan.steps),
        integers=plan.draws,
        noise=noise,
        exact=public_text(plan),
        gap=plan.gap,
        verdict=verdict(plan),
        steps=plan.steps,
    )


def surest(rho: float, delta: float, integers: int, steps: float) -> float:
    """Return the largest posterior belief that one row (or person) is in the data; prior 50 %.

    The noise drawn for ρ has this number of ``integers``, each with a scale of at least ``steps``
    lattice steps. The bound holds for this noise, and is exceeded with probability at most
    ``delta``; see :func:`gaussnoise.privacy.most_posterior`.
    """
    if not rho > 0:
        return 0.5
    far = lattice_distance(int(integers), steps)
    any_zcdp = most_posterior(zCDP(rho), delta)
    if far >= delta:
        return any_zcdp
    z = scipy.special.ndtri(delta - far) - math.sqrt(2 * rho)
    without = math.exp(float(scipy.special.log_ndtr(z))) - far
    if without <= 0:
        return any_zcdp
    growth = math.log(delta / without) * SAFE_SIDE
    return min(any_zcdp, float(scipy.special.expit(growth)))


def risk_text(plan: "Plan", facts: Facts) -> str | None:
    """Return a sentence on the largest belief that one row is in the data; None without noise."""
    if not plan.noise.gamma > 0:
        return None
    return risk_of(plan, _person(facts), percent_text(facts.surest(plan.rho)))


def risk_of(plan: Any, person: str, surest: str) -> str:
    """Return a clause on a reader's largest belief that one row (or person) is in the data.

    ``person`` is "one row" or "one person", and ``surest`` is the probability as text.
    """
    known, asked = _reader(plan, person)
    return (
        f"a reader who knows {known}, and thinks it 50 % likely that {asked}, is at "
        f"most {surest} sure of it after reading these numbers, except with a chance of one in "
        f"{1 / SHOWN_DELTA:,.0f}"
    )


def guess_text(plan: "Plan", facts: Facts) -> str | None:
    """Return a sentence on how often any guess about one row is right; None without noise."""
    if not plan.noise.gamma > 0:
        return None
    return f"{capital(guess_of(plan, _person(facts), percent_text(facts.guessed(plan.rho))))}."


def guess_of(plan: Any, person: str, guessed: str) -> str:
    """Return a clause on how often, at most, a guess about one row (or person) is right."""
    _, asked = _reader(plan, person)
    return (
        f"a guess from these numbers whether {asked} is right in at most {guessed} of cases (by "
        "tossing a coin, in 50 %)"
    )


def _reader(plan: Any, person: str) -> tuple[str, str]:
    """Return (the assumed knowledge of the worst reader, the fact that is protected), in words."""
    known, zero = "all other rows", ""
    if person != "one row":
        known = "everything about all other persons"
    if plan.larger:
        names = " and ".join(map(plan.schema.heading, plan.scales))
        zero = f" whose {names} {'is' if len(plan.scales) == 1 else 'are'} 0"
    there = "is in the data"
    if plan.neighbors == "replace":
        same = f" of the same {' × '.join(plan.public)}" if plan.public else ""
        there = f"was exchanged for another{same}"
    return known, f"{person}{zero} {there}"


def _person(facts: Facts) -> str:
    return "one row" if facts.unit == "one row" else "one person"


def percent_text(probability: float) -> str:
    """Return a probability as a percentage, rounded up, with more digits near 100 %, up to 12.

    >>> percent_text(0.91), percent_text(0.9997), percent_text(1 - 1e-16)
    ('91.0 %', '99.97 %', '100 %')
    """
    percent, digits = 100 * probability, 1
    while digits < 12 and percent < 100 and math.ceil(percent * 10**digits) >= 10 ** (digits + 2):
        digits += 1
    rounded = math.ceil(percent * 10**digits) / 10**digits
    return f"{rounded:.{digits}f} %" if rounded < 100 else "100 %"


def unit_text(rows: int, person: str | None, reduced: bool = False) -> str:
    """Return the unit that a budget protects, in words, like "one row".

    ``rows`` is the most rows of one person, and ``person`` the column of persons. If ``reduced``,
    records that are computed from a person's rows are counted in place of the rows.
    """
    if person is not None:
        what = "record" if reduced else "row"
        counted = f"1 {what} is" if rows == 1 else f"{rows} {what}s are"
        return f"one person (column {person!r}), of whom at most {counted} counted"
    return "one row" if rows == 1 else f"one person of at most {rows} rows"


def protected(plan: "Plan") -> Protected:
    """Return the thing that a plan's budget protects, in the form that a ledger compares.

    With a column of persons, a protected person may have any number of rows.
    """
    rows, person = plan.rows_per_person, plan.person
    return Protected(
        unit_text(rows, person),  # the text is the same for rows and records of persons
        str(plan.neighbors),
        rows=rows if person is None else None,
        person=person,
        public=plan.public,
    )


def relation_text(plan: "Plan") -> str:
    """Return the neighbouring relation (which change the budget hides) in words."""
    k = plan.rows_per_person
    if plan.person is not None and plan.neighbors == "replace":
        return (
            f"replace (one person, a value of {plan.person!r}, exchanged for another, each with "
            "any number of rows, also with none that fit; the number of rows is private)"
        )
    if plan.person is not None:
        return (
            f"add-remove (one person, a value of {plan.person!r}, more or less, with any number "
            "of rows; the number of rows is private)"
        )
    if plan.neighbors == "replace":
        exchanged = "one row exchanged for another"
        if k > 1:
            exchanged = f"at most {k} rows of one person exchanged for as many others"
        if plan.public:
            same = f", {'row by row ' if k > 1 else ''}of the same {' × '.join(plan.public)}"
            return f"replace ({exchanged}{same}; tables of these alone are public and exact)"
        return f"replace ({exchanged}; the number of rows is public and exact)"
    one = "row" if k == 1 else f"person with at most {k} rows"
    return f"add-remove (one {one} more or less; the number of rows is private)"


def counted_text(plan: "Plan") -> str:
    """Return words for the rows that the tables count: all, or some rows of each person."""
    if plan.per_person:
        numbers = [f"{PER_PERSON[how]} in {name}" for name, how in plan.per_person.items()]
        most = "one" if plan.rows_per_person == 1 else f"{plan.rows_per_person}"
        return (
            "one record of each person in each group of their rows, with "
            f"{' and '.join(numbers)}; of persons in more groups, {most} drawn at random"
        )
    return EVERY_ROW if plan.person is None else drawn_text(plan.rows_per_person)


def persons_text(plan: "Plan", name: str) -> str:
    """Return words to follow the name of a sum or mean, like " over persons, each with …".

    Return "" unless the plan first computes one number for each person.
    """
    return f" over {mean_of(plan, name)}" if name in plan.per_person else ""


def mean_of(plan: "Plan", name: str) -> str:
    """Return the things over which a table's mean is taken, in words: rows, or persons.

    The attributes of all tables form groups, and a person has one record in each group. So a table
    of fewer attributes may count several records of a person.
    """
    how, noun = plan.per_person.get(name), plan.about.unit or "rows"
    if plan.person is not None and plan.rows_per_person == 1:
        noun = plan.about.unit or persons_of(plan.person)
    if how is not None:
        used = {name for marginal in plan.marginals for name in marginal}
        own = [a for a in plan.schema.attributes if a.name in used]
        by = tuple([a.name for a in own if not a.is_summed])
        several = plan.rows_per_person > 1 and len(by) > 1
        return f"persons, each with {PER_PERSON[how]}" + (
            f" in each group of {marginal_name(by)}" if several else ""
        )
    if plan.person is None or plan.rows_per_person == 1:
        return noun
    return f"{noun}, at most {plan.rows_per_person} of each person"


def limit_text(plan: "Plan", *, each_tick: bool) -> str:
    """Return a clause with the largest number of counted rows per person.

    Return "" if every row is counted. In a plan of a stream (``each_tick``), the number is for each
    tick.
    """
    k = plan.rows_per_person
    rows = "one row" if k == 1 else f"at most {k} rows"
    if plan.person is None:
        return "" if k == 1 else f"of whom each has {rows}"
    if plan.per_person:
        groups = "one group" if k == 1 else f"at most {k} groups"
        return f"one record of each person in {groups} is counted"
    within = " in each tick" if each_tick else ""
    return f"{rows} of each person{within} {'is' if k == 1 else 'are'} counted"


def drawn_text(rows: int, *, each_tick: bool = False) -> str:
    """Return a clause on the largest number of counted rows per person, which are drawn at random.

    ``each_tick``: whether the limit is for each tick (one release) of a stream.
    """
    most = "one row" if rows == 1 else f"{rows} rows"
    within, own = (" in a tick", " of the tick") if each_tick else ("", "")
    return (
        f"at most {most} of each person{within}, drawn at random from that person's own{own}: "
        "where persons have more, their other rows count nowhere, and how many is private"
    )


def public_text(plan: "Plan") -> list[str]:
    """Return sentences on public attributes: what their exact tables reveal, and what they save.

    The list is empty for a plan without public attributes.
    """
    if not plan.public:
        return []
    joint = marginal_name(plan.public)
    tables = ", ".join(marginal_name(S) for S in plan.exact)
    lines = [
        f"EXACT, without noise: {tables}. Whoever sees the release knows exactly how many rows "
        f"each combination of these has: which combination of {joint} a person is in has no "
        "protection at all."
    ]
    if plan.noise.gamma == 0:
        return [*lines, "Nothing else is left to protect in these tables: there is no noise."]
    return [
        *lines,
        f"That saves: {plan.public_saving:.3g} times less variance than with these tables "
        f"protected too (γ = {plan.noise.gamma:.7g} instead of "
        f"{plan.noise.gamma * math.sqrt(plan.public_saving):.7g} at unit sensitivity).",
    ]


def verdict(plan: "Plan") -> list[str]:
    """Return sentences that compare the plan's error with other noise, and with the optimum."""
    kind = {2: "total variance", math.inf: "largest (weighted) variance"}.get(
        plan.noise.p, f"variance (at p = {plan.noise.p:g})"
    )
    lines = [] if plan.targets is None else [_targets_text(plan.target_ratio)]
    if plan.targets is not None and None in plan.targets:
        aimed = sum(target is not None for target in plan.targets)
        lines.append(
            f"targets for {aimed} of {len(plan.targets)}; the others take the rest of the budget"
        )
    cells = plan.domain.is_cells
    lines.append(
        f"independent noise for each {'table' if cells else 'entry'} (best split of the budget, no "
        f"least squares afterwards) has {plan.improvement:.2f} times the {kind}"
    )
    if plan.has_public_rows and plan.noise.gamma > 0 and cells and not plan.public:
        lines.append(
            f"{plan.replace_saving:.2f} times less variance than the paper's calibration for "
            "replaced rows (twice the noise of γ_p)"
        )
    is_closed = plan.gap < CLOSED or (cells and plan.person is None)
    lines.append(gap_text(plan.gap, "tables" if cells and is_closed else "answers", is_closed))
    if plan.error > 0 and not plan.public:
        lines.append(plan.bound.sentence(plan.error))
    return lines


def gap_text(gap: float, what: str, is_closed: bool) -> str:
    """Return a clause on how close the noise is to the best Gaussian noise that protects ``what``.

    ``gap`` is the certified relative difference; ``is_closed`` says whether it counts as zero.
    """
    if is_closed:
        return (
            f"proven: no Gaussian noise that protects these {what} as well has less error; "
            f"certified gap {gap:.1e}, the share by which the least error may be smaller"
        )
    least = 100 / (1 + gap)
    return (
        f"no Gaussian noise that protects these {what} as well has less than {least:.4g} % of this "
        "error"
    )


def _targets_text(ratio: float) -> str:
    """Return a clause on whether targets are met; ``ratio`` is the largest half-width / target."""
    if abs(ratio - 1) < 1e-6:
        return "the largest half-width of each entry meets its target, the closest exactly"
    if ratio < 1:
        meet = "the largest half-width of each entry meets its target"
        return f"{meet}: the closest is {ratio:.6g} of it"
    return f"half-widths MISS their targets: the largest is {ratio:.6g} times its target"


def marginal_name(marginal: tuple[str, ...]) -> str:
    """Return the name of the table of these attributes, like "age × sex", or "total"."""
    return " × ".join(marginal) or "total"
