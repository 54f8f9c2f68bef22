"""Rules about the source itself: who imports whom, where randomness comes from, what
loading costs.
"""

import ast
import functools
import inspect
import itertools
import os
import re
import subprocess
import sys
from pathlib import Path

import networkx
import pytest
from cases import one_test_of

import domains
import gaussnoise

PACKAGES = {package.__name__: Path(package.__file__).parent for package in (domains, gaussnoise)}
SOURCES = {
    f"{name}/{path.relative_to(root)}": path.read_text(encoding="utf-8")
    for name, root in PACKAGES.items()
    for path in sorted(root.rglob("*.py"))
}


@functools.cache
def parsed(source):
    return ast.parse(source)


def offenders(law, sources):
    """What a law finds, by the name of the source it is in; one test of all sources names every
    one.
    """
    return {name: found for name, source in sources.items() if (found := list(law(source)))}


GENERATOR_CHECK = "isinstance(rng, np.random.Generator)"


def imported(tree):
    """Dotted names of everything a module imports, inside functions as well."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def within(name, package):
    return name == package or name.startswith(f"{package}.")


def randomness(source):
    """Uses of pseudo-random numbers, except the ``rng`` a function named ``simulate`` is given."""
    tree = parsed(source)
    found = [
        n
        for n in imported(tree)
        if within(n, "random") or within(n, "numpy.random") or within(n, "scipy.stats")
    ]
    allowed = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == "simulate":
            annotations = [
                a.annotation for a in node.args.args + node.args.kwonlyargs if a.annotation
            ]
            allowed |= {id(inner) for annotation in annotations for inner in ast.walk(annotation)}
            allowed |= {
                id(inner)
                for inner in ast.walk(node)
                if isinstance(inner, ast.Name) and inner.id == "rng"
            }
            checks = [
                c
                for c in ast.walk(node)
                if isinstance(c, ast.Call) and ast.unparse(c) == GENERATOR_CHECK
            ]
            allowed |= {id(inner) for check in checks for inner in ast.walk(check)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in (
            "random",
            "default_rng",
            "RandomState",
        ):
            found += [] if id(node) in allowed else [ast.unparse(node)]
        elif isinstance(node, ast.Name) and node.id in ("random", "rng", "default_rng"):
            found += [] if id(node) in allowed else [node.id]
        elif (isinstance(node, ast.arg) and "seed" in node.arg) or (
            isinstance(node, ast.keyword) and node.arg == "seed"
        ):
            found.append(node.arg)
    return found


def test_the_sources_were_found():
    assert {
        "domains/sets/finite.py",
        "gaussnoise/mechanisms/gaussian.py",
        "gaussnoise/solvers/tables/marginals.py",
    } <= SOURCES.keys()


def test_no_randomness_outside_simulations():
    assert offenders(randomness, SOURCES) == {}


@one_test_of(
    "source",
    [
        "import random",
        "def f():\n    from numpy.random import normal",
        "from numpy import random",
        "import scipy.stats",
        "x = np.random.normal()",
        "def simulate(rng: np.random.Generator):\n    return np.random.normal()",
        "def simulate(rng=np.random.default_rng()): ...",
        "def release(rng): return rng.normal()",
        "def release(data, seed=None): ...",
        "def release(source):\n    return isinstance(source, np.random.Generator)",
        "def simulate(rng: np.random.Generator):\n    return np.random.Generator(rng)",
        "make(seed=1)",
    ],
)
def test_the_randomness_check_has_power(source):
    assert randomness(source)


def test_the_randomness_check_lets_simulations_through():
    assert not randomness("def simulate(self, rng: np.random.Generator):\n    return rng.normal()")
    assert not randomness(
        f"def simulate(self, rng):\n    if not {GENERATOR_CHECK}: raise TypeError"
    )


def imports_of_gaussnoise(source):
    return [name for name in imported(parsed(source)) if within(name, "gaussnoise")]


def test_domains_never_imports_gaussnoise():
    in_domains = {name: source for name, source in SOURCES.items() if name.startswith("domains/")}
    assert len(in_domains) > 30
    assert offenders(imports_of_gaussnoise, in_domains) == {}
    assert offenders(imports_of_gaussnoise, {"one": "def f():\n    from gaussnoise import text"})


GUARANTEES = {"ApproxDP", "GDP", "KL", "LocalDP", "PureDP", "TV", "zCDP"}


def asks_which_guarantee(source):
    """Where a source asks which privacy guarantee it was given, instead of asking the guarantee."""
    for node in ast.walk(parsed(source)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "issubclass"):
            asked = node.args[1]
        elif isinstance(node, ast.MatchClass):
            asked = node.cls
        elif isinstance(node, ast.Compare) and ast.unparse(node.left).startswith("type("):
            asked = node
        else:
            continue
        names = {inner.id for inner in ast.walk(asked) if isinstance(inner, ast.Name)}
        yield from sorted(GUARANTEES & names)


def test_only_what_works_with_one_guarantee_alone_asks_which_it_is():
    assert offenders(asks_which_guarantee, SOURCES) == {
        "gaussnoise/mechanisms/local.py": ["LocalDP"],  # messages are drawn for an ε
        "gaussnoise/privacy/per_record.py": ["zCDP"],  # which grows with the record
        "gaussnoise/privacy/ledger.py": ["zCDP"],  # whose ρ add up
    }
    asked = "match x:\n    case KL(alpha): ...\nisinstance(x, TV | PureDP) or type(x) is zCDP"
    assert sorted(asks_which_guarantee(asked)) == ["KL", "PureDP", "TV", "zCDP"]


def assertions(source):
    return [ast.unparse(node) for node in ast.walk(parsed(source)) if isinstance(node, ast.Assert)]


def test_no_assert_guards_anything():
    assert offenders(assertions, SOURCES) == {}
    assert offenders(assertions, {"one": "def f(x):\n    assert x"}) == {"one": ["assert x"]}


def python(code, *, before=None, cwd):
    """A fresh interpreter that sees our packages, with the folder ``before`` ahead of them."""
    path = [str(before)] if before else []
    path += [str(PACKAGES["gaussnoise"].parent), str(PACKAGES["domains"].parent)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path)}
    return subprocess.run(
        [sys.executable, "-c", code], cwd=cwd, env=environment, capture_output=True, text=True
    )


HEAVY = (
    "cvxpy opendp dp_accounting duckdb jax jinja2 lark matplotlib mbi narwhals pandas polars "
    "pyarrow typer pydantic importlib.metadata numpy.ma scipy.linalg scipy.optimize scipy.sparse "
    "scipy.spatial scipy.special scipy.stats"
).split()


@pytest.mark.parametrize("words", [["-m", "gaussnoise"], ["-mgaussnoise"], ["-um", "gaussnoise"]])
def test_the_command_runs_no_file_of_the_folder_it_stands_in(tmp_path, words):
    """Any module that the command loads, of ours, of others and of Python itself."""
    for name in ("numpy", "json", "domains", "typer", "runpy", "signal"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('a stranger')", encoding="utf-8")
    (tmp_path / "own.py").write_text("import gaussnoise, json", encoding="utf-8")
    path = os.pathsep.join(str(PACKAGES[name].parent) for name in ("gaussnoise", "domains"))

    def said(*arguments, cwd=tmp_path):
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=cwd,
            env=os.environ | {"PYTHONPATH": path},
            capture_output=True,
            text=True,
        )
        return done.stdout.strip() or done.stderr.strip()

    assert said(*words, "--version") == gaussnoise.__version__
    assert said(*words, "--version", cwd=PACKAGES["gaussnoise"].parent) == gaussnoise.__version__
    assert said("-m", "own", "gaussnoise") == "a stranger"  # Python's way with programs in general


def test_importing_is_light(tmp_path):
    answer = python("import gaussnoise, sys; print(*sys.modules)", cwd=tmp_path)
    assert answer.returncode == 0, answer.stderr
    assert not set(HEAVY) & set(answer.stdout.split())


@pytest.mark.parametrize("file", ["domains/__init__.py", "domains.py"])
@pytest.mark.parametrize("content", ["", "__gaussnoise_version__ = '0.0.0'"])
def test_another_package_of_the_name_domains_is_named(tmp_path, file, content):
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text(content)
    answer = python("import gaussnoise", before=tmp_path, cwd=tmp_path)
    assert "ImportError" in answer.stderr
    assert str(tmp_path / file) in answer.stderr
    assert "rename" in answer.stderr


@pytest.mark.parametrize("package", [domains, gaussnoise], ids=lambda package: package.__name__)
def test_public_names_exist_and_are_sorted(package):
    assert all(hasattr(package, name) for name in package.__all__)
    assert sorted(package.__all__) == package.__all__


def test_one_base_class_catches_every_error():
    errors = gaussnoise.errors
    named = [getattr(errors, name) for name in errors.__all__ if name.endswith("Error")]
    assert len(named) > 10
    assert all(issubclass(error, gaussnoise.GaussNoiseError) for error in named)


def test_gaussnoise_passes_every_domain_name_on():
    """Errors are in gn.errors; gn.domains has rarer sets, and what one's own needs."""
    rarely = {name for name in domains.__all__ if name.startswith("Abstract")}
    rarely |= {"BoxMoments", "QuadraticMax", "StreamWorkload", "TwoConvex"}
    assert rarely < set(domains.__all__)
    assert gaussnoise.domains is domains
    for name in set(domains.__all__) - rarely:
        module = gaussnoise.errors if name.endswith("Error") else gaussnoise
        assert getattr(module, name) is getattr(domains, name)


