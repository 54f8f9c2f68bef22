"""Nouns for the counted things: rows, persons, or the unit that an owner states."""

import re
from typing import Any

# words for what a column identifies, other than persons; and for persons of one kind
_UNITS = set(
    "household family dwelling farm firm company enterprise business establishment employer school "
    "hospital patient pupil student employee worker customer client member resident respondent "
    "participant passenger voter citizen taxpayer".split()
)
_CODE = re.compile(r"[\s_.-]*(id|ids|no|nr|number|key|code|hash|uuid)$", re.IGNORECASE)


def noun_of(plan: Any, *, once: bool = True) -> str:
    """Return the name of the things that tables count, in the plural.

    The owner's own word is taken if there is one. The tables count persons, not rows, if each
    person has one row at most, and is counted in one tick only (``once``).
    """
    counted = plan.about.unit
    if counted is None:
        counted = "records" if plan.per_person else "rows"
        if plan.person is not None and plan.rows_per_person == 1 and once:
            counted = persons_of(plan.person)
    return counted if plan.weight is None else f"weighted {counted}"


def persons_of(column: str) -> str:
    """Return a plural noun for the persons that a column identifies: from its name, or "persons".

    >>> persons_of("id"), persons_of("household_id"), persons_of("ssn")
    ('persons', 'households', 'persons')
    """
    own = noun_in(column)
    return plural_of(own) if own in _UNITS else "persons"


def noun_in(column: str) -> str:
    """Return the last word of a column's name, without "id" and the like.

    >>> noun_in("hospital_patient_id")
    'patient'
    """
    return re.split(r"[\s_.-]+", _CODE.sub("", column).lower())[-1]


def plural_of(noun: str) -> str:
    """Return the plural of an English noun.

    >>> plural_of("family"), plural_of("business"), plural_of("day")
    ('families', 'businesses', 'days')
    """
    if re.search(r"[^aeiou]y$", noun):
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith("s") else f"{noun}s"
