"""The page of a release, and that of a plan; :func:`release_page` lists what it says."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ....errors import OutputError, ParameterError
from ....files.disk import check_parent, file_digest, read_json, save_text
from ...planning.text import counted_text, marginal_name, numbers_text, work_text
from ..over_time import Guarantee
from ..store import StoredTables
from ..text import dropped_text
from ..tidy import LEVEL, level_text
from .charts import comparison_chart
from .markup import (
    Html,
    counted,
    grid,
    joined,
    label,
    listing,
    page,
    paragraphs,
    section,
    tag,
)
from .numbers import Entry, entries_of, extremes_table, table_section
from .words import (
    SAMPLE_NOTE,
    Errors,
    attributes_table,
    error_text,
    errors_of_plan,
    errors_of_release,
    estimate_of,
    glossary_section,
    guarantee_of,
    half_widths,
    implied_epsilon,
    optimality_section,
    person,
    privacy_section,
    typical_error,
    version_text,
)

if TYPE_CHECKING:
    from ...planning.plan import Plan
    from ..release import TableRelease

_MOST_IN_FULL = 12  # tables
_MOST_LISTED = 1000  # by name
_MOST_FIRST = 24  # listed where the page begins; more are at its end
_CLOSED = 1e-3  # of a certified gap
_MOST_COMPARED = 20  # in the picture of a plan
_MOST_NAMED = 4  # attributes in the first sentence


def save_report(
    document: "Plan | TableRelease", path: str | os.PathLike[str], title: str | None
) -> None:
    """Write the page of a plan or a release to a new file.

    Raises:
        OutputError: the file exists, cannot be written, or would be inside the release's folder.
        ParameterError: the title is not a text.
    """
    from ..release import TableRelease

    if not (title is None or isinstance(title, str)):
        raise ParameterError(f"report: expected a title of text, got {type(title).__name__}")
    if not isinstance(path, str | os.PathLike):
        raise ParameterError(f"report: expected a path, got {type(path).__name__}")
    place = Path(path)
    check_parent(place, "report")
    if isinstance(document, TableRelease):
        tables = document.tables
        if isinstance(tables, StoredTables) and _is_inside(place, tables.folder):
            raise OutputError(
                f"report: {tables.folder} holds the files that were released and no others; "
                "hint: a place outside"
            )
        text = release_page(document, title)
    else:
        text = plan_page(document, title)
    save_text(place, text)


def _is_inside(place: Path, folder: Path) -> bool:
    try:
        return place.parent.resolve().is_relative_to(folder.resolve())
    except OSError:
        return False


def release_page(release: "TableRelease", title: str | None = None) -> Html:
    """Return a page for a director, an auditor and a journalist; the same for the same release.

    It holds the request; the largest and smallest groups; tables and pictures with intervals; what
    is noise and what is not; privacy, in plain words and in full; how close to optimal the noise
    is; how the release was made; and five words. Only released estimates in it come from data.
    """
    plan = release.plan
    entries = entries_of(release)
    full = entries[:_MOST_IN_FULL]
    anchors = {entry.name: entry.anchor for entry in full}
    private = release.private
    rho = release.rho_charged if private else plan.rho
    guarantee = guarantee_of(plan, release.over)
    privacy = privacy_section(plan, guarantee, rho, private=private, charged=True)
    parts: list[tuple[str, str, Html]] = [
        ("asked", "What was asked", _asked(release, anchors)),
        ("extremes", "Largest and smallest groups", _extremes(entries)),
        ("tables", "The tables", _tables(full, len(entries))),
        ("noise", "What is noise and what is not", _noise(release)),
        ("privacy", "Privacy", privacy),
        ("optimal", "How close to optimal", optimality_section(plan, release.over)),
        ("made", "How this was made", _made(release)),
        ("words", "Five words", glossary_section()),
    ]
    if len(plan.entries) > _MOST_FIRST:
        parts.append(("all", "All tables", _all_tables(release, anchors, entries)))
    name = title or plan.asked.title or ("Released tables" if private else "Simulated tables")
    banner = "" if private else _alarm()
    lead, facts = tag("p", _lead(release, guarantee), class_="lead"), _facts(release, guarantee)
    return page(
        name if private else f"NOT PRIVATE: {name}",
        tag("header", "\n", joined([banner, tag("h1", name), lead, _source(plan), facts]), "\n"),
        _contents(parts),
        tag("main", "\n", joined(part for _, _, part in parts), "\n"),
        _footer(private),
    )


def plan_page(plan: "Plan", title: str | None = None) -> Html:
    """Return the page of what would be released: it needs and holds no data."""
    name = title or plan.asked.title or "Plan of a release"
    lead = tag(
        "p",
        f"What would be released about {_named(plan.schema.names)}, how accurate it would be, and "
        f"what it would cost in privacy. No data were read for this page.",
        class_="lead",
    )
    parts: list[tuple[str, str, Html]] = [
        ("asked", "What is asked", _planned(plan)),
        ("accuracy", "How accurate it will be", _accuracy(plan)),
        (
            "privacy",
            "Privacy",
            privacy_section(
                plan, guarantee_of(plan), plan.rho_charged, private=True, charged=False
            ),
        ),
        ("optimal", "How close to optimal", optimality_section(plan)),
        ("made", "How this was made", _made_plan(plan)),
        ("words", "Five words", glossary_section()),
    ]
    return page(
        name,
        tag(
            "header",
            "\n",
            joined([tag("h1", name), lead, _source(plan), _plan_facts(plan)]),
            "\n",
        ),
        _contents(parts),
        tag("main", "\n", joined(part for _, _, part in parts), "\n"),
        _footer(True),
    )


def _alarm() -> Html:
    return tag(
        "p",
        "NOT PRIVATE. This is a simulation, made with a generator that can be run again: its "
        "numbers protect no person. Do not publish this page.",
        class_="alarm",
        role="note",
    )


def _footer(private: bool) -> Html:
    words = f"Written by {version_text()}."
    return tag("footer", joined(["" if private else _alarm(), tag("p", words, class_="note")]))


def _contents(parts: Iterable[tuple[str, str, Html]]) -> Html:
    links = (tag("li", tag("a", title, href=f"#{name}")) for name, title, _ in parts)
    return tag("nav", tag("ul", *links), aria_label="On this page")


def _named(names: Sequence[str]) -> str:
    """Return a few names, in a sentence."""
    some = list(names[:_MOST_NAMED])
    more = len(names) - len(some)
    if more > 0:
        return f"{', '.join(some)} and {more:,} more attributes"
    return " and ".join([", ".join(some[:-1]), some[-1]] if len(some) > 1 else some)


def _lead(release: "TableRelease", guarantee: Guarantee) -> str:
    """Return three sentences that say what the page is."""
    plan = release.plan
    used = {name for names in release for name in names}
    names = [name for name in plan.schema.names if name in used]
    about = f" about {_named(names)}" if names else ""
    when = "" if release.times is None else f", for {release.times} of a stream"
    first = f"{counted(len(release), 'table')} of counts{about}{when}."
    public = f", but for those of {marginal_name(plan.public)} alone," if plan.public else ""
    return (
        f"{first} Every number{public} is an estimate: the exact one plus random noise, which "
        f"hides what {person(guarantee)} adds to it. With each number comes the range in "
        "which the exact one lies, in 95 of 100 cases."
    )


def _facts(release: "TableRelease", guarantee: Guarantee) -> Html:
    """Return the most important facts of the page."""
    plan, total = release.plan, release[()]
    low, high = total.confidence_interval()
    sd = float(total.standard_deviation)
    rows = estimate_of(float(total.estimate), float(low), float(high), sd)
    facts: list[tuple[object, object]] = [("Rows in the tables", rows)]
    if release.private:
        rho = release.rho_charged
        epsilon = f"ε = {implied_epsilon(guarantee, rho):.3g} at δ = {1e-6:g}"
        facts.append(("Privacy spent", joined([f"ρ = {rho:.4g}", tag("small", epsilon)], " ")))
    else:
        facts.append(("Privacy", tag("span", "NONE: a simulation")))
    gap = plan.gap if release.over is None else release.over.gap
    shared = _shared_facts(plan, guarantee, errors_of_release(release), gap)
    return listing([*facts, *shared], class_="facts")


def _plan_facts(plan: "Plan") -> Html:
    rho, guarantee = plan.rho_charged, guarantee_of(plan)
    epsilon = f"ε = {implied_epsilon(guarantee, rho):.3g} at δ = {1e-6:g}"
    tables = (
        counted(len(plan.marginals), "table"),
        tag("small", f"{plan.tables.dim:,} cells"),
    )
    cost = ("Privacy to be spent", joined([f"ρ = {rho:.4g}", tag("small", epsilon)], " "))
    shared = _shared_facts(plan, guarantee, errors_of_plan(plan), plan.gap)
    return listing([("To be released", joined(tables, " ")), cost, *shared], class_="facts")


def _source(plan: "Plan") -> Html:
    """Return where the rows come from, if the plan says so."""
    source = plan.asked.source
    return joined([]) if source is None else tag("p", "Source: ", label(source))


def _shared_facts(
    plan: "Plan", guarantee: Guarantee, errors: list[Errors], gap: float
) -> list[tuple[object, object]]:
    summed = any("" not in entry for entry in errors)
    error = joined([typical_error(errors), tag("small", f"in {level_text(LEVEL)} of cases")], " ")
    what = (
        f"of all Gaussian noise{' for the stream' if guarantee.whole == 'stream' else ''}: proven"
    )
    best = "optimal" if gap < _CLOSED else f"within {100 * gap:.2g} % of optimal"
    return [
        ("Protected", person(guarantee)),
        ("Error of a count" if summed else "Error of a number", error),
        (
            "Accuracy",
            joined([best, tag("small", what)], " ") if plan.error > 0 else "none needed",
        ),
    ]


def _asked(release: "TableRelease", shown: dict[str, str]) -> Html:
    plan = release.plan
    rules = [] if plan.person is None else [f"The tables count {counted_text(plan)}."]
    rule = " ".join([*rules, *dropped_text(release)])
    return section(
        "What was asked",
        "asked",
        paragraphs(
            f"{counted(len(plan.entries), 'question')}, all answered at once from the same noise, "
            "so that the answers agree with each other.",
            rule,
        ),
        _index(release, shown, _MOST_FIRST),
        attributes_table(plan),
    )


def _planned(plan: "Plan") -> Html:
    return section(
        "What is asked",
        "asked",
        paragraphs(
            f"{counted(len(plan.entries), 'question')}, which will be answered at once from the "
            "same noise, so that the answers agree with each other."
        ),
        attributes_table(plan),
    )


def _all_tables(release: "TableRelease", shown: dict[str, str], entries: Sequence[Entry]) -> Html:
    """Return the tables that are too long for the beginning of the page."""
    return section(
        "All tables",
        "all",
        _index(release, shown, _MOST_LISTED),
        extremes_table(entries) or "",
    )


def _rest(count: int, most: int) -> Html | str:
    """Return a sentence that says where the rest of a list is."""
    if count <= most:
        return ""
    where = ", listed in release.json."
    if most == _MOST_FIRST:
        where = joined([": ", tag("a", "all tables", href="#all"), "."], "")
    return tag("p", f"… and {count - most:,} more", where, class_="note")


def _index(release: "TableRelease", shown: dict[str, str], most: int) -> Html:
    """Return the list of entries, with their accuracy and files."""
    plan, files = release.plan, _files(release)
    errors, rows = errors_of_release(release), []
    for k, name in enumerate(plan.entries[:most]):
        where = label(name)
        if name in shown:
            where = tag("a", where, href=f"#{shown[name]}")
        row = [where, f"{plan.queries[k]:,.0f}", error_text(errors[k])]
        rows.append([*row, tag("code", files.get(name, "—"))] if files else row)
    columns = ["Asked for", "Numbers", f"Error in {level_text(LEVEL)} of cases"]
    listed = grid("What was asked for", [*columns, *(["File"] if files else [])], rows)
    return joined([listed, _rest(len(plan.entries), most)])


def _files(release: "TableRelease") -> dict[str, str]:
    """Return the file of every entry's cells, in a folder of a release."""
    tables, plan = release.tables, release.plan
    if not isinstance(tables, StoredTables):
        return {}
    places = tables.places
    terms = zip(plan.entries, plan.domain.terms, strict=True)
    return {
        name: places[S].file
        for name, term in terms
        if (S := tuple(sorted({i for i, _ in term}))) in places
    }


