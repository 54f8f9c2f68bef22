"""The whole way in a real browser, and what others on the machine get."""

import math
import re
import signal
import socket
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from browser import READY, connected, entered, until
from playwright.sync_api import expect

import gaussnoise as gn
from gaussnoise.app.project import LEDGER, RELEASES, SCHEMA, SCRIPTS

pytestmark = pytest.mark.integration

CANARY = "CANARY-7391"  # a value of the data
PAGES = ("/", "/questions", "/budget", "/release", "/streams", "/ledger", "/ask")
PALE = """() => {
  const over = ([r, g, b, a = 1], below) => [r, g, b].map((x, k) => a * x + (1 - a) * below[k]);
  const color = (e, name) => getComputedStyle(e)[name].match(/[0-9.]+/g).map(Number);
  const behind = (e) =>
    e ? over(color(e, "backgroundColor"), behind(e.parentElement)) : [255, 255, 255];
  const light = (parts) => {
    const line = (x) => (x <= 10 ? x / 3294 : ((x / 255 + 0.055) / 1.055) ** 2.4);
    return parts.reduce((sum, x, k) => sum + [0.2126, 0.7152, 0.0722][k] * line(x), 0.05);
  };
  const contrast = (e) => {
    const [a, b] = [light(over(color(e, "color"), behind(e))), light(behind(e))];
    return Math.max(a, b) / Math.min(a, b);
  };
  const text = (e) => [...e.childNodes].some((x) => x.nodeType === 3 && x.data.trim());
  const shown = (e) => e.checkVisibility() && !e.closest("svg, [aria-hidden=true], .disabled");
  return [...document.querySelectorAll("body *")]
    .filter((e) => text(e) && shown(e) && contrast(e) < 4.5)
    .map((e) => e.outerHTML);
}"""  # texts with less contrast than WCAG 2 asks for
UNREACHED = """() => [...document.querySelectorAll("body *")]
  .filter((e) => ["auto", "scroll"].includes(getComputedStyle(e).overflowX))
  .filter((e) => e.scrollWidth > e.clientWidth + 1 && e.tabIndex < 0)
  .map((e) => e.outerHTML)"""  # what scrolls sideways, but not with keys
UNSAID = """() => [...document.querySelectorAll("[role=button][aria-label] .q-item__label")]
  .filter((e) => !e.closest("[role=button]").ariaLabel.includes(e.innerText))
  .map((e) => e.innerText)"""  # lines of headings that are not in the heading's name


def rows(folder, count):
    """A file as people have them: gaps, codes, a note, persons."""
    lines = [
        f"{k // 2};{'FM'[k % 2]};{k % 97};{(CANARY, '', 'a;b')[k % 3]!r}".replace("'", '"')
        for k in range(count)
    ]
    text = "\n".join(['"person id";sex;age;note', *lines])
    (folder / "rows.csv").write_text(text, encoding="utf-8")


def column(tab, name):
    return tab.locator(".q-expansion-item").filter(has_text=re.compile(rf"^(help|check)\s*{name}"))


def checks(tab):
    """Let the page Release check the rows, without which it releases nothing."""
    expect(tab.get_by_role("heading", name="Before the charge")).to_be_visible()
    connected(tab)
    expect(tab.get_by_role("button", name="Release", exact=True)).to_have_count(0)
    tab.get_by_role("button", name="Check the rows").click()
    expect(tab.get_by_role("button", name="Release", exact=True)).to_be_visible(timeout=60_000)
    connected(tab)


