"""A field for a number, in which a point and a comma are decimal marks.

The number fields of a browser drop a mark that the browser's language does not use: "0,5" became 5.
"""

import re

from nicegui import ui

from ..errors import ParameterError

_GROUPED = re.compile(r"\d{1,3}([ '’.,\u00a0\u202f])\d{3}(\1\d{3})*", re.ASCII)  # 20,061 or 20 061
_NUMBER = re.compile(r"(0|[1-9]\d*)([.,]\d+)?([eE][+-]?\d{1,2})?", re.ASCII)
_TWO_MEANINGS = re.compile(r"[1-9]\d{0,2},\d{3}", re.ASCII)


def number_of(text: str, *, whole: bool = False) -> float:
    """Return the number that a text means: 0.5 for "0,5" and for "0.5".

    Args:
        text: a typed number.
        whole: whether the number is a count. Marks in a count can only separate thousands.

    Raises:
        ParameterError: the text is no number, or can mean two of them.

    >>> number_of("0,5"), number_of("20,061", whole=True)
    (0.5, 20061.0)
    >>> number_of("1,000")
    Traceback (most recent call last):
    gaussnoise.errors.ParameterError: expected a number, got '1,000'; hint: write 1.000 or 1000
    """
    text = text.strip()
    if whole:
        plain = re.sub(r"\D", "", text) if _GROUPED.fullmatch(text) else text
        if re.fullmatch(r"[1-9][0-9]{0,14}", plain):
            return float(plain)
        raise ParameterError(f"expected a whole number, 1 or more, got {text!r:.40}")
    if _TWO_MEANINGS.fullmatch(text):
        either = f"{text.replace(',', '.')} or {text.replace(',', '')}"
        raise ParameterError(f"expected a number, got {text!r}; hint: write {either}")
    if not _NUMBER.fullmatch(text):
        raise ParameterError(f"expected a number, like 0.5, got {text!r:.40}")
    return float(text.replace(",", "."))


class NumberField(ui.input):
    """A text field for a number, with an error message, that shows the number it reads."""

    def __init__(self, label: str, value: float | None = None, *, whole: bool = False) -> None:
        self._whole = whole
        super().__init__(label, value=_shown(value))
        self.validation = lambda _: self._problem()
        self.props(f"inputmode={'numeric' if whole else 'decimal'}")
        self.on("blur", lambda: self._problem() or self.show(self.number))

    @property
    def number(self) -> float | None:
        """The typed number; None if the field is empty.

        Raises:
            ParameterError: the text is no number, or can mean two of them.
        """
        text = (self.value or "").strip()
        return number_of(text, whole=self._whole) if text else None

    @property
    def valid(self) -> float | None:
        """The typed number; None if the field is empty or wrong."""
        return None if self._problem() else self.number

    def show(self, number: float | None) -> None:
        """Show a number in the field."""
        self.value = _shown(number)

    def _problem(self) -> str | None:
        try:
            _ = self.number
        except ParameterError as error:
            return str(error)
        return None


def _shown(number: float | None) -> str:
    return "" if number is None else f"{number:.15g}"
