"""Numbers as people of several languages type them."""

import pytest

from gaussnoise.app.number_field import number_of
from gaussnoise.errors import ParameterError


@pytest.mark.parametrize(
    ("text", "number"),
    [("0.5", 0.5), ("0,5", 0.5), (" 12,25 ", 12.25), ("1.125", 1.125), ("0,125", 0.125),
     ("1e-3", 1e-3), ("2,5E-2", 0.025), ("20", 20.0), ("1234,567", 1234.567)],
)  # fmt: skip
def test_a_point_and_a_comma_are_decimal_marks(text, number):
    assert number_of(text) == number


@pytest.mark.parametrize(
    "text",
    ["05", "00", "1,000", "20,061", "1.000,5", "1,000.5", "1,2,3", "-1", "+1", "1e999", "inf",
     "nan", "0x1", "1_0", "½", "٣", "1 000", ",5", "5,", "ρ", ""],
)  # fmt: skip
def test_a_text_that_is_no_number_or_can_mean_two_is_refused(text):
    with pytest.raises(ParameterError, match="expected a number"):
        number_of(text)


@pytest.mark.parametrize("text", ["20061", "20,061", "20.061", "20 061", "20’061", "20\u00a0061"])
def test_marks_of_a_whole_number_separate_thousands(text):
    assert number_of(text, whole=True) == 20061


@pytest.mark.parametrize(
    "text", ["0", "05", "1.5", "1,5", "1,00", "20,06", "0,061", "1.000,000", "2e4", "-3", "", "٣"]
)
def test_a_whole_number_has_no_decimals(text):
    with pytest.raises(ParameterError, match="expected a whole number"):
        number_of(text, whole=True)
