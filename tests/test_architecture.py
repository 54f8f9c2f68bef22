"""Rules about the source itself: who imports whom, where randomness comes from, what loading costs."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import domains
import gaussnoise

PACKAGES = {package.__name__: Path(package.__file__).parent for package in (domains, gaussnoise)}
SOURCES = {
    f"{name}/{path.relative_to(root)}": path.read_text(encoding="utf-8")
    for name, root in PACKAGES.items()
    for path in sorted(root.rglob("*.py"))
}
every_source = pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES.keys())


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
    tree = ast.parse(source)
    found = [n for n in imported(tree) if within(n, "random") or within(n, "numpy.random") or within(n, "scipy.stats")]
    allowed = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == "simulate":
            annotations = [a.annotation for a in node.args.args + node.args.kwonlyargs if a.annotation]
            allowed |= {id(inner) for annotation in annotations for inner in ast.walk(annotation)}
            allowed |= {id(inner) for inner in ast.walk(node) if isinstance(inner, ast.Name) and inner.id == "rng"}
            checks = [c for c in ast.walk(node) if isinstance(c, ast.Call) and ast.unparse(c) == GENERATOR_CHECK]
            allowed |= {id(inner) for check in checks for inner in ast.walk(check)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in ("random", "default_rng", "RandomState"):
            found += [] if id(node) in allowed else [ast.unparse(node)]
        elif isinstance(node, ast.Name) and node.id in ("random", "rng", "default_rng"):
            found += [] if id(node) in allowed else [node.id]
        elif (isinstance(node, ast.arg) and "seed" in node.arg) or (
            isinstance(node, ast.keyword) and node.arg == "seed"
        ):
            found.append(node.arg)
    return found


def test_the_sources_were_found():
    assert {"domains/_finite.py", "gaussnoise/_mechanism.py", "gaussnoise/_solvers/marginals.py"} <= SOURCES.keys()


@every_source
def test_no_randomness_outside_simulations(source):
    assert not randomness(source)


@pytest.mark.parametrize(
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
    assert not randomness(f"def simulate(self, rng):\n    if not {GENERATOR_CHECK}: raise TypeError")


@pytest.mark.parametrize("name", [name for name in SOURCES if name.startswith("domains/")])
def test_domains_never_imports_gaussnoise(name):
    assert not [n for n in imported(ast.parse(SOURCES[name])) if within(n, "gaussnoise")]


@every_source
def test_no_assert_guards_anything(source):
    assert not [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Assert)]


def python(code, *, before=None, cwd):
    """A fresh interpreter that sees our packages, with the folder ``before`` ahead of them."""
    path = [str(before)] if before else []
    path += [str(PACKAGES["gaussnoise"].parent), str(PACKAGES["domains"].parent)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path)}
    return subprocess.run([sys.executable, "-c", code], cwd=cwd, env=environment, capture_output=True, text=True)


HEAVY = "cvxpy opendp dp_accounting duckdb jax matplotlib mbi pandas polars pyarrow typer pydantic".split()


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


@pytest.mark.parametrize("name", [name for name in domains.__all__ if name != "__version__"])
def test_gaussnoise_passes_every_domain_name_on(name):
    assert getattr(gaussnoise, name) is getattr(domains, name)