def kept(folder, text):
    """Wait until the schema file has this text."""
    end = time.monotonic() + 60
    while text not in (folder / SCHEMA).read_text(encoding="utf-8"):
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_messy_file_becomes_a_published_page(started, tab, tmp_path):
    folder = tmp_path / "project"
    rows(folder, 600)
    server = started()
    entered(tab, server)
    tab.get_by_label("File with one row").click()
    tab.get_by_role("option", name="rows.csv").click()
    tab.get_by_role("button", name="Read the file").click()
    expect(tab.get_by_text("3 of 3 columns")).to_be_visible(timeout=60_000)
    expect(tab.get_by_text("person id: looks like the person")).to_be_visible()
    assert "token" not in tab.url

    # a draft is refused, and the refusal leads to where it is mended
    tab.get_by_role("link", name="4 Release").click()
    expect(tab.get_by_role("alert")).to_contain_text("not confirmed as public knowledge")
    tab.get_by_role("link", name="Mend it on the page Table").click()

    # what is typed is checked at once
    tab.get_by_role("button", name="Change: age").click()
    column(tab, "age").get_by_role("button", name="Groups", exact=True).click()
    values = tab.get_by_label("Values", exact=True).locator("visible=true")
    values.fill("0, 18, 5")
    wrong = tab.get_by_text("at least two increasing numbers")
    expect(wrong).to_be_visible()
    values.fill("0, 18, 65, 120")
    expect(wrong).to_be_hidden()  # buttons below it have moved
    column(tab, "age").get_by_role("button", name="Save: these groups are public").click()
    expect(tab.get_by_text("2 of 3 columns")).to_be_visible()
    connected(tab)
    tab.get_by_role("button", name="Leave out: note").locator("visible=true").click()
    expect(tab.get_by_text("1 of 2 columns")).to_be_visible()
    tab.reload()  # nothing is lost
    connected(tab)
    expect(tab.get_by_text("1 of 2 columns")).to_be_visible()
    tab.get_by_role("button", name="This list is public: sex").click()
    expect(tab.get_by_text("All columns are confirmed: nothing is published")).to_be_visible()
    connected(tab)
    chosen = tab.get_by_label("Column that names the person")
    expect(chosen).to_have_value("person id")  # proposed
    expect(tab.get_by_text("Not kept yet. Each person is protected")).to_be_visible()
    expect(tab.get_by_text("if several rows have the same 'person id', one of")).to_be_visible()
    tab.get_by_label("Rows of one person").fill("2")
    expect(tab.get_by_text("The noise is about 2 times that for one row")).to_be_visible()
    tab.get_by_role("button", name="Keep: person id names the person; 2 rows of a").click()
    # the check of the rows begins by itself
    expect(tab.get_by_text("All 600 rows count.")).to_be_in_viewport(timeout=60_000)
    expect(tab.get_by_text("Not kept yet")).to_have_count(0)
    expect(tab.get_by_text("Kept. Each person is protected")).to_be_visible()
    expect(tab.get_by_role("button", name="Keep: person id")).to_be_hidden()
    expect(tab.get_by_role("button", name="Check again")).to_be_visible()

    tab.get_by_role("link", name="2 Questions").click()
    connected(tab)
    for name in ("age", "sex"):
        tab.get_by_role("checkbox", name=name).click()
    expect(tab.get_by_text("One table: sex × age")).to_be_visible()
    tab.get_by_text("Or ask in words").click()
    tab.get_by_label("Question").fill("household sizes in the town")
    tab.get_by_label("Question").press("Enter")
    expect(tab.get_by_role("alert")).to_contain_text("hint: this folder answers 'count by ")
    tab.get_by_role("button", name="share of sex=F given age").click()  # an example
    expect(tab.get_by_label("Question")).to_have_value("share of sex=F given age")
    tab.get_by_label("Question").press("Enter")
    expect(tab.get_by_role("button", name="Leave out table 1")).to_be_visible()

    tab.get_by_role("link", name="3 Budget").click()
    half = tab.locator("tbody td").nth(1)
    expect(half).not_to_be_empty()
    connected(tab)
    before = float(half.inner_text().removeprefix("± "))
    after = f"± {math.ceil(5 * before - 1e-9) / 10:.15g}"  # the half, rounded up to a tenth
    for wrong, why in (("0", "rho > 0, got 0"), ("05", "like 0.5"), ("1,000", "1.000 or 1000")):
        tab.get_by_label("ρ (rho)").fill(wrong)
        tab.get_by_label("ρ (rho)").blur()
        expect(tab.locator(".said")).to_contain_text(why)  # in the place of the one before
    tab.get_by_label("ρ (rho)").fill("0.4")  # four times the budget, half the noise
    tab.get_by_label("ρ (rho)").press("Enter")
    tab.get_by_label("ρ (rho)").blur()
    expect(half).to_have_text(after)
    expect(tab.get_by_role("alert")).to_have_count(0)
    tab.get_by_text("Forecast of small cells, and an example").click()
    expect(tab.get_by_text("MADE-UP counts, not yours")).to_be_visible()
    tab.locator(".q-slider [tabindex='0']").focus()
    tab.keyboard.press("ArrowRight")  # the slider moves with keys, and all with it
    expect(tab.get_by_label("ρ (rho)")).not_to_have_value("0.4")
    tab.get_by_label("ρ (rho)").fill("20")  # beyond the end of the slider, which moves to its end
    tab.get_by_label("ρ (rho)").press("Enter")
    tab.get_by_label("ρ (rho)").blur()
    expect(tab.get_by_role("slider")).to_have_attribute("aria-valuenow", "1")
    tab.get_by_role("button", name="Keep this budget").click()
    expect(tab.get_by_text("Kept: ρ = 20.")).to_be_visible()
    expect(tab.get_by_label("ρ (rho)")).to_have_value("20")
    tab.get_by_label("ρ (rho)").fill("0,4")  # a decimal comma, kept without another key
    tab.get_by_role("button", name="Keep this budget").click()
    expect(tab.get_by_text("Kept: ρ = 0.4")).to_be_visible()
    guess = tab.get_by_text("A guess from these numbers whether one person is in the data is right")
    expect(guess).to_be_visible()
    expect(guess).to_contain_text("is right in at most 67.3 %")  # Φ(√(0.4 / 2))
    best = tab.get_by_text("The best possible for Gaussian noise")  # in a fold
    expect(best).to_be_hidden()
    tab.get_by_text("For specialists").click()
    expect(best).to_be_visible()
    expect(tab.get_by_text("For this release alone: the total is asked later")).to_be_visible()
    expect(tab.get_by_label("ρ (rho)")).to_have_value("0.4")
    expect(half).to_have_text(after)

    tab.get_by_role("link", name="4 Release").click()
    expect(tab.get_by_role("radio", name="several")).to_be_visible()
    connected(tab)
    tab.get_by_role("button", name="Set the total", exact=True).click()
    expect(tab.get_by_role("alert")).to_contain_text("Say what else will be published")
    tab.get_by_role("radio", name="several").click()
    expect(tab.get_by_text("This one takes 0.4; 1.2 is left for all others.")).to_be_visible()
    tab.get_by_role("radio", name="this release or stream alone: nothing else").click()
    expect(tab.get_by_label("ρ of all releases together")).to_have_value("0.4")
    tab.get_by_role("button", name="Set the total at ρ = 0.4", exact=True).click()
    # what is released and its charge are read before the button; the risk was on the page Budget
    expect(tab.get_by_role("listitem")).to_have_text(["sex × age"])
    expect(tab.get_by_text("uses ρ = 0.4 of 0.4; 0 is left afterwards.")).to_be_visible()
    expect(guess).to_contain_text("is right in at most 67.3 %")
    # its check was read, without a warning: one line, labelled as confidential
    expect(tab.get_by_text("For you alone: All 600 rows count.")).to_be_visible()
    expect(tab.get_by_text("do not publish these lines")).to_be_hidden()
    expect(tab.get_by_text("No release can be taken back")).to_be_visible()
    expect(tab.get_by_label("Title, like")).to_have_value("Counts by sex and age")
    expect(tab.get_by_text("Go on to the next page")).to_have_count(0)  # the last step
    tab.get_by_role("button", name="Release", exact=True).dblclick()
    expect(tab.get_by_text("All files of releases/release-1")).to_be_visible(timeout=60_000)
    (entry,) = gn.Ledger.open(folder / LEDGER).entries()  # two clicks, one charge
    assert (entry.id, entry.state) == ("release-1", "sealed")
    assert entry.rho == pytest.approx(0.4, rel=1e-6)
    loaded = gn.TableRelease.load(folder / RELEASES / "release-1")
    assert (loaded.plan.person, loaded.plan.rows_per_person) == ("person id", 2)
    assert loaded.plan.schema.about.stated == {"title": "Counts by sex and age"}
    assert (folder / SCRIPTS / "release-1.py").is_file()

    expect(tab.get_by_role("button", name="Release", exact=True)).to_be_hidden()
    tab.get_by_text("One more release of these data").click()
    tab.get_by_role("button", name="Release", exact=True).click()  # a second one
    expect(tab.get_by_role("alert")).to_contain_text("you want to publish more of the same data")
    tab.get_by_role("checkbox", name="Publish more of the same data").click()
    tab.get_by_role("button", name="Release", exact=True).click()  # for which nothing is left
    expect(tab.get_by_role("alert")).to_contain_text("Expected a cost of at", timeout=60_000)
    expect(tab.get_by_role("button", name="Release", exact=True)).to_be_visible()  # to mend it
    assert gn.Ledger.open(folder / LEDGER).charges == 1

    with tab.expect_download() as taken:
        tab.get_by_role("link", name="as a zip").first.click()
    assert taken.value.suggested_filename == "release-1.zip"
    with tab.context.expect_page() as opened:
        tab.get_by_role("link", name="The page").click()
    expect(opened.value.get_by_role("heading").first).to_be_visible()
    assert opened.value.evaluate("origin") == "null"  # it reads nothing of the application
    opened.value.close()

    tab.goto(f"{server.root}/ask?folder=releases/release-1")
    tab.get_by_role("button", name="share of sex=F given age").click()
    tab.get_by_role("button", name="Ask", exact=True).click()
    expect(tab.locator("pre")).to_contain_text("estimate")
    tab.get_by_role("button", name="Verify").click()
    expect(tab.get_by_text("gaussnoise verify releases/release-1")).to_be_visible(timeout=60_000)

    tab.set_viewport_size({"width": 390, "height": 800})
    tab.goto(f"{server.root}/release")  # its table is wider than a phone, and scrolls by itself
    connected(tab)
    tab.get_by_text("Ask it, its files, other formats").click()
    tab.get_by_text("Its summary, with budget and accuracy").first.click()
    expect(tab.locator("pre.out").first).to_be_visible()
    expect(tab.locator("pre.out").first).to_contain_text("sex × age")
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert tab.locator("pre.out").first.evaluate("x => x.scrollWidth > x.clientWidth")
    # as wide as a file of text: the table is cut on no usual screen
    assert max(map(len, tab.locator("pre.out").first.inner_text().splitlines())) <= 80

    kept = "[{...localStorage}, {...sessionStorage}, document.title]"
    stored = tab.evaluate(f"JSON.stringify({kept})")
    for text in (stored, server.log.read_text(encoding="utf-8")):
        assert CANARY not in text
        assert "sex" not in text
    assert tab.evaluate("document.cookie") == ""


