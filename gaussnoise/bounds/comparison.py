"""The optimal noise compared with common baselines, and with the lower bound."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, final

import numpy as np
import scipy

from domains.algebra.hulls import hull
from domains.domain import AbstractDomain, AbstractFiniteDomain
from domains.floats import Array
from domains.oracles.distance import bounding_box
from domains.tables.marginals import Marginals

from ..drawing import OURS, THEIRS, new_figure
from ..errors import NotAvailableError, ParameterError
from ..layout import on_screen
from ..noise.own import Covariance, own_noise
from ..noise.policy import PolicyGraph
from ..noise.problem import Relation
from ..noise.solve import gamma, noise_of
from ..numerics.norms import norm
from ..privacy.guarantee import AbstractPrivacy
from ..solvers.progress import interrupts_pass
from ..text import no_less
from .bound import Bound, bound_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_MOST_PAIRS = 4000  # largest number of points for which all differences are computed
_OPTIMAL = "optimal Gaussian"


class Way(NamedTuple):
    """The error of one mechanism in a comparison.

    Attributes:
        name: its name.
        error: its ``‖sd‖_p``.
        note: how its noise was calibrated.
    """

    name: str
    error: float
    note: str


@final
@dataclass(frozen=True, eq=False)
class Comparison:
    """Mechanisms under one privacy budget, in order of their error.

    Attributes:
        ways: the compared mechanisms.
        bound: the lower bound for all unbiased mechanisms; None under policy graphs.
        privacy: the budget.
        p: error norm.

    >>> prefix = gn.FiniteSet.from_workload(np.tril(np.ones((4, 4))))
    >>> ways = gn.compare(prefix, gn.zCDP(0.1), neighbors="add-remove")
    >>> print(ways.ways[0].name, f"{ways.bound.factor(ways.ways[0].error):.3f}")
    optimal Gaussian 1.052
    """

    ways: tuple[Way, ...]
    bound: Bound | None
    privacy: AbstractPrivacy
    p: float

    def columns(self) -> dict[str, list]:
        """Return one row for each mechanism, as {column name: values}.

        The columns are the name, the error, the error divided by the least error among the
        mechanisms, the error divided by the lower bound (NaN without a bound), and a note.
        """
        least = min(way.error for way in self.ways)
        return {
            "way": [way.name for way in self.ways],
            "error": [way.error for way in self.ways],
            "times_least": [way.error / least if least > 0 else 1.0 for way in self.ways],
            "times_bound": [
                math.nan if self.bound is None else self.bound.factor(way.error)
                for way in self.ways
            ],
            "note": [way.note for way in self.ways],
        }

    def __str__(self) -> str:
        columns = self.columns()
        width = max(map(len, columns["way"]))
        lines = [
            f"{'':<{width}}  {f'‖sd‖_{self.p:g}':>10}  {'× least':>8}  {'× bound':>8}  under "
            f"{self.privacy!r}"
        ]
        for name, error, least, bound, note in zip(*columns.values(), strict=True):
            times = f"{bound:>8.3f}" if self.bound is not None else f"{'–':>8}"
            lines.append(f"{name:<{width}}  {error:>10.4g}  {least:>8.3f}  {times}  {note}")
        if self.bound is None:
            lines.append("under a policy graph no bound is known that holds for all data sets")
        else:
            lines.append(
                f"{'no unbiased mechanism':<{width}}  {self.bound.error:>10.4g}  {self.bound.where}"
            )
        return on_screen("\n".join(lines))

    def plot(self) -> "Figure":
        """Draw the errors as bars, and the bound as a line.

        Returns:
            A matplotlib Figure; save it with ``.savefig(path)``.
        """
        figure = new_figure(8, 1.2 + 0.5 * len(self.ways))
        axes = figure.subplots()
        errors = [way.error for way in self.ways]
        colours = [OURS if way.name == _OPTIMAL else THEIRS for way in self.ways]
        bars = axes.barh([way.name for way in self.ways], errors, color=colours)
        axes.bar_label(bars, [f"{error:.4g}" for error in errors], padding=4)
        axes.invert_yaxis()
        axes.margins(x=0.15)
        kind = {2: "root total variance", math.inf: "largest standard deviation"}.get(
            self.p, f"‖sd‖, p = {self.p:g}"
        )
        axes.set_xlabel(f"{kind} under {self.privacy!r}")
        if self.bound is not None:
            label = f"no unbiased mechanism is left of this, {self.bound.where}"
            axes.axvline(self.bound.error, color="0.35", linestyle="--", label=label)
            figure.legend(loc="outside upper left", frameon=False)
        axes.spines[["top", "right"]].set_visible(False)
        return figure


def compare(
    domain: AbstractDomain,
    privacy: AbstractPrivacy,
    *,
    n: int | None = None,
    p: float = 2,
    neighbors: Relation = "replace",
    tol: float = 1e-4,
    covariance: Covariance | None = None,
) -> Comparison:
    """Compare optimal Gaussian noise with spherical, independent and Laplace noise, and a bound.

    Laplace noise is added to the answers or, if the error is then smaller, to the number of records
    at each listed point. Under (ε, δ) with a small δ, Laplace noise can have the least error of all
    mechanisms on workloads of few cells.

    All mechanisms protect the same neighbours, and all Gaussian ones have the same ρ. Laplace noise
    is ε-private with an ε that implies the budget: the ε of :class:`PureDP` and :class:`ApproxDP`,
    √(2ρ) for zCDP (Bun & Steinke 2016, Proposition 3.3), and √(2α) for KL. For GDP and TV, it is
    the largest ε for which randomised response satisfies the guarantee. No other ε-private
    mechanism has outputs that are easier to distinguish. If no ε is known for a guarantee of your
    own, Laplace noise is left out. Errors are those of continuous noise.

    Args:
        domain: K.
        privacy: a budget. Under :class:`PureDP`, only Laplace noise is compared.
        n: number of records, for means; forbidden for sums.
        p: error norm in [2, ∞].
        neighbors: as in :func:`optimal_noise`.
        tol: relative gap of all optimisations.
        covariance: a :class:`Covariance` of your own, to compare as well, at any scale.

    Returns:
        A :class:`Comparison`; print or plot it.

    Raises:
        ParameterError: n is missing or forbidden, p < 2, or the privacy guarantee has no noise of
            this kind.

    >>> prefix = gn.FiniteSet.from_workload(np.tril(np.ones((16, 16))))
    >>> ways = gn.compare(prefix, gn.zCDP(0.1), n=100)
    >>> for name, error, least, bound, _ in zip(*ways.columns().values()):
    ...     print(f"{name:22} {error:.3f} {least:.2f} {bound:.2f}")
    optimal Gaussian       0.162 1.00 1.34
    Nikolov–Tang Gaussian  0.205 1.26 1.69
    Gaussian on counts     0.206 1.27 1.70
    independent Gaussians  0.335 2.06 2.76
    spherical Gaussian     0.346 2.13 2.85
    Laplace                0.412 2.54 3.39
    """
    sums = neighbors == "add-remove"
    if sums != (n is None):
        raise ParameterError(
            "compare: expected n for means, and none for sums under add-remove; got "
            f"{neighbors!r:.50} and n={n!r}"
        )
    if not isinstance(privacy, AbstractPrivacy) or privacy.noise == "local":
        raise ParameterError(f"compare: expected a budget like zCDP(rho), got {privacy!r:.50}")
    with interrupts_pass():
        noise = noise_of(domain, p, neighbors, tol)
    divisor = float(n or 1)
    widths, euclidean, manhattan = _sensitivities(domain, noise.neighbors)
    ways = []
    per = math.nan
    gaussian = privacy.noise == "gaussian"
    if gaussian:
        per = 1 / (math.sqrt(2 * privacy.to_zcdp().rho) * divisor)
        ways.append(Way(_OPTIMAL, noise.gamma * per, f"certified gap {noise.gap:.1e}"))
        ways.append(
            Way("spherical Gaussian", euclidean * domain.dim ** (1 / p) * per, "ℓ₂ sensitivity")
        )
        # the σ of least ‖σ‖_p with Σ (width/σ)² <= 1
        split = float((widths ** (2 / (1 + 2 / p))).sum() ** (0.5 + 1 / p))
        ways.append(
            Way("independent Gaussians", split * per, "budget split over coordinates at its best")
        )
        if covariance is not None:
            own = own_noise("compare", covariance, domain, p, noise.neighbors, tol)
            ways.append(Way("own covariance", own.gamma * per, "scaled until it covers the set"))
        if noise.neighbors == "replace":
            with interrupts_pass():
                paper = gamma(domain, p, tol=tol)
            ways.append(
                Way("Nikolov–Tang Gaussian", 2 * paper.gamma * per, "twice the noise of γ_p(K)")
            )
    epsilon = _epsilon(privacy)
    # Three ways: equal Laplace noise in all coordinates; the scales σ of least ‖σ‖_p with Σ width/σ
    # <= ε; noise on the number of records at each point.
    laplace = {
        "ℓ₁ sensitivity": manhattan * domain.dim ** (1 / p),
        "ε split over coordinates at its best": float(
            (widths ** (1 / (1 + 1 / p))).sum() ** (1 + 1 / p)
        ),
    }
    counts = _from_counts(domain, noise.neighbors, p)
    if counts is not None:
        laplace["on the counts of listed points"] = counts * (1 if sums else 2)
        if gaussian:
            histogram = counts * (1 if sums else math.sqrt(2)) * per
            ways.append(Way("Gaussian on counts", histogram, "of records at each listed point"))
    if epsilon is not None:
        how = min(laplace, key=laplace.__getitem__)
        error = math.sqrt(2) * laplace[how] / (epsilon * divisor)
        ways.append(Way("Laplace", error, f"{how}, ε = {no_less(epsilon, 4)}"))
    known = not isinstance(noise.neighbors, PolicyGraph) and not privacy.scales
    bound = bound_of(noise, privacy, n) if known else None
    return Comparison(tuple(sorted(ways, key=lambda way: way.error)), bound, privacy, p)


def _epsilon(privacy: AbstractPrivacy) -> float | None:
    """Return an ε for which ε-private mechanisms satisfy the guarantee, or None if unknown."""
    try:
        return privacy.to_epsilon()
    except NotAvailableError:
        if privacy.noise == "laplace":
            raise
        return None


def _from_counts(domain: AbstractDomain, neighbors: Relation, p: float) -> float | None:
    """Return ``‖sd‖_p`` of answers from noisy counts of listed points; None without a list."""
    if not isinstance(domain, AbstractFiniteDomain) or isinstance(domain, Marginals):
        return None
    # noise of variance 1; where n is public, the mean of the points is subtracted
    points = domain.to_finite_set().points
    return norm(
        np.linalg.norm(points - (0 if neighbors == "add-remove" else points.mean(axis=0)), axis=0),
        p,
    )


def _sensitivities(domain: AbstractDomain, neighbors: Relation) -> tuple[Array, float, float]:
    """Return bounds on one record's change: by coordinate, in the ℓ₂ norm and in the ℓ₁ norm."""
    if isinstance(domain, Marginals):
        return _sensitivities_of_tables(domain, neighbors)
    members = domain._listed()
    listed = None if members is None else members.points
    if listed is not None and isinstance(neighbors, PolicyGraph):
        listed, neighbors = (
            listed[neighbors.edges[:, 0]] - listed[neighbors.edges[:, 1]],
            "add-remove",
        )
    if listed is not None and neighbors == "add-remove":
        lengths = np.linalg.norm(listed, axis=1).max(), np.abs(listed).sum(axis=1).max()
        return np.abs(listed).max(axis=0), float(lengths[0]), float(lengths[1])
    if listed is not None and len(listed) <= _MOST_PAIRS:
        widths = np.ptp(listed, axis=0)
        if len(listed) == 1:
            return widths, 0.0, 0.0
        return (
            widths,
            float(scipy.spatial.distance.pdist(listed).max()),
            float(scipy.spatial.distance.pdist(listed, "cityblock").max()),
        )
    reach = hull(domain, -domain) if neighbors == "add-remove" else domain - domain
    _, widths = bounding_box(reach)
    return (
        widths,
        math.sqrt(reach.max_quadratic(np.eye(domain.dim)).upper_bound),
        float(widths.sum()),
    )


def _sensitivities_of_tables(domain: Marginals, neighbors: Relation) -> tuple[Array, float, float]:
    """Return the three sensitivities of :func:`_sensitivities` in closed form, for marginals."""
    cells = [domain.cells(S) for S in domain.subsets]
    counted = [neighbors == "add-remove" or n > 1 for n in cells]
    weights = np.where(counted, domain.weights, 0.0)
    moved = 1.0 if neighbors == "add-remove" else 2.0
    return (
        np.repeat(weights, cells),
        math.sqrt(moved * float(weights @ weights)),
        moved * float(weights.sum()),
    )