def test_help_shows_arraylike_by_its_name():
    """``inspect.signature`` writes numpy's union of ten types where an annotation is no string."""
    modules = (gaussnoise, domains, gaussnoise.streams, gaussnoise.estimators, gaussnoise.results)
    public = [getattr(module, name) for module in modules for name in module.__all__]
    members = [
        member
        for value in public
        for member in (value, *(vars(value).values() if inspect.isclass(value) else ()))
        if inspect.isfunction(member)
    ]
    assert "'ArrayLike'" in str(inspect.signature(gaussnoise.dual_norm))
    assert not [one for one in members if "_NestedSequence" in str(inspect.signature(one))]


def test_the_top_level_is_what_users_type():
    """Results, errors and rarely used classes are one dot away; no class is at both places."""
    assert len(gaussnoise.__all__) <= 65
    below = {*gaussnoise.results.__all__, *gaussnoise.errors.__all__} - {"GaussNoiseError"}
    assert not below & set(gaussnoise.__all__)


# The tree: every module is in a room, and imports, inside functions as well, from its own line or
# from lines above it in this list. The number is the level of the house that a line is on.
# README.md of gaussnoise says what the rooms are for.

ROOMS = """
    1 domains.errors domains.floats domains.records domains.stored domains.domain domains.checks
    1 domains.oracles
    1 domains.sets
    1 domains.algebra domains.tables domains.participation
    1 domains.description domains
    1 gaussnoise.errors gaussnoise.text gaussnoise.layout gaussnoise.drawing
    1 gaussnoise.verifier
    1 gaussnoise.numerics gaussnoise.files gaussnoise.records
    1 gaussnoise.signing gaussnoise.indicators
    2 gaussnoise.privacy gaussnoise.solvers
    3 gaussnoise.noise
    4 gaussnoise.bounds
    4 gaussnoise.mechanisms
    5 gaussnoise.tables.schema
    5 gaussnoise.tables.reading
    5 gaussnoise.tables.drafts
    5 gaussnoise.tables.counting
    5 gaussnoise.tables.planning
    5 gaussnoise.tables.release gaussnoise.tables gaussnoise.plots
    5 gaussnoise.tables.spark
    5 gaussnoise.estimators
    6 gaussnoise.streams
    7 gaussnoise gaussnoise.results gaussnoise.demo gaussnoise.cli gaussnoise.app
"""
LINE, LEVEL = {}, {}
for line, listed in enumerate(ROOMS.strip().splitlines()):
    level, *rooms = listed.split()
    LINE |= dict.fromkeys(rooms, line)
    LEVEL |= dict.fromkeys(rooms, int(level))

