"""Whether a suggested question has all words of the original question."""

import re

from ...text import nearest

_WORD = re.compile(r"[\w.-]*\w")
# words that reverse a question, or add up what other words separate
_REVERSED = re.compile(
    r"(?:\b(?:not|no|non|without|except|excluding|excludes?|never|neither|nor|none|but|other|outside"
    r"|cannot)\b|n['’]t\b|!=|≠|<>)",
    re.IGNORECASE,
)
_KINDS = {
    "count": r"counts?|how\s+many|(?:total\s+)?number|total|rows|records",
    "share": r"shares?|per\s*cent|percentages?|proportions?|fractions?|rates?|probability|odds",
    "mean": r"means?|averages?|earns?|typical",
    "other": r"medians?|quantiles?|cdf|(?:co)?variance|correlation|distribution|entropy"
    r"|concentration",
    "sum": r"sums?",
}
_COMPARED = (
    r"differences?|gap|between|versus|vs|compared?|ratio|change[ds]?",
    r"most|largest|highest|biggest|best|top",
    r"trend|rising|ris(?:e|es|en)|falls?|falling|grow|grows|growing",
)
_FILL = set(
    "in of at for on with by to from during among per "
    "a an the is are was were be been do does did has have had what which who how much many there "
    "and or if so far where given each than show list me it that this only".split()
)
_CLOSE, _FEWEST = 0.8, 5  # words less similar, or shorter, are not taken for typing errors


def is_typo(word: str, other: str) -> bool:
    """Return whether two words are the same word, apart from plural, case and typing errors."""
    word, other = word.casefold(), other.casefold()
    if word in (other, f"{other}s"):
        return True
    if min(len(word), len(other)) < _FEWEST or word[0] != other[0] or re.search(r"\d", word):
        return False
    return nearest(word, [other], _CLOSE) is not None


def is_kept(text: str, other: str) -> bool | None:
    """Return whether a suggested question has all words of a text; None if it must not be shown.

    A question must not be shown if it has the opposite meaning. It must not be shown either if it
    lacks words, and asks for another kind of number or for something unrelated. A question that has
    all words, but asks for another kind of number (a mean in place of a median), counts as one that
    lacks words.

    Args:
        text: the original question, with the word "tick" for periods if the suggestion has it.
        other: the suggested question.
    """
    if is_reversed(text, other):
        return None
    kept = {match[0].casefold() for match in _WORD.finditer(other)}
    kinds = {kind: re.compile(rf"\b(?:{words})\b", re.I) for kind, words in _KINDS.items()}
    said = {kind for kind, words in kinds.items() if words.search(text)}
    of_kind = [match.span() for words in kinds.values() for match in words.finditer(text)]
    of_kind += [
        match.span()
        for words in _COMPARED
        if re.search(rf"\b(?:{words})\b", other, re.I)
        for match in re.finditer(rf"\b(?:{words})\b", text, re.I)
    ]
    is_near = is_lost = False
    for start, end in (match.span() for match in _WORD.finditer(text)):
        word = text[start:end].casefold()
        is_of_kind = any(a <= start and end <= b for a, b in of_kind)
        if is_of_kind or any(is_typo(word, own) for own in kept - _FILL):
            is_near = is_near or not is_of_kind
        elif word not in _FILL:
            is_lost = True
    changes = bool(said) and not any(kinds[kind].search(other) for kind in said)
    if not is_lost:
        return not changes
    near = is_near or any(kinds[kind].search(other) for kind in said)
    return None if changes or not near else False


def turns_round(word: str) -> bool:
    """Return whether a word, like "not", reverses the meaning of a question that contains it."""
    return _REVERSED.fullmatch(word) is not None


def is_reversed(text: str, other: str) -> bool:
    """Return whether ``text`` has more words than ``other`` that reverse a meaning, like "not"."""
    return len(_REVERSED.findall(text)) > len(_REVERSED.findall(other))