def test_a_file_with_a_title_is_read_and_what_was_typed_stays(started, tab, tmp_path):
    folder = tmp_path / "project"
    body = "sex;pay\n" + "F;1,5\nM;2,5\n" * 50
    (folder / "first.csv").write_text("Register\n" + body, encoding="utf-8")
    server = started()
    entered(tab, server)
    (folder / "second.csv").write_text("Register\n\n" + body, encoding="utf-8")
    tab.get_by_label("File with one row").click()
    expect(tab.get_by_role("option", name="second.csv")).to_be_visible()  # which is new
    tab.get_by_role("option", name="first.csv").click()
    tab.get_by_text("How the file is written").click()
    tab.get_by_label("Delimiter").fill(";")
    tab.get_by_label("Dates").fill("dd.MM.yyyy")
    tab.get_by_role("button", name="Read the file").click()
    said = tab.get_by_role("alert")
    expect(said).to_contain_text("in line 2", timeout=60_000)
    expect(said).to_contain_text("1 in the field Lines before the column names under How the file")
    connected(tab)
    expect(tab.get_by_label("Delimiter")).to_be_visible()
    expect(tab.get_by_label("Delimiter")).to_have_value(";")
    expect(tab.get_by_label("Dates")).to_have_value("dd.MM.yyyy")
    tab.get_by_label("Lines before the column names").fill("1")
    tab.get_by_role("button", name="Read the file").click()
    expect(tab.get_by_text("2 of 2 columns")).to_be_visible(timeout=60_000)
    expect(tab.get_by_text("the first line is skipped")).to_be_visible()
    assert "skip = 1" in (folder / SCHEMA).read_text(encoding="utf-8")
    connected(tab)
    tab.get_by_text("Another file, or how the file is written").click()
    tab.get_by_label("File with one row").click()
    tab.get_by_role("option", name="second.csv").click()
    with tab.expect_navigation():  # a number of lines that does not fit is found anew
        tab.get_by_role("button", name="Only choose this file").click()
    expect(tab.get_by_text("second.csv: the first 2 lines are skipped.")).to_be_visible()


