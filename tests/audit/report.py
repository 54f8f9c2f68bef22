"""The audit as Markdown tables: ``python tests/audit/report.py [EXAMPLES]`` in a checkout, some
minutes.
"""

import collections
import dataclasses
import os
import sys
import tempfile
from pathlib import Path

import audit_attacks as attacks
import audit_fuzz as fuzz
import audit_kit as kit
import audit_ledger as ledger
import audit_numbers as numbers
import audit_persons as persons
import audit_ticks as ticks
import hypothesis
import pytest
from hypothesis import strategies as st

_EXAMPLES, _KILLS, _POINTS = 400, 60, 60


def faults():
    """Every mutant: the ε proven of it, and the ε it claims."""
    claim = kit.gaussian_epsilon(kit.RHO, kit.DELTA)
    for mutant in [*kit.MUTANTS, *persons.MUTANTS, *numbers.MUTANTS, *ticks.MUTANTS]:
        with pytest.MonkeyPatch.context() as patch:
            mutant.inject(patch)
            yield mutant.name, mutant.audit(), claim


def sound():
    """Mechanisms as they are."""
    claim = kit.gaussian_epsilon(kit.RHO, kit.DELTA)
    for neighbors in ("add-remove", "replace"):
        yield (
            f"sums or means, {neighbors}",
            kit.audit_line(kit.line_mechanism(neighbors), 100_000),
            claim,
        )
        yield f"tables, {neighbors}", kit.audit_tables(kit.two_tables(neighbors), 20_000), claim
    found = persons.audit(persons.planned(3), *persons.neighbours(1000, (1,)), draws=20_000)
    yield "tables, a person of 1000 rows, of whom 3 are counted", found, claim
    for odd, record in numbers.ODD.items():
        found = numbers.audit(numbers.planned(weight=numbers.WEIGHT), record, 20_000)
        yield f"clipped sums and weights, a number and a weight {odd}", found, claim
    for reports, neighbors in ((1, "add-remove"), (2, "add-remove"), (ticks.TICKS, "replace")):
        plan = ticks.planned(reports, 1, neighbors)
        found = ticks.found_epsilon(plan, range(reports), 20_000)
        yield f"ticks, {reports} of {ticks.TICKS} with a report, {neighbors}", found, claim


def fuzzed(examples):
    """Kinds of input, and how many ended how; random ones, other than the tests'."""
    asked = {
        **{
            f"tables in {kind}": (fuzz.problems(), lambda p, k=kind: fuzz.ask_python(p, k))
            for kind in fuzz.BUILDERS
        },
        "files at the command line": (
            st.tuples(fuzz.problems(), st.sampled_from(["csv", "parquet"])),
            lambda p: fuzz.ask_shell(*p),
        ),
        "bytes for CSV": (fuzz.raw_files(), lambda p: fuzz.ask_bytes(*p)),
        **{
            f"CSV as {exporter} writes it": (
                fuzz.exported_files(exporter),
                lambda p: fuzz.ask_bytes(*p),
            )
            for exporter in fuzz.EXPORTERS
        },
        "rows left out of pandas": (
            fuzz.problems(),
            lambda p: fuzz.ask_dropping(p, "pandas objects"),
        ),
        "schema texts": (fuzz.schema_texts(), fuzz.ask_schema),
        "schema files": (fuzz.schema_files(), fuzz.ask_schema_file),
        "records of finite sets": (fuzz.point_data(), lambda p: fuzz.ask_points(*p)),
        "records of convex bodies": (fuzz.body_data(), lambda p: fuzz.ask_bodies(*p)),
    }
    for name, (strategy, ask) in asked.items():
        yield name, _tally(strategy, ask, examples)


