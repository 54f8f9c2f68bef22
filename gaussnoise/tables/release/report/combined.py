"""The page of a combination of releases."""

import os
from typing import Any

from ....privacy.definitions import zCDP
from ....text import SHOWN_DELTA, versions
from ...planning.facts import marginal_name, relation_text
from ...schema.numbers import interval_text
from ..merged import MergedPlan
from ..noisy import AbstractRelease
from ..text import dropped_text
from ..tidy import LEVEL, level_text
from .errors import error_text, errors_of_release, typical_error
from .numbers import cells_of, entries_of, extremes_of
from .pages import MOST_FIRST, MOST_IN_FULL, MOST_LISTED, files_of, named, save_page, stored_facts
from .render import rendered


def save_combined_report(
    release: AbstractRelease, path: str | os.PathLike[str], title: str | None
) -> None:
    """Write the page of a combination of releases to a new file, as :func:`save_report` does."""
    plan: Any = release.plan
    save_page(lambda: combined_page(release, title), path, title, [release, *plan.releases])


def combined_page(release: AbstractRelease, title: str | None = None) -> str:
    """Return a page of combined tables: the request, the releases, and the tables."""
    merged: Any = release.plan
    plan: MergedPlan = merged
    entries, errors = entries_of(release), errors_of_release(release)
    full, is_long = entries[:MOST_IN_FULL], len(plan.entries) > MOST_FIRST
    (total,) = cells_of(release[()], [0])
    rho = release.rho_charged
    return rendered(
        "combined.html",
        facts=None,
        plan=plan,
        title=title or ("Combined tables" if release.private else "Simulated tables, combined"),
        sections=[
            ("asked", "What was asked"),
            ("sources", "What was combined"),
            ("extremes", "Largest and smallest groups"),
            ("tables", "The tables"),
            ("noise", "What is noise and what is not"),
            ("words", "Five words"),
            *([("all", "All tables")] if is_long else []),
        ],
        release=release,
        private=release.private,
        person="one person" if plan.person or plan.rows_per_person > 1 else "one row",
        names=[name for name in plan.schema.names if any(name in own for own in release)],
        total=total,
        rules=" ".join(dropped_text(release)),
        first=MOST_FIRST,
        listed=MOST_LISTED,
        anchors={entry.name: entry.anchor for entry in full},
        files=files_of(release),
        errors=list(map(error_text, errors)),
        typical_error=typical_error(errors),
        has_sums=any("" not in entry for entry in errors),
        entries=entries,
        shown=full,
        extremes=extremes_of(entries[:MOST_FIRST]),
        all_extremes=extremes_of(entries) if is_long else None,
        sources=[_source_facts(one, k) for k, one in enumerate(plan.releases, 1)],
        relation=relation_text(merged),
        rho=rho,
        epsilon=f"ε = {zCDP(rho).epsilon(SHOWN_DELTA):.3g} at δ = {SHOWN_DELTA:g}" if rho else "",
        level=level_text(LEVEL),
        version=versions("gaussnoise")["gaussnoise"],
        interval_text=interval_text,
        marginal_name=marginal_name,
        named=named,
    )


def _source_facts(release: AbstractRelease, k: int) -> dict[str, object]:
    """Return the facts on one of the releases."""
    stored = stored_facts(release)
    tables: Any = release.tables
    return {
        "name": tables.folder.resolve().name if stored else f"release {k}",
        "title": release.plan.asked.title,
        "tables": len(release),
        "rho": release.rho_charged,
        "digest": stored["digest"] if stored else None,
    }