def test_a_target_a_check_and_a_task_that_is_cancelled(started, tab, tmp_path):
    folder = tmp_path / "project"
    (folder / SCHEMA).write_text(READY.replace("rho = 0.25\n", ""), encoding="utf-8")
    lines = "F,20,1\nM,300,1\n" * 50_000  # ages of 300 are in no interval
    (folder / "rows.csv").write_text(f"sex,age,Größe\n{lines}", encoding="cp1252")
    server = started()
    entered(tab, server, "release")
    expect(tab.get_by_role("alert")).to_contain_text("expected a budget, or a target")
    tab.get_by_role("link", name="Mend it on the page Budget").click()
    tab.get_by_role("link", name="2 Questions").click()
    connected(tab)
    tab.get_by_text("Accuracy targets").click()
    tab.get_by_label("Target for 1").fill("40")
    with tab.expect_navigation():
        tab.get_by_label("Target for 1").blur()
    assert "within = 40" in (folder / SCHEMA).read_text(encoding="utf-8")
    expect(tab.get_by_label("Target for 1")).to_be_visible()  # where there is one
    tab.get_by_role("link", name="3 Budget").click()
    expect(tab.locator("tbody td").nth(1)).to_have_text("± 40")  # with the least budget

    tab.get_by_role("link", name="1 Table").click()
    connected(tab)
    tab.get_by_role("button", name="Check the rows").click()
    expect(tab.get_by_text("The rows are checked now.")).to_be_in_viewport()
    tab.get_by_role("button", name="Cancel").click()
    expect(tab.get_by_role("alert")).to_be_visible(timeout=60_000)
    tab.get_by_role("button", name="Check the rows").click()
    wrong = tab.get_by_text("'cp1252' in the field Encoding under How the file is written")
    expect(wrong).to_be_visible(timeout=60_000)
    connected(tab)
    tab.get_by_text("Another file, or how the file is written").click()
    tab.get_by_label("Encoding").fill("cp1252")
    with tab.expect_navigation():
        tab.get_by_role("button", name="Keep how the file is written").click()
    assert 'encoding = "cp1252"' in (folder / SCHEMA).read_text(encoding="utf-8")
    connected(tab)
    tab.get_by_role("button", name="Check the rows").click()
    counted = tab.get_by_text("50,000 of 100,000 rows count.")
    expect(counted).to_be_in_viewport(timeout=60_000)
    expect(tab.get_by_role("alert")).to_have_count(0)
    gn.Ledger.create(folder / LEDGER, gn.zCDP(1))
    lost = tab.get_by_text("50,000 left out of all tables")
    expect(lost).to_be_visible()
    tab.get_by_role("link", name="4 Release").click()  # which asks for no second check
    expect(counted.first).to_be_visible()  # with its warning
    expect(tab.get_by_text("All that it says")).to_be_visible()
    expect(lost).to_be_hidden()
    expect(tab.get_by_role("button", name="Release", exact=True)).to_be_visible()