def _tally(strategy, ask, examples):
    seen = collections.Counter()

    @hypothesis.settings(
        max_examples=examples,
        deadline=None,
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
        phases=[hypothesis.Phase.generate],
    )
    @hypothesis.given(strategy)
    def run(problem):
        outcome = ask(problem)
        if outcome.answer == "unbuildable":
            return
        seen["inputs"] += 1
        seen["released"] += outcome.answer == "released"
        seen["refused"] += outcome.answer != "released" and outcome.typed
        seen["untyped"] += not outcome.typed
        seen["invalid"] += not outcome.valid
        seen["leaks"] += bool(outcome.leaks)

    run()
    return seen


def ledgers(folder):
    """Faults, and the damage: on the ledger in every way, then on naive ones, where it
    must show.
    """
    deducting, counting = ledger.NAIVE

    def lines(kind):
        return sum(
            (p.damage() for p, _ in ledger.killed_at_lines(kind, folder / f"lines {kind}")),
            ledger.Damage(),
        )

    yield "kill -9 at every line that charges, draws and publishes", lines(ledger.SOUND)
    yield "a storm of kills", ledger.storm(ledger.SOUND, folder / "storm", _KILLS)[0].damage()
    yield "four programs racing to the cap", ledger.racing(ledger.SOUND, folder / "race").damage()
    for what, name in (("tables", "Plan.release"), ("records", "GaussianMechanism.release")):
        yield (
            f"kill -9 throughout {name}",
            ledger.killed_releases(what, folder / what, [_POINTS])[1],
        )
    yield "deducting after the draw, kill -9 at every line", lines(deducting)
    yield (
        "deducting after the draw, a storm",
        ledger.storm(deducting, folder / "storm 2", _KILLS)[0].damage(),
    )
    yield "deducting after the draw, a race", ledger.racing(deducting, folder / "race 2").damage()
    yield (
        "counting in memory, a storm",
        ledger.storm(counting, folder / "storm 3", _KILLS)[0].damage(),
    )
    yield "counting in memory, a race", ledger.racing(counting, folder / "race 3").damage()
    naive = ledger.killed_releases("tables", folder / "tables 2", [_POINTS], deducting)
    yield "deducting after the draw, kill -9 throughout Plan.release", naive[1]
    kinds = {
        "plain": "kill -9 throughout the tick of a stream",
        "ledger": "kill -9 throughout the tick of a stream under a ledger",
        "forgetful": "a stream that forgets what it drew, kill -9 throughout the tick",
        "skipping": "a stream that skips the tick in which it was killed, kill -9 throughout it",
    }
    killed = ticks.killed(folder / "ticks", _POINTS, *kinds)
    for kind, name in kinds.items():
        yield name, sum(map(ticks.damage, killed[kind]), ledger.Damage())


def main(examples=_EXAMPLES):
    """Print what was tried and what happened."""
    print(f"| mechanism | ε claimed at δ = {kit.DELTA:g} | ε proven | verdict |\n|---|---|---|---|")
    for name, found, claim in [*sound(), *faults()]:
        print(
            f"| {name} | {claim:.2f} | ≥ {max(found, 0):.2f} | "
            f"{'caught' if found > claim else 'within'} |"
        )
    print(
        "\n| fuzzed | inputs | released | refused by type | other errors | invalid | values "
        "leaked |"
    )
    print("|---|---|---|---|---|---|---|")
    for name, seen in fuzzed(examples):
        columns = ("inputs", "released", "refused", "untyped", "invalid", "leaks")
        print(f"| {name} | {' | '.join(str(seen[c]) for c in columns)} |", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)  # an attack comes from another user
        print("\n| attack | tries | succeeded |\n|---|---|---|")
        for name, tried, succeeded in attacks.verdicts(Path(folder)):
            print(f"| {name} | {tried} | {succeeded} |", flush=True)
    columns = (
        "runs",
        "results published",
        "drawn twice",
        "lost or corrupted",
        "charged beyond the budget",
    )
    print(f"\n| fault injected | {' | '.join(columns)} |\n|{'---|' * 6}")
    with tempfile.TemporaryDirectory() as folder:
        for name, damage in ledgers(Path(folder)):
            print(f"| {name} | {' | '.join(map(str, dataclasses.astuple(damage)))} |", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
