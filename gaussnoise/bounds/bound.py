"""Lower bounds on the error of every unbiased private mechanism, and their proofs in words."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, final

from domains.floats import Array
from domains.tables.clipped import Clipped
from domains.tables.tables import AbstractTables

from ..errors import ParameterError
from ..noise.agreement import ReplaceWithin
from ..noise.certificates.apart import ApartCertificate
from ..noise.optimal_noise import OptimalNoise
from ..noise.policy import PolicyGraph
from ..noise.proportion import AddInProportion
from ..privacy.guarantee import AbstractPrivacy
from .neighbors import TradeOff, chi_squared, known_chi_squared, known_epsilon_delta
from .one_record import one_record
from .proof import Proof

Unbiased = Literal["empirical", "distributional"]

_MARGIN = 1e-12
_BELOW = 1 - 1e-9
_MOST_TIMES = 10_000  # largest multiple of a scale tried; about 1/√(2ρ) is best for small ρ


@final
@dataclass(frozen=True, eq=False)
class Bound:
    """A proof that no unbiased private mechanism has a smaller error.

    :func:`lower_bound` makes such proofs. A proof also covers mechanisms that do not add noise:
    only their mean must be right on every data set.

    Attributes:
        error: no unbiased mechanism has a smaller ``‖sd‖_p`` at the data sets that ``explain()``
            names. It is in units of the mean (of the sum under add-remove). Every query of
            :class:`Products` counts with the root mean square of its table, as in
            :func:`optimal_noise`.
        gamma_lower: certified lower bound on γ° of ``reachable``, the set of changes x − y by one
            record, that the proof uses.
        reachable: the formula of this set, as text.
        spectrum: the eigenvalues that sum to ``gamma_lower``, and the multiplicity of each.
        privacy: the privacy guarantee of the mechanisms.
        guarantee: the guarantee that the proof uses. It differs from ``privacy`` where the proof
            resamples data for "distributional".
        n: number of records; None for sums.
        p: error norm.
        gap: relative bound on how far ``gamma_lower`` is below γ°; NaN where no upper bound was
            computed.
        unbiased: "empirical", for the mean of the data; "distributional", for the mean of the
            distribution from which the data were drawn.
        private: whether the bound was computed from data, and must not be published.
        least: smallest number of records for which the bound is proven: 1, or under replacement,
            the largest number of records that one person may have.
        deviation: standard deviation of the mean of n draws from the distribution P, ``√(tr(W cov
            P)/n)``, if P was given; ``error²`` includes its square.

    >>> bound = gn.lower_bound(gn.FiniteSet(np.eye(2)), gn.zCDP(0.1), n=100)
    >>> print(bound)
    Bound(‖sd‖_2 >= 0.0300555 for unbiased mechanisms under zCDP(rho=0.1))
    """

    gamma_lower: float
    reachable: str
    spectrum: tuple[Array, Array]
    privacy: AbstractPrivacy
    guarantee: AbstractPrivacy
    n: int | None
    p: float
    gap: float
    unbiased: Unbiased
    private: bool
    least: int = 1
    deviation: float = 0.0

    @property
    def at_neighbor(self) -> bool:
        """Whether ``error`` bounds only the larger of the errors at a data set and at a neighbour.

        This is so for guarantees under which a single data set may be answered without error.
        """
        return known_chi_squared(self.privacy) is None

    @cached_property
    def error(self) -> float:
        divisor = float(self.n or 1)
        if self.at_neighbor:
            return TradeOff.of(self.guarantee).worst(*self.spectrum) / divisor * (1 - _MARGIN)
        if self.privacy.noise == "local":
            divisor = math.sqrt(divisor)
        moves = self.gamma_lower / (math.sqrt(chi_squared(self.guarantee)) * divisor)
        return math.hypot(moves, self.deviation) * (1 - _MARGIN)

    def neighbor_error(self, error: float) -> float:
        """Return the least error at the worst neighbour, given the error at the data set itself.

        This error is defined for guarantees under which a single data set has no bound.

        A mechanism may answer one data set without noise, but then its error at a neighbour is
        large (Nikolov & Tang 2023, Theorem 53).

        Args:
            error: ``‖sd‖_p`` at a data set, at least 0.

        Returns:
            A lower bound on the largest ``‖sd‖_p`` at its neighbours.

        Raises:
            ParameterError: every single data set has a bound under the guarantee, or the error is
                negative.

        >>> bound = gn.lower_bound(gn.FiniteSet(np.eye(2)), gn.ApproxDP(1.0, 1e-6), n=100)
        >>> print(f"{bound.error:.6f} {bound.neighbor_error(0):.3f}")
        0.006785 7.071
        """
        if not self.at_neighbor:
            raise ParameterError(
                f"neighbor_error: under {self.privacy} every data set has its own bound: .error"
            )
        if not 0 <= error < math.inf:
            raise ParameterError(f"neighbor_error: expected a finite error >= 0, got {error!r}")
        n = float(self.n or 1)
        return TradeOff.of(self.guarantee).neighbor(error * n, *self.spectrum) / n * (1 - _MARGIN)

    def factor(self, error: float) -> float:
        """Return ``error`` (a ``‖sd‖_p``) divided by ``self.error``; 1 if ``error`` is zero."""
        if error == 0:
            return 1.0
        return error / self.error if self.error > 0 else math.inf

    def sentence(self, error: float) -> str:
        """Return a sentence for users that compares ``error``, a ``‖sd‖_p``, with the bound."""
        known = (
            f"proven: at most {self.factor(error):.4g} times the least error of any unbiased "
            "mechanism (any method that is right on average)"
        )
        if self.factor(error) == math.inf:
            known = "nothing is proven of what the best unbiased mechanism can do"
        elif self.factor(error) < _BELOW:
            known = (
                f"{error:.4g} is biased or not as private: less than any unbiased mechanism can do"
            )
        return (
            f"{known} under {self.privacy}, {self.where}{', NOT PRIVATE' if self.private else ''}"
        )

    def as_dict(self, error: float) -> dict[str, object]:
        """Return the bound, and its comparison with ``error``, for the record of a release.

        Raises:
            ParameterError: the bound was computed from data, or ``error`` is less than the bound.
        """
        if self.private:
            raise ParameterError(
                "as_dict: this bound was computed from data, which no release may tell"
            )
        if self.factor(error) < _BELOW:
            raise ParameterError(
                f"as_dict: expected an error of {self.error:.6g} or more, got {error:.6g}"
            )
        factor = self.factor(error)
        return {
            "error": self.error,
            "factor": factor if math.isfinite(factor) else None,
            "holds": self.where,
            "sentence": self.sentence(error),
        }

    @property
    def where(self) -> str:
        """The data sets for which the bound holds, in words."""
        data = "the distribution" if self.unbiased == "distributional" else "the data"
        where = f"at {data} given" if self.private else f"whatever {data}"
        where += f", of at least {self.least} records" if self.least > 1 else ""
        return f"{where}, there or at a neighbour" if self.at_neighbor else where

    def __float__(self) -> float:
        return self.error

    def __repr__(self) -> str:
        label = ", NOT PRIVATE: computed from data" if self.private else ""
        return (
            f"Bound(‖sd‖_{self.p:g} >= {self.error:.6g} for unbiased mechanisms under "
            f"{self.privacy}{label})"
        )

    def explain(self) -> str:
        """Return text on the bound: its value, the data for which it holds, and its theorems."""
        lines = [
            f"‖sd‖_{self.p:g} >= {self.error:.6g} for every mechanism that is unbiased and keeps "
            f"{self.privacy}"
        ]
        if self.unbiased == "distributional":
            lines[0] += ", for the mean of the distribution"
        lines.append(f"where        {self.where}")
        gap = "" if math.isnan(self.gap) else f" (and at most {self.gap:.1e} more)"
        lines.append(f"moves        {self.reachable}: γ° >= {self.gamma_lower:.6g}{gap}")
        lines += [f"because      {line}" for line in self._because()]
        if self.private:
            lines.append("NOT PRIVATE  computed from the data: do not publish it")
        return "\n".join(lines)

    def _because(self) -> list[str]:
        found = []
        guarantee = self.guarantee
        if self.unbiased == "distributional" and self._shuffled:
            found.append(
                "on shuffled data it is unbiased for the data, with the same guarantee: its mean "
                "over n draws is that of "
                "P for every P, and both are polynomials of degree n in the masses of P"
            )
        elif self.unbiased == "distributional":
            _, rule = _resampled(self.privacy, self.n or 1)
            found.append(
                f"on resampled data it is unbiased for the data, with {rule} (Nikolov & Tang 2023, "
                "Lemma 57, Theorem 58)"
            )
        chi, weak = known_chi_squared(guarantee), known_epsilon_delta(guarantee)
        if chi is not None:
            found.append(chi[1])
        elif weak is None:
            found.append("no bound is known for mechanisms with this guarantee")
        else:
            known = f"({weak[0]:g}, {weak[1]:g})-differential privacy"
            found += [] if known == guarantee.words else [f"it implies {known}"]
            found.append(
                "α Var + (1 − α) Var' >= (1 − δ) β / (δ + 4 β sinh²(ε/2)) Δ², β = α(1 − α), "
                "where means of neighbours are Δ apart, for every direction of the certificate "
                "(in place of Nikolov & Tang 2023, Theorems 4, 51, 52)"
            )
            found.append(
                f"without any noise at the data, a neighbour has {self.neighbor_error(0):.6g} "
                "at least"
            )
        if self.deviation > 0:
            found.append(
                "the mean of the draws varies by itself: (tr(W cov P)/n)^(1/2) = "
                f"{self.deviation:.6g}"
            )
        return found

    @property
    def _shuffled(self) -> bool:
        """Whether the proof for a distribution's mean shuffles the data, not resamples them."""
        return not self.at_neighbor and self.guarantee == self.privacy