def _extremes(entries: Sequence[Entry]) -> Html:
    table = extremes_table(entries[:_MOST_FIRST])
    if table is None:
        return section(
            "Largest and smallest groups",
            "extremes",
            paragraphs("No table of several counts was asked for."),
        )
    return section(
        "Largest and smallest groups",
        "extremes",
        paragraphs(
            "Of every table the group with the most rows, and the one with the fewest, as far as "
            "the noise allows to say. Ranges here are wider than elsewhere: all those of one table "
            "hold together in 95 of 100 cases, because the largest of many estimates is also the "
            "luckiest.",
        ),
        table,
        _rest(len(entries), _MOST_FIRST),
    )


def _tables(full: Sequence[Entry], count: int) -> Html:
    more = count - len(full)
    rest = f"{more:,} more are listed on this page, but not shown in full." if more > 0 else ""
    low, high = level_text(LEVEL), "every number by itself"
    return section(
        "The tables",
        "tables",
        paragraphs(
            f"Dots are estimates; lines, and ranges, are {low} intervals, for {high}.", rest
        ),
        *(table_section(entry) for entry in full),
    )


def _noise(release: "TableRelease") -> Html:
    exact = release.plan.has_public_rows
    told = listing(
        [
            (
                "Noise",
                "Every estimate differs from the exact number by noise whose size is known and "
                "stated. It was drawn once, and is in all copies.",
            ),
            (
                "Unbiased",
                "The noise is zero on average. To keep it so, nothing was cut or rounded: an "
                "estimate of a small group may be negative, or a fraction. That is no mistake. "
                "Pages show only the digits that the noise leaves; files have all.",
            ),
            (
                "Consistent",
                "Tables agree: adding up the cells of one gives the cells of the other, exactly.",
            ),
            (
                "Not noise",
                "Which tables there are, their categories, and the size of the noise: all that was "
                "fixed before any data were read"
                + (", as was the number of rows, which is exact." if exact else "."),
            ),
            *(
                [
                    (
                        "Exact",
                        "Tables of " + " × ".join(release.plan.public) + " alone have no noise.",
                    )
                ]
                if release.plan.public
                else []
            ),
            ("Not said", SAMPLE_NOTE),
            (
                "Care with many numbers",
                "Of many intervals one in twenty misses. For sums, differences and shares take the "
                "interval that the release gives of them: errors of cells do not simply add up.",
            ),
        ]
    )
    return section("What is noise and what is not", "noise", told)


