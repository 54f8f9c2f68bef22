"""The probable role of a column that is no attribute: persons, weights or an identifier."""

import re
import shlex

from .seen import MOST_CATEGORIES, Seen

_PERSONS = set(
    "person patient subject participant respondent customer client user member student pupil "
    "employee worker resident inhabitant tenant taxpayer household family individual citizen "
    "passenger voter account uid uuid guid pid ssn hh persona personne paciente kunde "
    "firm company business enterprise establishment betrieb unternehmen firma".split()
)
_KEYS = {"id", "ids", "key", "no", "nr", "num", "number", "code", "nummer"}
_WEIGHTS = set(
    "weight weights weighting wt wgt wts pweight fweight aweight iweight perwt hhwt pond pondera "
    "ponderacion ponderation poids gewicht peso".split()
)
_OF_THINGS = {"birth", "body", "net", "gross"}  # then a weight is that of things, not of rows
_MOST_WORDS = 4  # names of more words are not interpreted
_FEW_NAMES = 20
_NEARLY_EACH = 0.9  # persons in relation to rows, if nearly every row is of another person
_MOST_ROWS_EACH = 20  # most rows per person, on average, if the name is like an identifier's


def _words(name: str) -> list[str]:
    """Return the words of a name like ``patientID`` in lower case; [""] for none or too many."""
    found = re.findall(r"[^\W\d_]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name))
    return [word.lower() for word in found] if 0 < len(found) <= _MOST_WORDS else [""]


def _says_person(name: str) -> bool:
    """Return whether a column's name means persons: ``patientid``, but not ``household income``."""
    words = _words(name)
    named = words if words[-1] in _KEYS or words[0] in _KEYS else words[-1:]
    # patientid, and in German Kundennr, Patientennummer and Personen-Nr
    stems = [word.removesuffix(key) for word in named for key in _KEYS if word.endswith(key)]
    stems += words if named is words else []
    parts = {*named, *stems, *(stem.removesuffix(end) for stem in stems for end in ("n", "en"))}
    return not parts.isdisjoint(_PERSONS)


def may_be_person(name: str) -> bool:
    """Return whether a column's name is like a name for persons or for an identifier."""
    return _says_person(name) or bool({"id", "ids"} & {_words(name)[0], _words(name)[-1]})


def role_of(name: str, column: Seen) -> str | None:
    """Return a remark on a column's role (persons, weights, identifier), with a hint.

    Return None if the column seems to be an attribute.
    """
    if may_be_person(name) and _is_person(name, column):
        rows = _rows_each(column)
        option = f"--person {shlex.quote(name)}"
        hint = f"{option} --rows-per-person K counts at most K rows of each"
        if not column.repeated:
            hint = f"as long as that is so, a row is a person; {option} makes sure of it"
        return f"column {name!r}: looks like the person that a row belongs to: {rows}; hint: {hint}"
    weighs = _words(name)[-1] in _WEIGHTS and not _OF_THINGS & set(_words(name))
    if weighs and column.kind == "numbers" and 0 <= column.low < column.high:
        return (
            f"column {name!r}: looks like sample weights; hint: --weight "
            f"{shlex.quote(f'{name}:MOST')}, with the largest weight that counts in full for MOST"
        )
    if _is_identifier(column):
        return (
            f"column {name!r}: looks like an identifier, or the person that a row belongs to: no "
            f"value occurs twice; hint: leave it out, or --person {shlex.quote(name)} where a "
            "person may have several rows"
        )
    return None


def _rows_each(column: Seen) -> str:
    """Return a clause that says how often the values of a column of persons occur."""
    if not column.repeated:
        return "every row has its own value"
    names = column.names
    if names is not None and not names.many and len(names) >= _NEARLY_EACH * column.rows:
        return "nearly every row has its own value"
    return "several rows have the same value"


def _is_identifier(column: Seen) -> bool:
    """Return whether no text or integer occurs twice in a column of many values."""
    many = column.names is not None and len(column.names) > MOST_CATEGORIES
    return many and column.is_distinct and not (column.is_separated or column.is_like_dates)


def _is_person(name: str, column: Seen) -> bool:
    """Return whether the values of a column can be persons: enough distinct texts or integers."""
    names, rows = column.names, column.rows
    if names is None or column.months or column.kind in (None, "truths"):
        return False
    if column.kind == "numbers" and not column.whole:
        return False
    unique = rows > 1 and not column.repeated
    each = _MOST_ROWS_EACH * len(names) >= rows or names.many
    return unique or (len(names) > _FEW_NAMES and (_says_person(name) or each))
