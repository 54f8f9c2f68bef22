"""A stream in a real browser: three ticks, clicks that come twice, and servers that die."""

import io
import re
import signal
import zipfile

import pytest
from browser import READY, connected, entered, until
from playwright.sync_api import expect

import gaussnoise as gn
from gaussnoise.app.project import LEDGER, SCHEMA, STREAMS
from gaussnoise.app.streaming import StreamWish
from gaussnoise.cli.app import run

pytestmark = pytest.mark.integration

SCHEMA_FILE = READY.replace("rows.csv", "week-1.csv") + 'person = "id"\n'
ABOUT = '[about]\ntitle = "Weeks"\nperiod = "week 1"\n'
PLACE = f"{STREAMS}/weekly"
OPENED = """() => {
  const shown = (e) => e.checkVisibility();
  const heads = ".q-expansion-item--collapsed > div > .q-item";
  const closed = [...document.querySelectorAll(heads)].filter(shown);
  closed.forEach((e) => e.click());
  const open = [...document.querySelectorAll(".q-expansion-item__content")].filter(shown);
  return !closed.length && open.every((e) => e.innerText.trim());
}"""  # opens what is closed; whether all is open, and drawn


@pytest.fixture
def project(tmp_path, started, monkeypatch):
    """The folder of a project with the rows of three weeks, in which the shell works too."""
    folder = tmp_path / "project"
    (folder / SCHEMA).write_text(SCHEMA_FILE, encoding="utf-8")
    for week in (1, 2, 3):
        rows(folder, week, 100 * week)
    monkeypatch.chdir(folder)
    return folder


def rows(folder, week, persons):
    lines = (f"{k},{'FM'[k % 2]},{k % 97}\n" for k in range(persons))
    (folder / f"week-{week}.csv").write_text("id,sex,age\n" + "".join(lines), encoding="utf-8")


def weekly(folder, **more):
    """A stream of three ticks, as Python starts it."""
    gn.Ledger.create(folder / LEDGER, gn.zCDP(0.25))
    plan = gn.plan(
        gn.Schema.load(folder / SCHEMA),
        [("sex", "age")],
        gn.zCDP(0.25),
        person="id",
        over=gn.streams.Ticks(3, 3, **more),
    )
    (folder / STREAMS).mkdir()
    return plan.start(folder / PLACE, ledger=folder / LEDGER, id="weekly", on_outside="drop")


def kept(tab, project, line):
    """Wait until the schema file has a line: ten seconds at most."""
    for _ in range(500):
        if line in (project / SCHEMA).read_text(encoding="utf-8"):
            return
        tab.wait_for_timeout(20)
    pytest.fail(f"not in {SCHEMA}: {line}")


def add(tab, tick, file, click="click"):
    tab.get_by_label(f"File with the rows of tick {tick}").click()
    tab.get_by_role("option", name=file).click()
    getattr(tab.get_by_role("button", name=f"Add tick {tick}"), click)()


def is_done(tab, done, timeout=60_000):
    expect(tab.get_by_text(f"weekly: {done} of 3 ticks done")).to_be_visible(timeout=timeout)
    connected(tab)


def in_a_tick(started, tab, project):
    """The ledger of a stream, and a server whose task stands still in the middle of a tick."""
    weekly(project)
    rows(project, 1, 100_000)
    ledger, server = gn.Ledger.open(project / LEDGER), started()
    entered(tab, server, "streams")
    is_done(tab, 0)
    add(tab, 1, "week-1.csv")
    until(tab, lambda: len(ledger.entries()) >= 2)
    server.signal(signal.SIGSTOP)
    return ledger, server


