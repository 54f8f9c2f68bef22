"""Running totals without an end: Parseval against sums, factors against dense matrices."""

import math

import numpy as np
import pytest
from scipy.linalg import toeplitz

from gaussnoise.errors import ParameterError
from gaussnoise.streams import UnlimitedTotals


def dense(column):
    return np.tril(toeplitz(column))


@pytest.mark.parametrize("exponent", [0.1, 0.5, 1.0])
def test_the_totals_are_what_the_strategy_decodes(exponent):
    forever = UnlimitedTotals(exponent)
    left = np.tril(np.ones((60, 60))) @ np.linalg.inv(dense(forever.strategy(60)))
    np.testing.assert_allclose(
        forever.standard_deviation(60), np.linalg.norm(left, axis=1), rtol=1e-9
    )


@pytest.mark.parametrize("exponent", [1.0, 1.5, 2.0])
def test_no_column_is_ever_longer_than_one(exponent):
    """The exponents make the sum converge quickly; its tail is below an integral."""
    ticks = 4000
    column = UnlimitedTotals(exponent).strategy(ticks)
    # |coefficient| <= c k^-1/2 (log k)^-(1/2 + e): the tail is at most the last term's times k log
    # k / (2 e)
    tail = column[-1] ** 2 * ticks * math.log(ticks) / (2 * exponent)
    assert (column**2).sum() < 1
    assert (column**2).sum() + 2 * tail > 1 > (column**2).sum() + 0.3 * tail


def test_a_slower_logarithm_needs_more_sensitivity_and_more_patience():
    columns = [(UnlimitedTotals(e).strategy(1000) ** 2).sum() for e in (0.05, 0.2, 0.5, 1.0)]
    assert columns == sorted(columns)


@pytest.mark.parametrize("exponent", [0.0, -1.0, math.nan, 3.0])
def test_other_exponents_are_refused(exponent):
    with pytest.raises(ParameterError, match=r"expected an exponent between 0\.01 and 2"):
        UnlimitedTotals(exponent)
