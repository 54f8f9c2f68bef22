"""Proposals in the comment of a drafted attribute, which the page offers as buttons and words."""

import re

_QUOTED = r'"(?:[^"\\]|\\.)*"'  # a text of the data
_VALUE = rf'(?:{_QUOTED}|[^",]+?)'
_ENDS = r"clip = \[(.*?)\] in place of edges"
_CODES = r'missing = \[(.*?)\](?:, and other = "(.*?)")?'
_TEXTS = rf"Texts that are no \w+ count in the catch-all: ({_QUOTED}(?:, {_QUOTED})*)\."
_RARE = rf"In fewer than 1 of \d+ rows: ({_VALUE}(?:, {_VALUE})*)\. Such values may be errors"


def ends_in(reason: str) -> str:
    """Return the lowest and highest value that a comment proposes for sums and means, or "".

    The answer is text as a user types it.

    >>> ends_in("For sums and means, write clip = [0, 6000] in place of edges.")
    '0, 6000'
    """
    return _found(_ENDS, reason)[0]


def codes_in(reason: str) -> tuple[str, str]:
    """Return the codes for "no answer" that a comment proposes, and a catch-all for these codes.

    Each is "" if the comment proposes none. Without a catch-all, rows with such a code would be
    left out of all tables.

    >>> codes_in('If so, add the line missing = [999], and other = "not stated".')
    ('999', 'not stated')
    """
    codes, *rest = _found(_CODES, reason)
    return codes, "".join(rest)


def texts_in(reason: str) -> str:
    """Return the texts among numbers or dates that a comment names, with commas; or "".

    >>> texts_in('Texts that are no numbers count in the catch-all: "k.A.", "?".')
    '"k.A.", "?"'
    """
    return _found(_TEXTS, reason)[0]


def rare_in(reason: str) -> str:
    """Return the values of few rows that a comment names, with commas; or "".

    >>> rare_in("In fewer than 1 of 1000 rows: 17, 250. Such values may be errors, and more.")
    '17, 250'
    """
    return _found(_RARE, reason)[0]


def _found(pattern: str, reason: str) -> list[str]:
    """Return the groups of the first match of ``pattern`` outside quoted data; [""] if none."""
    # quoted texts come first in the pattern, so that the search steps over them
    matches = re.finditer(rf"{_QUOTED}|{pattern}", reason)
    return next(([x or "" for x in m.groups()] for m in matches if m[1] is not None), [""])
