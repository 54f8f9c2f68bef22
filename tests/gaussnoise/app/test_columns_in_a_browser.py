"""Columns of a messy file in a real browser: spellings, ends of numbers, another encoding."""

import re

import pytest
from browser import connected, entered
from playwright.sync_api import expect

import gaussnoise as gn
from gaussnoise.app.project import SCHEMA

pytestmark = pytest.mark.integration

AGES = ["child", "young", "old"]


def census(folder, name, encoding):
    sex, towns = ["F", "f", "Female", "M"], ["Mühle", "MÜHLE", "Hafen"]
    lines = [f"{sex[k % 4]};{towns[k % 3]};{100 * (k % 90)},5" for k in range(600)]
    text = "\n".join(["sex;town;income", *lines, "M;Hafen;900000,5"])
    (folder / name).write_text(text, encoding=encoding)


def opened(tab, name):
    item = tab.locator(".q-expansion-item")
    return item.filter(has_text=re.compile(rf"^(help|check)\s*{name}")).last


def changed(tab, name):
    """The opened column, which is not confirmed."""
    tab.get_by_role("button", name=f"Change: {name}").click()
    return opened(tab, name)


def confirm(tab, name):
    opened(tab, name).get_by_role("button", name=re.compile("^Save: th")).click()


def test_spellings_are_joined_and_confirmed_columns_stay(started, tab, tmp_path):
    folder = tmp_path / "project"
    census(folder, "census.csv", "utf-8")
    census(folder, "excel.csv", "cp1252")
    server = started()
    entered(tab, server)
    tab.get_by_label("File with one row").click()
    tab.get_by_role("option", name="census.csv").click()
    tab.get_by_role("button", name="Read the file").click()
    expect(tab.get_by_text("census.csv: 601 rows; 3 of its 3 columns may be in")).to_be_visible(
        timeout=60_000
    )
    connected(tab)

    # several spellings on one line are questioned, and joined as the question says
    expect(opened(tab, "sex")).to_contain_text("Female (also F, f), M")
    values = changed(tab, "sex").get_by_label("Values", exact=True)
    expect(values).to_have_value("Female = F, f\nM")
    values.fill("F, f, Female\nM")
    expect(tab.get_by_text("spellings of one category, F = f, Female;")).to_be_visible()
    values.fill("F\nf\nM")
    expect(tab.get_by_text("These differ in case or blanks only: F/f.")).to_be_visible()
    tab.get_by_role("button", name="Join them").locator("visible=true").click()
    expect(values).to_have_value("F = f\nM")
    expect(tab.get_by_text("These differ in case")).to_be_hidden()
    values.fill("F = f, Female\nM")
    confirm(tab, "sex")
    expect(tab.get_by_text("2 of 3 columns")).to_be_visible()
    connected(tab)

    # what was confirmed stays when the file is read again
    tab.get_by_text("Another file, or how the file is written").click()
    with tab.expect_navigation():
        tab.get_by_role("button", name="Read the file again: confirmed columns stay").click()
    tab.wait_for_function("!document.querySelector('[role=status] .q-linear-progress')")
    expect(tab.get_by_text("2 of 3 columns")).to_be_visible()
    connected(tab)
    # a column is confirmed, or left out, in its line, which has all its values
    expect(opened(tab, "town")).to_contain_text("Hafen, MÜHLE (also Mühle)")
    tab.get_by_role("button", name="This list is public: town").click()
    expect(tab.get_by_text("1 of 3 columns")).to_be_visible()
    connected(tab)
    tab.get_by_role("button", name="Leave out: income").click()  # and it comes back, marked
    expect(tab.get_by_text("All columns are confirmed")).to_be_visible()
    connected(tab)
    expect(tab.get_by_text("income: left out by you")).to_be_visible()
    tab.get_by_role("button", name="Make income a column").click()
    expect(tab.get_by_text("1 of 3 columns")).to_be_visible()
    connected(tab)
    with tab.expect_navigation():  # to see what is proposed for it
        tab.get_by_text("Another file, or how the file is written").click()
        tab.get_by_role("button", name="Read the file again: confirmed columns stay").click()
    tab.wait_for_function("!document.querySelector('[role=status] .q-linear-progress')")
    expect(tab.get_by_text("1 of 3 columns")).to_be_visible()
    connected(tab)
    own = changed(tab, "income")
    own.get_by_text("Why is this proposed?").click()
    expect(own.get_by_text("a number from 0 to 10000 is proposed")).to_be_visible()
    # neither purpose is chosen before, and nothing can be confirmed
    values = own.get_by_label("Values", exact=True)
    means, groups = (
        own.get_by_role("button", name="Means"),
        own.get_by_role("button", name="Groups", exact=True),
    )
    for button in (means, groups):
        expect(button).to_have_attribute("aria-pressed", "false")
    for hidden in (values, own.get_by_role("button", name="Save")):
        expect(hidden.locator("visible=true")).to_have_count(0)
    means.click()
    expect(values).to_have_value("0, 10000")
    expect(means).to_have_attribute("aria-pressed", "true")
    expect(own.get_by_text("counts as the nearer end: 12,500 as 10,000")).to_be_visible()
    expect(own.get_by_role("button", name="Save: these limits are public")).to_be_visible()
    groups.click()
    expect(values).to_have_value(re.compile("^-inf, 0.1, 1, 10,"))
    expect(groups).to_have_attribute("aria-pressed", "true")
    expect(own.get_by_role("button", name="Save: these groups are public")).to_be_visible()
    means.click()
    values.fill("[0, 10000]")
    confirm(tab, "income")  # which is the last one
    expect(tab.get_by_text("All columns are confirmed: nothing is published")).to_be_visible()

    # another file is written in another way, which is found
    tab.goto(f"{server.root}/")  # at its top
    connected(tab)
    tab.get_by_text("Another file, or how the file is written").click()
    only = tab.get_by_role("button", name="Only choose this file")
    expect(tab.get_by_role("button", name="Read the file again")).to_be_visible()
    expect(only).to_have_count(0)  # it is chosen already
    tab.get_by_label("File with one row").click()
    tab.get_by_role("option", name="excel.csv").click()
    only.click()
    expect(tab.get_by_text("excel.csv.", exact=True)).to_be_visible()
    stated = gn.Schema.load(folder / SCHEMA).file.stated
    assert stated == {"delimiter": ";", "decimal": ",", "encoding": "cp1252"}
    connected(tab)
    tab.get_by_role("button", name="Check the rows").click()
    expect(tab.get_by_text("All 601 rows count.")).to_be_visible(timeout=60_000)
    schema = gn.Schema.load(folder / SCHEMA)
    assert schema.attributes == (
        gn.Attribute("sex", ["F", "M"], spellings={"F": ["f", "Female"]}),
        gn.Attribute("town", ["Hafen", "MÜHLE"], spellings={"MÜHLE": ["Mühle"]}),
        gn.Attribute("income", clip=[0, 10000]),
    )
    assert not schema.is_draft
    tab.get_by_role("link", name="Go on to the next page").click()
    expect(tab).to_have_url(f"{server.root}/questions")