def proven(privacy: AbstractPrivacy, n: int | None, unbiased: Unbiased) -> AbstractPrivacy:
    r"""Return the guarantee of a mechanism that is unbiased for the mean of the data.

    For "distributional" this is not the given mechanism M, but M̃, which shuffles the n records
    uniformly and then applies M. M is unbiased for the mean μ(P) of every distribution P on K, if
    the n records are independent draws from P. Then M̃ is unbiased for the mean of the data, and as
    private as M.

    The error at P is bounded by errors at data sets, so every data set must have a bound under the
    guarantee. If a guarantee has no such bound, data are resampled: see :func:`resampled`.

    Source: ours; it replaces Nikolov & Tang (2023), Theorems 58 and 59, which have a larger ε.
    """
    # M̃ is as private as M: in each order, neighbours stay neighbours, and the outputs for two
    # neighbours are mixtures over the same orders. χ² is jointly convex, so it is at most the
    # largest over the orders.
    # M̃ is unbiased for the mean of the data. Fix records a_1, …, a_k of K, k <= n, and let m be
    # the difference between the mean of M̃ and that of the data. For data that consist of these
    # records, m depends only on the vector c of how often each occurs. For P = Σ p_j δ_{a_j}, M̃
    # has the same mean over n draws as M, since the draws are exchangeable: it is μ(P). The mean of
    # the data has the same mean over n draws, μ(P). Hence Σ_c n!/(c_1! … c_k!) p^c m(c) = 0 for
    # every p of sum one and, as the left side is homogeneous of degree n, for every p >= 0. A
    # polynomial that vanishes there has zero coefficients, so all m(c) are zero. A data set of n
    # records has at most n different ones, so this covers every data set.
    # So the covariances Σ_X of M̃ at data X obey all bounds for empirically unbiased mechanisms,
    # with the same constants. At every P, M and M̃ have the same covariance Σ_P, and by the law of
    # total variance Σ_P = E Σ_X + cov(P)/n. So tr(W Σ_P) >= min_X tr(W Σ_X) + tr(W cov P)/n for
    # every W that is the same for all X.
    if unbiased == "empirical" or n is None or known_chi_squared(privacy) is not None:
        return privacy
    return resampled(privacy, n)


