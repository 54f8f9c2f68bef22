"""Minimax rates of private mean and density estimation in the literature, without constants."""

import math
from typing import Literal, NamedTuple

from ..errors import ParameterError
from .knowledge import SMALLEST, moment_order, number, positive, shown

_MOST = 2**53  # largest number of records, people, or dimensions

Setting = Literal["bounded", "moments", "normal", "person", "density", "support"]


class Rate(NamedTuple):
    """Bounds on the minimax mean squared error, up to constant factors.

    The minimax error is the least worst-case error of all mechanisms. A bound is NaN if no source
    states it.

    Attributes:
        lower: no mechanism has a smaller error.
        upper: some mechanism has no larger error.
        source: author, year and statement.

    >>> found = gn.estimators.rates("bounded", n=10_000, d=10, epsilon=1)["pure"]
    >>> print(found.lower <= found.upper)
    True
    """

    lower: float
    upper: float
    source: str


def rates(
    setting: Setting,
    n: int,
    *,
    d: int = 1,
    epsilon: float = 1.0,
    delta: float = 1e-6,
    order: float = 2.0,
    samples: int = 1,
    radius: float = 1.0,
) -> dict[str, Rate]:
    r"""Return the minimax rates of a setting, for the kinds of privacy in the literature.

    Args:
        setting: the estimated quantity:

            * "bounded": the mean *of the data*, for records in a ball of this radius (squared ℓ2
              error);
            * "moments": a population mean, ``E‖X‖₂^k <= radius^k``;
            * "normal": the mean of N(μ, radius²) in one dimension; the range of μ has only
              logarithmic effect;
            * "person": a population mean from m records of each of n people, with bounded moments
              of order k in every direction;
            * "density": a Lipschitz density on [0, 1]^d, integrated squared error;
            * "support": the parameter θ of records that are uniform on [0, θ], θ <= radius.
        n: number of records, or people.
        d: dimension.
        epsilon: ε; or α of total variation privacy; or √α of KL privacy.
        delta: the δ of approximate privacy.
        order: k, the order of the moment, at least 2; infinity for bounded records.
        samples: m, the number of records of one person.
        radius: scale of the data; every rate is proportional to its square.

    Returns:
        {kind: rate} for those of the kinds "none", "pure", "approximate", "TV" and "KL" that are
        known.

    Raises:
        ParameterError: the setting is unknown, or arguments are out of range.

    Sources: Bassily, Smith & Thakurta (2014) and Steinke & Ullman (2015) for "bounded"; Barber &
    Duchi (2014), Table 1 and Propositions 2 to 6, for "moments", "density" and "support"; Karwa &
    Vadhan (2018) for "normal"; Agarwal, Kamath, Majid, Mouzakis, Silver & Ullman (2024), Theorems
    1.1, 1.2 and 6.1, for "person".

    >>> table = gn.estimators.rates("moments", n=10_000, d=10, epsilon=1, order=math.inf)
    >>> f"{table['pure'].lower:.6f} {table['TV'].lower:.6f}"
    '0.000101 0.000100'
    """
    name = "rates"
    if not (isinstance(setting, str) and setting in _SETTINGS):
        raise ParameterError(
            f"{name}: expected one of {', '.join(_SETTINGS)}, got {shown(setting)}"
        )
    if not all(
        isinstance(count, int) and not isinstance(count, bool) and 1 <= count <= _MOST
        for count in (n, d, samples)
    ):
        raise ParameterError(f"{name}: expected integers n, d, samples from 1 to 2^53")
    eps, scale, order = (
        positive(name, "epsilon", epsilon),
        positive(name, "radius", radius),
        moment_order(name, order, infinite=True),
    )
    if not SMALLEST <= (delta := number(name, "delta", delta)) < 1:
        raise ParameterError(f"{name}: expected {SMALLEST:g} <= delta < 1, got {delta!r}")
    square = scale * scale
    bounds = _SETTINGS[setting](n, d, eps, math.log(1 / delta), order, samples)
    return {
        kind: Rate(low * square, high * square, source)
        for kind, (low, high, source) in bounds.items()
    }


_Rates = dict[str, tuple[float, float, str]]


def _bounded(n: int, d: int, eps: float, log: float, k: float, m: int) -> _Rates:
    spent = (n * eps) ** 2
    pure, approximate = d * d / spent, d * log / spent
    return {
        "none": (0.0, 0.0, "the mean itself"),
        "pure": (min(1.0, pure), pure, "Bassily, Smith & Thakurta (2014), Lemma 5.1"),
        "approximate": (min(1.0, approximate), approximate, "Steinke & Ullman (2015), Theorem 1.1"),
    }


def _moments(n: int, d: int, eps: float, log: float, k: float, m: int) -> _Rates:
    power = 1.0 if math.isinf(k) else (k - 1) / k
    spent = (n * eps) ** 2

    def rate(numerator: float) -> float:
        return 1 / n + min((numerator / spent) ** power, 1.0)

    return {
        "none": (1 / n, 1 / n, "Barber & Duchi (2014), Table 1"),
        "pure": (rate(d * d), rate(d * d), "Barber & Duchi (2014), Propositions 4 and 6 (iii)"),
        "approximate": (
            rate(min(d * d, log * log)),
            rate(d * log),
            "Barber & Duchi (2014), Propositions 4 and 6 (ii)",
        ),
        "TV": (rate(1), rate(d), "Barber & Duchi (2014), Proposition 2 and Table 1"),
        "KL": (rate(1), rate(d), "Barber & Duchi (2014), Propositions 2 and 6 (i)"),
    }


def _normal(n: int, d: int, eps: float, log: float, k: float, m: int) -> _Rates:
    spent = (n * eps) ** 2
    return {
        "none": (1 / n, 1 / n, "the sample mean"),
        "pure": (
            1 / n + 1 / spent,
            1 / n + math.log(max(n, 3)) / spent,
            "Karwa & Vadhan (2018); Kamath, lecture 15",
        ),
    }


def _person(n: int, d: int, eps: float, log: float, k: float, m: int) -> _Rates:
    power = 1.0 if math.isinf(k) else (k - 1) / k
    terms = (math.sqrt(d / (n * m)), d / (n * math.sqrt(m) * eps), (d / (n * m * eps)) ** power)
    order = max(terms) ** 2
    return {
        "none": (d / (n * m), d / (n * m), "the sample mean"),
        "pure": (order, order, "Agarwal et al. (2024), Theorems 1.3 and 6.1"),
        "approximate": (order, order, "Agarwal et al. (2024), Theorems 1.2 and 6.1"),
    }


def _density(n: int, d: int, eps: float, log: float, k: float, m: int) -> _Rates:
    plain, private = n ** (-2 / (d + 2)), (n * eps) ** (-2 / (d + 1))
    return {
        "none": (plain, plain, "Tsybakov (2009), Theorem 2.8"),
        "pure": (plain + private, plain + private, "Barber & Duchi (2014), Proposition 5 and (19)"),
    }


def _support(n: int, d: int, eps: float, log: float, k: float, m: int) -> _Rates:
    return {
        "none": (1 / n**2, 1 / n**2, "the largest record"),
        "TV": (
            (1 / (32 * n * eps)) ** 2,
            math.nan,
            "Barber & Duchi (2014), Proposition 3, with its constant",
        ),
    }


_SETTINGS = {
    "bounded": _bounded,
    "moments": _moments,
    "normal": _normal,
    "person": _person,
    "density": _density,
    "support": _support,
}