def test_a_census_of_each_year_takes_the_columns_of_the_last_one(started, tab, tmp_path):
    folder = tmp_path / "project"
    (folder / "2025").mkdir()
    last = gn.Schema(
        [
            gn.Attribute("sex", ["F", "M"], spellings={"F": ["f", "Female"]}),
            gn.Attribute("income", clip=[0, 10_000]),
        ]
    )
    (folder / "2025" / SCHEMA).write_text(last.to_toml(), encoding="utf-8")
    for name in ("census.csv", "other.csv"):
        census(folder, name, "utf-8")
    server = started()
    entered(tab, server)
    tab.get_by_role("button", name="Take these columns").click()
    expect(tab.get_by_role("alert")).to_contain_text("Choose a schema file or a published folder")
    tab.get_by_label("Schema file or published folder").click()
    tab.get_by_role("option", name=f"2025/{SCHEMA}").click()
    tab.get_by_role("button", name="Take these columns").click()
    expect(tab.get_by_text("All columns are confirmed: nothing is published")).to_be_visible()
    connected(tab)
    tab.get_by_label("File with one row").click()
    tab.get_by_role("option", name="census.csv").click()
    tab.get_by_role("button", name="Only choose this file").click()
    expect(tab.get_by_text("census.csv.", exact=True)).to_be_visible()

    # a mean has the unit that is stated beside its ends
    connected(tab)
    opened(tab, "income").click()
    unit = tab.get_by_label("Unit of the number").locator("visible=true")
    expect(opened(tab, "income")).to_contain_text("a number from 0 to 10,000 · public")
    unit.fill("EUR")
    with tab.expect_navigation():  # else the old page may be the one that is connected
        # by its key: a click can miss the button while its part of the page still opens
        tab.get_by_role("button", name="Keep: income").locator("visible=true").press("Enter")
    connected(tab)
    opened(tab, "sex").click()
    expect(tab.get_by_label("Values", exact=True).locator("visible=true")).to_have_value(
        "F = Female, f\nM"
    )
    expect(unit).to_have_count(0)  # categories have none
    tab.get_by_role("button", name="Check the rows").click()
    expect(tab.get_by_text("All 601 rows count.")).to_be_visible(timeout=60_000)
    schema = gn.Schema.load(folder / SCHEMA)
    assert schema.attributes[0] == last.attributes[0]
    assert schema.attributes[1] == gn.Attribute("income", clip=[0, 10_000], measured_in="EUR")
    assert gn.Schema.load(folder / "2025" / SCHEMA) == last