def test_tables_of_small_cells_and_means_without_a_unit_are_named(started, tab, tmp_path):
    folder = tmp_path / "project"
    pay = '[attributes.pay]\nclip = [0, 100]\n\n[[workload]]\nof = ["sex", "pay"]\n\n'
    (folder / SCHEMA).write_text(READY.replace("[[workload]]", f"{pay}[[workload]]", 1), "utf-8")
    (folder / "rows.csv").write_text("sex,age,pay\nF,20,5\n", encoding="utf-8")
    gn.Ledger.create(folder / LEDGER, gn.zCDP(1))
    server = started()
    entered(tab, server, "budget")
    connected(tab)
    tab.get_by_text("Forecast of small cells").click()
    rows = tab.get_by_label("About how many rows")
    expect(rows).to_have_value("")  # it is not read off the file
    expect(tab.get_by_text("Mean count of a cell")).to_have_count(0)
    rows.fill("18")
    small = tab.get_by_role("row", name="sex × age").get_by_role("cell").nth(2)
    expect(small).to_have_text(re.compile("^3, less than ± "))
    mean = tab.get_by_role("row", name="Mean of pay by sex").get_by_role("cell")
    expect(mean.nth(2)).to_have_text("9")
    expect(mean.nth(1)).to_have_text(re.compile(r"^mean ± [\d.]+, in groups of some 9 rows$"))
    expect(tab.get_by_text("In 1 of 2 tables, the mean count of a cell is less")).to_be_visible()
    kept(folder, "expected_rows = 18")
    tab.reload()
    expect(small).to_have_text(re.compile("^3, less than ± "))
    connected(tab)
    rows.fill("1.8e1")  # a wrong text leaves no earlier number, here or in the file
    expect(tab.get_by_text("expected a whole number, 1 or more")).to_be_visible()
    expect(small).to_have_count(0)
    assert "expected_rows" not in (folder / SCHEMA).read_text(encoding="utf-8")
    rows.fill("180000")
    expect(small).to_have_text("30,000")
    expect(tab.get_by_text("the mean count of a cell is less")).to_have_count(0)

    tab.get_by_role("link", name="4 Release").click()
    said = tab.get_by_text("means and sums of pay have no unit such as EUR")
    expect(said).to_be_visible()
    with tab.expect_navigation():
        tab.get_by_role("link", name="State it on the page Table").click()
    connected(tab)
    tab.get_by_text("a number from 0 to 100 · public").click()
    tab.get_by_label("Unit of the number").locator("visible=true").fill("EUR")
    tab.get_by_role("button", name="Keep: pay").locator("visible=true").click()
    kept(folder, 'measured_in = "EUR"')
    tab.goto(f"{server.root}/release")
    expect(tab.get_by_role("heading", name="Before the charge")).to_be_visible()
    expect(said).to_have_count(0)