def test_a_stream_of_three_ticks(started, tab, project, capsys):
    (project / SCHEMA).write_text(SCHEMA_FILE + ABOUT, encoding="utf-8")
    server = started()
    entered(tab, server)
    tab.get_by_role("link", name="Streams").click()
    expect(tab.get_by_role("radio", name="several")).to_be_visible()
    connected(tab)
    tab.get_by_role("radio", name="this release or stream alone: nothing else").click()
    tab.get_by_role("button", name="Set the total").click()
    expect(tab.get_by_label("Number of ticks, at most")).to_have_value("12")
    connected(tab)
    expect(tab.get_by_text("the period of the data is week 1")).to_be_visible()
    with tab.expect_navigation():
        tab.get_by_role("button", name="leave the period out").click()
    connected(tab)
    expect(tab.get_by_text("the period of the data")).to_have_count(0)
    plan = tab.get_by_role("status").locator("pre")
    expect(plan).to_contain_text("sd of all 12", timeout=60_000)
    assert "[stream]" not in (project / SCHEMA).read_text(encoding="utf-8")  # nothing is chosen yet
    tab.get_by_label("Number of ticks, at most").fill("3")
    tab.get_by_label("Purpose").fill("for the council")
    tab.get_by_label("Purpose").blur()
    kept(tab, project, 'purpose = "for the council"')
    persons = tab.get_by_label("In how many ticks can one person have rows, at most?")
    persons.fill("1")
    kept(tab, project, "reports = 1")
    tab.reload()  # nothing is lost
    connected(tab)
    expect(persons).to_have_value("1")
    expect(tab.get_by_label("Number of ticks, at most")).to_have_value("3")
    expect(tab.get_by_label("Purpose")).to_have_value("for the council")
    persons.fill("")  # in every tick
    kept(tab, project, "reports = 3")
    expect(plan).to_contain_text("sd of all 3", timeout=60_000)
    expect(plan).to_contain_text("at most 3 ticks")
    assert run(["stream", "plan", "-s", SCHEMA]) == 0  # the shell has these choices too
    assert plan.inner_text().split() == capsys.readouterr().out.split()
    expect(tab.get_by_text("No tick is left out")).to_be_visible()
    expect(tab.get_by_text("Corrections of earlier ticks are not counted")).to_be_visible()
    tab.get_by_label("Name of the stream").fill("weekly")
    tab.get_by_role("button", name="Start the stream").dblclick()
    is_done(tab, 0)
    expect(tab.get_by_label("Number of ticks, at most")).to_have_count(0)  # of another stream
    ledger = gn.Ledger.open(project / LEDGER)
    (entry,) = ledger.entries()  # two clicks, one charge
    assert (entry.id, entry.state, entry.purpose) == ("weekly", "sealed", "for the council")
    assert entry.rho == pytest.approx(0.25)

    expect(tab.get_by_label("File with the rows of tick 1")).to_have_value("")
    expect(tab.get_by_text("Columns: sex, age, id")).to_be_visible()
    persons = tab.get_by_text("Persons: The budget protects each person (column 'id')")
    expect(persons).to_contain_text("at most 1 row is counted in each of at most 3 ticks")
    add(tab, 1, "week-1.csv", "dblclick")  # one tick
    is_done(tab, 1)
    assert len(gn.streams.Stream.open(project / PLACE)) == 1
    expect(tab.get_by_role("alert")).to_have_count(0)

    add(tab, 2, "week-1.csv")  # rows that were counted
    expect(tab.get_by_role("alert")).to_contain_text("was counted at tick 1", timeout=60_000)
    is_done(tab, 1)
    expect(tab.get_by_label("File with the rows of tick 2")).to_have_value("week-1.csv")
    add(tab, 2, "week-2.csv")
    is_done(tab, 2)
    tab.reload()  # nothing is lost
    is_done(tab, 2)
    command = tab.get_by_text(f"gaussnoise stream tick {PLACE} FILE").inner_text()
    assert run([*command.split()[1:3], PLACE, "week-3.csv", *command.split()[5:]]) == 0  # the shell
    tab.reload()
    is_done(tab, 3)
    expect(tab.get_by_role("heading", name="All ticks are done")).to_be_visible()
    assert [entry.id for entry in ledger.entries()] == [
        "weekly",
        *(f"weekly tick {tick}" for tick in (1, 2, 3)),
    ]
    assert ledger.spent == pytest.approx(0.25)
    total = gn.streams.Stream.open(project / PLACE).total()
    deviation = float(total[()].standard_deviation)
    assert abs(float(total[()].estimate) - 600) < 6 * deviation  # each row once

    with tab.context.expect_page() as opened:
        tab.get_by_role("link", name="The page").click()
    expect(opened.value.get_by_role("heading").first).to_be_visible()
    assert opened.value.evaluate("origin") == "null"  # it reads nothing of the application
    opened.value.close()
    with tab.expect_download() as taken:
        tab.get_by_role("link", name="as a zip").click()
    names = zipfile.ZipFile(io.BytesIO(taken.value.path().read_bytes())).namelist()
    assert "weekly/ticks/0003/release.json" in names
    inner = {name.split("/")[1] for name in names if "/" in name}
    assert inner == {"stream.json", "ticks"}  # not: private
    assert "weekly-0003.html" in names  # its page
    for hidden in ("private/exact-counts-0001.json", "stream.json"):
        for way in ("ticks/../", "ticks/0001/../../", "ticks/%2e%2e/", "ticks/0001/%2e%2e/%2e%2e/"):
            answer = tab.request.get(f"{server.root}/stream/weekly/{way}{hidden}")
            assert answer.status == 404
    tab.get_by_role("link", name="Ask it").click()
    connected(tab)
    tab.get_by_label("Question").fill("count by tick")
    tab.get_by_role("button", name="Ask").click()
    expect(tab.locator("pre")).to_contain_text("95 %", timeout=60_000)
    tab.get_by_role("button", name="Verify").click()
    expect(tab.get_by_text(f"gaussnoise verify {PLACE}")).to_be_visible(timeout=60_000)
    tab.get_by_role("link", name="Ledger").click()
    row = tab.get_by_role("row").filter(has_text="weekly tick 3")
    expect(row).to_contain_text("purpose: for the council")
    expect(row.get_by_role("cell").nth(3)).to_have_text("0")