def resampled(privacy: AbstractPrivacy, n: int) -> AbstractPrivacy:
    r"""Return the guarantee of a mechanism that is applied to n records drawn from its n records.

    Between neighbours, replace one draw after the other. Each draw is the changed record with
    probability 1/n, so each step is ``(ln(1 + (e^ε − 1)/n), δ/n)``-private by subsampling (advanced
    joint convexity: Balle, Barthe & Gaboardi 2018). Composition of n steps gives ``ε' = n ln(1 +
    (e^ε − 1)/n)`` and ``δ' = δ (e^ε' − 1)/(e^ε − 1)``. Total variation stays unchanged.

    Raises:
        ParameterError: no such guarantee is known, or it is too weak for any bound.
    """
    return _resampled(privacy, n)[0]


def _resampled(privacy: AbstractPrivacy, n: int) -> tuple[AbstractPrivacy, str]:
    """Return the guarantee that :func:`resampled` returns, and the name of the rule behind it."""
    found = privacy.resampled(n)
    if found is None:
        raise ParameterError(
            "lower_bound: distributionally unbiased mechanisms have a bound under PureDP, "
            f"zCDP, GDP, ApproxDP and TV; got {privacy}"
        )
    return found


def bound_of(
    noise: OptimalNoise,
    privacy: AbstractPrivacy,
    n: int | None,
    *,
    unbiased: Unbiased = "empirical",
    rows: int = 1,
    complete: bool = True,
) -> Bound:
    """Return the lower bound on the error that holds for all data, computed from the optimal noise.

    Args:
        noise: the optimal noise of the domain under the relation.
        privacy: the privacy guarantee of the mechanisms.
        n: number of records, for means; None for sums.
        unbiased: as in :func:`lower_bound`.
        rows: the largest number of records of one person, if persons are protected.
        complete: whether the possible records are exactly the points of the domain.

    Returns:
        A :class:`Bound`.

    Raises:
        ParameterError: under a policy graph, or with public attributes, no such bound is known.

    >>> from gaussnoise.bounds import bound_of
    >>> noise = gn.optimal_noise(gn.LpBall(3, 2), neighbors="add-remove")
    >>> print(f"{bound_of(noise, gn.GDP(1.0), None).error:.6f}")  # √3 / √(e − 1)
    1.321336
    """
    if isinstance(noise.neighbors, PolicyGraph):
        raise ParameterError(
            "lower_bound: under a policy graph no bound holds for all data sets; hint: data=, "
            "for the bound at one"
        )
    if isinstance(noise.neighbors, ReplaceWithin):
        raise ParameterError(
            "bound: where tables are published exactly, no bound holds for all data sets: it "
            "depends on which public cells have rows; hint: the certified gap compares with all "
            "Gaussian noises"
        )
    if isinstance(noise.neighbors, AddInProportion):
        return _in_proportion(noise, noise.neighbors, privacy, n, rows, unbiased)
    if privacy.scales and (noise.neighbors != "add-remove" or _has_sums(noise.domain)):
        raise ParameterError(
            "bound: with budgets that grow with numbers of a record, bounds are known for counts "
            "and one row more or less; hint: plan(...).bound for sums"
        )
    if noise.neighbors == "add-remove":
        return bound_from(
            Proof.of(noise), noise.p, privacy, n, rows, "K ∪ −K: any record may be added", unbiased
        )
    proof = Proof.of(noise)
    # The difference of two independent draws from the measure behind γ_p(K) has twice its
    # covariance: γ°(K − K) >= √2 γ_p(K).
    share = math.sqrt(0.5) * (1 - _MARGIN) if noise.shifted else 0.5
    # Guarantees without χ² need one measure for all data. For p > 2, local privacy and
    # distributions also need the same coordinate weights for all data; tables have these, since
    # all records are alike.
    common = noise.certificate.is_of_alike_records
    mixed = privacy.noise == "local" or (unbiased == "distributional" and not common)
    weaker = known_chi_squared(privacy) is None or (mixed and noise.p > 2)
    one = one_record(noise) if rows == 1 and complete and not weaker else None
    if one is not None and one.gamma_lower > share * noise.gamma_lower:
        least = "{±(x − y)} of any one record x, where that is least"
        return bound_from(one, noise.p, privacy, n, 1.0, least, unbiased)
    if noise.shifted and noise.gamma > 0:  # γ°((K − K)/2) <= γ_p(K), and √2 γ_p(K)/2 is the claim
        proof = proof._replace(gap=math.sqrt(2) * (1 + noise.gap) - 1)
    half = "(K − K)/2: wherever the data are, half the sum of two moves by one record"
    return bound_from(proof, noise.p, privacy, n, rows * share, half, unbiased, least=rows)


