"""Tests of the page of a release, and of a plan: what it shows, and that it shows no more."""

import base64
import hashlib
import html
import json
import math
import os
import re
import shutil
from dataclasses import replace
from html.parser import HTMLParser

import matplotlib.style
import numpy as np
import pyarrow as pa
import pytest
from jinja2 import UndefinedError

import gaussnoise as gn
from gaussnoise.cli.app import run
from gaussnoise.cli.documents import plan_document
from gaussnoise.drawing import unreadable
from gaussnoise.errors import OutputError, ParameterError
from gaussnoise.privacy.lattice_bound import TABLE_STEPS
from gaussnoise.tables.planning.facts import facts_of, percent_text
from gaussnoise.tables.release.cells import CellList
from gaussnoise.tables.release.changes import shown_changes
from gaussnoise.tables.release.marks import LOW_RELIABILITY, marks_of
from gaussnoise.tables.release.report import errors
from gaussnoise.tables.release.report import numbers as numbers_file
from gaussnoise.tables.release.report.changes import changes_page
from gaussnoise.tables.release.report.charts import heat_chart
from gaussnoise.tables.release.report.combined import combined_page
from gaussnoise.tables.release.report.findings import finding_of
from gaussnoise.tables.release.report.numbers import Numbers, cells_of, entries_of
from gaussnoise.tables.release.report.pages import plan_page, release_page
from gaussnoise.tables.release.report.render import (
    Cell,
    category_text,
    digits_of,
    number,
    rendered,
    shown,
)
from gaussnoise.tables.release.report.sentences import highest
from gaussnoise.tables.release.text import release_text
from gaussnoise.text import no_less

pytestmark = pytest.mark.usefixtures("quick_pictures")

EMPTY = {"meta", "br", "input"}  # elements without an end tag
EVIL = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "&amp; & &lt;",
    "</title></style></table>",
    "' onload='x",
    "line\nbreak\ttab",
    "bell\x07 null\x00 escape\x1b",
    "\u202eright to left",
    "العمل 其他 🎉",
    "long " * 200,
    "{{ 7 * 7 }} ${7} %s {0}",
]


