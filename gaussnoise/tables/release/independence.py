"""Tests of independence of two attributes, from a released table and its noise covariance."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
import scipy
from numpy.typing import NDArray

from ...errors import ParameterError
from ...layout import fitted
from .coefficients import CLEAR, check_sample, enough
from .contrasts import contrasts
from .noisy import AbstractRelease
from .show import chi_squared_text
from .sums import check_no_number

Array = NDArray[np.float64]

_FEW = 5.0  # least variance of a count for a good normal approximation (Cochran 1954)


@final
@dataclass(frozen=True)
class IndependenceTest:
    """A χ² test that two attributes are independent in the population the rows are drawn from.

    Attributes:
        first: the name of one attribute.
        second: the name of the other.
        given: attributes; the hypothesis is independence within each of their groups.
        statistic: the squared distance of the table from independence, by the covariance of
            sampling and noise together.
        degrees: the degrees of freedom of its χ² distribution under independence.
        p_value: the probability of a statistic of this size or larger under independence.
        noise_share: the average part of the variance that is due to noise, not to sampling.
        is_rough: whether some cell's expected count plus noise variance is below 5, so that the χ²
            distribution is a rough approximation.
        private: False for simulations, whose numbers must not be published.

    >>> import pyarrow as pa
    >>> schema = gn.Schema([gn.Attribute("sex", ["F", "M"]), gn.Attribute("jobs", [0, 1, 2])])
    >>> people = pa.table({"sex": ["F", "M"] * 3000, "jobs": [0, 1, 1, 2, 1, 1] * 1000})
    >>> release = gn.plan(schema, 2, gn.zCDP(0.5)).release(people)
    >>> test = release.independence("sex", "jobs")
    >>> print(test.degrees, test.p_value < 1e-6)
    2 True
    """

    first: str
    second: str
    given: tuple[str, ...]
    statistic: float
    degrees: int
    p_value: float
    noise_share: float
    is_rough: bool
    private: bool

    def __str__(self) -> str:
        given = f", given {' and '.join(self.given)}" if self.given else ""
        lines = [
            f"Are {self.first} and {self.second} independent{given}?",
            chi_squared_text(self.statistic, self.degrees, self.p_value),
            f"noise: {100 * self.noise_share:.0f} % of the variance; the rest is that of a sample "
            "of independent rows",
        ]
        if self.is_rough:
            lines.append(f"Rough: a cell has an expected count and noise below {_FEW:g}.")
        if not self.private:
            lines.append("NOT PRIVATE: a simulation")
        return "\n".join(map(fitted, lines))


def independence(
    release: AbstractRelease, first: str, second: str, *, given: str | Sequence[str] = ()
) -> IndependenceTest:
    """Return a χ² test of independence of two attributes, from the released table of both.

    Let N be the table of counts, and ρ and γ the shares of its rows and of its columns in the
    total. Let e be the expected counts under independence. With identity matrices I and vectors 1
    of ones, ``x = (I − ρ1') N (I − γ1')'`` is ``N − e``. Let V be the covariance of x under
    independence. To first order, V is the covariance of sampling, ``diag(e)``, plus the covariance
    of the noise, which is known exactly; both are mapped by the linear map from N to x. The
    statistic is ``x' V⁺ x``, with the pseudoinverse V⁺. All groups of ``given`` are tested
    together.

    Args:
        release: the release that is asked.
        first: an attribute of categories or bins.
        second: another such attribute.
        given: a name or several: independence is tested within the groups of these attributes.

    Returns:
        An :class:`~gaussnoise.results.IndependenceTest`.

    Raises:
        ParameterError: an unknown attribute, a table that was not released, numbers, weights,
            several rows of a person, which are not independent, or a number of rows that the noise
            hides.

    Source: Gaboardi, Lim, Rogers & Vadhan (2016), "Differentially private chi-squared hypothesis
    testing"; here the noise of different cells may be correlated.

    >>> import pyarrow as pa
    >>> schema = gn.Schema([gn.Attribute("sex", ["F", "M"]), gn.Attribute("job", ["yes", "no"])])
    >>> people = pa.table({"sex": ["F", "M"] * 4000, "job": ["yes", "yes", "no", "no"] * 2000})
    >>> release = gn.plan(schema, 2, gn.zCDP(0.5)).release(people)
    >>> release.independence("sex", "job").p_value > 1e-9  # they are independent
    True
    """
    within = (given,) if isinstance(given, str) else tuple(given)
    names = (*within, first, second)
    if len(set(names)) < len(names):
        raise ParameterError(f"independence: expected different attributes, got {names!r:.80}")
    check_no_number(release, "independence", names)
    plan = release.plan
    check_sample("independence", plan.weight is not None, plan.rows_per_person)
    table = release[names]
    counts = np.asarray(table.estimate)
    sizes = counts.shape[-2:]
    if min(sizes) < 2:
        raise ParameterError(
            "independence: expected attributes of two categories or more, got "
            f"{sizes[0]} and {sizes[1]}"
        )
    forms, expected = _residuals(counts.reshape(-1, *sizes))
    found = contrasts(
        release.kept(),
        [{names: np.ones(counts.shape)}, *({names: row.reshape(counts.shape)} for row in forms)],
    )
    total, sd = float(found.estimate[0]), float(np.sqrt(found.covariance[0, 0]))
    if total <= CLEAR * sd:
        raise ParameterError(
            f"independence: expected rows that the noise does not hide, got {total:.3g} ± {sd:.2g}"
            f"; hint: {enough(release, total, sd)}"
        )
    noise = found.covariance[1:, 1:]
    sampling = (forms * expected) @ forms.T
    x = found.estimate[1:]
    values, axes = np.linalg.eigh(noise + sampling)
    seen = values > 1e-12 * values[-1]
    statistic = float(np.square(x @ axes[:, seen]) @ (1 / values[seen]))
    variance = np.asarray(table.standard_deviation).ravel() ** 2 + expected
    return IndependenceTest(
        first,
        second,
        within,
        statistic,
        int(seen.sum()),
        float(scipy.stats.chi2.sf(statistic, int(seen.sum()))),
        float(np.trace(noise) / np.trace(noise + sampling)),
        bool(variance.min() < _FEW),
        release.private,
    )


def _residuals(counts: Array) -> tuple[Array, Array]:
    """Return weights of cells in the deviations from independence, and the expected counts."""
    # each group has (m − 1)(n − 1) deviations; weights: (deviations, cells), expected: (cells,)
    groups, m, n = counts.shape
    rows, columns = (np.maximum(counts.sum(axis=axis), 0.0) for axis in (2, 1))
    forms = np.zeros((groups, (m - 1) * (n - 1), groups, m * n))
    expected = np.zeros((groups, m * n))
    for k, (r, c) in enumerate(zip(rows, columns, strict=True)):
        rho, gamma = (own / own.sum() if own.any() else own for own in (r, c))
        left, right = (
            scipy.linalg.helmert(len(own)) @ (np.eye(len(own)) - own[:, None])
            for own in (rho, gamma)
        )
        forms[k, :, k] = np.kron(left, right)
        expected[k] = np.kron(rho, gamma) * (r.sum() + c.sum()) / 2
    return forms.reshape(-1, groups * m * n), expected.ravel()
