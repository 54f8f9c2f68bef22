"""Pages from templates: all text is escaped, and numbers are written for human readers."""

import math
import re
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ....text import NO_LIMIT, NO_NUMBER, capital, has_interval, no_less, number_of
from ...planning.facts import limit_text
from ...schema.schema import Category
from ..marks import MARKS

if TYPE_CHECKING:
    from jinja2 import Environment

THE_REST = "(the rest)"  # beside the name of a catch-all
_UNSEEN = re.compile(r"[\s\x00-\x1f\x7f-\x9f\ufdd0-\ufdef\ufeff\ufffd-\uffff]")
# a text that ends like the name of a catch-all, without characters that a page may write otherwise
_MARKED = re.compile(re.escape(_UNSEEN.sub("", THE_REST)) + "”*$")
_MOST_LABEL = 120  # most characters of a label on a page
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufdd0-\ufdef\ufffe\uffff]")
_EXACT = 1e15  # larger numbers are written with an exponent


class Cell(NamedTuple):
    """A number on a page: its labels, estimate, interval, deviation, and mark of reliability."""

    names: tuple[Category, ...]
    estimate: float
    low: float
    high: float
    deviation: float
    mark: str = ""
    hidden: str = ""  # why a page has a dash in place of the number

    @property
    def digits(self) -> int:
        """The number of decimals to write, so that none is smaller than the noise."""
        return 1 if self.is_rounded else digits_of(self.deviation)

    @property
    def is_rounded(self) -> bool:
        """Whether the number has no noise, and more decimals than a page has."""
        return not self.deviation and math.isfinite(self.estimate) and self.estimate % 1 > 0

    @property
    def is_below(self) -> bool:
        """Whether the number is below 0 as it is shown."""
        return round(self.estimate, self.digits) < 0

    @property
    def caution(self) -> str:
        """Words beside an interval if the number is hidden, or may be 0; else ""."""
        if self.hidden or self.mark != MARKS[-1] or not self.has_interval:
            return self.hidden
        low, high = (round(end, self.digits) for end in (self.low, self.high))  # as they are shown
        return "may be 0" if low <= 0 <= high else ""

    @property
    def has_interval(self) -> bool:
        """Whether the interval is informative."""
        return bool(has_interval(*map(np.asarray, (self.estimate, self.low, self.high))))


def rendered(template: str, **facts: object) -> str:
    """Return a page: a template of this folder, filled with facts.

    Characters that HTML forbids are replaced.
    """
    return _CONTROL.sub("\ufffd", _templates().get_template(template).render(facts))


@cache
def _templates() -> "Environment":
    """Return the templates of this folder; loads jinja2 when the first page is made."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        autoescape=True,
        loader=PackageLoader(__name__.rpartition(".")[0]),
        lstrip_blocks=True,
        trim_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters |= {
        "form": format,
        "no_less": no_less,
        "number": number,
        "shown": shown,
        "capital": capital,
    }
    environment.globals |= {"infinity": math.inf, "counted": counted, "limit_text": limit_text}
    environment.globals["the_rest"] = THE_REST
    return environment


def category_text(label: Category, is_other: bool) -> Category:
    """Return a category for a table; a catch-all is named as one, and no other category is.

    A category whose own text ends like the name of a catch-all is in quotation marks. The script of
    a page (``page.js``) expects the same names.

    >>> category_text("other", True), category_text("other (the rest)", False)
    ('other (the rest)', '“other (the rest)”')
    """
    if is_other:
        return f"{label} {THE_REST}"
    return f"“{label}”" if _MARKED.search(_UNSEEN.sub("", str(label))) else label


def shown(text: object, most: int = _MOST_LABEL) -> str:
    """Return a label on one line, shortened if it is very long."""
    line = " ".join(str(text).split()) or "(blank)"
    return line if len(line) <= most else line[: most - 1] + "…"


def digits_of(deviation: float) -> int:
    """Return the number of decimals that are not hidden by noise of this standard deviation."""
    if not 0 < deviation < math.inf:
        return 0
    return min(max(0, -math.floor(math.log10(2 * deviation))), 9)


def number(value: float, digits: int) -> str:
    """Return a number as text, like ``−1,234.5``.

    >>> number(-1234.56, 1), number(-0.01, 0)
    ('−1,234.6', '0')
    """
    if not math.isfinite(value):
        return NO_NUMBER if math.isnan(value) else NO_LIMIT
    text = f"{value:z,.{digits}f}" if abs(value) < _EXACT else f"{value:.6g}"
    return text.replace("-", "−")


def counted(count: int, thing: str) -> str:
    """Return a count with its noun, like ``2 tables``."""
    return number_of(count, thing, form=",")