# Where a class and its operators meet: methods of the first that are written in the others.
MEETINGS = {
    "domains.domain": {
        "domains.algebra.differences",
        "domains.algebra.images",
        "domains.algebra.sums",
        "domains.oracles.distance",
        "domains.oracles.image",
        "domains.sets.finite",
    },
    "domains.sets.polytope": {"domains.algebra.differences"},
    "gaussnoise.streams.plan": {
        "gaussnoise.streams.running",
        "gaussnoise.streams.tables",
        "gaussnoise.streams.text",
    },
    "gaussnoise.tables.planning.budgets": {"gaussnoise.tables.release.report.render"},
    "gaussnoise.tables.planning.door": {"gaussnoise.streams.plan", "gaussnoise.streams.ticks"},
    "gaussnoise.tables.planning.plan": {
        "gaussnoise.tables.release.publish",
        "gaussnoise.tables.release.release",
        "gaussnoise.tables.release.report.pages",
        "gaussnoise.tables.release.store",
    },
    "gaussnoise.tables.release.publish": {"gaussnoise.tables.spark.releases"},
    "gaussnoise.tables.release.release": {
        "gaussnoise.tables.release.combined_files",
        "gaussnoise.tables.release.inspection",
    },
    "gaussnoise.tables.release.table": {
        "gaussnoise.tables.release.comparison",
        "gaussnoise.tables.release.default_plot",
    },
    "gaussnoise.tables.release.cells": {"gaussnoise.tables.release.default_plot"},
    "gaussnoise.tables.schema.schema": {"gaussnoise.tables.drafts.draft"},
    "gaussnoise.noise.optimal_noise": {
        "gaussnoise.noise.file",
        "gaussnoise.noise.convergence",
        "gaussnoise.noise.plots",
        "gaussnoise.noise.verify",
    },
}


