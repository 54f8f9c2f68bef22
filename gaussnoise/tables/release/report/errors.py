"""The half-widths of intervals of a plan or a release, as numbers and in words."""

import itertools
import math
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from domains.tables.clipped import Clipped
from domains.tables.tables import Term

from ....numerics.intervals import quantile
from ....text import no_less
from ...planning.noun import noun_of
from ...schema.bases import as_base
from ...schema.numbers import in_own_unit
from ...schema.schema import Attribute
from ..merged import MergedPlan
from ..noisy import AbstractRelease
from ..tidy import LEVEL
from .render import digits_of, number

if TYPE_CHECKING:
    from ....noise.table_covariance import TableCovariance
    from ...planning.plan import Plan

Errors = Mapping[str, float]  # {statistic: half-width}; the key is "" for a single statistic

_SUMMED = ("counts", "sums", "sums of squares")  # statistics of a clipped number, by degree
_MOST_MEANS = 100  # largest number of means that are described
_GROUPS = 100, 1000  # rows in the groups whose means are described, unless the owner says so
_PRODUCTS = "sums of products"


def errors_of_release(release: AbstractRelease) -> list[Errors]:
    """Return the half-widths of the intervals in a release, for every entry of its workload."""
    if release.over is None and not isinstance(release.plan, MergedPlan):
        widths = half_widths(release.plan)
    else:
        variances = map(release.covariance.term_variance, release.plan.domain.terms)
        widths = quantile(LEVEL) * np.sqrt([float(np.mean(variance)) for variance in variances])
    return _errors(release.plan, release.covariance, widths)


def errors_of_plan(plan: "Plan") -> list[Errors]:
    """Return the half-widths of the intervals of a plan, for every entry of its workload."""
    return _errors(plan, plan.covariance, half_widths(plan))


def half_widths(plan: "Plan") -> np.ndarray:
    """Return the half-widths of intervals, one for every entry of the workload of a plan.

    Half-widths of sums are divided by the largest value of a single number.
    """
    return quantile(LEVEL) * np.asarray(plan.deviations)


def _errors(plan: "Plan", covariance: "TableCovariance", widths: np.ndarray) -> list[Errors]:
    """Return the half-widths of intervals, grouped by statistic (count, sum, …)."""
    # counts and sums of clipped numbers have other units; of several numbers, the largest counts
    found: list[Errors] = []
    for term, width in zip(plan.domain.terms, widths.tolist(), strict=True):
        clipped = [(k, base) for k, (_, base) in enumerate(term) if isinstance(base, Clipped)]
        if not clipped:
            found.append({"": width})
            continue
        places, bases = zip(*clipped, strict=True)
        variance = np.moveaxis(covariance.term_variance(term), places, range(len(places)))
        own: dict[str, float] = {}
        for answer in itertools.product(*(range(len(base.degrees)) for base in bases)):
            degrees = [base.degrees[k] for base, k in zip(bases, answer, strict=True)]
            scale = math.prod(base.unit**d for base, d in zip(bases, degrees, strict=True))
            width = quantile(LEVEL) * math.sqrt(float(variance[answer].mean())) * scale
            what = _SUMMED[max(degrees)] if sum(degrees) == max(degrees) else _PRODUCTS
            own[what] = max(width, own.get(what, 0.0))
        found.append(own)
    return found


def error_text(errors: Errors) -> str:
    """Return the half-widths of an entry in words.

    Half-widths of sums of squares and of products are left out if the entry has others.
    """
    said = {what: half_text(w) for what, w in errors.items() if w}
    if len(said) > 1:
        said.pop(_SUMMED[2], None)
        said.pop(_PRODUCTS, None)
    return "; ".join(f"{what} {width}".strip() for what, width in said.items()) or "exact"