def test_a_stream_of_months_takes_only_tables_of_counts(started, tab, project):
    more = '[attributes.pay]\nclip = [0, 100]\n[[workload]]\nof = ["sex", "pay"]\n'
    text = SCHEMA_FILE.replace("[plan]", f"{more}[plan]") + ABOUT
    (project / SCHEMA).write_text(text, encoding="utf-8")
    gn.Ledger.create(project / LEDGER, gn.zCDP(0.25))
    server = started()
    entered(tab, server, "streams")
    connected(tab)
    expect(tab.get_by_text("cannot go on in a stream: sex × pay")).to_be_visible()
    expect(tab.get_by_role("alert")).to_contain_text("tables of counts", timeout=60_000)
    tab.get_by_role("checkbox", name="Take only the tables of counts: sex × age").click()
    kept(tab, project, "counts = true")
    plan = tab.get_by_role("status").locator("pre")
    expect(plan).to_contain_text("sd of all 12", timeout=60_000)
    tab.get_by_label("Number of ticks, at most").fill("3")
    tab.get_by_label("Time of the first tick").fill("soon")
    expect(tab.get_by_role("status")).to_contain_text("expected first to be a year, quarter")
    tab.get_by_label("Time of the first tick").fill("January 2026")
    kept(tab, project, 'first = "January 2026"')
    expect(plan).to_contain_text("the last March 2026", timeout=60_000)
    for label, line in {"Publisher": "Town of Grünau", "Source": "Register"}.items():
        tab.get_by_label(label).fill(line)
    tab.get_by_label("Source").blur()
    kept(tab, project, 'source = "Register"')
    tab.get_by_label("Name of the stream").fill("weekly")
    tab.get_by_role("button", name="Start the stream").click()
    is_done(tab, 0)
    expect(tab.get_by_role("heading", name="Next: tick 1 of 3 (January 2026)")).to_be_visible()
    add(tab, 1, "week-1.csv")
    is_done(tab, 1)
    expect(tab.get_by_text("Tick 1 (January 2026): published on")).to_be_visible()
    with tab.context.expect_page() as opened:
        tab.get_by_role("link", name="The page").click()
    head = opened.value.locator("header")
    expect(head).to_contain_text("Publisher: Town of Grünau")
    expect(head).to_contain_text("Source: Register")
    expect(head).to_contain_text("for tick 1 (January 2026) of a stream")
    opened.value.close()


