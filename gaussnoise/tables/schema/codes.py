"""Codes that mean "no answer": values of a column that are treated as missing (null)."""

import itertools
import math
import re
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from .dates import ISO

Code: TypeAlias = str | int | float

EXPECTED_CODES = 'a list of codes that mean no answer, numbers or text, like [999, "refused"]'
_MOST = 20  # because engines compare each value with each code
_EXACT = 2**53  # doubles cannot hold every integer that is not below this one
_NUMBER = re.compile(r"\s*[+-]?(\d+[.]?\d*|[.]\d+)([eE][+-]?\d+)?\s*")


def settled_codes(codes: tuple[Code, ...]) -> tuple[Code, ...]:
    """Return the codes for missing values, sorted: schemas with the same codes are then equal."""
    if not all(isinstance(code, str | int | float) for code in codes):
        return codes  # refused by :func:`code_problems`
    return tuple(sorted(codes, key=lambda code: (isinstance(code, str), code)))


def code_problems(
    codes: Sequence[object], categories: Sequence[object], is_number: bool
) -> Iterator[str]:
    """Yield an error message if the codes that mean "no answer" in a column are invalid.

    ``categories`` are the column's categories; ``is_number`` says whether it holds numbers.
    """
    numbers = [code for code in codes if isinstance(code, int | float)]
    texts = [code for code in codes if isinstance(code, str)]
    if len(numbers) + len(texts) < len(codes) or any(isinstance(code, bool) for code in codes):
        yield f"missing: expected {EXPECTED_CODES}"
    elif len(codes) > _MOST:
        yield f"missing: expected at most {_MOST} codes, got {len(codes)}"
    elif not all(abs(number) < _EXACT for number in numbers):  # also NaN
        yield "missing: expected numbers below 2**53, which doubles hold"
    elif len({*texts}) < len(texts) or any(
        later <= math.nextafter(code, math.inf)
        for code, later in itertools.pairwise(sorted(numbers))
    ):
        yield "missing: expected distinct codes, got one twice"
    elif {*map(str, codes)} & {*map(str, categories)}:
        yield "missing: expected codes that are no categories or spellings, got one that is"
    elif is_number and any(map(_NUMBER.fullmatch, texts)):
        yield "missing: expected numbers without quotes, in a column of numbers"
    elif not (is_number or categories) and any(re.fullmatch(ISO, text) for text in texts):
        yield (
            "missing: expected no dates, which are missing wherever they are outside the edges; "
            "hint: edges without them"
        )
