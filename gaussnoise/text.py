"""Text of released estimates, and statements of every release."""

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import ROUND_CEILING, Context, Decimal
from functools import cache
from itertools import takewhile

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_SHOWN = 8  # most coordinates in a text
LARGEST = 1e12  # larger numbers are written with an exponent
_LISTED = 8  # most names in a message
# characters in names and labels that would control a terminal or the writing direction
_OBEYED = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
SHOWN_DELTA = 1e-6  # the δ at which every budget is also stated as ε
_CAVEATS = (
    "Not covered: what the time that the program took tells of the data; the fact of a refusal, "
    "which depends on the data; other releases of the same data.",
    "Noise is drawn by a program of the OpenDP project, its discrete Gaussian sampler. OpenDP "
    "calls it contributed: the review of its proof is not finished. This is about that program, "
    "not about the data or the tables.",
)


def disclaimers(protected: str, private: bool) -> list[str]:
    """Return the sentences of a release on the protected data and the remaining risks.

    ``protected`` describes these data. A simulation (``private`` is false) has one sentence.
    """
    if not private:
        return ["A simulation with a seeded generator: it protects nobody."]
    return [f"Protected: {protected}", *_CAVEATS]


def printable(text: str) -> str:
    r"""Return text in which characters that control a terminal are written as ``\u001b``."""
    return _OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def capital(text: str) -> str:
    """Return a text with its first letter as a capital letter."""
    return text[:1].upper() + text[1:]


def and_text(names: Sequence[str]) -> str:
    """Return names as a sentence lists them.

    >>> and_text(["sex"]), and_text(["sex", "age"]), and_text(["sex", "age", "town"])
    ('sex', 'sex and age', 'sex, age and town')
    """
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def nearest(name: object, known: Iterable[object], least: float = 0.6) -> object | None:
    """Return the known name that is most similar to ``name``, ignoring upper and lower case.

    Return None if no name has a similarity (difflib's ratio) of at least ``least``.
    """
    names = {str(other).casefold(): other for other in known}
    close = difflib.get_close_matches(str(name).strip().casefold(), names, 1, least)
    return names[close[0]] if close else None


def near(name: object, known: Iterable[object]) -> str:
    """Return a hint, for a message, with the known name most similar to ``name``, or ""."""
    close = nearest(name, known)
    return "" if close is None else f"; hint: did you mean {close!r}?"


def one_of(known: Iterable[object]) -> str:
    """Return text for a message that lists the first expected names, and the number of all.

    >>> one_of("abc"), one_of(range(100, 140))
    ('one of a, b, c', 'one of 100, 101, 102, 103, 104, 105, 106, 107, … (40)')
    """
    texts = [str(one) for one in known]
    more = f", … ({len(texts)})" if len(texts) > _LISTED else ""
    return ("one of " if len(texts) != 1 else "") + ", ".join(texts[:_LISTED]) + more


NO_NUMBER, NO_LIMIT, NO_INTERVAL = "none", "no limit", "no interval"


def has_interval(estimate: Array, low: Array, high: Array) -> NDArray[np.bool_]:
    """Return a mask of the intervals to show.

    A shown interval has two finite bounds, or one finite bound and a finite estimate.
    """
    known = np.isfinite(low) & np.isfinite(high)
    return known | (np.isfinite(estimate) & (np.isfinite(low) | np.isfinite(high)))


def between_text(low: str, high: str) -> str:
    """Return the text of an interval, from the texts of its bounds.

    >>> between_text("3", "5"), between_text("0", NO_LIMIT), between_text(NO_LIMIT, NO_LIMIT)
    ('3 to 5', '0 or more', 'no interval')
    """
    if low == NO_LIMIT or high == NO_LIMIT:
        if low == high:
            return NO_INTERVAL
        return f"{low} or more" if high == NO_LIMIT else f"{high} or less"
    return f"{low} to {high}"


def number_of(count: int, one: str, many: str = "", *, form: str = "d") -> str:
    """Return a number with its noun, like ``1 marginal`` or ``2 marginals``."""
    return f"{count:{form}} {one if count == 1 else many or one + 's'}"


def significant(value: float, digits: int) -> str:
    """Return a number with this many significant digits, and commas between thousands.

    >>> significant(1234567.8, 4), significant(-0.00012345, 3), significant(2.5e13, 4)
    ('1,235,000', '-0.000123', '2.5e+13')
    """
    rounded = float(f"{value:.{digits}g}")
    return f"{rounded:,.15g}" if 1 <= abs(rounded) < LARGEST else f"{value:.{digits}g}"


@cache
def versions(*libraries: str) -> Mapping[str, str]:
    """Return {library: version} of installed libraries; the answer is cached."""
    from importlib import metadata

    return {name: metadata.version(name) for name in libraries}


def no_less(value: float, figures: int = 6) -> str:
    """Return an upper bound, such as a privacy loss, as text, rounded up to ``figures`` digits.

    >>> no_less(3.66244, 4), no_less(0.1)
    ('3.663', '0.1')
    """
    shortest = Decimal(repr(float(value)))  # exact binary digits of 0.1 would give 0.100001
    return f"{float(Context(figures, ROUND_CEILING).plus(shortest)):.{figures}g}"


def guarantee_text(privacy: Mapping[str, object], private: bool) -> str:
    """Return the text of a release's privacy guarantee, such as ``zCDP, rho = 0.1``.

    ``privacy`` is the part of the release's record about privacy.
    """
    names = list(privacy)
    after = names[names.index("definition") + 1 :] if "definition" in names else []
    numbers = list(takewhile(lambda name: isinstance(privacy[name], int | float), after))
    if not numbers:  # the record has another order of keys
        known = [name for name in ("epsilon", "delta", "mu", "alpha") if name in privacy]
        numbers = known or [name for name in ("rho",) if name in privacy]
    said = [str(privacy.get("definition", "no privacy guarantee on record"))]
    said += [f"{name} = {privacy[name]}" for name in numbers]
    return ("" if private else "NOT PRIVATE, a simulation of ") + ", ".join(said)


def estimate_text(
    title: str,
    estimate: Array,
    privacy: Mapping[str, object],
    private: bool,
    sd: Array | None = None,
    meaning: str | None = None,
) -> str:
    """Return the text that ``print`` shows for an estimate: its first coordinates.

    Args:
        title: the first words of the text.
        estimate: the estimate, shape (d,).
        privacy: the part of the release's record about privacy.
        private: false for a simulation.
        sd: the standard deviation of each coordinate, shown after ±.
        meaning: an explanation of the number after ±.
    """
    neighbors = f", under {privacy['neighbors']}" if "neighbors" in privacy else ""
    lines = [
        f"{title}: {estimate.size} coordinates",
        f"privacy  {guarantee_text(privacy, private)}{neighbors}",
    ]
    if sd is None:
        lines += [f"{x:>14.8g}" for x in estimate[:_SHOWN]]
    else:
        lines += [
            f"{x:>14.8g} ± {deviation:.4g}"
            for x, deviation in zip(estimate[:_SHOWN], sd, strict=False)
        ]
    if estimate.size > _SHOWN:
        lines.append(f"… and {estimate.size - _SHOWN} more")
    if meaning is not None:
        lines.append(f"± {meaning}")
    elif sd is not None:
        lines.append(
            f"± one standard deviation; root of the total variance, ‖sd‖₂: {np.linalg.norm(sd):.4g}"
        )
    return "\n".join(lines)