class Page(HTMLParser):
    """The elements, text and numbers of a page; it raises an error where elements do not nest."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.elements, self.numbers, self.text = [], [], [], []
        self.headings, self.ids = [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, name, attributes):
        given = dict(attributes)
        assert len(given) == len(attributes), f"an attribute twice: {attributes}"
        self.elements.append((name, given))
        if "id" in given:
            self.ids.append(given["id"])
        if re.fullmatch("h[1-6]", name):
            self.headings.append(int(name[1]))
        if name == "data" and "data-field" not in given:
            self.numbers.append([float(given["value"]), ""])
        if name not in EMPTY:
            self.open.append(name)

    def handle_startendtag(self, name, attributes):
        assert "svg" in self.open
        self.elements.append((name, dict(attributes)))

    def handle_endtag(self, name):
        assert self.open.pop() == name

    def handle_data(self, text):
        if "script" in self.open:
            return
        self.text.append(text)
        if "data" in self.open and "data-field" not in self.elements[-1][1]:
            self.numbers[-1][1] += text

    def all(self, name):
        return [given for element, given in self.elements if element == name]

    @property
    def words(self):
        return " ".join(" ".join(self.text).split())


def survey(**changes):
    schema = gn.Schema(
        [
            gn.Attribute("sex", ["F", "M"]),
            gn.Attribute("age", edges=[0, 18, 65, 120]),
            gn.Attribute("county", [f"{k:03}" for k in range(120)], other="abroad"),
        ]
    )
    options = {"workload": [("sex", "age"), ("county",), ("sex",), ()], "privacy": gn.zCDP(0.1)}
    return gn.plan(schema, **(options | changes))


def people(rows=900):
    rng = np.random.default_rng(3)
    return pa.table(
        {
            "sex": rng.choice(["F", "M"], rows),
            "age": rng.integers(0, 100, rows),
            "county": [f"{k:03}" for k in rng.geometric(0.05, rows) % 130],
        }
    )


def odd():
    """Return a release whose labels contain markup."""
    attributes = [gn.Attribute(EVIL[0], EVIL), gn.Attribute(EVIL[1], ["a", *EVIL[:3]])]
    return gn.plan(gn.Schema(attributes), 2, gn.zCDP(1.0))


def persons(**options):
    """Return a plan of one record for each person and sex."""
    schema = gn.Schema([gn.Attribute("sex", ["F", "M"]), gn.Attribute("stay", clip=[0, 30])])
    workload = [("sex",), ("sex", "stay"), ()]
    return gn.plan(
        schema, workload, gn.zCDP(1), person="who", per_person={"stay": "mean"}, **options
    )


def visits(rows=900):
    rng = np.random.default_rng(4)
    return pa.table(
        {
            "who": rng.integers(0, 400, rows),
            "sex": rng.choice(["F", "M"], rows, p=[0.7, 0.3]),
            "stay": rng.uniform(0, 30, rows),
        }
    )


@pytest.fixture(scope="module")
def release():
    return survey().release(people())


CASES = {
    "cells": lambda: release_page(survey().release(people())),
    "odd labels": lambda: release_page(odd().release(pa.table({a: ["a"] for a in EVIL[:2]}
        | {EVIL[0]: [EVIL[2]]}), on_outside="drop")),
    "odd names of rows": lambda: release_page(gn.plan(odd().schema, 1, gn.zCDP(1.0)).release(
        pa.table({a: ["a"] for a in EVIL[:2]}), on_outside="drop")),
    "replace": lambda: release_page(survey(neighbors="replace", workload=[("sex", "age")]).release(
        people())),
    "answers": lambda: release_page(
        survey(workload=[{"sex": "identity", "age": "prefix"}, {"age": "ranges"}, {"county": None}],
               privacy=gn.ApproxDP(1, 1e-6), rows_per_person=3).release(people())),
    "no noise": lambda: release_page(
        survey(workload=[()], neighbors="replace").release(people())),
    "many tables": lambda: release_page(
        gn.plan(gn.Schema([gn.Attribute(f"q{k}", ["y", "n"]) for k in range(9)]), 2, gn.zCDP(1))
        .release(pa.table({f"q{k}": ["y", "n"] * 9 for k in range(9)}))),
    "plan": lambda: plan_page(survey()),
    "plan of answers": lambda: plan_page(survey(workload=[{"age": "prefix"}], privacy=gn.GDP(1))),
    "plan with targets": lambda: plan_page(survey(privacy=None, targets=20.0)),
    "odd plan": lambda: plan_page(odd(), title=EVIL[0]),
    "plan without noise": lambda: plan_page(survey(workload=[()], neighbors="replace")),
    "persons": lambda: release_page(persons().release(visits())),
    "changes": lambda: changes_page(gn.difference(*(survey().release(people(n)) for n in (900, 800))
        )),
    "combined": lambda: combined_page(gn.combine([
        survey(workload=[{"sex": None, "age": "prefix"}, ("county",)]).release(people())
        for _ in range(2)])),
    "odd combination": lambda: combined_page(gn.combine([odd().release(
        pa.table({a: ["a"] for a in EVIL[:2]} | {EVIL[0]: [EVIL[2]]}), on_outside="drop")
        for _ in range(2)], same_rows="assumed"), EVIL[0]),
    "many combined": lambda: combined_page(gn.combine([
        gn.plan(gn.Schema([gn.Attribute(f"q{k}", ["y", "n"]) for k in range(9)]), 2, gn.zCDP(1))
        .release(pa.table({f"q{k}": ["y", "n"] * 9 for k in range(9)})) for _ in range(2)])),
    "odd changes": lambda: changes_page(gn.difference(*(odd().release(
        pa.table({a: ["a"] for a in EVIL[:2]} | {EVIL[0]: [EVIL[2]]}), on_outside="drop")
        for _ in range(2))), EVIL[0]),
    "changes without noise": lambda: changes_page(gn.difference(*(
        survey(workload=[()], neighbors="replace", privacy=gn.zCDP(rho)).release(people(n))
        for n, rho in ((900, 0.1), (800, 0.2))))),
}  # fmt: skip


@pytest.fixture(scope="module")
def pages():
    return {name: make() for name, make in CASES.items()}


every_page = pytest.mark.parametrize("name", CASES)


@every_page
def test_elements_nest_and_headings_are_in_order(pages, name):
    page = Page(pages[name])
    assert page.headings.count(1) == 1
    assert page.headings[0] == 1
    assert all(b <= a + 1 for a, b in zip(page.headings, page.headings[1:], strict=False))
    assert len(page.ids) == len(set(page.ids))
    assert page.all("html") == [{"lang": "en"}]
    assert (
        len(page.all("main"))
        == len(page.all("title"))
        - len(page.all("svg")) * 0
        - len(
            [
                1
                for element, given in page.elements
                if element == "svg" and given.get("role") == "img"
            ]
        )
        == 1
    )


@pytest.mark.parametrize(
    "text", ["<p><b></p></b>", "<p>", "<p id='a' id='b'></p>", "<table><tr></table></tr>"]
)
def test_faults_of_nesting_are_found(text):
    with pytest.raises(AssertionError):
        Page(text)


@every_page
def test_a_page_needs_nothing_from_outside(pages, name):
    page = Page(pages[name])
    elements = {element for element, _ in page.elements}
    assert not elements & {"link", "img", "iframe", "object", "embed", "base", "form"}
    for element, given in page.elements:
        assert not [key for key in given if key.startswith("on") or key in ("src", "srcset")]
        assert given.get("href", "#").startswith("#"), element
        assert "url(" not in given.get("style", "")
    (policy,) = [g for g in page.all("meta") if "http-equiv" in g]
    # one script, by its digest, and on pages of releases alone
    allowed = ["default-src 'none'", "style-src 'unsafe-inline'"]
    scripts = re.findall("<script>(.*?)</script>", pages[name], flags=re.DOTALL)
    for script in scripts:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        allowed.append(f"script-src 'sha256-{digest}'")
    assert len(scripts) == ('id="verdict"' in pages[name]) == len(page.all("script"))
    assert policy["content"].split("; ") == allowed
    (style,) = re.findall("<style>(.*?)</style>", pages[name], flags=re.DOTALL)
    assert "url(" not in style
    assert "@import" not in style
    targets = {given["href"][1:] for given in page.all("a")}
    assert targets <= set(page.ids)


@every_page
def test_tables_and_pictures_are_named(pages, name):
    page = Page(pages[name])
    tables = len(page.all("table"))
    assert len(page.all("caption")) == tables == len(page.all("thead"))
    assert all(given["scope"] in ("col", "row") for given in page.all("th"))
    outer = [given for given in page.all("svg") if given.get("role") == "img"]
    assert len(page.all("desc")) == len(outer) == len(page.all("title")) - 1
    boxes = [given for given in page.all("div") if given.get("role") == "region"]
    assert len(boxes) == tables
    assert all(given["aria-label"] and given["tabindex"] == "0" for given in boxes)


@every_page
def test_pages_have_no_characters_that_html_forbids(pages, name):
    assert not re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]", pages[name])
    pages[name].encode()


def test_labels_are_shown_as_they_are_written(pages):
    page = Page(pages["odd labels"])
    for text in EVIL:
        wanted = re.sub(r"[\x00-\x1f]", lambda m: m[0] if m[0].isspace() else "\ufffd", text)
        assert " ".join(wanted.split())[:100] in page.words
    assert not [given for _, given in page.elements if "onerror" in given or "onload" in given]
    assert Page(pages["odd plan"]).words.count(EVIL[0]) >= 3


def test_pictures_name_their_rows_and_headings(pages):
    def drawn(name):
        pictures = re.findall("<svg.*?</svg>", pages[name], flags=re.DOTALL)
        return [" ".join(" ".join(Page(picture).text).split()) for picture in pictures]

    (first,) = drawn("replace")
    assert first.count("[18, 65)") == 2
    assert "F" in first.split()
    rows = drawn("odd names of rows")[0]
    for text in EVIL:
        wanted = " ".join(re.sub(r"[\x00-\x1f]", lambda m: m[0] if m[0].isspace() else "\ufffd",
                                 text).split())  # fmt: skip
        assert (wanted if len(wanted) <= 24 else wanted[:23] + "…") in rows


def test_a_page_is_the_same_in_any_style_of_pictures(release):
    with matplotlib.style.context(["dark_background", {"svg.fonttype": "path"}]):
        styled = release_page(release)
    assert styled == release_page(release)


def numbers_of(release):
    """Return every number a page may show: estimates, and ends of both kinds of intervals."""
    known = []
    for names in [*release, ()]:
        table = release[names]
        known += [table.estimate, *table.confidence_interval()]
        known += table.confidence_interval(simultaneous=True)
    for names, given in (
        ("sex", ()),
        ("county", ()),
        (("sex", "age"), ()),
        (("sex", "age"), "age"),
        (("sex", "age"), "sex"),
    ):
        shares = release.proportions(names, given=given)  # written in per cent
        known += [100 * shares.estimate, *(100 * end for end in shares.confidence_interval())]
    margin = release["age"]
    known += [margin.estimate, *margin.confidence_interval()]
    return np.concatenate([np.ravel(x) for x in known])


def test_every_number_of_a_table_is_the_releases(release):
    page, known = Page(release_page(release)), numbers_of(release)
    assert len(page.numbers) > 60
    assert {value for value, _ in page.numbers} <= set(known.tolist())
    for value, text in page.numbers:
        written = text.replace("−", "-").replace(",", "")
        digits = len(written.partition(".")[2])
        assert float(written) == pytest.approx(value, abs=0.5000001 * 10.0**-digits)
    for table in (release["sex", "age"], release["sex"]):
        shown_values = {value for value, _ in page.numbers}
        assert set(table.estimate.ravel().tolist()) <= shown_values


def test_pages_say_why_counts_are_odd(pages):
    """Cells that are rounded do not add up, and noise makes counts negative or fractions."""
    for name, page in pages.items():
        words, is_noisy = Page(page).words, "plan" not in name and "changes" not in name
        is_noisy &= name != "no noise"
        assert ("cells shown may not add up to the total shown" in words) == is_noisy, name
        assert ("may be negative, or a fraction" in words) == is_noisy, name
        assert ("may differ in its last digit" in words) == ("changes" in name), name


def test_answers_are_those_of_the_release():
    made = survey(workload=[{"age": "prefix"}]).release(people())
    table = made.answers({"age": "prefix"})
    values = {value for value, _ in Page(release_page(made)).numbers}
    low, high = table.confidence_interval()
    assert set(np.concatenate([table.estimate, low, high]).tolist()) <= values


def test_long_tables_show_their_ends_and_fold_all_unless_they_are_too_long(release, monkeypatch):
    table = release["county"]
    order = np.argsort(-table.estimate)
    for most in (121, 120):
        monkeypatch.setattr(numbers_file, "_MOST_FOLDED", most)
        page = Page(release_page(release))
        assert "… 101 more …" in page.words
        values = {value for value, _ in page.numbers}
        assert set(table.estimate[order[:10]]) | set(table.estimate[order[-10:]]) <= values
        is_folded = "All 121 numbers with their intervals" in page.words
        assert is_folded is (most == 121)
        middle = set(table.estimate[order[10:-10]])
        assert middle <= values if is_folded else not middle & values


def test_largest_groups_have_intervals_that_hold_together(release):
    page, table = Page(release_page(release)), release["county"]
    low, high = table.confidence_interval(simultaneous=True)
    values = {value for value, _ in page.numbers}
    k = int(np.argmax(table.estimate))
    assert {low[k], high[k]} <= values


def test_many_tables_are_listed_and_the_first_shown(pages):
    page = Page(pages["many tables"])
    assert page.headings.count(3) == 12 + 6  # and the parts for specialists
    assert "24 more are listed on this page" in page.words
    assert page.words.count("q7 × q8") >= 2


def test_privacy_is_said_in_full(release):
    page = Page(release_page(release)).words
    plan = release.plan
    assert f"ρ = {release.rho_charged:.10g} was charged" in page
    assert "one row more or less" in page
    assert f"σ = {plan.query.query.scale:.10g}" in page
    assert f"{plan.bound.error:.10g}" in page
    assert f"{plan.noise.gap:.1e}" in page
    for delta in (1e-4, 1e-6, 1e-9):
        epsilon = gn.privacy.gaussian_epsilon(
            release.rho_charged, delta, draws=plan.query.count, steps=TABLE_STEPS
        )
        assert no_less(epsilon, 4) in page


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"neighbors": "replace", "public": "sex", "workload": [("sex", "age"), ("sex",)]},
        {"person": "who", "rows_per_person": 2, "privacy": gn.ApproxDP(1, 1e-6)},
    ],
)
def test_text_page_json_and_files_say_the_same_sentences(options, tmp_path):
    rows = people().append_column("who", [[f"p{k % 600}" for k in range(900)]])
    release = survey(**options).release(rows, out=tmp_path / "out")
    plan, facts = release.plan, facts_of(release.plan)
    printed, summary = str(plan), (tmp_path / "out" / "summary.txt").read_text(encoding="utf-8")
    record = json.loads((tmp_path / "out" / "release.json").read_text(encoding="utf-8"))
    pages = Page(plan_page(plan)).words, Page(release_page(release)).words
    for said in (facts.relation, *facts.verdict, *facts.exact):
        assert all(said in text for text in (printed, summary, *pages))
    assert all(facts.unit in page and facts.noise in page for page in pages)
    assert facts.budget in printed
    assert (facts.counted in printed) is (plan.person is not None)
    assert record["neighbors_meaning"] == facts.relation
    assert record["privacy_unit"] == facts.unit
    assert record["rows_counted"] == facts.counted
    assert record["privacy"] == facts.privacy
    if not plan.public:  # which has no bound for all data sets
        document = plan_document(plan)
        assert document["neighbors_meaning"] == facts.relation
        assert document["verdict"] == facts.verdict
        assert document["privacy"] == facts.privacy


def test_pages_of_ticks_say_which_rows_of_a_tick_are_counted():
    rows = people().append_column("who", [[f"p{k % 600}" for k in range(900)]])
    weekly = survey(person="who", rows_per_person=2, over=gn.streams.Ticks(2, 2))
    total = weekly.simulate([rows, rows], np.random.default_rng(1)).total(2)
    words = Page(release_page(total)).words
    assert "The tables count at most 2 rows of each person in a tick, drawn" in words
    assert total.over.facts.counted in words


def test_weak_guarantees_are_called_weak():
    assert "weak protection" in Page(plan_page(survey(privacy=gn.zCDP(5)))).words
    assert "weak protection" not in Page(plan_page(survey())).words
    weak = survey(privacy=gn.zCDP(5)).release(people())
    assert "weak protection" in Page(release_page(weak)).words


def head_of(text):
    """Return the words of a page before its contents."""
    return Page(text[: text.index("<nav ")] + "</body></html>").words


def part_of(text, name):
    """Return the words of one section of a page."""
    section = text[text.index(f'<section aria-labelledby="{name}">') :]
    return Page(section[: section.index("</section>") + len("</section>")]).words


def test_the_head_of_a_page_is_for_citizens_and_the_risk_stands_below_the_tables(release):
    table = gn.Attribute("sex", ["F", "M"])
    schema = gn.Schema([table], about=gn.About(publisher="Town <X>", unit="residents"))
    text = release_page(gn.plan(schema, ["sex"], gn.zCDP(0.1)).release(people()))
    assert re.search(
        r"A guess .* right in at most .* of cases \(.* 50 %\)\.", part_of(text, "privacy")
    )
    assert "sure" not in part_of(text, "privacy")
    assert "The worst case A reader" in part_of(text, "privacy-full")
    head = head_of(text)
    assert "1 table about sex, published by Town <X>. Noise was added to each number on" in head
    assert re.search(
        r"in 95 of 100 cases a number in these tables is off by ± [\d.]+ residents, or", head
    )
    assert "totals of many counts may be off by more, as is said beside them" in head
    assert "sure" not in head
    two = [release, survey().release(people())]
    pages = text, combined_page(gn.combine(two)), changes_page(gn.difference(*two))
    for page, at in zip(pages, ("tables", "tables", "changes_tables"), strict=True):
        said = part_of(page, "privacy-full" if page is text else "privacy")
        assert re.search(r"reader who knows all other rows, and .* at most [\d.]+ % sure", said)
        assert Page(page).words.count("% sure") == 1
        ids = Page(page).ids
        assert ids.index(at) < ids.index("privacy") < ids.index("specialists")
    planned = plan_page(survey())
    assert Page(planned).words.count("% sure") == 1
    assert "% sure" in part_of(planned, "privacy-full")
    assert re.search(r"right in at most [\d.]+ % of cases", head_of(planned))


def test_simulations_are_called_not_private(release):
    made = release.plan.simulate(people(), np.random.default_rng(0))
    text = release_page(made)
    assert text.count("NOT PRIVATE") >= 3
    assert "protects no person" in text
    assert "was charged for" not in text
    assert "NOT PRIVATE" not in Page(release_page(release)).words


def test_the_page_of_a_folder_is_that_of_its_release(tmp_path):
    made = survey().release(people(), out=tmp_path / "out")
    made.report(tmp_path / "one.html", title="Survey")
    before = {path: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert run(["report", str(tmp_path / "out"), "-o", str(tmp_path / "two.html"),
                "--title", "Survey"]) == 0  # fmt: skip
    assert (tmp_path / "one.html").read_bytes() == (tmp_path / "two.html").read_bytes()
    assert before == {
        path: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()
    }
    record = json.loads((tmp_path / "out" / "release.json").read_text(encoding="utf-8"))
    page = Page((tmp_path / "one.html").read_text(encoding="utf-8"))
    for entry in record["marginals"]:
        assert entry["file"] in page.words
    assert record["libraries"]["opendp"] in page.words
    shutil.move(tmp_path / "out", tmp_path / "moved")
    gn.TableRelease.load(tmp_path / "moved").report(tmp_path / "three.html", title="Survey")
    assert (tmp_path / "three.html").read_bytes() == (tmp_path / "one.html").read_bytes()


def test_existing_files_stay_as_they_are(tmp_path, release):
    for made in (release, release.plan):
        (tmp_path / "taken.html").write_text("mine")
        with pytest.raises(OutputError, match="exists already"):
            made.report(tmp_path / "taken.html")
        assert (tmp_path / "taken.html").read_text() == "mine"
        with pytest.raises(OutputError, match="cannot write"):
            made.report(tmp_path / "missing" / "report.html")
        with pytest.raises(ParameterError, match="expected a title of text"):
            made.report(tmp_path / "new.html", title=7)
        with pytest.raises(ParameterError, match="expected a path"):
            made.report(7)
    assert os.listdir(tmp_path) == ["taken.html"]


def test_nothing_is_added_to_the_files_of_a_release(tmp_path):
    made = survey(workload=[("sex",)]).release(people(), out=tmp_path / "out")
    for place in ("report.html", "tables/report.html"):
        with pytest.raises(OutputError, match="holds the files that were released"):
            made.report(tmp_path / "out" / place)
    assert gn.TableRelease.load(tmp_path / "out").private


def test_a_plan_is_reported_by_the_shell(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plan = survey(workload=[("sex", "age")])
    (tmp_path / "schema.toml").write_text(plan.schema.to_toml(), encoding="utf-8")
    command = ["plan", "-s", "schema.toml", "-m", "sex,age", "--rho", "0.1", "--report", "p.html"]
    assert run(command) == 0
    assert "wrote p.html" in capsys.readouterr().out
    assert (tmp_path / "p.html").read_text(encoding="utf-8") == plan_page(plan)
    assert run(command) == 1
    assert "exists already" in capsys.readouterr().err


def test_tables_of_a_stream_say_which_ticks():
    schema = gn.Schema([gn.Attribute("sex", ["F", "M"])])
    plan = gn.plan(schema, 1, gn.zCDP(0.1), over=gn.streams.Ticks(4))
    so_far = plan.simulate([pa.table({"sex": ["F", "M"]})] * 2, np.random.default_rng(0))
    assert "ticks 1 to 2 of a stream" in Page(release_page(so_far.total())).words


def test_sums_of_clipped_numbers_have_errors_in_their_own_unit():
    schema = gn.Schema(
        [gn.Attribute("job", ["a", "b", "c"]), gn.Attribute("pay", clip=[10, 5000], other="none")]
    )
    plan = gn.plan(schema, [("job", "pay"), "job"], gn.zCDP(0.1))
    rows = pa.table({"job": ["a", "b"], "pay": [70.0, 3300.0]})
    release = plan.simulate(rows, np.random.default_rng(0))
    sums = 1.959964 * release.sums("pay", given="job").standard_deviation.mean()
    with_sums, counts = errors.errors_of_release(release)
    assert with_sums["sums"] == pytest.approx(sums)
    assert counts[""] == pytest.approx(plan.half_width("job"))
    typical = (
        "a count in these tables is off by {}, or by less",
        "Error of a count {} in 95 % of cases",
    )
    for page, found, said in (
        (Page(release_page(release)).words, errors.errors_of_release(release), typical[0]),
        (Page(plan_page(plan)).words, errors.errors_of_plan(plan), typical[1]),
    ):
        assert errors.means_of(plan)[0].replace(", ±", " ±") in page
        assert "sums ±" not in page
        assert said.format(errors.typical_error(found, "rows")) in page
        assert max(found[0]["counts"], found[1][""]) < 50 < sums / 100


@pytest.mark.parametrize("width", [0.0412, 0.2, 0.98, 1.02, 2.489, 9.81, 14.2, 422.3, 21_510.2])
def test_half_widths_in_words_are_rounded_up_by_a_tenth_at_most(width):
    said = float(errors.error_text({"": width}).removeprefix("± ").replace(",", ""))
    assert width <= said <= 1.1 * width


def test_the_margin_of_a_mean_is_that_of_its_table_also_in_a_combination():
    region = gn.Attribute("region", ["N", "S"])
    pay = gn.Attribute("pay", clip=[0, 100], measured_in="EUR", other="none")
    schema = gn.Schema([region, pay])
    rows = pa.table({"region": ["N", "S"] * 1000, "pay": [99.0, 99.0] * 1000})
    plan, rng = gn.plan(schema, [("region", "pay")], gn.zCDP(0.5)), np.random.default_rng(0)
    both = gn.combine([plan.simulate(rows, rng), plan.simulate(rows, rng)])
    for release in (plan.simulate(rows, rng), both):
        (said,) = errors.means_of(release)
        half = float(re.match(r"mean ± ([\d.]+) EUR in a group of 100 rows, ± [\d.]+ in", said)[1])
        page = release_page(release) if release is not both else combined_page(both)
        assert said.replace(", ±", " ±") in Page(page).words
        low, high = release.means("pay", "region").confidence_interval()
        widest = ((high - low) / 2).max() * 10  # groups of 1000
        assert 0.9 * half < widest < 1.1 * half  # counts have noise too


def test_a_plan_of_squares_without_sums_has_a_page():
    pay = gn.Attribute("pay", clip=[10, 5000], base={"kind": "moments", "degrees": [0, 2]})
    plan = gn.plan(gn.Schema([pay]), ["pay"], gn.zCDP(0.1))
    page = Page(plan_page(plan)).words
    assert list(errors.errors_of_plan(plan)[0]) == ["counts", "sums of squares"]
    assert errors.error_text(errors.errors_of_plan(plan)[0]) in page


def test_tables_of_a_stream_have_its_errors_and_its_guarantee():
    schema = gn.Schema([gn.Attribute("sex", ["F", "M"]), gn.Attribute("age", edges=[0, 18, 120])])
    plan = gn.plan(schema, 2, gn.zCDP(0.1), over=gn.streams.Ticks(12, reports=3, apart=4))
    rows = pa.table({"sex": ["F", "M"], "age": [7, 33]})
    so_far = plan.simulate([rows] * 9, np.random.default_rng(0))
    for table, ticks in ((so_far.total(), (1, 9)), (so_far.window(4, 7), (4, 7))):
        width = errors.errors_of_release(table)[0][""]
        assert width == pytest.approx(plan.half_width("sex", "age", ticks=ticks))
        page = Page(release_page(table)).words
        assert (
            f"a number in these tables is off by {errors.error_text({'': width})} rows, or by less"
            in page
        )
        assert "Protected each person" in page
        assert plan.privacy_unit in page
        assert f"{plan.integers:,} independent draws" in page
        assert (
            "over time as well has less error" in page or "over time as well has less than" in page
        )
        assert "Error of this plan" not in page


def test_errors_on_a_page_are_those_that_were_planned(release):
    planned = np.asarray(release.plan.deviations)
    drawn = [np.mean(release.covariance.term_variance(t)) for t in release.plan.domain.terms]
    assert np.allclose(np.sqrt(drawn), planned)


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (1234.56, 0, "1,235"),
        (-0.4, 0, "0"),
        (-1.5, 1, "−1.5"),
        (1e18, 0, "1e+18"),
        (0.05, 2, "0.05"),
    ],
)
def test_numbers_are_written_plainly(value, digits, text):
    assert number(value, digits) == text


def test_templates_escape_all_but_markup():
    cells = CellList(gn.plan(gn.Schema([gn.Attribute("a", ["x"])]), 1, gn.zCDP(1)).release(
        pa.table({"a": ["x"]}))["a"], np.array([0]))  # fmt: skip
    cell = Cell(("<b>\x00&amp;",), -2.5, -3.5, -1.5, 0.5)
    facts = {"cells": cells, "numbers": [cell], "title": "'<i>\"", "more": 0, "closing": "\x1b"}
    text = rendered("cells.html", **facts)
    assert "<bdi>&lt;b&gt;\ufffd&amp;amp;</bdi>" in text
    assert '<data value="-2.5">−2</data>' in text
    assert html.unescape(re.search("<caption>(.*)</caption>", text)[1]) == "'<i>\""
    assert "<small>\ufffd</small>" in text
    assert "<i>" not in text
    with pytest.raises(UndefinedError, match="'closing' is undefined"):
        rendered("cells.html", **{name: facts[name] for name in facts if name != "closing"})


def test_labels_are_one_line_and_cut_where_they_are_long():
    assert shown("a\n b", 10) == "a b"
    assert shown("x" * 20, 10) == "x" * 9 + "…"
    assert shown(" \n") == "(blank)"


def test_the_page_says_whether_rows_of_persons_are_counted_or_stated():
    schema = gn.Schema([gn.Attribute("a", [0, 1])])
    rows = pa.table({"a": [0, 1, 1], "who": ["x", "y", "y"]})
    for person, said, unsaid, first in (
        (
            "who",
            "at most 2 rows of each person, drawn at random",
            "not checked",
            "at most 2 rows of each person are counted",
        ),
        (None, "not checked", "drawn at random", "of whom each has at most 2 rows"),
    ):
        plan = gn.plan(schema, 1, gn.zCDP(1), rows_per_person=2, person=person)
        text = str(release_page(plan.release(rows)))
        assert said in text
        assert unsaid not in text
        assert first in text.partition("</header>")[0]
    single = str(release_page(gn.plan(schema, 1, gn.zCDP(1)).release(rows)))
    assert "each row of the data</dd>" in single  # nothing more is said of rows


def test_pages_say_which_tables_are_exact_and_what_is_clipped():
    schema = gn.Schema(
        [
            gn.Attribute("sex", ["F", "M"]),
            gn.Attribute("age", edges=[0, 18, 120]),
            gn.Attribute("income", clip=[0, 100]),
        ]
    )
    table = pa.table({"sex": ["F", "M"] * 50, "age": [7, 33] * 50, "income": [5.0, 400.0] * 50})
    public = gn.plan(schema, [("sex", "age")], gn.zCDP(1), neighbors="replace", public="sex")
    page = Page(release_page(public.release(table), "")).words
    assert "Noise was added to each number, except those of sex alone, on purpose" in page
    assert "each row of the data sex is not protected" in page
    both = gn.plan(schema, ["sex", "age"], gn.zCDP(1), neighbors="replace", public="sex")
    page_of_both = Page(release_page(both.release(table), "")).words
    assert "a number in these tables is off by ± " in page_of_both
    assert "that all of this is public knowledge, as is the number of rows, which is exact." in (
        page_of_both
    )
    every = gn.plan(schema, ["sex"], gn.zCDP(1), neighbors="replace", public="sex").release(table)
    assert "Exact: without noise." in (page := Page(release_page(every, "")).words)
    assert "none is needed: all tables are public" in page
    assert "No number has noise: sex of a row is not protected, and the tables have nothing" in page
    assert "No difference between F and M." in page
    said = "exchanged for another of the same sex, none of these numbers would change"
    assert f"{said}. So they say nothing else about one row, and need no noise. EXACT, " in page
    main = main_text(release_page(every, "")).words
    assert not re.search(r"Noise (was|is) added|noise is zero|% sure|in 95 of 100 cases", main)
    uneven = pa.table({"sex": ["F"] * 5 + ["M"] * 2})
    page_of_uneven = Page(release_page(every.plan.release(uneven))).words
    assert "71.4 % rounded" in page_of_uneven
    assert "F has 3 more rows than M (exactly)." in page_of_uneven
    both = Page(combined_page(gn.combine([public.release(table) for _ in range(2)]))).words
    assert "Tables of sex alone are exact: which combination of these a person is in has no" in both
    clipped = gn.plan(schema, [("sex", "income")], gn.zCDP(1)).release(table)
    page = Page(release_page(clipped, "")).words
    assert "a number; one outside [0, 100] counts as the nearer end" in page
    assert "A value of income below 0 counts as 0, and one above 100 as 100." in page
    assert "in no mean" not in page  # all rows have a number, or there would be no release
    assert "the exact one" not in page  # the mean of the values as they are is no mean of these
    assert "weight at" not in page
    # a schema may have been read off the rows, and then confirmed
    assert "Whoever published them has stated that all of this is public knowledge." in page
    assert "before any data" not in page


def test_a_total_without_noise_is_not_said_to_have_it_and_sums_with_noise_are():
    sex, pay = gn.Attribute("sex", ["F", "M"]), gn.Attribute("pay", clip=[0, 100])
    rows = pa.table({"sex": ["F", "M"] * 50, "pay": [7.0, 33.0] * 50})
    schema, said = gn.Schema([sex, pay]), {}
    for workload in ("sex", "pay", ()):
        plan = gn.plan(schema, [workload], gn.zCDP(1), neighbors="replace")
        said[workload] = Page(release_page(plan.release(rows))).words
    only = "Noise was added to each number, except the number of rows, on purpose"
    assert only in said["sex"]
    assert only in said["pay"]  # the count of all numbers has no noise, and their sum has
    assert re.search(r"a sum in these tables is off by ± [\d,]+, or by less", said["pay"])
    assert "Every estimate, except exact ones, differs" in said["sex"]
    assert "No number has noise: each follows from the number of rows, which is public." in said[()]
    assert "(exactly)" in said[()]


ASKED = [("sex", "pay")]


@pytest.mark.parametrize(
    ("options", "planned", "said"),
    [
        (
            {},
            {},
            ["of pay below 0 counts as 0, and one above 100 as 100. Where", "no number in pay"],
        ),
        (
            {"missing": [-1]},
            {},
            [
                "and one above 100 as 100, but -1 counts as no answer. Where",
                "no number or no answer",
            ],
        ),
        ({"missing": [-1, 999]}, {}, ["but -1 and 999 count as no answer. Where"]),
        ({"missing": ["refused"]}, {}, ["and one above 100 as 100. Where"]),  # text is no number
        (
            {"missing": [-1]},
            {"person": "who", "per_person": "count"},
            ["A person's number of rows with a number in pay below 0 counts as 0, and one above"],
        ),
        (
            {},
            {"person": "who", "per_person": "sum"},
            ["A value of pay, or the sum of a person's values, below 0 counts as 0, and one above"],
        ),
    ],
)
def test_pages_and_summaries_say_what_numbers_beyond_the_ends_count_as(options, planned, said):
    schema = gn.Schema(
        [gn.Attribute("sex", ["F", "M"]), gn.Attribute("pay", clip=[0, 100], **options)]
    )
    rows = pa.table({"sex": ["F", "M"] * 9, "pay": [7.0, -1.0] * 9, "who": [*range(18)]})
    release = gn.plan(schema, ASKED, gn.zCDP(1), **planned).release(rows, on_outside="drop")
    page, summary = Page(release_page(release)).words, release_text(release)
    assert all(text in page for text in said)
    assert said[0].removesuffix(" Where") in summary
    noun = release.noun.capitalize()
    assert re.search(rf"{noun} with no number( or no answer)? in pay are in no mean of it\.", page)
    codes = ", ".join(map(str, options.get("missing", ())))
    assert ("; -1 counts as no answer" in page) == (codes == "-1")


def test_numbers_without_an_end_have_no_nearer_one():
    schema = gn.Schema([gn.Attribute("pay", unit=1.0, missing=[9])])
    plan = gn.plan(schema, ["pay"], gn.PerRecord(gn.zCDP(1), scale={"pay": 100}))
    release = plan.release(pa.table({"pay": [5.0, 7.0, -3.0, 9.0]}), on_outside="drop")
    page, summary = Page(release_page(release)).words, release_text(release)
    for text in (page, summary):
        assert "interval count as" not in text
        assert "In pay, 9 counts as no answer." in text
        assert "Rows with no number from 0 on or no answer in pay are in no table" in text
    assert "to the nearest 1; 9 counts as no answer" in page


def test_bins_with_codes_for_no_answer_say_so():
    schema = gn.Schema([gn.Attribute("age", edges=[0, 18, 120], missing=[99])])
    release = gn.plan(schema, ["age"], gn.zCDP(1)).release(pa.table({"age": [7, 33]}))
    assert re.search(r"\[18, 120\] ?; 99 counts as no answer", Page(release_page(release)).words)


def test_a_page_says_by_what_rows_are_weighted():
    plan = gn.plan(
        gn.Schema([gn.Attribute("sex", ["F", "M"])]),
        ["sex"],
        gn.zCDP(1),
        weight=gn.Weight("w", most=4),
    )
    rows = pa.table({"sex": ["F", "M"] * 9, "w": [0.5, 3.0] * 9})
    said = "Every row counts as its 'w', clipped to [0, 4]: all counts and sums are weighted."
    assert said in Page(release_page(plan.release(rows))).words


def test_a_page_says_what_a_catch_all_counts():
    attributes = [gn.Attribute("sex", ["F", "M"], other="else"), gn.Attribute("age", [1, 2])]
    table = pa.table({"sex": ["F", "M", "f", None], "age": [1, 2, 1, 2]})
    said = "of sex has the rows with no value there, or with one that is not listed."
    for workload, is_said in [("sex", True), ("age", False)]:
        release = gn.plan(gn.Schema(attributes), [workload], gn.zCDP(1)).release(table)
        words = Page(release_page(release, "")).words
        assert (said in words) is is_said
        assert "Attribute Categories Which The rest sex 2 F · M else age 2 1 · 2 —" in words


CAPPED = "(values above 100,000 count as 100,000)"  # in titles of means of incomes


def paid(workload, rows=3000, **options):
    """Return a release of incomes clipped to [0, 100000], by sex and region."""
    schema = gn.Schema(
        [
            gn.Attribute("sex", ["F", "M"]),
            gn.Attribute("region", ["North", "South", "<East>"]),
            gn.Attribute("income", clip=[0, 100000], **options),
        ]
    )
    rng = np.random.default_rng(5)
    sex = rng.choice(["F", "M"], rows)
    table = {
        "sex": sex,
        "region": rng.choice(["North", "South", "<East>"], rows),
        "income": np.where(sex == "F", 30000.0, 45000.0) + rng.normal(0, 3000, rows),
    }
    return gn.plan(schema, workload, gn.zCDP(1)).release(pa.table(table))


def test_means_and_sums_of_clipped_numbers_have_tables_and_pictures_of_their_own():
    release = paid([("sex", "income"), ("sex", "region", "income"), "income"])
    text = release_page(release)
    page = Page(text)
    assert re.search(r"(?i)mean of income|mean income|income, mean", page.words)
    values = {value for value, _ in page.numbers}
    for groups in ("sex", ("sex", "region"), ()):
        for table in (release.means("income", groups), release.sums("income", groups)):
            shown_here = [table.estimate, *table.confidence_interval()]
            assert set(np.concatenate([np.ravel(x) for x in shown_here]).tolist()) <= values
    counts = release.answers({"sex": None, "income": {"kind": "moments", "degrees": [0]}})
    assert set(counts.estimate.ravel().tolist()) <= values
    for title in (
        "Mean of income by sex",
        "Sum of income by sex",
        "Counts of rows with a number in income",
    ):
        assert f"<title>{title}" in text
    for title in ("Mean of income by sex × region", "Mean of income"):
        assert f"{title} {CAPPED}: estimates" in page.words


def test_pictures_of_means_do_not_begin_at_zero():
    (picture,) = re.findall(
        "<title>Mean of income by sex.*?</svg>", release_page(paid([("sex", "income")])), re.DOTALL
    )
    assert ">30,000<" in picture
    assert ">0<" not in picture


def test_a_number_that_noise_hides_is_left_off_pictures_and_named():
    """Its interval, here of almost the whole range, would make the others mere points."""
    groups = ["a", "b", "c", "none"]
    schema = gn.Schema([gn.Attribute("town", groups), gn.Attribute("pay", clip=[0, 100_000])])
    rows = pa.table({"town": ["a", "b", "c"] * 1000, "pay": [2000.0, 2500.0, 3000.0] * 1000})
    plan = gn.plan(schema, [("town", "pay")], gn.zCDP(0.1))
    for seed in range(5):  # the count of the empty group is positive in some, and not in others
        release = plan.simulate(rows, np.random.default_rng(seed))
        (picture,) = entries_of(release)[0].parts[0].pictures
        assert picture.caption == "Not drawn, because noise hides too much of them: none."
        numbers = re.findall("[0-9,]+(?=</text>)", picture.svg)
        assert max(int(text.replace(",", "")) for text in numbers) < 10_000
    page = Page(release_page(release))
    assert picture.caption in page.words
    later = plan.simulate(rows, np.random.default_rng(9))
    (picture,) = shown_changes_picture(gn.difference(release, later))
    assert "noise hides too much of them: none." in picture.caption


def shown_changes_picture(changes):
    """Return the pictures of changes of means."""
    one = next(one for one in shown_changes(changes) if one.statistic == "mean")
    return Numbers(one.table, one.name, "changes", kind="changes").pictures


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        ([1000, 2000, 3000, 0], [1100, 2100, 3100, 50_000], [False, False, False, True]),
        ([1000, 2000, 3000, 0], [1100, 2100, 3100, 10_000], [False] * 4),  # all can be read
        ([1000, 2000, 0, -math.inf], [1100, 2100, 50_000, math.inf], [False, False, True, True]),
        # what is too long beside most of them is so beside a longer one too
        ([50, 55, 45, 0, 0], [54, 60, 60, 220, 600], [False, False, False, True, True]),
        ([50, 55, 45, 70, 0], [54, 60, 60, 220, 600], [False] * 4 + [True]),  # one is apart
        # two of six are very precise, and the others can be read
        ([50, 51, 40, 41, 42, 43], [50.1, 51.1, 60, 61, 62, 63], [False] * 6),
        ([1000, 0], [1100, 50_000], [False, False]),  # a single one is never hidden by another
        ([5, 5, 0], [5, 5, 50], [False] * 3),  # exact numbers have no length
    ],
)
def test_only_intervals_that_hide_others_are_left_off(low, high, expected):
    low, high = np.array(low, float), np.array(high, float)
    estimate = np.zeros(len(low))
    assert unreadable(estimate, low, high, from_zero=False).tolist() == expected
    back = unreadable(-estimate, -high, -low, from_zero=False)  # a mirror changes nothing
    assert back.tolist() == expected


def test_both_ends_of_a_long_table_are_groups_with_a_number():
    county = [f"{k:03}" for k in range(70)]
    schema = gn.Schema([gn.Attribute("county", county), gn.Attribute("pay", clip=[0, 100])])
    rows = pa.table({"county": county[:30] * 100, "pay": [float(k) for k in range(30)] * 100})
    release = gn.plan(schema, [("county", "pay")], gn.zCDP(5.0)).release(rows)
    means = entries_of(release)[0].parts[0]
    assert np.isnan(means.table.estimate).any()
    assert all(math.isfinite(cell.estimate) for cell in means.cells)
    assert means.hidden == 50


def test_a_mean_of_no_rows_has_no_estimate_and_its_whole_interval():
    while True:  # by noise, a count of no rows may be clearly positive
        release = paid(["income"], rows=0)
        mean = release.means("income")
        if np.isnan(mean.estimate) and mean.confidence_interval() == (0, 100000):
            break
    page = Page(release_page(release)).words
    mean = page[page.index(f"Mean of income {CAPPED}: estimates") :]
    assert "nan" not in mean
    assert "0 to 100,000" in mean


def main_text(text):
    """Return the text of a page before the part for specialists."""
    return Page(
        text[: text.index('<section aria-labelledby="specialists">')] + "</main></body></html>"
    )


def test_squares_of_numbers_are_for_specialists_alone():
    release = paid([("sex", "income")], base={"kind": "moments", "degrees": [0, 1, 2], "about": 50})
    text = release_page(release)
    main, page = main_text(text), Page(text)
    assert "square" not in main.words
    assert "Counts of rows with a number in income by sex" not in main.words
    assert "Counts of rows with a number in income by sex" in page.words
    assert re.search(
        rf"Mean of income by sex {re.escape(CAPPED)} 6 mean ± [\d,]+ in a group of 100 rows ± ",
        main.words,
    )
    assert "Sum of squares of income less 50 by sex: estimates" in page.words
    about = {"kind": "moments", "degrees": [2], "about": 50}
    squares = release.answers({"sex": None, "income": about}).estimate
    assert {*squares.ravel().tolist()} <= {value for value, _ in page.numbers}


@pytest.mark.parametrize("name", [name for name in CASES if not name.startswith("odd")])
def test_words_of_specialists_stand_at_the_end(pages, name):
    words = main_text(pages[name]).words
    assert not re.search(r"[ρεδσγ]|\bnull\b|\bschema\b|sha256|optimal\b|1e-0", words)
    assert "For specialists" in words
    assert Page(pages[name]).words.index("sha256") > len(words) - 200
    risk = re.search(r"right in at most [\d.]+ % of cases|at most [\d.]+ % sure", words)
    assert bool(risk) == (name != "no noise")


def test_one_record_of_each_person_is_a_person_and_several_are_records(pages):
    words = main_text(pages["persons"]).words
    for said in ("Persons in the tables", "F has", "more persons than M", "Persons: ",
                 "Per cent of all", "Most persons", "Fewest persons"):  # fmt: skip
        assert said in words
    several = Page(plan_page(persons(rows_per_person=2))).words
    assert "Half-widths of 95 % intervals, in records" in several
    assert "Half-widths of 95 % intervals, in persons" in Page(plan_page(persons())).words
    without = words.replace("any number of rows", "").replace("each group of their rows", "")
    assert not re.search(r"\b[Rr]ows\b", without)
    changed = gn.difference(*(persons().release(visits(n)) for n in (900, 800)))
    changed = Page(changes_page(changed)).words
    assert "All persons:" in changed
    assert not re.search(r"\d rows", changed)


@pytest.mark.parametrize(
    ("how", "said"), [("sum", "the sum of their own numbers"), ("count", "the number of their own")]
)
def test_titles_of_means_over_persons_say_what_number_a_person_has(how, said):
    schema = gn.Schema(
        [gn.Attribute("course", ["math", "art"]), gn.Attribute("grade", clip=[0, 60])]
    )
    rows = {"who": [1, 1, 2] * 300, "course": ["math", "art", "art"] * 300, "grade": [9.0] * 900}
    plan = gn.plan(schema, [("course", "grade")], gn.zCDP(1), person="who", per_person=how)
    page = Page(release_page(plan.release(pa.table(rows)))).words
    assert page.count(f"Means over persons, each with {said}") == 1
    assert f"Sum of grade by course over persons, each with {said}" in page
    assert not re.search("over persons[^,]", page)


def test_synthetic_records_stand_beside_the_release(release, tmp_path):
    labels = {"F": 3, "M": 1}
    drawn = pa.table(
        {
            "sex": [sex for sex, times in labels.items() for _ in range(6 * times)],
            "age": ["[0, 18)", "[18, 65)", "[65, 120]"] * 8,
            "county": [f"{k:03}" for k in range(24)],
        }
    )
    found = release.likeness(drawn)
    release.report(tmp_path / "page.html", synthetic=drawn)
    page = Page((tmp_path / "page.html").read_text(encoding="utf-8"))
    values = {value for value, _ in page.numbers}
    for row in found:
        assert f"{row.column} {row.statistic}" in page.words
        assert {row.synthetic, row.release, row.low, row.high} <= values
    inside = sum(row.low <= row.synthetic <= row.high for row in found)
    assert f"{inside} of the {len(found)} statistics below" in page.words
    assert "drew 24 synthetic records" in page.words
    assert "biased" in page.words
    assert "ynthetic" not in release_page(release)
    both = gn.combine([survey().release(people()) for _ in range(2)])
    assert "drew 24 synthetic records" in combined_page(both, synthetic=drawn)
    with pytest.raises(ParameterError, match="got a column 'pay'"):
        release_page(release, synthetic=pa.table({"pay": [1]}))


def test_rows_that_are_left_out_are_described_in_plain_words():
    words = main_text(release_page(survey().release(people(), on_outside="drop"))).words
    assert "Rows with no value, or one that is not listed, in sex, age are in no table" in words


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_the_risk_has_one_number_in_plan_and_page_and_grows_with_the_budget(neighbors):
    seen = []
    for rho in (0.01, 0.1, 0.5, 2):
        plan = survey(neighbors=neighbors, privacy=gn.zCDP(rho))
        table = gn.budgets(plan.schema, [("sex", "age"), ("county",), ("sex",), ()],
                           neighbors=neighbors, rhos=[plan.rho_charged])  # fmt: skip
        (said,) = set(re.findall(r"is at most ([\d.]+ %) sure", Page(plan_page(plan)).words))
        release = plan.simulate(people(), np.random.default_rng(0))
        assert said == percent_text(facts_of(release.plan).surest(plan.rho_charged))
        assert f"at most {said} sure" in " ".join(str(table).split())
        seen.append(float(said.split()[0]))
    assert seen == sorted(seen)
    assert seen[0] < 70 < 99 < seen[2]


def test_a_page_begins_with_lines_for_its_readers():
    lines = {"title": "Pay <b>", "source": "Register", "period": "2024", "contact": "a@b & c"}
    schema = gn.Schema([gn.Attribute("sex", ["F", "M"])], about=gn.About(**lines))
    words = Page(
        release_page(gn.plan(schema, 1, gn.zCDP(1)).release(pa.table({"sex": ["F"]})))
    ).words
    at = [
        words.index(text) for text in (*lines.values(), "1 table about sex", "What the tables say")
    ]
    assert at == sorted(at)
    assert "Source: Register Period: 2024 Contact: a@b & c" in words


def test_a_combination_has_the_lines_that_all_its_releases_have():
    releases = []
    for k in range(2):
        about = gn.About(source="Register", period=f"week {k}", contact="a@b")
        schema = gn.Schema([gn.Attribute("sex", ["F", "M"])], about=about)
        rows = pa.table({"sex": ["F"] * 90})
        releases.append(gn.plan(schema, 1, gn.zCDP(1)).simulate(rows, np.random.default_rng(k)))
    words = Page(combined_page(gn.combine(releases))).words
    assert "Source: Register Contact: a@b" in words
    assert "week" not in words


def finding(counts, workload=("sex",), rho=1.0):
    """Return the finding of the first table, of counts that have almost no noise or much."""
    schema = gn.Schema([gn.Attribute("sex", list(counts))])
    rows = pa.table({"sex": [name for name, count in counts.items() for _ in range(count)]})
    # of one seed: one interval in twenty misses, and the finding is then another
    plan = gn.plan(schema, list(workload), gn.zCDP(rho))
    release = plan.simulate(rows, np.random.default_rng(0))
    return finding_of(entries_of(release)[0].parts[0], {})


def test_findings_say_what_intervals_support():
    assert re.fullmatch(
        r"F has \d+ fewer rows than M \(between \d+ and \d+\)\.", finding({"F": 400, "M": 900})
    )
    assert re.fullmatch(r"F has \d+ more rows than M .*", finding({"F": 900, "M": 400}))
    same = "No difference between F and M that the noise allows to see."
    assert finding({"F": 500, "M": 500}, rho=1e-4) == same
    assert finding({"a": 50, "b": 50, "c": 50}, rho=1e-5) == (
        "No difference between the groups that the noise allows to see."
    )
    assert re.fullmatch(
        r"b has the most rows, 9\d\d \(.*\); no other can have as many\.",
        finding({"a": 100, "b": 950, "c": 300}),
    )
    # one of two is the largest: that the third has fewer is all that is known
    two = finding({"a": 5000, "b": 5000, "c": 10}, rho=0.01)
    assert re.fullmatch(r"[ab] has more rows, [\d,]+ \(.* jointly\), than c, −?\d+ \(.*\)\.", two)
    assert re.fullmatch(r"Rows: \d+ \(\d+ to \d+\)\.", finding({"a": 100}, workload=[()]))


def sexes(counts, rho=1.0):
    """Return a release of counts by an attribute whose catch-all has the rows of "?"."""
    labels = [name for name in counts if name != "?"]
    schema = gn.Schema([gn.Attribute("sex", labels, other="other")])
    rows = pa.table({"sex": [name for name, count in counts.items() for _ in range(count)]})
    return gn.plan(schema, ["sex"], gn.zCDP(rho)).simulate(rows, np.random.default_rng(0))


def test_findings_do_not_compare_catch_alls():
    def said(release, others):
        return finding_of(entries_of(release)[0].parts[0], others)

    others = {"sex": "other"}
    three = sexes({"a": 300, "b": 500, "c": 20, "?": 900})
    assert said(three, {}).startswith("other has the most rows")
    found = said(three, others)
    assert re.match(r"Of the groups with listed values, b has the most rows, (49|50)\d", found)
    assert found in Page(release_page(three)).words
    two = sexes({"a": 300, "b": 500, "?": 900})
    assert re.match(r"a has \d+ fewer rows than b", said(two, others))
    # one listed value has nothing else to be compared with
    one = sexes({"a": 300, "?": 900})
    assert re.match(r"a has \d+ fewer rows than other", said(one, others))
    assert said(sexes({"a": 50, "b": 50, "c": 50, "?": 50}, 1e-5), others) == (
        "No difference between the groups with listed values that the noise allows to see."
    )


def test_the_largest_groups_whose_means_are_compared_are_no_catch_alls():
    labels, pay = ["a", "b", "c"], gn.Attribute("pay", clip=[0, 100])
    schema = gn.Schema([gn.Attribute("sex", labels, other="other"), pay])
    names, rows, paid_to = [*labels, "?"], [900, 800, 300, 2000], [30.0, 60.0, 50.0, 90.0]
    table = pa.table({"sex": np.repeat(names, rows), "pay": np.repeat(paid_to, rows)})
    release = gn.plan(schema, [("sex", "pay")], gn.zCDP(1)).simulate(
        table, np.random.default_rng(0)
    )
    said = finding_of(entries_of(release)[0].parts[0], {"sex": "other"})
    assert "b is highest" in said
    assert "Of the two largest groups, a is" in said
    assert " than b" in said
    assert "other is" not in said


def test_ranges_that_hold_together_are_marked():
    said = finding({"a": 100, "b": 950, "c": 300})
    assert re.match(r"b has the most rows, 9\d\d \(\d+ to \d+ jointly\);", said)
    assert "jointly" not in finding({"F": 400, "M": 900})


def test_an_estimate_that_noise_hides_says_that_it_may_be_0():
    sure, hidden = Cell(("a",), 900.0, 890.0, 910.0, 5.0), Cell(("a",), 2.0, -8.0, 12.0, 5.0, "**")
    assert (sure.caution, hidden.caution) == ("", "may be 0")
    assert Cell(("a",), -1.0, -1.99, -0.01, 0.51, "**").caution == "may be 0"  # as shown, to 0
    assert Cell(("a",), 0.5, 0.01, 0.99, 0.25, "**").caution == "may be 0"
    assert Cell(("a",), 5.1, 0.8, 9.4, 2.6, "**").caution == ""
    assert Cell(("a",), math.nan, -math.inf, math.inf, 5.0, "**").caution == ""


def test_the_file_of_an_entry_has_its_numbers(tmp_path):
    release = paid([("sex",), ("sex", "income")]).save(tmp_path / "out")
    release = gn.TableRelease.load(tmp_path / "out")
    files = numbers_file.files_of(release)
    assert len(files) == 2
    for entry in entries_of(release):
        text = (tmp_path / "out" / files[entry.name]).read_text(encoding="utf-8")
        for numbers in entry.every:
            if numbers.kind in ("cells", "mean", "behind"):
                assert all(repr(float(x)) in text for x in np.ravel(numbers.table.estimate))


def test_the_chance_of_a_right_guess_is_that_of_two_gaussians():
    facts = facts_of(survey(privacy=gn.zCDP(0.5)))
    assert facts.guessed(0.5) == pytest.approx(0.6914625, abs=1e-6)  # Phi(1/2)
    assert 0.6914624612740131 < facts.guessed(0.5)
    assert facts.guessed(0.0) == 0.5
    assert facts.guessed(1e6) == 1.0
    assert "is right in at most 69.2 % of cases" in Page(
        plan_page(survey(privacy=gn.zCDP(0.5)))).words  # fmt: skip


def test_findings_of_means_give_the_gap_and_its_interval():
    release = paid([("sex", "income"), ("sex", "region", "income"), ("income",)])
    pair, several, single = (finding_of(entry.parts[0], {}) for entry in entries_of(release))
    gap = release.means("income", given="sex").difference("sex", "F", "M")
    low, high = (number(-float(end), 0) for end in gap.confidence_interval())
    assert pair.startswith("F is 1")
    assert pair.endswith(f"lower than M (between {high} and {low}).")
    assert several is None  # by two attributes: women have less, but no single group is alone
    assert re.fullmatch(r"The mean is [\d,]+ \([\d,]+ to [\d,]+\)\.", single)


@pytest.mark.parametrize(
    ("estimate", "low", "high", "said"),
    [
        ([50, 51, 10], [49, 50, 9], [51, 52, 11], "b is higher, 51 (50 to 52 jointly), than c, "),
        ([50, 51, 10], [49.5, 49, 9], [50.5, 53, 11], ""),  # a is not the largest as estimated
        ([50, 51, 10, 11], [49, 50, 0, 10], [51, 52, 20, 12], ""),  # nor d the smallest
        ([50, 51, 50], [40, 41, 40], [60, 61, 60], "No difference between the groups "),
        ([50, 61, 10], [49, 60, 9], [51, 62, 11], "b is highest, 61 "),
    ],
)
def test_no_pair_of_groups_is_told_but_the_largest_and_the_smallest_of_all(
    estimate, low, high, said
):
    numbers = [np.array(part, float) for part in (estimate, low, high)]

    def told(attributes):
        ends, sd = (numbers[1], numbers[2]), np.full(len(estimate), 0.5)
        return highest("rows", True, "abcd"[: len(sd)], numbers[0], ends, sd, attributes)

    assert told(1).startswith(said)
    assert bool(told(1)) == bool(said)
    assert told(2) == ("" if "higher" in said else told(1))


def four_sexes(rows, pay, rho):
    """Return a plan and a table: many women and men, and few others."""
    labels = ["F", "M", "X", "none"]
    schema = gn.Schema([gn.Attribute("sex", labels), gn.Attribute("pay", clip=[0, 100])])
    table = {"sex": np.repeat(labels, rows), "pay": np.repeat(np.array(pay, float), rows)}
    return gn.plan(schema, [("sex", "pay")], gn.zCDP(rho)), pa.table(table)


def test_the_two_largest_of_several_groups_are_compared():
    plan, table = four_sexes([3000, 2900, 40, 200], [30, 60, 50, 90], 1)
    release = plan.release(table)
    said = finding_of(entries_of(release)[0].parts[0], {})
    gap = release.means("pay", "sex").difference("sex", "F", "M")
    digits = digits_of(float(gap.standard_deviation))
    ends = [number(-float(end), digits) for end in gap.confidence_interval(0.95 ** (1 / 6))]
    size = number(-float(gap.estimate), digits)
    pair = f"F is {size} lower than M (between {ends[1]} and {ends[0]})."
    assert said.endswith(f" Of the two largest groups, {pair}")
    assert "none is highest" in said
    assert pair in Page(release_page(release)).words


def test_two_of_several_groups_are_said_to_differ_no_more_often_than_they_may_be_wrong():
    plan, table = four_sexes([300, 300, 300, 300], [50, 50, 50, 50], 0.01)
    rng, wrong = np.random.default_rng(4), 0
    for _ in range(200):
        said = finding_of(entries_of(plan.simulate(table, rng))[0].parts[0], {})
        wrong += "two largest" in said
    assert wrong <= 10  # of 200: 5 %


def test_a_group_that_is_all_noise_does_not_hide_what_is_known_of_others():
    schema = gn.Schema(
        [gn.Attribute("region", ["North", "South", "Isle"]), gn.Attribute("pay", clip=[0, 100])]
    )
    plan, rng = gn.plan(schema, [("region", "pay")], gn.zCDP(0.01)), np.random.default_rng(3)
    lifted = 0
    for isle in [2] * 20 + [15] * 40:
        rows = {"region": ["North"] * 3000 + ["South"] * 3000 + ["Isle"] * isle}
        table = pa.table(rows | {"pay": [70.0] * 3000 + [30.0] * 3000 + [50.0] * isle})
        release = plan.simulate(table, rng)
        pay = release.means("pay", given="region")
        said = finding_of(entries_of(release)[0].parts[0], {})
        if marks_of(pay.estimate, pay.standard_deviation)[2] == "**":
            lifted += pay.estimate[2] > pay.estimate[0]
            assert re.match(r"North is highest, [67]\d.*; no other can be as high\. Too few", said)
            assert "Too few rows to be compared: Isle." in said
    assert lifted >= 5  # by noise alone, the smallest group seems to be the highest


def test_weighted_counts_are_called_so():
    table = people().append_column("w", pa.array(np.full(len(people()), 7.0)))
    release = survey(weight=gn.Weight("w", most=10)).simulate(table, np.random.default_rng(0))
    words = Page(release_page(release)).words
    assert "weighted rows" in words
    assert not re.search(r"(most|fewer|more|all) rows", words)
    assert "weighted by w" in release.ask("count of sex").note


def test_findings_are_right_as_often_as_they_say():
    rng = np.random.default_rng(11)
    plan = gn.plan(gn.Schema([gn.Attribute("a", ["x", "y", "z"])]), 1, gn.zCDP(0.01))
    rows, wrong = pa.table({"a": ["x"] * 100 + ["y"] * 103 + ["z"] * 60}), 0
    for _ in range(300):
        said = finding_of(entries_of(plan.simulate(rows, rng))[0].parts[0], {})
        wrong += "has the most rows" in said and "no other" in said and not said.startswith("y")
    assert wrong <= 0.05 * 300


def test_tables_have_totals_shares_and_marks():
    made = survey(workload=[("sex", "age"), ("county",)]).release(people())
    page = Page(release_page(made))
    total, rows = made[()], made["age"]
    values = {value for value, _ in page.numbers}
    assert {float(total.estimate), *rows.estimate.tolist()} <= values
    assert page.words.count("Total") >= 3
    assert "Per cent of each age" in page.words
    assert "Per cent of each sex" in page.words
    assert "Per cent of all rows" in page.words
    assert page.words.count("A mark beside an estimate says") == 1
    marks = marks_of(made["county"].estimate, made["county"].standard_deviation)
    order = np.argsort(-made["county"].estimate)
    listed = [str(mark) for mark in marks[[*order[:10], *order[-10:]]] if mark]
    found = re.findall(r"<sup>(.*?)</sup>", release_page(made))
    assert found.count("**") >= listed.count("**") > 0


def drawn_in(numbers):
    """Return the texts of every picture of some numbers."""
    return [html.unescape(" ".join(re.findall(">([^<>]*)</text>", picture.svg)))
            for picture in numbers.pictures]  # fmt: skip


def crowd(*sizes):
    """Return the numbers of a table of all attributes of these sizes."""
    names = "abcd"[: len(sizes)]
    attributes = [
        gn.Attribute(name, [f"{name}{k}" for k in range(size)])
        for name, size in zip(names, sizes, strict=True)
    ]
    plan = gn.plan(gn.Schema(attributes), [tuple(names)], gn.zCDP(1))
    rng = np.random.default_rng(2)
    rows = {
        one.name: [one.labels[k] for k in rng.integers(0, one.size // 2 + 1, 4000)]
        for one in attributes
    }
    (numbers, *_) = entries_of(plan.release(pa.table(rows)))[0].parts
    return numbers


def test_two_attributes_are_colours_with_names_and_numbers():
    (texts,) = drawn_in(numbers := crowd(9, 6))
    assert all(f"a{k}" in texts for k in range(9))
    assert all(f"b{k}" in texts for k in range(6))
    low, _ = numbers.table.confidence_interval()
    seen = [number(x, 0) for x in numbers.table.estimate[low > 0].tolist()]
    assert len(seen) > 10
    assert all(text in texts.split() for text in seen)
    assert "grey where the number may be 0" in numbers.pictures[0].caption


def test_a_count_that_noise_carried_far_below_zero_is_grey():
    numbers = crowd(9, 6)
    estimate = numbers.table.estimate.copy()
    estimate[0, 0] = -60.5  # more than five standard deviations
    assert estimate[0, 0] < -5 * numbers.table.standard_deviation[0, 0]
    (texts,) = drawn_in(replace(numbers, table=replace(numbers.table, estimate=estimate)))
    assert not re.search("[-−]6[01]", texts)


def test_two_attributes_are_one_grid_with_totals_where_it_is_not_too_wide():
    numbers = crowd(12, 6)
    assert numbers.is_crossed
    assert numbers.hidden == 0
    crossed = numbers.crossed
    assert (crossed.down, crossed.across) == (("a",), "b")
    assert len(crossed.rows) == 12
    assert {len(cells) for _, cells in crossed.rows} == {len(crossed.totals)} == {7}
    cells = [cell.estimate for _, own in crossed.rows for cell in own[:-1]]
    assert np.array_equal(cells, numbers.table.estimate.ravel())
    # nine columns do not fit in the width of a page, and 61 rows are too many
    assert not any(crowd(*sizes).is_crossed for sizes in ((9, 9), (61, 2)))


@pytest.mark.parametrize(("sizes", "across"), [((4, 5, 6), 2), ((5, 4, 6), 2), ((2, 3, 20), 1)])
def test_three_attributes_have_all_cells_and_totals_with_the_last_narrow_one_in_columns(
    sizes, across
):
    numbers = crowd(*sizes)
    assert numbers.is_crossed
    assert numbers.hidden == 0
    crossed, names = numbers.crossed, "abc"
    down = names[:across] + names[across + 1 :]
    assert (*crossed.down, crossed.across) == (*down, names[across])
    assert crossed.headings == [*down, names[across]]
    every = {
        frozenset(cell.names): cell.estimate
        for cell in cells_of(numbers.table, range(numbers.table.estimate.size))
    }
    shown_cells = {
        frozenset((*row, column)): cell.estimate
        for row, cells in crossed.rows
        for column, cell in zip(crossed.columns, cells[:-1], strict=True)
    }
    assert shown_cells == every
    totals = {row: cells[-1].estimate for row, cells in crossed.rows}
    expected = numbers.table.estimate.sum(axis=across).ravel()
    assert list(totals.values()) == pytest.approx(expected, abs=1e-6)
    assert crossed.totals[-1].estimate == pytest.approx(numbers.table.estimate.sum(), abs=1e-6)
    assert len(numbers.margins) == 3 + 3


def test_longer_tables_of_three_attributes_are_folded():
    assert not crowd(3, 8, 7).is_crossed  # 168 cells
    assert crowd(3, 8, 7).is_folded
    assert not crowd(3, 3, 6).is_crossed  # 54: one a row, as before


def small_group(seed=0):
    """Return means by region and sex: plenty in two regions, one row of a third."""
    schema = gn.Schema(
        [
            gn.Attribute("region", ["North", "South", "Isle"]),
            gn.Attribute("sex", ["F", "M"]),
            gn.Attribute("pay", clip=[0, 100]),
        ]
    )
    rows = {
        "region": ["North"] * 2000 + ["South"] * 2000 + ["Isle"],
        "sex": ["F", "M"] * 2000 + ["F"],
        "pay": [70.0] * 2000 + [30.0] * 2000 + [100.0],
    }
    plan = gn.plan(schema, [("region", "sex", "pay")], gn.zCDP(0.1))
    return plan.simulate(pa.table(rows), np.random.default_rng(seed))


def test_means_that_noise_hides_are_grey_and_do_not_set_the_scale():
    for seed in range(5):
        (means, *_) = entries_of(small_group(seed))[0].parts
        [picture] = means._colours()
        table = means.table
        is_shown = ~np.isin(marks_of(table.estimate, table.standard_deviation), LOW_RELIABILITY)
        ends = [f"{part(table.estimate[is_shown]):.0f}" for part in (np.nanmin, np.nanmax)]
        said = re.match(r"Colours from (\d+)\S* to (\d+)\S*; grey where noise", picture.caption)
        assert [*map(float, said.groups())] == pytest.approx([*map(float, ends)], abs=1)
        inks = re.findall("<text[^>]*fill: #ffffff[^>]*>([^<]*)<", picture.svg)
        assert {text[0] for text in inks} == {"7"}  # on the darkest colours
        drawn = " ".join(re.findall(">([^<>]*)</text>", picture.svg))
        assert len(re.findall(r"\b\d\d\b", drawn)) == 4  # of six groups


def test_catch_alls_do_not_set_the_scale_of_means():
    """Few rows are in them, and their means are far from those of all others."""
    labels, towns = ["a", "b"], ["A", "B", "C"]
    schema = gn.Schema(
        [
            gn.Attribute("job", labels, other="none"),
            gn.Attribute("town", towns),
            gn.Attribute("pay", clip=[0, 100]),
        ]
    )
    jobs, pay = np.repeat([*labels, "?"], 1200), np.repeat([40.0, 60.0, 95.0], 1200)
    rows = pa.table({"job": jobs, "town": towns * 1200, "pay": pay})
    plan = gn.plan(schema, [("job", "town", "pay")], gn.zCDP(1))
    (means, *_) = entries_of(plan.simulate(rows, np.random.default_rng(0)))[0].parts
    [picture] = means._colours()
    said = r"Colours from (4|39)\S* to (6|59)\S* \(groups of the rest may lie beyond"
    assert re.match(said, picture.caption)
    assert len(re.findall(r">9\d[.\d]*</text>", picture.svg)) == 3  # drawn, though beyond
    [picture] = replace(means, others={})._colours()  # as if "none" were listed
    assert re.match(r"Colours from (4|39)\S* to 9\S*; grey", picture.caption)


def test_means_of_two_attributes_have_those_of_all_together():
    release = paid([("sex", "region", "income")])
    numbers = entries_of(release)[0].parts[0]
    crossed = numbers.crossed
    assert (crossed.down, crossed.across) == (("region",), "sex")
    of_all = release.means("income", given="region"), release.means("income", given="sex")
    found = [cells[-1] for _, cells in crossed.rows], crossed.totals[:-1]
    whole = release.means("income")
    for table, cells in zip((*of_all, whole), (*found, crossed.totals[-1:]), strict=True):
        expected = table.estimate, *table.confidence_interval()
        shown_here = zip(*((cell.estimate, cell.low, cell.high) for cell in cells), strict=True)
        assert all(
            np.array_equal(np.ravel(x), y) for x, y in zip(expected, shown_here, strict=True)
        )
    text = release_page(release)
    own = text[text.index(f"<caption>{numbers.caption}") :]
    head, last = own[: own.index("</thead>")], own[own.index('<tr class="total">') :]
    assert "<bdi>All</bdi>" in head
    assert last.startswith('<tr class="total"><th scope="row">All</th>')
    assert "data-of" not in own[: own.index("</table>")]


def test_longer_tables_of_means_have_those_of_all_and_of_each_attribute_below():
    labels = {"a": [*range(9)], "b": [*range(9)]}
    schema = gn.Schema([gn.Attribute(k, own) for k, own in labels.items()] + [
        gn.Attribute("pay", clip=[0, 100])])  # fmt: skip
    rng = np.random.default_rng(1)
    rows = {name: rng.choice(own, 4000) for name, own in labels.items()}
    rows["pay"] = 30.0 + 5 * rows["a"]
    release = gn.plan(schema, [("a", "b", "pay")], gn.zCDP(1)).release(pa.table(rows))
    text, whole = release_page(release), release.means("pay")
    assert f'<p>Mean of all: <strong><data value="{float(whole.estimate)}">' in text
    assert "Means by one attribute" in text
    for name in labels:
        said = f"Mean of pay by {name} (values above 100 count as 100): estimates and"
        own = text[text.index(f"<caption>{said}") :].partition("</table>")[0]
        expected = [*release.means("pay", given=name).estimate.tolist(), float(whole.estimate)]
        assert [*map(float, re.findall('<data value="([^"]+)', own))][::3] == expected


def test_means_of_several_attributes_have_a_finding_on_the_first_of_them():
    labels = {"town": ["A", "B", "C"], "job": ["x", "y", "z"]}
    schema = gn.Schema([gn.Attribute(k, own) for k, own in labels.items()] + [
        gn.Attribute("pay", clip=[0, 100])])  # fmt: skip
    rng = np.random.default_rng(1)
    rows = {name: rng.choice(own, 4000) for name, own in labels.items()}
    rows["pay"] = np.where(rows["town"] == "B", 60.0, 30.0)
    release = gn.plan(schema, [("town", "job", "pay")], gn.zCDP(1)).release(pa.table(rows))
    said = part_of(release_page(release), "findings")
    assert re.search(
        r"Mean of pay by town: B is highest, [\d.]+ \([\d.]+ to [\d.]+ jointly\)", said
    )
    # two categories have a table of their means already, and its finding
    said = part_of(release_page(paid([("sex", "region", "income")])), "findings")
    assert said.count("Mean of income by sex:") == 1


@pytest.mark.parametrize(
    ("clip", "said"),
    [
        ([0, 100], "these tables do not tell; if no value is below 0, it is higher."),
        ([10, 100], "these tables do not tell."),
        ([-10, 100], "these tables do not tell."),
    ],
)
def test_a_cap_says_which_way_it_changes_means_where_that_is_certain(clip, said):
    schema = gn.Schema([gn.Attribute("pay", clip=clip)])
    rows = pa.table({"pay": [30.0] * 900})
    text = release_page(gn.plan(schema, ["pay"], gn.zCDP(1)).release(rows))
    assert said in part_of(text, "table-1")
    assert part_of(text, "table-1").count("it is higher") == (clip[0] == 0)


@pytest.mark.parametrize("names", ["k", "ko"])
def test_a_table_with_a_count_below_0_says_that_noise_made_it(names):
    """One attribute, or two of which one is in columns."""
    own = [gn.Attribute("k", [*"abcd"]), gn.Attribute("o", [*"xy"])]
    rows = pa.table({"k": ["a"] * 900, "o": ["x"] * 900})
    plan = gn.plan(gn.Schema(own), [tuple(names)], gn.zCDP(0.01))
    seen = set()
    for seed in range(12):
        release = plan.simulate(rows, np.random.default_rng(seed))
        section = part_of(release_page(release), "table-1")
        is_below = bool((entries_of(release)[0].parts[0].table.estimate < -0.5).any())
        assert ("Numbers below 0 come from noise" in section) == is_below
        seen.add(is_below)
    assert True in seen
    full = pa.table({"k": [*"abcd"] * 900, "o": [*"xxyy", *"yyxx"] * 450})
    text = release_page(plan.simulate(full, np.random.default_rng(0)))
    assert "Numbers below 0" not in part_of(text, "table-1")


def test_colours_have_numbers_only_where_all_fit_in_their_cells():
    def drawn(value):
        names = ["0"] * 8, [f"c{k}" for k in range(8)]
        picture = heat_chart(np.full((8, 8), value), names, (0, value), "x", "", "")
        return re.findall(">([^<>]*)</text>", picture.svg)

    assert drawn(12.0).count("12") == 64
    assert not any("," in text for text in drawn(1234567.0))


def test_a_mean_that_noise_hides_is_a_dash_with_its_reason():
    release = small_group()
    table = release.means("pay", given=("region", "sex"))
    low, high = table.confidence_interval()
    hidden = (low == 0) & (high == 100)
    assert hidden.any()
    of_all = release.means("pay", given="region").confidence_interval()
    number_hidden = hidden.sum() + ((of_all.low == 0) & (of_all.high == 100)).sum()
    text = release_page(release)
    section = part_of(text, "table-1")
    said = re.findall("— 0 to 100 ?, the whole range: the noise hides this mean", section)
    assert len(said) == number_hidden == section.count(" — ")
    # a mean of numbers of both signs may be near zero, and well known
    schema = gn.Schema([gn.Attribute("x", clip=[-100, 100])])
    rows = pa.table({"x": [-50.0, 50.0] * 5000})
    both = gn.plan(schema, ["x"], gn.zCDP(1)).simulate(rows, np.random.default_rng(0))
    assert ", may be 0" in part_of(release_page(both), "table-1")


def test_a_mean_near_the_upper_end_is_no_dash_if_its_interval_says_something():
    schema = gn.Schema([gn.Attribute("pay", clip=[0, 100])])
    plan = gn.plan(schema, ["pay"], gn.zCDP(0.1))
    rows, seen = pa.table({"pay": [100.0] * 8}), set[str]()
    for seed in range(60):
        (numbers, *_) = entries_of(plan.simulate(rows, np.random.default_rng(seed)))[0].parts
        (cell,) = numbers.cells
        low, high = (float(end) for end in numbers.table.confidence_interval())
        assert bool(cell.hidden) == ((low, high) == (0, 100)) == bool(numbers.note)
        if cell.mark == "**" and not cell.hidden:
            seen.add("above" if low > 0 else "below")
            assert cell.caution == ("" if round(low) > 0 else "may be 0")
    assert "above" in seen


def three_ways():
    """Return a release of one table by three attributes, of which one has a catch-all."""
    schema = gn.Schema(
        [
            gn.Attribute("town", ["A", "B", "C"]),
            gn.Attribute("sex", ["F", "M"], other="other or not stated"),
            gn.Attribute("job", ["yes", "no"]),
        ]
    )
    rng = np.random.default_rng(0)
    values = {"town": list("ABC"), "sex": ["F", "M", "?"], "job": ["yes", "no"]}
    rows = pa.table({name: rng.choice(own, 900) for name, own in values.items()})
    return gn.plan(schema, [("town", "sex", "job"), ("town", "sex"), "sex"], gn.zCDP(1)).simulate(
        rows, rng
    )


def test_tables_of_three_attributes_have_totals_of_all_and_by_each():
    release = three_ways()
    text = release_page(release)
    section = part_of(text, "table-1")
    total = cells_of(release[()], [0])[0]
    ends = f"{number(total.low, total.digits)} to {number(total.high, total.digits)}"
    assert f"All rows: {number(total.estimate, total.digits)} {ends}" in section
    (entry, *others) = entries_of(release)
    (counts,) = entry.parts
    pairs = ("town", "sex"), ("town", "job"), ("sex", "job")
    by = ("town",), ("sex",), ("job",), *pairs
    for names, own in zip(by, counts.margins, strict=True):
        assert np.array_equal(own.table.estimate, release[names].estimate)
        assert np.array_equal(own.table.standard_deviation, release[names].standard_deviation)
        assert f"{' × '.join(names)}: estimates and 95 % intervals" in section
        assert own.is_crossed is (len(names) == 2)
    assert "sex \\ job" in section
    assert "<summary>Totals by one attribute or two</summary>" in text
    assert text.count("Totals by one attribute") == 1
    assert not any(part.margins for other in others for part in other.parts)  # they have totals


def test_a_catch_all_is_written_last_and_is_called_no_category():
    text = release_page(three_ways())
    page = Page(text)
    of_sex = text[text.index('<h3 id="table-3">') :]
    rows = re.findall('<tr[^>]*>\\s*<th scope="row">.*?</th>', of_sex[: of_sex.index("</section>")])
    names = [re.sub("<.*?>", "", row).strip() for row in rows]
    assert names == ["F", "M", "other or not stated (the rest)", "Total"]
    assert 'class="aside"' in rows[2]
    assert sum("aside" in row for row in rows) == 1
    assert "F M other or not stated (the rest) Total" in page.words  # by town and sex
    assert "(the rest)" not in release_page(small_group())


def test_a_category_with_the_name_of_a_catch_all_is_in_quotation_marks():
    town = gn.Attribute("town", ["A", "B (the rest)", "“B (the  rest)”"], other="B")
    plan = gn.plan(gn.Schema([town]), ["town"], gn.zCDP(1))
    text = release_page(plan.simulate(pa.table({"town": ["A"] * 9}), np.random.default_rng(0)))
    rows = re.findall(
        '<tr([^>]*)>\\s*<th scope="row"><bdi>(.*?)</bdi></th>',
        text[text.index('<section aria-labelledby="table-1">') : text.index(">Total<")],
    )
    names = ["A", "“B (the rest)”", "““B (the rest)””", "B (the rest)"]
    assert [name for _, name in rows] == names
    assert ["aside" in own for own, _ in rows] == [False, False, False, True]
    plain = ["A", "a (the rest) b", "(the rest", 3]
    assert [category_text(label, False) for label in plain] == plain


def test_differences_of_means_have_no_marks_and_none_is_called_exact():
    releases = map(small_group, range(40))
    release = next(r for r in releases if r.means("pay", ("region", "sex")).counts[2].min() <= 0)
    gap = release.means("pay", ("region", "sex")).difference("sex", "F", "M")
    assert np.isnan(gap.estimate[2])
    assert not gap.standard_deviation[2] < np.inf  # nothing is known of it: certainly not exactly
    (differences,) = (
        part for part in entries_of(release)[0].parts if part.title.endswith("less M by region")
    )
    assert {cell.mark for cell in differences.cells} == {""}
    text = release_page(release)
    row = re.search(r"F less M by region: estimates.*?Isle(.*?)</tr>", text, re.DOTALL)[1]
    assert "exact" not in row
    assert ">none<" in row
    assert ">−100</data> to <data" in row


def test_three_attributes_are_small_multiples_of_one_scale():
    numbers = crowd(7, 3, 6)
    assert len(numbers.pictures) == 3
    captions = [picture.caption for picture in numbers.pictures]
    assert [caption.partition(".")[0] for caption in captions] == ["b: b0", "b: b1", "b: b2"]
    assert len({caption.partition(".")[2] for caption in captions}) == 1
    for texts in drawn_in(numbers):
        assert all(f"a{k}" in texts for k in range(7))
        assert all(f"c{k}" in texts for k in range(6))


@pytest.mark.parametrize("sizes", [(60, 40), (100,), (2, 3, 4, 5)])
def test_tables_of_more_cells_draw_both_ends_by_name(sizes):
    numbers = crowd(*sizes)
    (texts,) = drawn_in(numbers)
    order = np.argsort(-numbers.table.estimate.ravel(), kind="stable")
    for k in (*order[:10], *order[-10:]):
        names = np.unravel_index(k, numbers.table.estimate.shape)
        assert " · ".join(f"{'abcd'[axis]}{i}" for axis, i in enumerate(names)) in texts
    assert f"… {numbers.table.estimate.size - 20:,} more …" in texts


def test_answers_in_their_order_are_named_along_it():
    schema = gn.Schema([gn.Attribute("age", edges=list(range(0, 101, 2)))])
    made = gn.plan(schema, [{"age": "prefix"}], gn.zCDP(1)).release(pa.table({"age": [3, 50, 70]}))
    (texts,) = drawn_in(entries_of(made)[0].parts[0])
    assert "below 2" in texts
    assert texts.count("below") == 6


def test_pictures_hold_no_images_and_pages_work_in_the_dark_on_paper_and_on_phones(pages):
    text = pages["answers"]
    assert "<image" not in "".join(pages.values())
    for rule in ("prefers-color-scheme:dark", "@media print", "max-width:40rem"):
        assert rule in text
    page = Page(text)
    assert page.all("a")[0] == {"class": "skip", "href": "#main"}
    labels = [given["data-label"] for given in page.all("td") if "data-label" in given]
    assert {"Estimate", "95 % interval"} <= set(labels)


def test_labels_beside_numbers_on_phones_are_escaped(pages):
    labels = {given.get("data-label", "") for given in Page(pages["odd labels"]).all("td")}
    assert any(EVIL[0] in label for label in labels) or "Estimate" in labels


def test_shares_that_are_not_known_have_no_sign():
    schema = gn.Schema([gn.Attribute("sex", ["F", "M"]), gn.Attribute("town", ["a", "none"])])
    rows = pa.table({"sex": ["F", "M"] * 90, "town": ["a"] * 180})
    plan = gn.plan(schema, [("sex", "town")], gn.zCDP(0.5))
    for seed in range(20):
        release = plan.simulate(rows, np.random.default_rng(seed))
        if np.isnan(release.proportions(("sex", "town"), given="town").estimate).any():
            break
    words = Page(release_page(release)).words
    assert "none" in words
    assert "none %" not in words


def test_shares_outside_of_0_and_1_are_explained():
    schema = gn.Schema([gn.Attribute("a", ["x", "y"]), gn.Attribute("b", ["u", "v"])])
    rows = pa.table({"a": ["x", "y"] * 300, "b": ["u"] * 600})
    made = gn.plan(schema, [("a", "b")], gn.zCDP(0.01)).release(rows)
    shares = made.proportions(("a", "b"))
    said = "noise has carried some estimates outside 0 to 100 %" in Page(release_page(made)).words
    given = made.proportions(("a", "b"), given="a")
    assert said == any(((x.estimate < 0) | (x.estimate > 1)).any() for x in (shares, given))


def test_attributes_of_two_groups_have_a_gap_in_a_sentence_and_a_table():
    release = paid([("sex", "region", "income")])
    page = Page(release_page(release)).words
    whole = release.means("income", "sex").difference("sex", "F", "M")
    low, high = (number(-float(end), 0) for end in whole.confidence_interval())
    assert f"lower than M (between {high} and {low})." in page
    less = "Mean of income: F less M"
    for title in (f"Mean of income by sex {CAPPED}", less, f"{less} by region"):
        assert f"{title}: estimates" in page
    inside = release.means("income", ("sex", "region")).difference("sex", "F", "M")
    values = {value for value, _ in Page(release_page(release)).numbers}
    assert {*whole.estimate.ravel().tolist(), *inside.estimate.ravel().tolist()} <= values


def test_means_that_noise_carried_outside_are_explained():
    sex, pay = gn.Attribute("sex", ["F", "M"]), gn.Attribute("pay", clip=[0, 10000])
    plan = gn.plan(gn.Schema([sex, pay]), [("sex", "pay")], gn.zCDP(0.01))
    rows = pa.table({"sex": ["F"] * 9 + ["M"] * 9000, "pay": [10.0] * 9 + [5000.0] * 9000})
    every = [plan.simulate(rows, np.random.default_rng(seed)) for seed in range(30)]
    found = [release.means("pay", "sex") for release in every]
    cut = [bool(table.cut.any()) for table in found]
    ends = [np.array(table.confidence_interval())[:, 0].tolist() for table in found]
    hidden = [own == [0, 10000] for own in ends]
    assert all(own for own, table in zip(hidden, found, strict=True) if table.counts[0] <= 0)
    assert 0 < sum(cut) < 30
    for k in (cut.index(True), cut.index(False), hidden.index(True), hidden.index(False)):
        page = Page(release_page(every[k])).words
        assert ("some outside [0, 10000], which stand at its nearer end" in page) is cut[k]
        assert ("The noise leaves no estimate of 1 of these 2 numbers." in page) is hidden[k]
