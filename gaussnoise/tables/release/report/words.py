"""The texts that pages of plans and releases share: privacy, optimality, method, five words."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from domains import Clipped

from ....numerics.intervals import quantile
from ....privacy.definitions import gaussian_epsilon, zCDP
from ....privacy.lattice_bound import TABLE_STEPS
from ....privacy.testing import total_variation
from ....text import SHOWN_DELTA, versions
from ...planning.text import public_text, relation_text, verdict
from ...schema.numbers import interval_text
from ..over_time import Guarantee, OverTime
from ..tidy import LEVEL, level_text
from .markup import (
    Html,
    data,
    digits_of,
    grid,
    joined,
    label,
    listing,
    number,
    paragraphs,
    section,
    tag,
)

if TYPE_CHECKING:
    from ....noise.table_covariance import TableCovariance
    from ...planning.plan import Plan
    from ..release import TableRelease

Errors = Mapping[str, float]  # half-widths by statistic; the key of a single one is ""

_SUMMED = ("counts", "sums", "sums of squares")  # of a clipped number, by degree
_DELTAS = (1e-4, SHOWN_DELTA, 1e-9)
_MOST_LABELS = 6  # of an attribute that are written in full
_EDGE_LABELS = 2  # at each end, of an attribute with more
_MOST_ATTRIBUTES = 200

_MOST_GUESSED = 80.0  # of 100: a higher value means weak protection

_WEAK = "That is weak protection: this budget is far larger than usual."

SAMPLE_NOTE = (
    "The intervals are about the noise that protects people, and about nothing else: not about "
    "who answered, what they said, or how they were sampled."
)


def guarantee_of(plan: "Plan", over: OverTime | None = None) -> Guarantee:
    """Return the privacy guarantee of a plan, or of the stream that its tables are of."""
    if over is not None:
        return over.guarantee
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
    return Guarantee(
        whole="release",
        unit=plan.privacy_unit,
        neighbors=relation_text(plan),
        privacy=plan.privacy.as_dict(plan.query.count, TABLE_STEPS),
        integers=plan.query.count,
        noise=noise,
    )


def person(guarantee: Guarantee) -> str:
    """Return whom the budget protects, in two words."""
    return "one row" if guarantee.unit == "one row" else "one person"


def errors_of_release(release: "TableRelease") -> list[Errors]:
    """Return the errors of every entry of a release, at the level of all intervals."""
    widths = half_widths(release.plan)
    if release.over is not None:
        variances = map(release.covariance.term_variance, release.plan.domain.terms)
        widths = quantile(LEVEL) * np.sqrt([float(np.mean(variance)) for variance in variances])
    return _errors(release.plan, release.covariance, widths)


def errors_of_plan(plan: "Plan") -> list[Errors]:
    """Return the errors of every entry of a plan, at the level of all intervals."""
    return _errors(plan, plan.covariance, half_widths(plan))


def half_widths(plan: "Plan") -> np.ndarray:
    """Return half-widths of every entry; of sums, relative to the most that one row can be."""
    return quantile(LEVEL) * np.asarray(plan.deviations)


def _errors(plan: "Plan", covariance: "TableCovariance", widths: np.ndarray) -> list[Errors]:
    """Return half-widths by statistic: counts and sums of clipped numbers have their own units."""
    found: list[Errors] = []
    for term, width in zip(plan.domain.terms, widths.tolist(), strict=True):
        clipped = [(k, base) for k, (_, base) in enumerate(term) if isinstance(base, Clipped)]
        if not clipped:
            found.append({"": width})
            continue
        [(place, base)] = clipped  # a table has at most one
        variance = np.moveaxis(covariance.term_variance(term), place, -1)
        deviations = np.sqrt(variance.reshape(-1, variance.shape[-1]).mean(axis=0))
        found.append(
            {
                _SUMMED[d]: quantile(LEVEL) * float(deviations[k]) * base.unit**d
                for k, d in enumerate(base.degrees)
            }
        )
    return found


def error_text(errors: Errors) -> str:
    """Return half-widths in words."""
    said = [(what, f"± {number(w, digits_of(w / 4))}") for what, w in errors.items() if w]
    return "; ".join(f"{what} {width}".strip() for what, width in said) or "exact"


def typical_error(errors: list[Errors]) -> str:
    """Return the range of half-widths of counts, in rows, or of sums if there are no counts."""
    counts = [w for entry in errors for what, w in entry.items() if what in {"", _SUMMED[0]}]
    widths = counts or [w for entry in errors for w in entry.values()]
    low, high = min(widths), max(widths)
    if high == 0:
        return "exact"
    short = [f"± {number(w, digits_of(w / 4))}" for w in (low, high)]
    if low == 0:
        return f"none or {short[1]}"
    return short[0] if short[0] == short[1] else f"{short[0]} to {short[1]}"


def implied_epsilon(guarantee: Guarantee, rho: float, delta: float = SHOWN_DELTA) -> float:
    """Return the ε of this noise, as it is drawn."""
    return gaussian_epsilon(rho, delta, draws=guarantee.integers, steps=TABLE_STEPS)


def attributes_table(plan: "Plan") -> Html:
    """Return the attributes that every row has in the release; they are public."""
    attributes = plan.schema.attributes
    rows = []
    for attribute in attributes[:_MOST_ATTRIBUTES]:
        labels = list(map(label, attribute.labels))
        if len(labels) > _MOST_LABELS:
            hidden = f"… {len(labels) - 2 * _EDGE_LABELS} more …"
            labels = [*labels[:_EDGE_LABELS], hidden, *labels[-_EDGE_LABELS:]]
        elsewhere = "—" if attribute.other is None else label(attribute.other)
        count, which = f"{attribute.size:,}", joined(labels, " · ")
        if attribute.clip is not None:
            count, which = "—", f"a number, clipped to {interval_text(*attribute.clip)}"
        rows.append((label(attribute.name), count, which, elsewhere))
    more = len(attributes) - len(rows)
    return joined(
        [
            grid(
                "Attributes and their categories, fixed in advance and public",
                ("Attribute", "Categories", "Which", "All other values"),
                rows,
                numeric=False,
            ),
            tag("p", f"… and {more:,} more attributes.", class_="note") if more > 0 else "",
        ]
    )


def privacy_section(
    plan: "Plan", guarantee: Guarantee, rho: float, *, private: bool, charged: bool
) -> Html:
    """Return the privacy guarantee, in plain words and in full; ``charged`` if it was spent."""
    whom = person(guarantee)
    guess = 50 * (1 + min(total_variation(zCDP(rho)), 1.0)) if rho > 0 else 50.0
    exchanged = plan.neighbors == "replace"
    same = f" of the same {' × '.join(plan.public)}" if plan.public else ""
    changed = f"exchanged for another{same}" if exchanged else "added or removed"
    coin = f"is what it is, or another{same}" if exchanged else "is there, or is not"
    plain = paragraphs(
        f"The computation is random, on purpose. Were {whom} {changed}, every result would be "
        f"nearly as likely as before. So what a reader can learn from these numbers about {whom} "
        "is limited, for all that the reader knows already.",
        f"A game shows this limit: a player knows all other rows, and a fair coin decides whether "
        f"{whom} {coin}. Without the numbers the player guesses the coin right in 50 of 100 cases; "
        f"with them in at most {guess:.1f} of 100, by any method.",
        _WEAK if guess > _MOST_GUESSED else "",
        "The protection holds against all readers, today and later. Each further release from the "
        "same data adds to what can be learned: their ρ add up.",
    )
    if plan.public:
        plain = joined([plain, paragraphs(*public_text(plan))])
    elif plan.has_public_rows:
        plain = joined([plain, paragraphs("The number of rows is public, and comes out exactly.")])
    full = listing(_privacy_in_full(plan, guarantee, rho))
    epsilons = grid(
        "The same privacy guarantee as (ε, δ)-differential privacy",
        ("δ", "ε for this noise", "ε for any mechanism of this ρ"),
        [
            (
                f"{delta:g}",
                f"{implied_epsilon(guarantee, rho, delta):.4g}",
                f"{zCDP(rho).epsilon(delta) if rho > 0 else 0.0:.4g}",
            )
            for delta in _DELTAS
        ],
    )
    verb = "was charged" if charged else "will be charged"
    charge = paragraphs(
        f"ρ = {rho:.10g} {verb} for the whole {guarantee.whole}, of at most "
        f"{plan.rho:.10g} planned: what OpenDP’s privacy map says of all the noise together. "
        "Looking at tables, adding them up, and questions asked of the release later cost nothing "
        "more.",
        "A ledger, where one is kept for the data, carries this charge; the sum of all its charges "
        "is what the data have been spent on.",
    )
    if not private:
        plain = paragraphs(
            "This is a simulation, drawn by a generator that can be run again. It protects no "
            "person. What follows is the privacy guarantee that a real release of the same plan "
            "would have."
        )
        charge = paragraphs("Nothing was charged, since nothing was protected.")
    return section(
        "Privacy",
        "privacy",
        section("In plain words", "privacy-plain", plain, level=3),
        section("In full", "privacy-full", full, epsilons, level=3),
        section(
            "What was charged" if charged else "What will be charged", "charge", charge, level=3
        ),
    )


def _privacy_in_full(plan: "Plan", guarantee: Guarantee, rho: float) -> list[tuple[object, object]]:
    """Return everything that an auditor asks for."""
    privacy, unit = guarantee.privacy, guarantee.unit
    stated = ", ".join(f"{key} = {value}" for key, value in privacy.items() if key != "definition")
    if unit != "one row" and plan.person is None:
        unit += " (stated by the publisher, not checked)"
    return [
        ("Definition", f"{privacy.get('definition', plan.privacy)}: {stated}"),
        ("ρ of zero-concentrated differential privacy", f"{rho:.10g}"),
        ("Neighbouring data sets", guarantee.neighbors),
        ("Who is protected", unit),
        ("Noise", guarantee.noise),
        ("Drawn by", "OpenDP, on exact integers, with the operating system’s randomness"),
        (
            "Not covered",
            "running time; the fact that a release was refused; other releases of the same data; "
            "categories and edges, which are assumed to be public",
        ),
    ]


def optimality_section(plan: "Plan", over: OverTime | None = None) -> Html:
    """Return how good the numbers are, and how that is known."""
    if over is not None:
        said = (
            "The noise was chosen for all ticks of the stream together, before the first of them; "
            "other combinations of ticks are as accurate as that noise makes them."
        )
        proof = tag("ul", *(tag("li", line) for line in over.verdict))
        return section("How close to optimal", "optimal", paragraphs(said), proof)
    if not plan.error > 0:
        return section(
            "How close to optimal",
            "optimal",
            paragraphs("These tables need no noise: nothing can be more accurate."),
        )
    noise, (lower, upper) = plan.noise, plan.bracket
    bound = None if plan.public else plan.bound
    objective = {
        2: "the root of the total variance of all numbers asked for",
        math.inf: "the largest (weighted) standard deviation",
    }.get(noise.p, f"the {noise.p:g}-norm of all standard deviations")
    plain = paragraphs(
        f"Error here means {objective}: {plan.error:.6g} rows. A certificate proves that no other "
        "Gaussian noise with the same privacy has an error smaller than "
        f"{100 / (1 + plan.gap):.6g} % of it.",
        ""
        if bound is None or bound.error == 0
        else "More than that: no unbiased method of any kind with this privacy has less error than "
        f"{bound.error:.6g}, {bound.where}. This release is within a factor "
        f"{bound.factor(plan.error):.4g} of that.",
    )
    facts = listing(
        [
            ("Error of this plan", f"{plan.error:.10g}"),
            *(
                []
                if bound is None
                else [
                    ("Least error of any unbiased mechanism", f"{bound.error:.10g}"),
                    ("Factor between the two", f"{bound.factor(plan.error):.6g}"),
                ]
            ),
            (
                "Certificate, at unit sensitivity",
                f"{lower:.10g} ≤ γ ≤ {upper:.10g}, gap {plan.gap:.1e}",
            ),
            ("Found by", str(noise.method)),
        ]
    )
    lines = tag("ul", *(tag("li", line) for line in verdict(plan)))
    return section("How close to optimal", "optimal", plain, facts, lines)


def version_text() -> str:
    """Return the version of the program that writes the page."""
    return f"gaussnoise {versions('gaussnoise')['gaussnoise']}"


def glossary_section() -> Html:
    """Return the five words and what they mean."""
    return section(
        "Five words",
        "words",
        listing(
            [
                (
                    "Unbiased",
                    "Right on average: the noise is as likely to add as to take away. Sums and "
                    "differences of unbiased numbers are unbiased too.",
                ),
                (
                    f"{level_text(LEVEL)} interval",
                    "A range around an estimate that was made to hold the exact number in 95 of "
                    "100 cases. One in twenty misses it, and there is no way to tell which.",
                ),
                (
                    "Neighbouring data sets",
                    "Two data sets that differ in what is protected, and in nothing else. Privacy "
                    "means that their results are hard to tell apart.",
                ),
                (
                    "ρ (rho)",
                    "The privacy budget: how much can be learned about what is protected, at most. "
                    "Less is more private. Budgets of several releases add up, and half the budget "
                    "makes every interval 1.41 times as wide.",
                ),
                (
                    "ε and δ (epsilon, delta)",
                    "The same guarantee in older terms: no conclusion about what is protected "
                    "becomes more than e^ε times as likely, but for a chance of δ.",
                ),
            ]
        ),
    )


def estimate_of(value: float, low: float, high: float, deviation: float) -> Html:
    """Return a number with its interval below it."""
    digits = digits_of(deviation)
    if deviation == 0:
        return joined([data(value, digits), tag("small", "exact")], " ")
    ends = joined([data(low, digits), data(high, digits)], " to ")
    return joined([data(value, digits), tag("small", ends)], " ")