def test_no_rows_are_released_that_were_not_checked_as_they_are(started, tab, tmp_path):
    """The owner sees what counts as others before the charge, and accepts a warning of it."""
    folder = tmp_path / "project"
    schema = READY.replace('["F", "M"]', '["F", "M"]\nother = "others"')
    (folder / SCHEMA).write_text(schema, encoding="utf-8")
    good, bad = "F,20\n" * 90, f"{CANARY},20\n" * 10
    (folder / "rows.csv").write_text(f"sex,age\n{good}{bad}", encoding="utf-8")
    ledger = gn.Ledger.create(folder / LEDGER, gn.zCDP(0.25))
    server = started()
    entered(tab, server, "release")
    checks(tab)
    said, lists = tab.locator("pre.out").first, tab.locator("pre.out").last
    expect(said).to_contain_text("10 of 100 values of sex are no category")
    expect(said).not_to_contain_text("10.0 %")
    expect(lists).to_be_hidden()
    tab.get_by_text("Values that count as the rest").click()
    expect(lists).to_contain_text("10.0 %")
    expect(lists).to_be_visible()
    tab.reload()  # it was read: its first line, and its warning
    connected(tab)
    expect(said).to_have_text(
        re.compile(r"^All 100 rows count\.\s*WARNING: 10 of 100 values[^\n]*$")
    )
    expect(lists).to_be_hidden()
    tab.get_by_text("All that it says").click()
    expect(lists).to_contain_text("10.0 %")
    expect(lists).to_be_visible()
    tab.get_by_role("button", name="Release", exact=True).click()
    expect(tab.get_by_role("alert")).to_contain_text("Read the warnings above")
    assert ledger.charges == 0
    tab.get_by_text("More: name release-1, format csv, lines for readers").click()
    tab.get_by_label("Purpose, for the ledger").fill("for the council")
    tab.get_by_role("checkbox", name="I have read the warnings").click()

    (folder / "rows.csv").write_text(f"sex,age\n{good}{bad}M,20\n", encoding="utf-8")  # other rows
    with tab.expect_navigation():
        tab.get_by_role("button", name="Release", exact=True).click()
    assert ledger.charges == 0
    checks(tab)
    expect(said).to_contain_text("all rows fit the schema")
    expect(said).not_to_contain_text("WARNING")  # 10 of 101 are less than a tenth
    typed = {"Title, like": "Town census", "Name of the release": "census"}
    typed |= {"Purpose, for the ledger": "for the council"}
    tab.get_by_text("More: name release-1, format csv, lines for readers").click()
    for label, text in typed.items():
        tab.get_by_label(label).fill(text)
    tab.get_by_label("Format of the tables").click()
    tab.get_by_role("option", name="parquet").click()
    for line in ('[about]\ntitle = "Town census"', 'purpose = "for the council"', "parquet"):
        kept(folder, line)
    tab.reload()  # nothing is lost, and the check is of the same rows
    connected(tab)
    expect(tab.get_by_text("More: name census, format parquet, lines for readers")).to_be_visible()
    for label, text in (typed | {"Format of the tables": "parquet"}).items():
        expect(tab.get_by_label(label)).to_have_value(text)
    tab.get_by_label("Publisher, like").fill("Town")
    with tab.expect_navigation():
        tab.get_by_role("button", name="Release", exact=True).click()
    expect(tab.get_by_text("All files of releases/census")).to_be_visible(timeout=60_000)
    connected(tab)
    expect(tab.get_by_label("Name of the release")).to_have_value("release-1")  # a new one
    expect(tab.get_by_label("Purpose, for the ledger")).to_have_value("for the council")
    (entry,) = ledger.entries()
    assert (entry.id, entry.purpose) == ("census", "for the council")
    assert [*(folder / RELEASES / "census").rglob("*.parquet")]
    about = gn.TableRelease.load(folder / RELEASES / "census").plan.schema.about
    assert about.stated == {"title": "Town census", "publisher": "Town"}


