"""The theorems of ``sensitivity.v`` are proved from no axioms, and its functions compute the
sensitivities that the program computes. Needs Coq (``apt install coq``).
"""

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import gaussnoise as gn
from gaussnoise.solvers.tables.strategies import IdentityStrategy
from gaussnoise.streams.reports import largest_change
from gaussnoise.tables.counting.numbers import _portion

COQC = shutil.which("coqc")
SOURCE = Path(__file__).with_name("sensitivity.v").read_text(encoding="utf-8")
THEOREMS = re.findall(r"^\s*Theorem (\w+)", SOURCE, flags=re.MULTILINE)

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(COQC is None, reason="Coq is not installed: apt install coq"),
]


def checked(folder, name, source):
    """What Coq says of a file, without line breaks; it refuses one with a proof that is wrong."""
    (folder / f"{name}.v").write_text(source, encoding="utf-8")
    command = [COQC, "-Q", ".", "", f"{name}.v"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return " ".join(done.stdout.split())


def said(folder, *questions):
    """What Coq answers to these commands, in a folder with the theorems."""
    asked = ["Require Import sensitivity ZArith List.", "Import ListNotations. Open Scope Z_scope."]
    return checked(folder, "asked", "\n".join([*asked, *questions]))


@pytest.fixture(scope="module")
def theorems(tmp_path_factory):
    """A folder in which Coq has checked all theorems."""
    folder = tmp_path_factory.mktemp("theorems")
    checked(folder, "sensitivity", SOURCE)
    return folder


def numbers(folder, *terms):
    answers = said(folder, *(f"Compute {term}." for term in terms))
    return [int(found) for found in re.findall(r"= (-?\d+) : Z", answers)]


def of(values):
    """A function from attributes to integers."""
    return f"(fun i => nth i [{'; '.join(f'({int(x)})' for x in values)}] 0)"


def by_set(query, length):
    """A function from measured sets and attributes to squared lengths of columns."""
    cases = [
        f"| [{'; '.join(f'{i}%nat' for i in T)}] => "
        + of(length(own, own.in_set(T)) for own in query.strategies)
        for T in query.multipliers
    ]
    return f"(fun T => match T with {' '.join(cases)} | _ => (fun _ => 0) end)"


def parts(query):
    """The subsets of attributes that are measured, and their multipliers."""
    listed = [
        f"([{'; '.join(f'{i}%nat' for i in T)}], {int(s)})" for T, s in query.multipliers.items()
    ]
    return f"[{'; '.join(listed)}]"


SCHEMA = gn.Schema(
    [
        gn.Attribute("age", range(5)),
        gn.Attribute("sex", range(2)),
        gn.Attribute("region", range(4)),
    ]
)
WORKLOAD = [{"age": gn.Prefix(5), "sex": gn.Identity(2)}, ("sex", "region")]


def query_of(neighbors, public=()):
    privacy = gn.zCDP(0.5)
    return gn.plan(SCHEMA, WORKLOAD, privacy, neighbors=neighbors, public=public).query


def test_no_theorem_needs_an_axiom(theorems):
    assert len(THEOREMS) == 13
    found = said(theorems, *(f"Print Assumptions {name}." for name in THEOREMS))
    assert found == " ".join(["Closed under the global context"] * len(THEOREMS))


def test_a_theorem_without_its_proof_is_seen(tmp_path):
    start = SOURCE.index("Theorem added ")
    end = SOURCE.index("Qed.", start)
    stated = SOURCE[start : SOURCE.index("Proof.", start)]
    source = f"{SOURCE[:start]}{stated}Admitted.{SOURCE[end + 4 :]}"
    checked(tmp_path, "sensitivity", source)
    found = said(tmp_path, "Print Assumptions added.")
    assert found.startswith("Axioms:")
    assert "Closed" not in found


def test_the_program_computes_the_sensitivities_that_are_proved(theorems):
    one, exchanged = query_of("add-remove"), query_of("replace")
    agreed = query_of("replace", public="sex")
    terms = []
    for query, public in ((one, None), (exchanged, ()), (agreed, (1,))):
        longest = [own.square for own in query.strategies]
        if public is None:
            terms.append(f"(form {parts(query)} {of(longest)})")
            continue
        least = [own.square if i in public else own.least for i, own in enumerate(query.strategies)]
        attributes = "[0%nat; 1%nat; 2%nat]"
        terms.append(f"(exchange {of(longest)} {of(least)} {parts(query)} {attributes})")
    proved = numbers(theorems, *terms)
    assert proved == [query.query.sensitivity_squared for query in (one, exchanged, agreed)]
    assert len(set(proved)) == 3


def test_so_it_does_where_contrasts_depend_on_the_set(theorems):
    workload = [{"age": gn.Prefix(5)}, {"age": gn.Identity(5), "sex": gn.Identity(2)}]
    query = gn.plan(SCHEMA, [*workload, ("sex", "region")], gn.zCDP(0.5)).query
    assert set(query.strategies[0].others) == {(0, 1)}
    ages = [
        by_set(query, lambda own, here, k=k: here.lengths[k] if own.others else here.square)
        for k in range(5)
    ]
    rows = "; ".join(f"form_by {parts(query)} {length}" for length in ages)
    longest = by_set(query, lambda _, here: here.square)
    proved, if_longest_in_all_sets = numbers(
        theorems, f"highest [{rows}]", f"form_by {parts(query)} {longest}"
    )
    assert proved == query.query.sensitivity_squared
    assert proved < if_longest_in_all_sets


@pytest.mark.parametrize("n", [3, 7])
def test_the_program_states_the_numbers_of_alike_categories_that_are_proved(theorems, n):
    own = IdentityStrategy(n)
    terms = [f"(dot (alike {n} 0) (alike {n} {k}))" for k in (0, 1)]
    assert numbers(theorems, *terms) == [own.square, own.least]


def test_the_program_charges_reports_as_is_proved(theorems):
    """Of one person in all of four ticks: the sum of |X_ij| that the theorem has."""
    C = np.array([[4, 0, 0, 0], [-3, 5, 0, 0], [1, 2, 6, 0], [0, -1, 2, 3]])
    columns = [f"[{'; '.join(f'({x})' for x in column)}]" for column in C.T.tolist()]
    ticks = "[0%nat; 1%nat; 2%nat; 3%nat]"
    column = f"(fun a => nth a [{'; '.join(columns)}] [])"
    both = f"Z.abs (dot ({column} a) ({column} b))"
    term = f"(sum_of (fun a => sum_of (fun b => {both}) {ticks}) {ticks})"
    assert numbers(theorems, term) == [largest_change(C.T @ C, 4, 1)]


def test_the_program_divides_parts_as_is_proved(theorems):
    cases = [(m, w, c) for m in (1, 2, 7) for w in range(m + 1) for c in range(m + 1)]
    proved = numbers(theorems, *(f"(portion {m} {w} {c})" for m, w, c in cases))
    assert [_portion(c, w, m) for m, w, c in cases] == proved