def module_name(source_name):
    """``domains/sets/finite.py`` is ``domains.sets.finite``; a package is its ``__init__``."""
    return source_name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


MODULES = {module_name(name): source for name, source in SOURCES.items()}
FOLDERS = {module_name(name) for name in SOURCES if name.endswith("__init__.py")}


def modules_imported(module, source):
    """Our own modules that a module imports, and whether only for types."""
    tree = parsed(source)
    package = module if module in FOLDERS else module.rpartition(".")[0]
    for_types = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = (
                package.split(".")[: len(package.split(".")) + 1 - node.level] if node.level else []
            )
            start = ".".join(above + ([node.module] if node.module else []))
            names = [
                name if (name := f"{start}.{alias.name}") in MODULES else start
                for alias in node.names
            ]
        else:
            continue
        yield from (
            (name, id(node) in for_types) for name in names if name in MODULES and name != module
        )


def room_of(module):
    """The room with the longest name that a module is in."""
    rooms = [room for room in LINE if within(module, room)]
    return max(rooms, key=len)


def climbs(module, source):
    """Imports of a module from rooms below its own in the list, where it does not meet its
    operators.
    """
    return [
        name
        for name, _ in modules_imported(module, source)
        if LINE[room_of(name)] > LINE[room_of(module)] and name not in MEETINGS.get(module, ())
    ]


def test_imports_go_down_the_tree():
    assert {
        module: found for module, source in MODULES.items() if (found := climbs(module, source))
    } == {}


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("gaussnoise.numerics.span", "from ..noise.covariance import AbstractCovariance"),
        ("gaussnoise.solvers.points.interior", "def f():\n    from ...noise import solve"),
        ("gaussnoise.bounds.door", "import gaussnoise.mechanisms.gaussian"),
        ("domains.sets.finite", "from ..algebra import images"),
        (
            "gaussnoise.noise.solve",
            "if TYPE_CHECKING:\n    from ..tables.planning.plan import Plan",
        ),
    ],
)
def test_imports_up_the_tree_are_found(module, source):
    assert climbs(module, source)


def test_no_files_import_each_other_in_a_circle():
    graph = networkx.DiGraph(
        (module, name)
        for module, source in MODULES.items()
        for name, for_types in modules_imported(module, source)
        if not for_types and name not in MEETINGS.get(module, ())
    )
    assert [
        sorted(circle)
        for circle in networkx.strongly_connected_components(graph)
        if len(circle) > 1
    ] == []


README = (PACKAGES["gaussnoise"] / "README.md").read_text(encoding="utf-8")


def rooms_listed(readme):
    """In every row of a README's list of rooms, from the top: its level, and its rooms."""
    table = readme.partition("\n## Rooms\n")[2].partition("\n## ")[0]
    for row in table.splitlines():
        if named := re.match(r"\| (\d) \| ([^|]+) \|", row):
            names = [
                name.removesuffix(".py").strip("/") for name in re.findall(r"`([^`]+)`", named[2])
            ]
            files = ["domains" if name == "domains" else f"gaussnoise/{name}" for name in names]
            yield int(named[1]), [room_of(module_name(f"{file}.py")) for file in files]