def _made(release: "TableRelease") -> Html:
    """Return the section on method, versions and files."""
    plan, tables = release.plan, release.tables
    facts: list[tuple[object, object]] = [*_method(plan)]
    if isinstance(tables, StoredTables):
        record = tables.folder / "release.json"
        try:
            made = read_json(record)["libraries"]
            digest = file_digest(record)
        except (OSError, ValueError, LookupError, TypeError):
            made, digest = {}, None
        if isinstance(made, dict) and made:
            facts.append(("Made with", ", ".join(f"{k} {v}" for k, v in sorted(made.items()))))
        if digest is not None:
            facts.append(("sha256 of release.json", tag("code", digest)))
        hint = "TableRelease.load(folder) in Python, or gaussnoise report FOLDER."
        facts.append(("Read it again", hint))
    return section("How this was made", "made", listing(facts))


def _method(plan: "Plan") -> list[tuple[object, object]]:
    return [
        (
            "Method",
            "The Gaussian noise with the least error for exactly these questions was computed "
            "first, without data, together with a proof that it is the least. Then rows were "
            "counted, counts were turned into integers, noise was added to the integers, and all "
            "tables were computed from these.",
        ),
        ("The request, as sha256", tag("code", plan.request_sha256)),
    ]


def _made_plan(plan: "Plan") -> Html:
    return section(
        "How this was made", "made", listing([*_method(plan), ("Work", work_text(plan))])
    )