def _has_sums(domain: object) -> bool:
    """Return whether any table of the domain has sums of numbers, not counts."""
    # then records of different numbers change the tables by different amounts
    terms = domain.terms if isinstance(domain, AbstractTables) else ()
    return any(isinstance(base, Clipped) for term in terms for _, base in term)


def _in_proportion(
    noise: OptimalNoise,
    relation: AddInProportion,
    privacy: AbstractPrivacy,
    n: int | None,
    rows: float,
    unbiased: Unbiased,
) -> Bound:
    """Return the bound for budgets ``ρ (1 + Σ_j u_j²)`` that grow with a record's numbers u_j."""
    # Here T_j is the public scale of number v_j of a record, and u_j = v_j / T_j.
    # A record of budget P changes the mean of an unbiased mechanism by its point φ, and φ' M⁺ φ <=
    # χ² <= e^{2P} − 1 with the mechanism's covariance M (Hammersley–Chapman–Robins). So M covers
    # the points φ / √(e^{2P} − 1), whereas Gaussian noise of the same budgets covers φ / √(2P). For
    # the block of counts, records with u = 0 suffice; for the sums of number j, records with one
    # integer u_j, since a projection of M is the covariance of these sums. The total variances of
    # the blocks add up, so the blocks' lower bounds, each times its factor, prove the bound.
    # For persons of k rows, noise is for rows of scales T_j/k: in its units, a person's k rows
    # without numbers are k points of counts, and one row of u_j T_j is k u_j points of sums.
    certificate, rho = noise.certificate, privacy.to_zcdp().rho
    if not isinstance(certificate, ApartCertificate) or noise.p != 2:
        raise ParameterError("bound: expected noise for budgets that grow with numbers")
    # u² (e^{2ρ} − 1) / (e^{2ρ(1 + u²)} − 1) for u = 1, 2, …: a number j·T_j exists in any unit
    least, squares = math.expm1(-2 * rho), [u * u for u in range(1, _MOST_TIMES)]
    shares = [s * math.exp(-2 * rho * s) * least / math.expm1(-2 * rho * (1 + s)) for s in squares]
    factor = min(math.sqrt(max(shares)), 1.0) * (1 - _MARGIN)
    factors = [1.0, *(factor for _ in relation.scales)]
    values, counts = certificate.weighted(factors)
    proof = Proof(float(values @ counts) * (1 - _MARGIN), (values, counts))
    where = "records without the numbers, and records of a whole multiple of one scale"
    return bound_from(proof, noise.p, privacy, n, rows, where, unbiased)


def bound_from(
    proof: Proof,
    p: float,
    privacy: AbstractPrivacy,
    n: int | None,
    share: float,
    reachable: str,
    unbiased: Unbiased,
    *,
    private: bool = False,
    least: int = 1,
    deviation: float = 0.0,
    guarantee: AbstractPrivacy | None = None,
) -> Bound:
    """Return the bound from a proof for a set S, if one record changes answers by ``share`` · S."""
    values, counts = proof.spectrum
    guarantee = guarantee or proven(privacy, n, unbiased)
    return Bound(
        share * proof.gamma_lower,
        reachable,
        (share * values, counts),
        privacy,
        guarantee,
        n,
        p,
        proof.gap,
        unbiased,
        private,
        least,
        deviation,
    )
