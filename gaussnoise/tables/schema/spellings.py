"""Other spellings of categories: text of a column that counts as a category."""

import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

EXPECTED_SPELLINGS = (
    'expected categories and lists of their other spellings, like {F = ["f", "Female"]}'
)

# a category, and its other spellings
Spelt: TypeAlias = tuple[str, tuple[str, ...]]


def settled(value: object) -> tuple[Spelt, ...] | None:
    """Return the spellings of categories as sorted tuples (category, other spellings).

    The sorting makes a schema, and the digest of a request, independent of the order of spellings.
    Return None if ``value`` is neither a mapping from categories to spellings nor such tuples.
    """
    pairs = tuple(value.items()) if isinstance(value, Mapping) else value
    if not isinstance(pairs, tuple | list):
        return None
    found = []
    for pair in pairs:
        if not (isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str)):
            return None
        if isinstance(pair[1], str | set | frozenset | Mapping) or not isinstance(
            pair[1], Iterable
        ):
            return None
        found.append((pair[0], tuple(sorted(pair[1], key=str))))  # others are refused later
    return tuple(sorted(found, key=lambda pair: pair[0]))


def spelling_problems(
    spellings: tuple[Spelt, ...] | None, categories: tuple[object, ...], other: str | None
) -> Iterator[str]:
    """Yield an error message if the other spellings do not fit the categories of a column.

    ``other`` is the name of the catch-all category, if there is one.
    """
    listed = [text for _, own in spellings or () for text in own]
    if spellings is None or not all(isinstance(text, str) for text in listed):
        yield f"spellings: {EXPECTED_SPELLINGS}"
    elif not all(isinstance(category, str) for category in categories or (0,)):
        yield "spellings: expected none, since only categories that are text have them"
    elif not all(own for _, own in spellings):
        yield f"spellings: {EXPECTED_SPELLINGS}, each with one spelling at least"
    elif unknown := [name for name, _ in spellings if name not in categories]:
        yield f"spellings: expected names of categories, got {unknown[0]!r:.80}, which is none"
    elif len(dict(spellings)) < len(spellings):
        yield "spellings: expected each category once, got one twice"
    elif taken := [text for text in listed if text in categories or text == other]:
        hint = "; hint: take it out of the categories" if taken[0] in categories else ""
        yield (
            "spellings: expected text that is neither a category nor the catch-all, got "
            f"{taken[0]!r:.80}{hint}"
        )
    elif len({*listed}) < len(listed):
        twice = next(text for text in listed if listed.count(text) > 1)
        yield f"spellings: expected each spelling once, got {twice!r:.80} twice"


def joined(rows: Mapping[str, int]) -> tuple[Spelt, ...]:
    """Return groups of texts that differ only in case, blanks or Unicode form.

    Each group is a pair: the most frequent text, and the others.

    Args:
        rows: the number of rows of each text.
    """
    groups: dict[str, list[str]] = {}
    for text in sorted(rows, key=lambda text: (-rows[text], text)):
        groups.setdefault(_bare(text), []).append(text)
    return tuple(sorted((one, tuple(own)) for one, *own in groups.values() if own))


def abbreviated(names: Iterable[str]) -> dict[str, str]:
    """Return {short form: word} for the names that abbreviate others, like "empl." for "employed".

    A short form is one letter, or letters with a full stop. Exactly one of the longer names begins
    with it. Single letters are left out if most of them begin no longer name.
    """
    bare = {name: _bare(name).removesuffix(".") for name in names}
    plain = {name: text for name, text in bare.items() if text.replace("-", "").isalpha()}
    shorts = {name for name in plain if len(plain[name]) == 1 or _bare(name).endswith(".")}
    words = {name: text for name, text in plain.items() if name not in shorts and len(text) > 3}
    fits = {own: [x for x, text in words.items() if text.startswith(plain[own])] for own in shorts}
    # where most letters begin no word, letters are codes: A, B, C, Dropped
    letters = [bool(found) for own, found in fits.items() if len(plain[own]) == 1]
    are_codes = 2 * sum(letters) < len(letters)
    return {
        own: found[0]
        for own, found in fits.items()
        if len(found) == 1 and not (are_codes and len(plain[own]) == 1)
    }


def _bare(text: str) -> str:
    return "".join(unicodedata.normalize("NFC", text).split()).casefold()
