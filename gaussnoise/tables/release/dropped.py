"""The words of a question that a suggestion leaves out, which its hint names."""

import re

from ...text import nearest
from ..schema.schema import Schema
from .question import Question
from .shorter import parts_text

_WORD = re.compile(r"[\w.-]*\w")
# a word that turns its question into the opposite, or adds up what others keep apart
_REVERSED = re.compile(
    r"(?:\b(?:not|no|non|without|except|excluding|excludes?|never|neither|nor|none|but|other|outside"
    r"|cannot)\b|n['’]t\b|!=|≠|<>)",
    re.IGNORECASE,
)
_KINDS = {
    "count": r"counts?|how\s+many|(?:total\s+)?number|total|rows|records",
    "share": r"shares?|per\s*cent|percentages?|proportions?|fractions?|rates?|probability|odds",
    "mean": r"means?|averages?|earns?|typical",
    "other": r"medians?|quantiles?|cdf|variance|distribution|sum|entropy|concentration",
}
_COMPARED = (
    r"differences?|gap|between|versus|vs|compared?|ratio|change[ds]?",
    r"most|largest|highest|biggest|best|top",
    r"trend|rising|ris(?:e|es|en)|falls?|falling|grow|grows|growing",
)
_BEFORE = {"in", "of", "at", "for", "on", "with", "by", "to", "from", "during", "among", "per"}
_FILL = _BEFORE | set(
    "a an the is are was were be been do does did has have had what which who how much many there "
    "and or if so far where given each than show list me it that this only".split()
)
_CLOSE, _FEWEST = 0.8, 5  # a shorter word, or one less similar, is not taken for another one


def is_typo(word: str, other: str) -> bool:
    """Return whether one word is another one that is written wrongly, or in another case."""
    word, other = word.casefold(), other.casefold()
    if word == other:
        return True
    if min(len(word), len(other)) < _FEWEST or word[0] != other[0] or re.search(r"\d", word):
        return False
    return nearest(word, [other], _CLOSE) is not None


def suggested(text: str, other: str) -> str | None:
    """Return what a hint says before a question that is near a text; None if it may not be named.

    It may not if it reverses the text, has none of its words, or asks for another amount of less.

    Args:
        text: the text, in the words of the suggestion for ticks.
        other: the suggested question.
    """
    if len(_REVERSED.findall(text)) > len(_REVERSED.findall(other)):
        return None
    kept = {match[0].casefold() for match in _WORD.finditer(other)}
    spans = [match.span() for match in _WORD.finditer(text)]
    kinds = {kind: re.compile(rf"\b(?:{words})\b", re.I) for kind, words in _KINDS.items()}
    said = {kind for kind, words in kinds.items() if words.search(text)}
    of_kind = [match.span() for words in kinds.values() for match in words.finditer(text)]
    of_kind += [
        match.span()
        for words in _COMPARED
        if re.search(rf"\b(?:{words})\b", other, re.I)
        for match in re.finditer(rf"\b(?:{words})\b", text, re.I)
    ]
    lost: list[tuple[int, int]] = []
    is_near, leads, is_open = False, -1, False  # leads: where "in" begins, before a word
    for start, end in spans:
        word = text[start:end].casefold()
        is_of_kind = any(a <= start and end <= b for a, b in of_kind)
        if is_of_kind or any(is_typo(word, own) for own in kept - _FILL):
            is_near, leads, is_open = is_near or not is_of_kind, -1, False
        elif word in _FILL:
            leads = start if word in _BEFORE and leads < 0 else leads
        elif is_open:
            lost[-1], leads = (lost[-1][0], end), -1
        else:
            lost.append((start if leads < 0 else leads, end))
            leads, is_open = -1, True
    changes = said and not any(kinds[kind].search(other) for kind in said)
    if not lost:
        return ""
    if changes or not (is_near or any(kinds[kind].search(other) for kind in said)):
        return None
    return f"without {' and '.join(repr(text[a:b]) for a, b in lost)}: "


def without(schema: Schema, asked: Question, less: Question) -> str:
    """Return what a hint says before a question that has fewer conditions than the one asked."""
    kept = parts_text(schema, less)
    lost = dict.fromkeys(part for part in parts_text(schema, asked) if part not in kept)
    return f"without {' and '.join(map(repr, lost))}: "