def test_names_of_intervals_follow_the_ends_until_one_types_others(started, tab, tmp_path):
    folder = tmp_path / "project"
    lines = [f"{k % 97};{1950 + k % 60}-0{1 + k % 9}-1{k % 9}" for k in range(600)]
    (folder / "people.csv").write_text("\n".join(["age;born", *lines]), encoding="utf-8")
    entered(tab, started())
    tab.get_by_label("File with one row").click()
    tab.get_by_role("option", name="people.csv").click()
    tab.get_by_role("button", name="Read the file").click()
    expect(tab.get_by_text("2 of its 2 columns")).to_be_visible(timeout=60_000)
    connected(tab)
    values = tab.get_by_label("Values", exact=True).locator("visible=true")
    names = tab.get_by_label("Names of the intervals").locator("visible=true")
    propose = tab.get_by_role("button", name="Names for whole numbers or days")
    propose = propose.locator("visible=true")

    changed(tab, "age").get_by_role("button", name="Groups", exact=True).click()
    expect(names).to_have_value(re.compile("^under 0\n0 to 19\n"))
    expect(propose).to_have_count(0)
    values.press_sequentially("x")  # half typed
    values.fill("0, 18, 40, 65, inf")
    expect(names).to_have_value("0 to 17\n18 to 39\n40 to 64\n65 and over")
    names.fill("child\nyoung\nold")
    expect(tab.get_by_text("expected 4, one for each interval from [0, 18)")).to_be_visible()
    values.fill("0, 18, 65, inf")
    expect(tab.get_by_text("one for each interval")).to_be_hidden()
    expect(names).to_have_value("child\nyoung\nold")
    propose.click()
    expect(names).to_have_value("0 to 17\n18 to 64\n65 and over")
    names.fill("child\nyoung\nold")
    confirm(tab, "age")
    expect(tab.get_by_text("1 of 2 columns")).to_be_visible()
    connected(tab)

    own = changed(tab, "born")
    expect(names).to_have_count(0)
    tab.get_by_label("Groups from the ages").locator("visible=true").fill("0, 18, 65")
    tab.get_by_label("on the day").locator("visible=true").fill("2025-12-31")
    tab.get_by_role("button", name="Make these age groups").locator("visible=true").click()
    # readers think from young to old, and edges of birth dates go the other way
    expect(names).to_have_value("under 18\naged 18 to 64\naged 65 and over")
    expect(own.get_by_text("one a line, the youngest first")).to_be_visible()
    names.fill("under 18\nof age\naged 65 and over")
    own.get_by_text("More: ends, group for the rest").click()
    own.get_by_label("The column holds").click()
    tab.get_by_role("option", name="categories: words").click()
    expect(names).to_have_count(0)
    own.get_by_label("The column holds").click()
    tab.get_by_role("option", name="a number, for sums and means").click()
    expect(values).to_have_value("")  # dates fit no number: the hint says what does
    expect(own.get_by_text("lowest and highest value: 0, 100000")).to_be_visible()
    own.get_by_label("The column holds").click()
    tab.get_by_role("option", name="intervals of numbers or dates").click()
    expect(values).to_have_value("-inf, 1961-01-01, 2008-01-01, 2025-12-31")
    confirm(tab, "born")
    expect(tab.get_by_text("All columns are confirmed")).to_be_visible()
    age, born = gn.Schema.load(folder / SCHEMA).attributes
    assert age == gn.Attribute("age", edges=[0, 18, 65, float("inf")], names=AGES)
    assert born.labels == ("aged 65 and over", "of age", "under 18")
    assert born.interval_texts[1] == "[1961-01-01, 2008-01-01)"
    assert born.title == "age on 2025-12-31"


