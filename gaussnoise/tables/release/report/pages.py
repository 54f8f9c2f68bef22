"""The page of a release, and the page of a plan, from the templates of this folder."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ....errors import OutputError, ParameterError
from ....files.disk import SIGNATURE, check_parent, file_digest, read_json, save_text
from ....privacy.definitions import zCDP
from ....privacy.per_record import holds_text
from ....privacy.testing import most_posterior
from ....text import SHOWN_DELTA, and_text, versions
from ...planning.facts import (
    CLOSED,
    Facts,
    facts_of,
    guess_of,
    marginal_name,
    percent_text,
    risk_of,
)
from ...planning.noun import noun_of
from ...planning.ranges import ranges_text
from ...planning.text import numbers_text, work_text
from ...schema.numbers import interval_text
from ..likeness import ASSUMED, Likeness, likeness
from ..marks import MARKS_TEXT
from ..noisy import AbstractRelease
from ..population import population_of
from ..store import StoredTables
from ..sums import MeanTable
from ..text import codes_text, dropped_text, weight_text
from ..tidy import LEVEL, level_text
from .answers import Answered
from .charts import comparison_chart
from .checked import check_of, folder_of
from .errors import (
    Errors,
    erring,
    error_text,
    errors_of_plan,
    errors_of_release,
    half_widths,
    means_of,
    typical_error,
)
from .findings import finding_of
from .numbers import Numbers, capped_in, cells_of, entries_of, extremes_of, files_of, titles_of
from .order import reading_labels
from .over_time import OverTime
from .population import sections_of
from .render import counted, digits_of, rendered

if TYPE_CHECKING:
    from ...planning.plan import Plan

_MOST_IN_FULL = 12  # most tables with all their numbers
_MOST_LISTED = 1000  # most tables that are listed by name
_MOST_FIRST = 24  # most tables listed at the beginning; more are listed at the end
_MOST_COMPARED = 20  # most entries in the picture of a plan
_MOST_NAMED = 5  # most attributes in the first sentence
_WEAK = 0.999  # a larger belief means weak protection, from a prior of 50 %
_DELTAS = (1e-4, SHOWN_DELTA, 1e-9)
MOST_MEANS = 200  # most means of a population that are listed
_BUT_MEANS = (
    "Means are of the population that the rows were drawn from, and their intervals are about "
    "sampling too. All other intervals on this page are about the noise alone."
)
_OF_NOISE = (
    "Intervals on this page are about the noise alone: those for the population that the rows were "
    "drawn from are wider, and gaussnoise.estimators.population_means(release) has them."
)


def save_report(
    document: "Plan | AbstractRelease",
    path: str | os.PathLike[str],
    title: str | None,
    synthetic: Any = None,
    answers: Sequence[Answered] = (),
) -> None:
    """Write the page about a plan or a release to a new HTML file; see :func:`save_page`."""
    if isinstance(document, AbstractRelease):
        page = partial(release_page, document, title, synthetic, answers=answers)
        return save_page(page, path, title, [document])
    save_page(lambda: plan_page(document, title), path, title, [])


def save_page(
    page: Callable[[], str],
    path: str | os.PathLike[str],
    title: str | None,
    releases: Sequence[AbstractRelease],
) -> None:
    """Write the HTML text that ``page()`` returns to a new file.

    Raises:
        OutputError: the file exists, cannot be written, or would be inside a release's folder.
        ParameterError: the title is not a text.
    """
    if not (title is None or isinstance(title, str)):
        raise ParameterError(f"report: expected a title of text, got {type(title).__name__}")
    if not isinstance(path, str | os.PathLike):
        raise ParameterError(f"report: expected a path, got {type(path).__name__}")
    place = Path(path)
    check_parent(place, "report")
    for release in releases:
        tables = release.tables
        if isinstance(tables, StoredTables) and _is_inside(place, tables.folder):
            raise OutputError(
                f"report: {tables.folder} holds the files that were released and no others; "
                "hint: a place outside"
            )
    save_text(place, page())


def _is_inside(place: Path, folder: Path) -> bool:
    try:
        return place.parent.resolve().is_relative_to(folder.resolve())
    except OSError:
        return False


def release_page(
    release: AbstractRelease,
    title: str | None = None,
    synthetic: Any = None,
    over_time: Sequence[OverTime] = (),
    answers: Sequence[Answered] = (),
    folder: Path | None = None,
) -> str:
    """Return the page of a release, for director, auditor and journalist.

    The page has the finding of every table; answers to questions, if any; tables and pictures with
    intervals; the largest and smallest groups; a comparison with synthetic records, if they are
    given; the request; the role of noise; privacy in plain words. For specialists it has the full
    guarantee, the distance of the noise from the optimum, the making of the release, and five
    terms. Only the released estimates on the page depend on data. The same release gives the same
    page. The page of a stream also has its tables over time; ``folder`` is the folder of the
    stream.
    """
    plan, private = release.plan, release.private
    errors = errors_of_release(release)
    facts = facts_of(plan) if release.over is None else release.over.facts
    check = check_of({"": folder or folder_of(release)}) if private else None
    page = _page(
        "release.html",
        plan,
        title or plan.about.title or ("Released tables" if private else "Simulated tables"),
        errors,
        facts,
        rho=release.rho_charged if private else plan.rho,
        noun=release.noun,
        private=private,
        check=check,
        over_time=over_time,
        answers=answers,
        **tables_facts(release, errors, facts.counted, synthetic),
    )
    return page if check is None else check.held(page)


def tables_facts(
    release: AbstractRelease, errors: Sequence[Errors], counted: str, synthetic: Any
) -> dict[str, object]:
    """Return {name in a page's template: value}, about the tables of a release or a combination."""
    plan, entries = release.plan, entries_of(release)
    (total,) = cells_of(release[()], [0])
    used = [name for name in plan.schema.names if any(name in own for own in release)]
    means = population_of(release) if plan.ranges and plan.weight is None else None
    rules = [] if plan.person is None else [f"The tables count {counted}."]
    is_short = means is not None and len(means.means) <= MOST_MEANS
    rules += [_BUT_MEANS if is_short else _OF_NOISE] if means else []
    population = list(sections_of(means)) if means and is_short else []
    places = {one.title: one.anchor for one in population}
    # next to means of the population, means of the rows are for specialists
    alone = [entry for entry in entries if entry.title in places]
    full = [entry for entry in entries if entry not in alone][:_MOST_IN_FULL]
    others = {a.name: a.other for a in plan.schema.attributes if a.other is not None}
    findings = {entry.anchor: _findings(entry.parts, others) for entry in full}
    said = [(one.anchor, one.title, one.finding) for one in population]
    said += [(entry.anchor, entry.title, findings[entry.anchor]) for entry in full]
    return {
        "release": release,
        "names": [plan.schema.heading(name) for name in used],
        "total": total,
        "rules": " ".join([*rules, *weight_text(plan), *dropped_text(release)]),
        "first": _MOST_FIRST,
        "listed": _MOST_LISTED,
        "anchors": {entry.name: entry.anchor for entry in full}
        | {entry.name: places[entry.title] for entry in alone},
        "titles": {entry.name: entry.title for entry in entries},
        "behind": [replace(own, heading=True) for entry in alone for own in entry.every]
        + [numbers for entry in full for numbers in entry.behind],
        "files": files_of(release),
        "errors": [  # about the noise alone, so that means of a population have none here
            (one not in places and mean) or error_text(own)
            for one, mean, own in zip(titles_of(plan), means_of(release), errors, strict=True)
        ],
        "entries": entries,
        "shown": full,
        "findings": findings,
        "said": [one for one in said if one[-1]],
        "marks": MARKS_TEXT,
        "others": _others(release),
        "means": means if is_short else None,
        "population": population,
        "clipped": ranges_text(plan.ranges, plan.rho) if is_short else [],
        "extremes": extremes_of(entries[:_MOST_FIRST]),
        "all_extremes": extremes_of(entries) if len(plan.entries) > _MOST_FIRST else None,
        "stored": stored_facts(release),
        **_synthetic_facts(release, synthetic),
    }


def _others(release: AbstractRelease) -> list[tuple[str, list[str]]]:
    """Return names of catch-all categories in the tables, with the headings of attributes."""
    found: dict[str, list[str]] = {}
    used = {name for marginal in release for name in marginal}
    for attribute in release.plan.schema.attributes:
        if attribute.name in used and attribute.other is not None and not attribute.is_summed:
            found.setdefault(attribute.other, []).append(attribute.heading)
    return list(found.items())


def _findings(parts: Sequence[Numbers], others: Mapping[str, str]) -> str:
    """Return sentences on an entry: on its first table, on means, and on their margins."""
    about = [own for own in parts if own is parts[0] or own.kind == "mean"]
    first = [own.by_first for own in parts if own.table.estimate.shape[:1] != (2,)]
    about += [own for own in first if own is not None]  # parts have means by two categories
    said = [(own, finding_of(own, others)) for own in about]
    return " ".join(f"{_short(own)}: {text}" if own.heading else text for own, text in said if text)


def _short(numbers: Numbers) -> str:
    """Return the title of numbers, without the words on clipping, which their section has."""
    table = numbers.table
    if not (isinstance(table, MeanTable) and table.is_bounded):
        return numbers.title
    return numbers.title.removesuffix(capped_in(table.clip))


def _synthetic_facts(release: AbstractRelease, records: Any) -> dict[str, object]:
    """Return facts on synthetic records beside the released tables; none without records."""
    found = [] if records is None else likeness(release, records)
    inside = [row.is_inside for row in found if row.is_inside is not None]
    return {
        "likeness": [(row, digits_of(_size(row) / 1000)) for row in found],
        "records": 0 if records is None else len(records),
        "fits": (sum(inside), len(inside)),
        "assumed": ASSUMED if any(row.assumed for row in found) else None,
    }


def _size(row: Likeness) -> float:
    """Return the largest absolute number in a row of a comparison; 0 for dates."""
    return max((abs(x) for x in row[2:6] if isinstance(x, float)), default=0.0)


def plan_page(plan: "Plan", title: str | None = None) -> str:
    """Return the page of a planned release, which needs and contains no data."""
    errors = errors_of_plan(plan)
    return _page(
        "plan.html",
        plan,
        title or plan.about.title or "Plan of a release",
        errors,
        facts_of(plan),
        rho=plan.rho_charged,
        noun=noun_of(plan),
        release=None,
        private=True,
        check=None,
        accuracy=_accuracy(plan, errors),
        work=work_text(plan),
    )


def _page(
    template: str,
    plan: "Plan",
    title: str,
    widths: list[Errors],
    facts: Facts,
    *,
    rho: float,
    noun: str,
    **more: object,
) -> str:
    """Return a template filled with the facts that all pages share, and the facts ``more``."""
    scales: Any = facts.privacy.get("scales", {})
    said = {key: x for key, x in facts.privacy.items() if key not in ("definition", "scales")}
    stated = [f"{key} = {x}" for key, x in said.items()]
    stated += [f"scale of {plan.schema.heading(k)} = {t:,.15g}" for k, t in scales.items()]
    person = "one row" if facts.unit == "one row" else "one person"
    return rendered(
        template,
        plan=plan,
        noun=noun,
        title=title,
        about=plan.about.stated,
        facts=facts,
        rho=rho,
        has_sums=any("" not in entry for entry in widths),
        erring=erring(widths),
        typical_error=(typical := typical_error(widths, noun)),
        is_exact=typical == "exact",
        level=level_text(LEVEL),
        is_closed=facts.gap < CLOSED,
        epsilons=[
            (d, facts.epsilon(rho, d), zCDP(rho).epsilon(d) if rho > 0 else 0.0) for d in _DELTAS
        ],
        surest=percent_text(facts.surest(rho)),
        is_weak=facts.surest(rho) > _WEAK,
        risk=risk_of(plan, person, percent_text(facts.surest(rho))),
        guess=guess_of(plan, person, percent_text(facts.guessed(rho))),
        larger=[
            (own.record, rho * own.factor, *_risks(facts, rho * own.factor)) for own in plan.larger
        ],
        definition=f"{facts.privacy['definition']}: {', '.join(stated)}",
        version=versions("gaussnoise")["gaussnoise"],
        interval_text=interval_text,
        codes_text=codes_text,
        reading_labels=reading_labels,
        marginal_name=marginal_name,
        named=named,
        holds=holds_text(scales),
        **more,
    )


def _risks(facts: Facts, rho: float) -> tuple[float, str]:
    """Return (ε at the δ that pages show, the largest belief about one row) for the cost ρ."""
    return facts.epsilon(rho), percent_text(facts.surest(rho))


def summed_privacy(plan: "Plan", rho: float | None) -> dict[str, object]:
    """Return facts for pages about the joint risk of several releases.

    ``rho``: the privacy cost of all these releases together in zCDP.
    """
    surest = None if rho is None else most_posterior(zCDP(rho), SHOWN_DELTA) if rho else 0.5
    person = "one person" if plan.person or plan.rows_per_person > 1 else "one row"
    return {
        "person": person,
        "surest": None if surest is None else percent_text(surest),
        "risk": None if surest is None else risk_of(plan, person, percent_text(surest)),
        "is_weak": surest is not None and surest > _WEAK,
        "larger": plan.larger,
    }


def named(names: Sequence[str]) -> str:
    """Return the first names of a list and the number of the others, as part of a sentence."""
    some = list(names[:_MOST_NAMED])
    more = len(names) - len(some)
    if more > 0:
        return f"{', '.join(some)} and {counted(more, 'more attribute')}"
    return and_text(some)


def stored_facts(release: AbstractRelease) -> dict[str, object] | None:
    """Return the libraries of a stored release, its record's digest, and whether it is signed.

    None is returned before the release is saved.

    No page can check the signature.
    """
    tables = release.tables
    if not isinstance(tables, StoredTables):
        return None
    record = tables.folder / "release.json"
    try:
        made, digest = read_json(record)["libraries"], file_digest(record)
    except (OSError, ValueError, LookupError, TypeError):
        made, digest = {}, None
    known = made.items() if isinstance(made, dict) else ()
    libraries = ", ".join(f"{name} {version}" for name, version in sorted(known))
    signed = (tables.folder / SIGNATURE).is_file()
    return {"libraries": libraries, "digest": digest, "signed": signed}


def _accuracy(plan: "Plan", errors: list[Errors]) -> dict[str, object]:
    """Return facts about the half-widths of intervals, beside those under independent noise."""
    ours = half_widths(plan)
    theirs = ours / np.where(plan.deviations > 0, plan.deviations, 1) * plan.independent_deviations
    titles, order = titles_of(plan), np.argsort(ours, kind="stable")
    drawn = order[:: max(1, -(-len(order) // _MOST_COMPARED))]
    what = f"Half-widths of {level_text(LEVEL)} intervals, in {noun_of(plan)}"
    picture = comparison_chart(
        [titles[k] for k in drawn],
        ours[drawn],
        theirs[drawn],
        "accuracy",
        f"{what}: this plan and independent noise",
        "One line for each table: a round dot for this plan, a square for independent noise "
        "with the best split of the same budget.",
    )
    rows, means = [], means_of(plan)
    for k, name in enumerate(titles[:_MOST_LISTED]):
        other = error_text({"": float(theirs[k])})
        if "" not in errors[k] and ours[k] > 0:  # one statistic, without a name
            other = f"{theirs[k] / ours[k]:.3g} times as much"
        rows.append((name, plan.queries[k], means[k] or error_text(errors[k]), other))
    in_units = any("sums" in entry for entry in errors)
    return {
        "picture": picture,
        "drawn": len(drawn),
        "what": what,
        "units": numbers_text(plan)[-1] if in_units else "",
        "rows": rows,
    }
