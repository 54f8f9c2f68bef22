"""The page of a combination of releases."""

import os
from collections.abc import Sequence
from functools import partial
from typing import Any

from ....privacy.definitions import zCDP
from ....privacy.per_record import holds_text
from ....text import SHOWN_DELTA, no_less, versions
from ...planning.facts import counted_text, marginal_name, relation_text
from ...schema.numbers import interval_text
from ..merged import MergedPlan
from ..noisy import AbstractRelease
from ..text import codes_text
from ..tidy import LEVEL, level_text
from .answers import Answered
from .checked import check_of, folder_of
from .errors import erring, errors_of_release, typical_error
from .order import reading_labels
from .pages import named, save_page, stored_facts, summed_privacy, tables_facts
from .render import rendered


def save_combined_report(
    release: AbstractRelease,
    path: str | os.PathLike[str],
    title: str | None,
    synthetic: Any,
    answers: Sequence[Answered] = (),
) -> None:
    """Write the page of a combination of releases to a new file; see :func:`save_report`."""
    plan: Any = release.plan
    page = partial(combined_page, release, title, synthetic, answers)
    save_page(page, path, title, [release, *plan.releases])


def combined_page(
    release: AbstractRelease,
    title: str | None = None,
    synthetic: Any = None,
    answers: Sequence[Answered] = (),
) -> str:
    """Return a page in HTML about a combination of releases: request, releases, and tables."""
    merged: Any = release.plan
    plan: MergedPlan = merged
    errors, rho = errors_of_release(release), release.rho_charged
    check = check_of({"": folder_of(release)}) if release.private else None
    page = rendered(
        "combined.html",
        facts=None,
        check=check,
        about=_about_all(plan),
        plan=plan,
        noun=release.noun,
        title=title or ("Combined tables" if release.private else "Simulated tables, combined"),
        private=release.private,
        **summed_privacy(merged, rho),
        erring=erring(errors),
        typical_error=(typical := typical_error(errors, release.noun)),
        is_exact=typical == "exact",
        has_sums=any("" not in entry for entry in errors),
        spent="spent",
        answers=answers,
        sources=[_source_facts(one, k) for k, one in enumerate(plan.releases, 1)],
        relation=relation_text(merged),
        rho=rho,
        epsilon=f"ε = {no_less(zCDP(rho).epsilon(SHOWN_DELTA) if rho else 0.0, 3)} at "
        f"δ = {SHOWN_DELTA:g}{holds_text(plan.scales)}",
        level=level_text(LEVEL),
        version=versions("gaussnoise")["gaussnoise"],
        interval_text=interval_text,
        codes_text=codes_text,
        reading_labels=reading_labels,
        marginal_name=marginal_name,
        named=named,
        **tables_facts(release, errors, counted_text(merged), synthetic),
    )
    return page if check is None else check.held(page)


def _about_all(plan: MergedPlan) -> dict[str, str]:
    """Return {topic: text for readers} for the texts that all combined releases have in common."""
    first, *others = (one.plan.about.stated for one in plan.releases)
    return {name: first[name] for name in first if all(x.get(name) == first[name] for x in others)}


def _source_facts(release: AbstractRelease, k: int) -> dict[str, object]:
    """Return the facts about the k-th of the combined releases, for the template of the page."""
    stored = stored_facts(release)
    tables: Any = release.tables
    return {
        "name": tables.folder.resolve().name if stored else f"release {k}",
        "title": release.plan.about.title,
        "tables": len(release),
        "rho": release.rho_charged,
        "digest": stored["digest"] if stored else None,
    }
