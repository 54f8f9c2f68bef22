"""Proposals in the comment of a drafted attribute, which the page offers as buttons and words."""

import re

_ENDS = re.compile(r"clip = \[(.*?)\] in place of edges")
_CODES = re.compile(r'missing = \[(.*?)\](?:, and other = "(.*?)")?')
_QUOTED = r'"(?:[^"\\]|\\.)*"'
_TEXTS = re.compile(rf"Texts that are no \w+ count in the catch-all: ({_QUOTED}(?:, {_QUOTED})*)\.")
_RARE = re.compile(r"In fewer than 1 of \d+ rows: (.*?)\. Such values may be errors")


def ends_in(reason: str) -> str:
    """Return the lowest and highest value that a comment proposes for sums and means, or "".

    The answer is text as a user types it.

    >>> ends_in("For sums and means, write clip = [0, 6000] in place of edges.")
    '0, 6000'
    """
    found = _ENDS.search(reason)
    return found[1] if found else ""


def codes_in(reason: str) -> tuple[str, str]:
    """Return the codes for no answer that a comment proposes, and a catch-all for them; or "".

    Without a catch-all, rows with such a code would be left out of all tables.

    >>> codes_in('If so, add the line missing = [999], and other = "not stated".')
    ('999', 'not stated')
    """
    found = _CODES.search(reason)
    return (found[1], found[2] or "") if found else ("", "")


def texts_in(reason: str) -> str:
    """Return the texts among numbers or dates that a comment names, with commas; or "".

    >>> texts_in('Texts that are no numbers count in the catch-all: "k.A.", "?".')
    '"k.A.", "?"'
    """
    found = _TEXTS.search(reason)
    return found[1] if found else ""


def rare_in(reason: str) -> str:
    """Return the values of few rows that a comment names, with commas; or "".

    >>> rare_in("In fewer than 1 of 1000 rows: 17, 250. Such values may be errors, and more.")
    '17, 250'
    """
    found = _RARE.search(reason)
    return found[1] if found else ""