def test_a_code_for_no_answer_is_taken_with_a_group_in_which_its_rows_count(started, tab, tmp_path):
    folder = tmp_path / "project"
    lines = [f"{'FM'[k % 2]};{k % 50 if k % 20 else 999}" for k in range(200)]
    (folder / "stays.csv").write_text("\n".join(["sex;stay", *lines]), encoding="utf-8")
    entered(tab, started())
    tab.get_by_role("button", name="Read the file").click()
    expect(tab.get_by_text("2 of its 2 columns")).to_be_visible(timeout=60_000)
    connected(tab)
    expect(
        tab.get_by_role("button", name="are public: stay").locator("visible=true")
    ).to_have_count(0)
    changed(tab, "stay").get_by_role("button", name="Groups", exact=True).click()
    confirm(tab, "stay")
    expect(tab.get_by_text("Say first whether 999 is a number, or no answer")).to_be_visible()
    code = tab.get_by_role("button", name="Count 999 as no answer").locator("visible=true")
    code.click()
    expect(code).to_have_count(0)
    confirm(tab, "stay")
    expect(tab.get_by_text("1 of 2 columns")).to_be_visible()
    stay = gn.Schema.load(folder / SCHEMA).attributes[1]
    assert stay.missing == (999,)
    assert stay.other == "other or not stated"


def test_a_column_that_was_left_out_stays_so_and_a_long_word_hides_no_button(
    started, tab, tmp_path
):
    folder = tmp_path / "project"
    lines = [f"{'FM'[k % 2]};{'WV'[k % 2] * 100}" for k in range(200)]
    (folder / "words.csv").write_text("\n".join(["sex;long", *lines]), encoding="utf-8")
    server = started()
    entered(tab, server)
    tab.get_by_role("button", name="Read the file").click()
    expect(tab.get_by_text("2 of its 2 columns")).to_be_visible(timeout=60_000)
    connected(tab)
    item = opened(tab, "long").locator(".q-item__label--caption").first
    box = item.bounding_box()
    right = item.evaluate("x => { const r = document.createRange(); r.selectNodeContents(x); "
                          "return r.getBoundingClientRect().right; }")  # fmt: skip
    assert right <= box["x"] + box["width"] + 1

    old = tab.context.new_page()
    old.goto(f"{server.root}/")
    connected(old)
    with tab.expect_navigation():
        tab.get_by_role("button", name="Leave out: sex").click()
    connected(tab)
    for answer in ("This list is public: sex", "Leave out: sex"):
        old.get_by_role("button", name=answer).click()
        expect(old.get_by_text("This page is old: reload it.").first).to_be_visible()
    schema = gn.Schema.load(folder / SCHEMA)
    assert (schema.names, schema.is_draft) == (("long",), True)