def _accuracy(plan: "Plan") -> Html:
    """Return the half-widths of all entries, beside those of independent noise."""
    ours = half_widths(plan)
    theirs = ours / np.where(plan.deviations > 0, plan.deviations, 1) * plan.independent_deviations
    order = np.argsort(ours, kind="stable")
    shown = order[:: max(1, -(-len(order) // _MOST_COMPARED))]
    names = [plan.entries[k] for k in shown]
    what = f"Half-widths of {level_text(LEVEL)} intervals, in rows"
    errors = errors_of_plan(plan)
    in_units = f" {numbers_text(plan)[-1]}" if any("sums" in entry for entry in errors) else ""
    picture = tag(
        "figure",
        comparison_chart(
            names,
            ours[shown],
            theirs[shown],
            f"{what}: this plan and independent noise",
            "One line for each table: a round dot for this plan, a square for independent noise "
            "with the best split of the same budget.",
        ),
        tag(
            "figcaption",
            f"{what}. Round dots: this plan. Squares: independent noise on each table, with the "
            f"best split of the same budget.{in_units}"
            + ("" if len(shown) == len(order) else f" {len(shown)} of {len(order)} are drawn."),
        ),
    )
    rows = []
    for k, name in enumerate(plan.entries[:_MOST_LISTED]):
        other = error_text({"": float(theirs[k])})
        if "" not in errors[k] and ours[k] > 0:  # has one unit, without a name
            other = f"{theirs[k] / ours[k]:.3g} times as much"
        rows.append((label(name), f"{plan.queries[k]:,.0f}", error_text(errors[k]), other))
    more = len(plan.entries) - len(rows)
    return section(
        "How accurate it will be",
        "accuracy",
        paragraphs(
            "Every number will be the exact one plus noise. In 95 of 100 cases it will be off by "
            "less than what stands here (the root mean square, where numbers of a table differ).",
            SAMPLE_NOTE,
        ),
        picture,
        grid(
            f"{what}, of everything that is asked for",
            ("Asked for", "Numbers", "This plan", "Independent noise"),
            rows,
        ),
        tag("p", f"… and {more:,} more.", class_="note") if more > 0 else "",
    )