@pytest.mark.parametrize("whole", [False, True], ids=["server", "server and task"])
def test_a_killed_server_keeps_the_guarantees_of_the_shell(started, tab, tmp_path, whole):
    """The task goes on without its server; killed as well, it loses no more than its charge."""
    folder = tmp_path / "project"
    (folder / SCHEMA).write_text(READY, encoding="utf-8")
    lines = "F,20\nM,30\n" * 500_000
    (folder / "rows.csv").write_text(f"sex,age\n{lines}", encoding="utf-8")
    ledger = gn.Ledger.create(folder / LEDGER, gn.zCDP(0.5))  # for two charges
    server = started()
    entered(tab, server, "release")
    checks(tab)
    tab.get_by_role("button", name="Release", exact=True).click()
    expect(tab.get_by_role("status")).to_contain_text("release of release-1")
    expect(tab.get_by_role("heading", name="Before the charge")).to_have_count(0)
    until(tab, ledger.entries)
    server.kill(whole=whole)
    (entry,) = ledger.entries()
    lost = whole and entry.state == "reserved"

    server = started()
    entered(tab, server, "budget")
    connected(tab)
    expect(tab.get_by_text("sex × age")).to_be_visible()
    tab.goto(f"{server.root}/release")
    connected(tab)
    if lost:
        expect(tab.get_by_text("Then the charge is lost")).to_be_visible()
    if whole:
        checks(tab)  # a new server knows no check
        tab.get_by_text("Name release-").click()
        tab.get_by_label("Name of the release").fill("release-1")
        tab.get_by_role("button", name="Release", exact=True).click()
    published = tab.get_by_text("All files of releases/release-1")
    expect(published).to_be_visible(timeout=120_000)
    tab.wait_for_function("!document.querySelector('[role=status] .q-linear-progress')")
    assert ledger.charges == 1 + lost
    assert ledger.spent <= 0.25 * (1 + lost)


def test_columns_that_were_read_without_a_server_can_be_taken(started, tab, tmp_path):
    rows(tmp_path / "project", 600)
    server = started()
    entered(tab, server)
    tab.get_by_label("File with one row").click()
    tab.get_by_role("option", name="rows.csv").click()
    tab.get_by_role("button", name="Read the file").click()
    until(tab, lambda: server.signal(signal.SIGSTOP))  # before it has read them
    assert server.stop().startswith("reading rows.csv goes on")
    server = started()
    server.signal(signal.SIGCONT)
    entered(tab, server)
    tab.get_by_role("button", name="Take its columns").click(timeout=60_000)
    expect(tab.get_by_text("3 of 3 columns")).to_be_visible()
    names = {path.name for path in (tmp_path / "project").iterdir()}
    assert names == {"rows.csv", SCHEMA, ".task"}


