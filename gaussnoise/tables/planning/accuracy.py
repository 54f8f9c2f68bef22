"""How well a plan answers, and how much better anything could be: public, computed without data."""

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
    """Standard deviations, brackets and bounds of what was planned."""

    @property
    def bracket(self) -> tuple[float, float]:
        """A proven lower end of γ, and γ of this plan.

        γ is the least ``‖sd‖_p`` of Gaussian noise that protects these answers, at unit
        sensitivity.
        """
        if not self._exchanges_persons:
            return self.noise.gamma_lower, self.noise.gamma
        upper = self._unit_covariance.error(self.noise.p)
        return min(least_error(self.noise, self._unit_covariance), upper), upper

    @property
    def gap(self) -> float:
        """By how much :attr:`bracket` is open, relative: 0 where it is closed."""
        if not self._exchanges_persons:
            return self.noise.gap
        lower, upper = self.bracket
        return upper / lower - 1 if lower > 0 else math.inf

    @cached_property
    def public_saving(self) -> float:
        """How many times less variance than with the public tables protected as well.

        The comparison is with a proven lower end; infinite where nothing is left to protect.
        """
        if not self.public:
            return 1.0
        whole = noise_of(self.domain, self.noise.p, "replace", _COMPARED).gamma_lower
        if self.noise.gamma == 0:
            return math.inf if whole > 0 else 1.0
        return (whole / self.noise.gamma) ** 2

    @property
    def target_ratio(self) -> float:
        """Largest ratio of a half-width to its target: at most 1 where all targets are met.

        Raises:
            ParameterError: planned without targets.
        """
        if self.targets is None:
            raise ParameterError(
                "target_ratio: this plan has no targets; hint: plan(..., targets=...)"
            )
        return largest_ratio(self._unit_covariance, self.targets) / math.sqrt(2 * self.answer_rho)

    @cached_property
    def deviations(self) -> Array:
        """Of every entry, the root mean square of its answers' standard deviations."""
        return self._unit_covariance.deviations / math.sqrt(2 * self.answer_rho)

    def answer_deviations(self, entry: Entry) -> Array:
        """Standard deviations of the answers about one table, whether planned for or not.

        Args:
            entry: names, or a mapping from names to bases, as in :func:`plan`.

        Returns:
            An array, one axis for each name; sums of clipped numbers in their own unit.

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
        """``‖sd‖_p`` over all (weighted) cells: at p = 2 the root of their total variance."""
        return self._unit_covariance.error(self.noise.p) / math.sqrt(2 * self.answer_rho)

    @property
    def improvement(self) -> float:
        """How many times less variance than independent noise on each marginal.

        Both are at their best for ``p``.

        As drawn: least squares over all the independent tables would win back most of the
        difference on workloads that overlap much, at the cost of exact simple standard deviations;
        it never gets below the optimum.
        """
        weights, p = np.array(self.domain.weights), self.noise.p
        independent = group_norm(weights * self.independent_deviations, self.queries, p)
        return (independent / self.error) ** 2 if independent > 0 else 1.0

    @cached_property
    def independent_deviations(self) -> Array:
        """What :attr:`deviations` would be with independent noise and the best split."""
        return independent_deviations(self)

    @cached_property
    def bound(self) -> Bound:
        """What no unbiased mechanism of this budget can beat, on any data: on ``error``, in rows.

        Raises:
            ParameterError: planned with public attributes, under which no bound is known.

        >>> schema = gn.Schema(
        ...     [gn.Attribute("sex", ["F", "M"]), gn.Attribute("age", edges=[0, 18, 65, 120])]
        ... )
        >>> survey = gn.plan(schema, 2, gn.zCDP(0.1))
        >>> # √((e^2ρ − 1) / 2ρ)
        >>> print(f"{survey.bound.error:.4f} {survey.bound.factor(survey.error):.4f}")
        5.2058 1.0522
        """
        noise = self.noise
        if self._exchanges_persons and noise.gamma == 0:  # persons may also come without rows
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
        """How many times less variance than the paper's noise.

        That protects replaced rows by doubling γ_p(K)'s.

        ``(2 γ_p(K) / γ°_p(K − K))²``, with the proven lower end of γ_p(K); 1 where nothing needs
        noise.

        Raises:
            ParameterError: planned for rows added or removed, or for more than cells.
        """
        return saving(self, "replace_saving", "gamma")

    @cached_property
    def add_remove_saving(self) -> float:
        """How many times less variance than the best add-remove noise at ``rho / 4``.

        That protects replaced rows too.

        Infinite where nothing needs noise.

        Raises:
            ParameterError: planned for rows added or removed, or for more than cells.
        """
        return saving(self, "add_remove_saving", "add-remove")

    def independent_standard_deviation(self, *names: str) -> float:
        """Of every cell of a planned marginal, with independent noise and the best split."""
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
        """Of every cell of the table of these attributes: a planned marginal, or a part of one.

        Where more than cells is planned for, cells differ, and this is their root mean square.

        Raises:
            ParameterError: no planned marginal contains them.
        """
        S = tuple(sorted(self.subset(names)))
        self.check_released(S)
        return math.sqrt(self._unit_covariance.mean_variance(S) / (2 * self.answer_rho))

    def half_width(self, *names: str, level: float = 0.95) -> float:
        """Half the length of a cell's confidence interval."""
        return quantile(level) * self.standard_deviation(*names)