def test_rows_are_checked_before_a_tick_and_a_refused_tick_leads_there(started, tab, project):
    """Nothing is counted or charged by a check; a refusal has no word of the shell."""
    weekly(project, period="week")
    for name, week in {"odd": 1, "later": 2}.items():
        lines = f"id,sex,age,week\n1,F,20,1\n2,X,20,1\n3,F,30,{week}\n"
        (project / f"{name}.csv").write_text(lines, encoding="utf-8")
    server, ledger = started(), gn.Ledger.open(project / LEDGER)
    entered(tab, server, "streams")
    is_done(tab, 0)
    add(tab, 1, "later.csv")
    alert = tab.get_by_role("alert")
    expect(alert).to_contain_text("The file has rows that do not fit", timeout=60_000)
    assert not re.search("--|DataError|on_outside", alert.inner_text())
    assert (ledger.charges, ledger.refusals) == (1, 1)
    expect(tab.get_by_label("File with the rows of tick 1")).to_have_value("later.csv")
    connected(tab)
    tab.get_by_role("link", name="Check the rows").click()
    check = tab.get_by_role("button", name="Check the rows")
    expect(check).to_be_in_viewport()
    check.click()
    expect(alert).to_contain_text("column 'week': expected rows of tick 1", timeout=60_000)
    tab.get_by_label("File with the rows of tick 1").click()
    tab.get_by_role("option", name="odd.csv").click()
    check.click()
    found = tab.get_by_text("2 of 3 rows count.")
    expect(found).to_be_in_viewport(timeout=60_000)
    expect(alert).to_have_count(0)
    expect(tab.get_by_label("File with the rows of tick 1")).to_have_value("odd.csv")
    is_done(tab, 0)
    assert (ledger.charges, ledger.refusals) == (1, 1)
    assert "X" not in server.log.read_text(encoding="utf-8")
    tab.get_by_role("button", name="Add tick 1").click()
    is_done(tab, 1)


def test_a_ledger_that_is_proposed_pays_for_the_stream_or_the_release(started, tab, project):
    """To the last digit of its ρ, which 6 digits do not show: a ledger cannot be changed."""
    text = SCHEMA_FILE.replace("rho = 0.25", "epsilon = 0.7\ndelta = 1e-6")
    (project / SCHEMA).write_text(text, encoding="utf-8")
    needed = gn.ApproxDP(0.7, 1e-6).to_zcdp().rho
    assert float(f"{needed:.6g}") < needed
    server = started()
    entered(tab, server, "streams")
    connected(tab)
    tab.get_by_role("radio", name="this release or stream alone: nothing else").click()
    tab.get_by_role("button", name="Set the total").click()
    expect(tab.get_by_text("What it takes of the budget")).to_be_visible()
    assert needed <= gn.Ledger.open(project / LEDGER).rho < 1.0001 * needed
    expect(tab.get_by_role("alert")).to_have_count(0)

    broken = text.replace("edges", "edgs")
    (project / SCHEMA).write_text(broken, encoding="utf-8")
    for page in ("/streams", "/release"):  # what is wrong, not: a draft
        tab.goto(server.root + page)
        expect(tab.get_by_role("alert")).to_contain_text("edgs")

    (project / SCHEMA).write_text(text, encoding="utf-8")
    (project / STREAMS).mkdir()
    assert run(StreamWish("weekly", 3, 1).words()) == 0
    (project / SCHEMA).write_text(broken, encoding="utf-8")
    tab.goto(f"{server.root}/streams")  # a stream that was started needs no schema file
    expect(tab.get_by_role("button", name="Add tick 1")).to_be_visible()

    (project / SCHEMA).write_text(text, encoding="utf-8")
    (project / LEDGER).rename(project / "away")  # it would be forgotten what is public
    for page in ("/streams", "/release"):
        tab.goto(server.root + page)
        connected(tab)
        if page == "/streams":
            tab.get_by_text("Start another stream").click()
        expect(tab.get_by_text("weekly of this folder was published")).to_be_visible()
        expect(tab.get_by_role("button", name="Set the total")).to_have_count(0)
    (project / STREAMS).rename(project / "old")
    tab.goto(f"{server.root}/release")
    expect(tab.get_by_text("It was charged, and project.ledger")).to_be_visible()
    expect(tab.get_by_role("button", name="Set the total")).to_have_count(0)