def test_the_readme_lists_rooms_on_their_levels_and_in_the_order_in_which_they_import():
    rows = list(rooms_listed(README))
    assert {outer_room(room) for _, rooms in rows for room in rooms} == {
        outer_room(room) for room in LINE
    }
    assert [level for level, rooms in rows for room in rooms if LEVEL[room] != level] == []
    lines = [[LINE[room] for room in rooms] for _, rooms in rows]
    assert all(min(above) >= max(below) for above, below in itertools.pairwise(lines))
    turned = README.replace("| `noise/` |", "| `errors.py` |", 1)  # and where they are not
    assert any(LEVEL[room] != level for level, rooms in rooms_listed(turned) for room in rooms)


def tours(readme):
    """The files that each tour of a README passes."""
    text = readme.partition("\n## Tours\n")[2].partition("\n## ")[0]
    for tour in text.strip().split("\n\n"):
        named = re.findall(r"`([\w/]+\.py)`", tour)
        yield {name if name in SOURCES else f"gaussnoise/{name}" for name in named}


def test_tours_are_short_and_pass_files_that_are_there():
    passed = list(tours(README))
    assert len(passed) >= 4
    for files in passed:
        assert files <= SOURCES.keys()
        assert 5 < len(files) < 15
    assert not next(tours(README.replace("noise/solve.py", "noise/solved.py"))) <= SOURCES.keys()


def outer_room(module):
    return "domains" if within(module, "domains") else ".".join(module.split(".")[:2])


def test_there_are_few_rooms_on_few_levels_and_none_import_each_other_in_a_circle():
    graph = networkx.DiGraph(
        (outer_room(module), outer_room(name))
        for module, source in MODULES.items()
        for name, for_types in modules_imported(module, source)
        if not for_types and name not in MEETINGS.get(module, ())
    )
    graph.remove_edges_from(list(networkx.selfloop_edges(graph)))
    assert networkx.is_directed_acyclic_graph(graph)
    folders = {outer_room(folder) for folder in FOLDERS} - {"gaussnoise"}
    assert len(folders) == 14
    assert max(LEVEL.values()) == 7  # sixteen lines of imports before there were rooms


def at_the_top(source):
    """The imports of a source that run when it is loaded."""
    found = [n for n in parsed(source).body if isinstance(n, ast.Import | ast.ImportFrom)]
    return "\n".join(map(ast.unparse, found))


def test_who_reads_a_file_has_few_files_below_it_to_know():
    graph = networkx.DiGraph(
        (module, name)
        for module, source in MODULES.items()
        for name, _ in modules_imported(module, at_the_top(source))
    )
    chain = networkx.dag_longest_path(networkx.condensation(graph))
    assert 20 < len(chain) <= 30


def private_names(source):
    """Names with an underscore that a module imports from another file of ours."""
    for node in ast.walk(parsed(source)):
        if isinstance(node, ast.ImportFrom) and (
            node.level or within(node.module, "domains") or within(node.module, "gaussnoise")
        ):
            yield from (alias.name for alias in node.names if alias.name.startswith("_"))


def test_no_file_uses_private_names_of_another():
    assert offenders(private_names, MODULES) == {}


def test_private_names_are_found():
    assert list(private_names("from domains.oracles.distance import _Search, is_near")) == [
        "_Search"
    ]
    assert list(private_names("def f():\n    from .answer import _unsolved")) == ["_unsolved"]
    assert not list(private_names("from __future__ import _Feature\nfrom ... import text as _text"))


def test_meetings_of_a_class_and_its_operators_are_real():
    for module, names in MEETINGS.items():
        assert names <= {name for name, _ in modules_imported(module, MODULES[module])}


def test_one_test_of_many_cases_runs_all_and_names_those_that_fail():
    seen = []

    @one_test_of("x", range(4), ids=["low", "high", "wide", "thin"])
    def law(x):
        seen.append(x)
        if x == 3:
            pytest.skip("nothing to say")
        if x == 2:
            pytest.fail("as where nothing was raised")
        assert x != 1

    with pytest.raises(BaseExceptionGroup, match="2 of 4 cases") as caught:
        law()
    assert seen == [0, 1, 2, 3]
    assert [error.__notes__ for error in caught.value.exceptions] == [
        ["case 2 of 4: high"],
        ["case 3 of 4: wide"],
    ]
    with pytest.raises(pytest.skip.Exception):
        one_test_of("x", [3])(law.__wrapped__)()
