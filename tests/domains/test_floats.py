"""Numbers in double precision."""

import math
from fractions import Fraction

import numpy as np
import pytest

from domains.floats import EPS, UNIT, power_of_two


@pytest.mark.parametrize("size", [1.0, 3.0, 1023.9, 1e-300, 2.5e300, math.ulp(0.0)])
def test_dividing_by_a_power_of_two_does_not_round(size):
    power = power_of_two(size)
    assert power <= size < 2 * Fraction(power)
    assert Fraction(size / power) == Fraction(size) / Fraction(power)
    assert Fraction(0.1 / 0.3) != Fraction(0.1) / Fraction(0.3)  # other divisors do round


def test_units_are_the_steps_of_double_precision():
    assert np.nextafter(1.0, 2.0) - 1.0 == EPS == 2 * UNIT
    assert 1.0 + UNIT == 1.0 < 1.0 + 1.01 * UNIT