@pytest.mark.parametrize("how", ["killed", "stopped", "killed with its task"])
def test_a_server_that_ends_keeps_the_guarantees_of_the_shell(started, tab, project, how):
    """The tick goes on, and its end is seen; killed as well, it is run again and counts once."""
    ledger, server = in_a_tick(started, tab, project)
    whole = how == "killed with its task"
    if how == "stopped":
        assert server.stop() == (
            "tick 1 of weekly goes on; the next gaussnoise app here shows its end."
        )
    else:
        server.kill(whole=whole)

    server = started()
    entered(tab, server, "streams")
    is_done(tab, 0)
    if whole:
        tab.goto(f"{server.root}/release")  # a tick is no release that was begun
        expect(tab.get_by_text("Before the charge")).to_be_visible()
        expect(tab.get_by_text("or was interrupted before it was written")).to_have_count(0)
        tab.go_back()
        is_done(tab, 0)
        expect(tab.get_by_text("Tick 1 was interrupted")).to_be_visible()
        tab.get_by_role("button", name="Add tick 1").click()
    else:
        expect(tab.get_by_role("status")).to_contain_text(re.compile(r"tick 1 of weekly: \d+ s"))
        expect(tab.get_by_role("button", name="Add tick 1")).to_be_disabled()
        server.signal(signal.SIGCONT)
    is_done(tab, 1, timeout=120_000)
    expect(tab.get_by_role("alert")).to_have_count(0)
    assert ledger.spent == pytest.approx(0.25)
    total = gn.streams.Stream.open(project / PLACE).total()
    assert abs(float(total[()].estimate) - 100_000) < 6 * float(total[()].standard_deviation)


def test_cancel_stops_a_tick_and_says_so(started, tab, project):
    ledger, server = in_a_tick(started, tab, project)
    tab.get_by_role("button", name="Cancel", exact=True).click()
    server.signal(signal.SIGCONT)
    expect(tab.get_by_role("alert")).to_contain_text("stopped before its end", timeout=60_000)
    is_done(tab, 0)
    expect(tab.get_by_text("Tick 1 was interrupted")).to_be_visible()
    assert ledger.spent == pytest.approx(0.25)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_is_enough(started, chromium, project, scheme):
    weekly(project, enforced=True).tick(str(project / "week-1.csv"), number=1)
    server = started()
    phone = chromium.new_context(viewport={"width": 390, "height": 800}, color_scheme=scheme)
    tab = phone.new_page()
    entered(tab, server)
    for page in ("/streams", "/ledger", "/ask"):
        tab.goto(server.root + page)
        connected(tab)
        tab.wait_for_function(OPENED)
        another = tab.get_by_label("Number of ticks, at most")
        expect(another).to_have_count(1 if page == "/streams" else 0)
        assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth"), page
        unnamed = "[...document.querySelectorAll('input,textarea,button,select')].filter(x => "
        unnamed += "x.offsetParent && !(x.labels?.length || x.ariaLabel || x.innerText.trim()))"
        assert tab.evaluate(f"{unnamed}.map(x => x.outerHTML)") == [], page
    dark = tab.evaluate("document.body.classList.contains('body--dark')")
    assert dark == (scheme == "dark")
    phone.close()
