"""The accuracy of a plan, and bounds on that of any mechanism: computed without data."""

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ...bounds import Bound, bound_of
from ...bounds.proof import noise_of
from ...errors import ParameterError
from ...numerics.intervals import quantile
from ...numerics.norms import group_norm
from ..schema.entries import Entry, entry_term
from ..schema.numbers import in_own_unit, reached
from .exchange import least_error
from .independent import independent_deviations, saving
from .measure import Array
from .planned import Planned
from .targets import largest_ratio

_COMPARED = 1e-4  # tolerance of a comparison that is printed to three digits


@dataclass(frozen=True, eq=False)
class Accuracy(Planned):
    """The accuracy of a plan: standard deviations, intervals and lower bounds."""

    @property
    def bracket(self) -> tuple[float, float]:
        """A proven lower bound on γ, and the γ of this plan.

        γ is the least ``‖sd‖_p`` of any Gaussian noise that protects these answers, at unit
        sensitivity.
        """
        if not self._exchanges_persons:
            return self.noise.gamma_lower, self.noise.gamma
        upper = self._unit_covariance.error(self.noise.p)
        return min(least_error(self.noise, self._unit_covariance), upper), upper

    @property
    def gap(self) -> float:
        """The relative width of :attr:`bracket`: 0 where its two ends are equal."""
        if not self._exchanges_persons:
            return self.noise.gap
        lower, upper = self.bracket
        return upper / lower - 1 if lower > 0 else math.inf

    @cached_property
    def public_saving(self) -> float:
        """The factor by which variance would be larger if public tables were protected as well.

        The comparison is with a proven lower bound. It is infinite if nothing else needs
        protection.
        """
        if not self.public:
            return 1.0
        whole = noise_of(self.domain, self.noise.p, "replace", _COMPARED).gamma_lower
        if self.noise.gamma == 0:
            return math.inf if whole > 0 else 1.0
        return (whole / self.noise.gamma) ** 2

    @property
    def target_ratio(self) -> float:
        """The largest ratio of a half-width to its target: at most 1 if all targets are met.

        Raises:
            ParameterError: the plan has no targets.
        """
        if self.targets is None:
            raise ParameterError(
                "target_ratio: this plan has no targets; hint: plan(..., targets=...)"
            )
        return largest_ratio(self._unit_covariance, self.targets) / math.sqrt(2 * self.answer_rho)

    @cached_property
    def deviations(self) -> Array:
        """For each entry, the root mean square of the standard deviations of its answers."""
        return self._unit_covariance.deviations / math.sqrt(2 * self.answer_rho)

    def answer_deviations(self, entry: Entry) -> Array:
        """Return the standard deviations of the answers about one table, planned or not.

        Args:
            entry: attribute names, or a mapping from names to bases, as in :func:`plan`.

        Returns:
            An array with one axis per name; sums of clipped numbers are in their own unit.

        Raises:
            ParameterError: unknown attributes or bases, or no planned marginal contains them.
        """
        term = entry_term(self.schema, entry)
        S = tuple(sorted(term))
        self.check_released(S)
        stated = tuple((i, in_own_unit(term[i])) for i in S)
        variance = self._unit_covariance.term_variance(stated)
        return np.sqrt(variance / (2 * self.answer_rho)).transpose([S.index(i) for i in term])

    @property
    def error(self) -> float:
        """``‖sd‖_p`` over all (weighted) answers; at p = 2 the root of their total variance."""
        return self._unit_covariance.error(self.noise.p) / math.sqrt(2 * self.answer_rho)

    @property
    def improvement(self) -> float:
        """The factor by which the variance of independent noise on each marginal would be larger.

        Both are the best possible for ``p``.

        The independent tables are taken as they are drawn. Least squares over all of them would win
        back most of the difference on workloads that overlap much, but would lose the exact and
        simple standard deviations. It never does better than the optimum.
        """
        weights, p = np.array(self.domain.weights), self.noise.p
        independent = group_norm(weights * self.independent_deviations, self.queries, p)
        return (independent / self.error) ** 2 if independent > 0 else 1.0

    @cached_property
    def independent_deviations(self) -> Array:
        """The :attr:`deviations` of independent noise with the best split of the budget."""
        return independent_deviations(self)

    @cached_property
    def bound(self) -> Bound:
        """A lower bound on the ``error`` of unbiased mechanisms of this budget, on any data.

        Raises:
            ParameterError: the plan has public attributes, for which no bound is known.

        >>> schema = gn.Schema(
        ...     [gn.Attribute("sex", ["F", "M"]), gn.Attribute("age", edges=[0, 18, 65, 120])]
        ... )
        >>> survey = gn.plan(schema, 2, gn.zCDP(0.1))
        >>> # √((e^2ρ − 1) / 2ρ)
        >>> print(f"{survey.bound.error:.4f} {survey.bound.factor(survey.error):.4f}")
        5.2058 1.0521
        """
        noise = self.noise
        # a person without any row may be exchanged too
        if self._exchanges_persons and noise.gamma == 0:
            noise = noise_of(self.domain, noise.p, "add-remove", _COMPARED)
        bound = bound_of(noise, self.privacy, None, rows=self.rows_per_person)
        share = reached(self.domain, self.neighbors)
        share *= 1.0 if self.weight is None else self.weight.most
        values, counts = bound.spectrum
        return replace(
            bound, gamma_lower=share * bound.gamma_lower, spectrum=(share * values, counts)
        )

    @cached_property
    def replace_saving(self) -> float:
        """The factor by which the variance of the paper's noise would be larger.

        The paper protects replaced rows by doubling the noise of γ_p(K).

        The number is ``(2 γ_p(K) / γ°_p(K − K))²``, with the proven lower bound on γ_p(K). It is 1
        if no noise is needed.

        Raises:
            ParameterError: the plan is for rows added or removed, or asks for more than cells.
        """
        return saving(self, "replace_saving", "gamma")

    @cached_property
    def add_remove_saving(self) -> float:
        """The factor by which the variance of the best add-remove noise at ``rho / 4`` is larger.

        That noise protects replaced rows too, since a replacement is two changes of one row.

        The number is infinite if no noise is needed.

        Raises:
            ParameterError: the plan is for rows added or removed, or asks for more than cells.
        """
        return saving(self, "add_remove_saving", "add-remove")

    def independent_standard_deviation(self, *names: str) -> float:
        """Return the standard deviation that independent noise would give the cells of a marginal.

        The budget is split among the marginals in the best way.
        """
        S = tuple(sorted(self.subset(names)))
        if not self.domain.is_cells:
            raise ParameterError(
                "independent_standard_deviation: expected a plan for cells alone, got other "
                "bases; hint: improvement"
            )
        if S not in self._places:
            raise ParameterError(
                f"independent_standard_deviation: expected a planned marginal, got {names!r}"
            )
        return float(self.independent_deviations[self._places[S]])

    def standard_deviation(self, *names: str) -> float:
        """Return the standard deviation of each cell of the table of these attributes.

        The table is a planned marginal or a part of one. If the plan asks for more than cells, the
        cells differ, and this is their root mean square.

        Raises:
            ParameterError: no planned marginal contains these attributes.
        """
        S = tuple(sorted(self.subset(names)))
        self.check_released(S)
        return math.sqrt(self._unit_covariance.mean_variance(S) / (2 * self.answer_rho))

    def half_width(self, *names: str, level: float = 0.95) -> float:
        """Return half the length of a cell's confidence interval, in rows."""
        return quantile(level) * self.standard_deviation(*names)