def test_others_on_the_machine_get_nothing(started, tmp_path):
    folder = tmp_path / "project"
    (folder / SCHEMA).write_text(READY, encoding="utf-8")
    server = started()
    host, _, number = server.root.removeprefix("http://").rpartition(":")
    port = int(number)
    for path in (*PAGES, "/files/release-1/release.json", "/?token=x", "/_nicegui_ws/socket.io/"):
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(server.root + path)
        assert refused.value.code == 403
        refused.value.close()
    with socket.create_connection((host, port)) as wire:
        wire.sendall(
            f"GET /_nicegui_ws/socket.io/?EIO=4&transport=websocket HTTP/1.1\r\n"
            f"Host: {host}:{port}\r\nOrigin: {server.root}\r\nUpgrade: websocket\r\n"
            "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n".encode()
        )
        assert b" 403 " in wire.recv(100)
    address = {line.split()[1] for line in Path("/proc/net/tcp").read_text().splitlines()[1:]}
    listens = bytes(reversed(socket.inet_aton(host))).hex().upper()
    assert f"{listens}:{port:04X}" in address  # on no address of a network
    assert f"00000000:{port:04X}" not in address


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_and_a_keyboard_are_enough(started, chromium, tmp_path, scheme):
    folder = tmp_path / "project"
    (folder / SCHEMA).write_text(READY, encoding="utf-8")
    (folder / "rows.csv").write_text("sex,age\nF,20\n", encoding="utf-8")
    server = started()
    phone = chromium.new_context(viewport={"width": 390, "height": 800}, color_scheme=scheme)
    tab = phone.new_page()
    entered(tab, server)
    for path in PAGES:
        tab.goto(server.root + path)
        expect(tab.get_by_role("heading", level=1)).to_be_visible()
        connected(tab)
        expect(tab.get_by_text("One moment …")).to_be_hidden()
        closed = "document.querySelectorAll('.q-expansion-item--collapsed')"  # in others as well
        tab.evaluate(f"{closed}.forEach(x => x.querySelector('.q-item').click())")
        moving = "document.querySelector('.q-expansion-item__content[style*=height]')"
        tab.wait_for_function(f"!{closed}.length && !{moving}")
        assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
        cut = "[...document.querySelectorAll('.q-field__label')].filter("
        cut += "x => x.offsetParent && x.scrollWidth > x.clientWidth + 1)"
        assert tab.evaluate(f"{cut}.map(x => x.innerText)") == [], path
        assert tab.locator("main").count() == 1
        unnamed = "[...document.querySelectorAll('input,textarea,button,select')].filter(x => "
        unnamed += "x.offsetParent && !(x.labels?.length || x.ariaLabel || x.innerText.trim()))"
        assert tab.evaluate(f"{unnamed}.map(x => x.outerHTML)") == [], path
        assert tab.evaluate("document.documentElement.lang") == "en-US"
        for fault in (PALE, UNSAID, UNREACHED):
            assert tab.evaluate(fault) == [], path
    for strange in ("/keep/%00", "/page/%00", "/files/%00/x"):
        assert tab.goto(server.root + strange).status == 404
    tab.goto(server.root)
    dark = tab.evaluate("document.body.classList.contains('body--dark')")
    assert dark == (scheme == "dark")
    tab.goto(f"{server.root}/release")
    connected(tab)
    expect(tab.get_by_role("button", name="Set the total")).to_be_visible()
    for _ in range(60):  # by Tab alone to a choice, and to the button
        tab.keyboard.press("Tab")
        if tab.evaluate("document.activeElement.getAttribute('role')") == "radio":
            tab.keyboard.press("Space")
            break
    for _ in range(60):
        tab.keyboard.press("Tab")
        if "total" in tab.evaluate("document.activeElement.innerText || ''").lower() and (
            tab.evaluate("document.activeElement.tagName") == "BUTTON"
        ):
            break
    tab.keyboard.press("Enter")
    expect(tab.get_by_role("button", name="Check the rows")).to_be_visible()
    assert gn.Ledger.open(folder / LEDGER).rho == 0.25
    tab.goto(f"{server.root}/ledger")
    connected(tab)
    box = tab.get_by_role("region", name="Entries")
    assert box.evaluate("x => x.scrollWidth > x.clientWidth")
    assert tab.evaluate(UNREACHED) == []
    phone.close()