def means_of(source: "Plan | AbstractRelease", total: float | None = None) -> list[str]:
    """Return, for each entry of a workload, the half-width of its means in words; "" without means.

    If ``total`` is given, the half-width is for groups of equal size that together have ``total``
    rows. Otherwise, it is for groups of 100 and of 1,000 rows. No mean of a group with such a
    released count has a larger half-width. Fieller's interval holds only values m, between the ends
    of the number, for which ``sum − m·count`` is at most z standard deviations from zero. The
    variance is convex in m, so this standard deviation is largest at one of the ends.
    """
    plan: Any = source.plan if isinstance(source, AbstractRelease) else source
    noun = source.noun if isinstance(source, AbstractRelease) else noun_of(plan)
    texts, attributes = list[str](), plan.schema.attributes
    for term in plan.domain.terms:
        axes = [
            k for k, (_, own) in enumerate(term) if isinstance(own, Clipped) and 1 in own.degrees
        ]
        is_last = sum(map(bool, texts)) == _MOST_MEANS
        if len(axes) != 1 or is_last or attributes[term[axes[0]][0]].unit is not None:
            texts.append("")
            continue
        number = attributes[term[axes[0]][0]]
        find = partial(_deviations, source.covariance, term, number, axes[0])
        deviations = list(map(find, number.interval))
        half = quantile(LEVEL) * max(own.max() for own in deviations)
        unit = f" {number.measured_in}" * (number.measured_in is not None)
        if total is None:
            few, many = _GROUPS
            first = f"mean ± {_half(half / few)}{unit} in a group of {few} {noun}"
            texts.append(f"{first}, ± {_half(half / many)} in a group of {many:,}")
        else:
            rows = max(rounded(total / deviations[0].size), 1)
            groups = f"in groups of some {rows:,.15g} {noun}"
            texts.append(f"mean ± {_half(half / rows)}{unit}, {groups}")
    return texts


def _deviations(
    covariance: "TableCovariance", term: Term, number: Attribute, axis: int, end: float
) -> NDArray[np.float64]:
    """Return the standard deviation of the sum of a number less ``end``, for each group."""
    about = in_own_unit(as_base({"kind": "moments", "degrees": [1], "about": end}, number))
    own = (*term[:axis], (term[axis][0], about), *term[axis + 1 :])
    # other statistics of the number, such as the count of its catch-all, come after its sum
    return np.sqrt(covariance.term_variance(own).take(0, axis))


def rounded(number: float) -> float:
    """Return a number rounded to three digits."""
    return float(f"{number:.3g}")


def _half(half: float) -> str:
    """Return a half-width as text, rounded up to three digits."""
    return f"{float(no_less(half, 3)):,.15g}"  # 2,790 in place of 2.79e+03


def half_text(width: float) -> str:
    """Return a half-width as text, rounded up by a tenth at most: intervals are never wider.

    >>> half_text(12.34), half_text(2789.1)
    ('± 13', '± 2,790')
    """
    digits = digits_of(width / 20)  # so that rounding adds a tenth at most
    return f"± {number(math.ceil(width * 10**digits) / 10**digits, digits)}"


def typical_error(errors: list[Errors], noun: str) -> str:
    """Return the range of half-widths for counts with noise as text, like "± 4 to ± 9 rows".

    If no count has noise, the range is that for sums. If nothing has noise, the text is "exact".
    ``noun`` names the counted things.
    """
    counts = _with_noise(errors, {"", _SUMMED[0]})
    widths = counts or _with_noise(errors, {*_SUMMED, _PRODUCTS})
    if not widths:
        return "exact"
    low, high = (half_text(width) for width in (min(widths), max(widths)))
    return (low if low == high else f"{low} to {high}") + f" {noun}" * bool(counts)


def erring(errors: list[Errors]) -> str:
    """Return the word for the numbers that :func:`typical_error` is about."""
    if all("" in entry for entry in errors):
        return "number"
    return "count" if _with_noise(errors, {"", _SUMMED[0]}) else "sum"


def _with_noise(errors: list[Errors], kinds: set[str]) -> list[float]:
    """Return the half-widths of these kinds of statistics that are not 0."""
    return [w for entry in errors for what, w in entry.items() if what in kinds and w]
